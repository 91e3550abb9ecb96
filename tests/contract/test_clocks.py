"""Every clock keeps the contract of the port."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scrubjay.ports import Clock, SystemClock
from scrubjay.testing.clock import START, STEP, ClockContract, FakeClock


class TestSystemClock(ClockContract):
    @pytest.fixture
    def clock(self) -> Clock:
        return SystemClock()


class TestFakeClock(ClockContract):
    @pytest.fixture
    def clock(self) -> Clock:
        return FakeClock("contract")

    def test_one_seed_gives_one_history(self) -> None:
        assert history(FakeClock(7)) == history(FakeClock(7))

    def test_another_seed_gives_other_ids(self) -> None:
        assert history(FakeClock(7))[1:] != history(FakeClock(8))[1:]

    def test_every_reading_moves_it_by_one_step(self) -> None:
        clock = FakeClock()
        assert [clock.now() for _ in range(3)] == [START + STEP * n for n in (1, 2, 3)]

    def test_advancing_moves_wall_and_stop_watch(self) -> None:
        clock = FakeClock()
        clock.advance(days=2, seconds=3)
        assert clock.now() == START + timedelta(days=2, seconds=3) + STEP
        assert clock.monotonic() == timedelta(days=2, seconds=3, milliseconds=2).total_seconds()

    def test_a_wall_clock_set_back_leaves_the_stop_watch_alone(self) -> None:
        clock = FakeClock()
        clock.shift(timedelta(days=-1))
        assert clock.now() < START
        assert clock.monotonic() > 0


def history(clock: FakeClock) -> tuple[object, ...]:
    return clock.now(), clock.new_id(), clock.random(12), clock.random(12), clock.new_id()
