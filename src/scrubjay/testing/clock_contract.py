"""What every Clock must do. Subclass the contract, give a clock, and run pytest.

class TestMyClock(ClockContract):
    @pytest.fixture
    def clock(self):
        return MyClock()
"""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from scrubjay.ports import Clock


class ClockContract:
    """The promises of the port, one test each."""

    @pytest.fixture
    def clock(self) -> Clock:
        """The clock under test."""
        raise NotImplementedError("Give a clock.")

    def test_the_time_is_aware_and_utc(self, clock: Clock) -> None:
        assert clock.now().utcoffset() == timedelta()

    def test_seconds_never_run_backwards(self, clock: Clock) -> None:
        seconds = [clock.monotonic() for _ in range(100)]
        assert seconds == sorted(seconds)

    def test_ids_are_random_uuids(self, clock: Clock) -> None:
        for _ in range(100):
            text = clock.new_id()
            parsed = uuid.UUID(text)
            assert str(parsed) == text
            assert parsed.version == 4
            assert parsed.variant == uuid.RFC_4122

    def test_ids_do_not_repeat(self, clock: Clock) -> None:
        assert len({clock.new_id() for _ in range(10_000)}) == 10_000

    @pytest.mark.parametrize("size", [0, 1, 12, 32, 100_000])
    def test_random_bytes_are_as_many_as_asked_for(self, clock: Clock, size: int) -> None:
        assert len(clock.random(size)) == size

    def test_nonces_do_not_repeat(self, clock: Clock, request: pytest.FixtureRequest) -> None:
        more = request.config.getoption("--more", default=False)
        count = 1_000_000 if more else 100_000
        assert len({clock.random(12) for _ in range(count)}) == count

    def test_every_bit_of_random_bytes_takes_both_values(self, clock: Clock) -> None:
        drawn = [int.from_bytes(clock.random(12)) for _ in range(200)]
        ones = zeros = 0
        for value in drawn:
            ones |= value
            zeros |= ~value
        assert ones & (2**96 - 1) == 2**96 - 1
        assert zeros & (2**96 - 1) == 2**96 - 1
