"""A clock that one seed decides: the same seed gives the same times, ids and bytes."""

from __future__ import annotations

import hashlib
import threading
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from scrubjay.ports import Clock

START = datetime(2026, 1, 1, tzinfo=UTC)
STEP = timedelta(milliseconds=1)


class FakeClock:
    """A deterministic Clock; every reading of the time moves it on by one step.

    Ids and random bytes come from SHAKE-256 over the seed and a counter, so they are the same on
    every platform and do not repeat. Safe for several threads, but only one thread at a time
    sees a reproducible order.
    """

    def __init__(
        self, seed: int | str = 0, *, start: datetime = START, step: timedelta = STEP
    ) -> None:
        self._seed = f"scrubjay.testing.FakeClock/{seed}/".encode()
        self._start = start
        self._step = step
        self._elapsed = timedelta()
        self._offset = timedelta()
        self._drawn = 0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The next moment, aware, UTC."""
        return self._start + self._tick() + self._offset

    def monotonic(self) -> float:
        """The seconds since the clock was made."""
        return self._tick().total_seconds()

    def new_id(self) -> str:
        """The next UUID (version 4) as text."""
        return str(uuid.UUID(bytes=self.random(16), version=4))

    def random(self, size: int) -> bytes:
        """The next bytes; as good as random, but the same for every clock of this seed."""
        with self._lock:
            self._drawn += 1
            drawn = self._drawn
        return hashlib.shake_256(self._seed + drawn.to_bytes(8)).digest(size)

    def advance(
        self, time: timedelta = timedelta(), *, days: float = 0, seconds: float = 0
    ) -> None:
        """Let time pass."""
        with self._lock:
            self._elapsed += time + timedelta(days=days, seconds=seconds)

    def shift(self, time: timedelta) -> None:
        """Set the wall clock forward or back, as an administrator may; no time passes."""
        with self._lock:
            self._offset += time

    def _tick(self) -> timedelta:
        with self._lock:
            self._elapsed += self._step
            return self._elapsed


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
