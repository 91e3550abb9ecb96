"""Rate limits hold in all processes of an installation together."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from scrubjay.bridge import Bridge
from scrubjay.model.errors import Full
from scrubjay.ports import Shared
from scrubjay.service.cursors import Signer
from scrubjay.service.problems import Problem
from scrubjay.service.rest import BY_NAME
from scrubjay.service.service import Meter, Rates, Spent
from scrubjay.testing.clock import FakeClock
from tests.support.engines import MemoryHome

RECALL, RETAIN = BY_NAME["recall"], BY_NAME["retain"]
SIGNER = Signer(bytes(32))


class Counted:
    """The shared state of a home, with its writes counted; it can be full."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.writes = 0
        self.full = False

    def get(self, name: str, now: float) -> bytes | None:
        return self._shared.get(name, now)

    def exchange(
        self, name: str, old: bytes | None, new: bytes | None, *, now: float, until: float
    ) -> bool:
        if self.full:
            raise Full("No space is left.")
        self.writes += 1
        return self._shared.exchange(name, old, new, now=now, until=until)

    def names(self, prefix: str, after: str, limit: int, now: float) -> list[str]:
        return list(self._shared.names(prefix, after, limit, now))


class Node:
    """A process of a service, as far as its limits go."""

    def __init__(self, rates: Rates, clock: FakeClock, shared: Shared) -> None:
        self.meter = Meter(rates, clock, shared, SIGNER)
        self.bridge = Bridge()

    def ask(self, key: str = "one", operation: object = RECALL) -> Spent | None:
        return asyncio.run(self.meter.spend(key, operation, self.bridge))  # type: ignore[arg-type]

    def refused(self, key: str = "one") -> Problem:
        with pytest.raises(Problem) as refused:
            self.ask(key)
        return refused.value


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def shared() -> Counted:
    return Counted(MemoryHome().store.shared)


def test_a_bucket_empties_and_fills_again(clock: FakeClock, shared: Counted) -> None:
    node = Node(Rates(reads=2, burst_seconds=1), clock, shared)
    node.ask()
    node.ask()
    refused = node.refused()
    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    node.ask("another")
    node.ask(operation=RETAIN)
    clock.advance(seconds=0.5)
    node.ask()
    node.refused()


def test_tokens_that_one_process_spent_are_spent_for_the_others(
    clock: FakeClock, shared: Counted
) -> None:
    """Whichever is asked: a key has one burst in all of them, and one rate after it."""
    rates = Rates(reads=4, burst_seconds=10)
    nodes = [Node(rates, clock, shared) for _ in range(3)]
    dice = random.Random(7)

    def allowed(asked: int) -> int:
        done = 0
        for _ in range(asked):
            with suppress(Problem):
                done += dice.choice(nodes).ask() is not None
        return done

    assert allowed(200) == 40
    clock.advance(seconds=5)
    assert 20 <= allowed(200) <= 21  # asking takes time, too
    again = Node(rates, clock, shared)
    again.refused()


def test_a_second_of_requests_costs_one_write(clock: FakeClock, shared: Counted) -> None:
    node = Node(Rates(reads=100, burst_seconds=10), clock, shared)
    for _ in range(300):
        node.ask()
    assert shared.writes == 3


def test_who_is_refused_costs_nothing_until_there_may_be_a_token(
    clock: FakeClock, shared: Counted
) -> None:
    node = Node(Rates(reads=1, burst_seconds=2), clock, shared)
    node.ask()
    node.ask()
    node.refused()
    before = shared.writes
    shared.full = True  # any draw would be seen: it would grant a token
    for _ in range(50):
        node.refused()
    assert shared.writes == before


def test_a_full_store_limits_no_request(clock: FakeClock, shared: Counted) -> None:
    shared.full = True
    node = Node(Rates(reads=2, burst_seconds=1), clock, shared)
    assert [node.ask() is not None for _ in range(10)] == [True] * 10


def test_a_clock_that_was_set_back_stops_no_key(clock: FakeClock, shared: Counted) -> None:
    node = Node(Rates(reads=1, burst_seconds=1), clock, shared)
    node.ask()
    clock.advance(days=-1)
    again = Node(Rates(reads=1, burst_seconds=1), clock, shared)
    again.refused()
    clock.advance(seconds=1)
    again.ask()


def test_the_shared_state_names_no_key(clock: FakeClock, shared: Counted) -> None:
    Node(Rates(), clock, shared).ask("k3jx2a7q")
    (name,) = shared.names("", "", 10, clock.now().timestamp())
    assert name.startswith("rate/")
    assert "k3jx2a7q" not in name
