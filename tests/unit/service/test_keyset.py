"""The keys of an issuer: asked for no more often than needed, kept no longer than promised."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from scrubjay.service.issuer import PAUSE_SECONDS, Unreachable
from scrubjay.service.tokens import FRESH_SECONDS, KEPT_SECONDS, KeySet, VerifyingKey, read_keys
from scrubjay.testing.clock import FakeClock
from tests.support.issuer import SigningKey, private_key

KEY = SigningKey(kid="a", algorithm="ES256", key=private_key("ES256")).published
GOOD = read_keys({"keys": [KEY]})["a"]


class Published:
    """What an issuer would answer, how often it was asked, and a door it may be kept behind."""

    def __init__(self, *kids: str) -> None:
        self.kids = kids
        self.down = False
        self.asked = 0
        self.door = asyncio.Event()
        self.door.set()

    async def __call__(self) -> Mapping[str, VerifyingKey]:
        self.asked += 1
        await self.door.wait()
        if self.down:
            raise Unreachable("down")
        return dict.fromkeys(self.kids, GOOD)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_keys_are_asked_for_once_while_they_are_fresh(clock: FakeClock) -> None:
    async def run() -> None:
        published = Published("a")
        keys = KeySet(published, clock)
        for _ in range(5):
            assert await keys.find("a") == GOOD
            clock.advance(seconds=FRESH_SECONDS / 5 - 1)
        assert published.asked == 1
        clock.advance(seconds=10)
        await keys.find("a")
        assert published.asked == 2

    asyncio.run(run())


def test_a_key_that_was_withdrawn_is_refused_once_the_keys_are_not_fresh(clock: FakeClock) -> None:
    async def run() -> None:
        published = Published("a", "b")
        keys = KeySet(published, clock)
        assert await keys.find("a") == GOOD
        published.kids = ("b",)
        clock.advance(seconds=FRESH_SECONDS + 1)
        assert await keys.find("a") is None

    asyncio.run(run())


def test_a_flood_of_unknown_keys_is_one_question_in_ten_seconds(clock: FakeClock) -> None:
    async def run() -> None:
        published = Published("a")
        keys = KeySet(published, clock)
        for number in range(1_000):
            assert await keys.find(f"made-up-{number}") is None
        assert published.asked == 1
        clock.advance(seconds=PAUSE_SECONDS)
        await asyncio.gather(*(keys.find(f"made-up-{number}") for number in range(1_000)))
        assert published.asked == 2
        published.kids = ("b",)
        clock.advance(seconds=PAUSE_SECONDS)
        assert await keys.find("b") == GOOD, "and a new key is found for all that"

    asyncio.run(run())


def test_who_waits_for_an_answer_waits_for_the_same_one(clock: FakeClock) -> None:
    async def run() -> None:
        published = Published("a")
        published.door.clear()
        keys = KeySet(published, clock)
        waiting = [asyncio.ensure_future(keys.find("a")) for _ in range(5)]
        await asyncio.sleep(0)
        waiting.pop().cancel()
        clock.advance(seconds=PAUSE_SECONDS * 2)
        published.door.set()
        assert await asyncio.gather(*waiting) == [GOOD] * 4
        assert published.asked == 1

    asyncio.run(run())


def test_keys_go_on_working_while_the_issuer_is_down_for_a_bounded_time(clock: FakeClock) -> None:
    async def run() -> None:
        published = Published("a")
        keys = KeySet(published, clock)
        await keys.find("a")
        published.down = True
        clock.advance(seconds=KEPT_SECONDS - 60)
        assert await keys.find("a") == GOOD
        clock.advance(seconds=61)
        with pytest.raises(Unreachable):
            await keys.find("a")
        published.down = False
        clock.advance(seconds=PAUSE_SECONDS)
        await keys.find("b")
        assert await keys.find("a") == GOOD
        await keys.close()

    asyncio.run(run())


def test_with_a_known_key_nobody_waits_for_an_issuer_that_is_down(clock: FakeClock) -> None:
    async def run() -> None:
        published = Published("a")
        keys = KeySet(published, clock)
        await keys.find("a")
        published.down = True
        clock.advance(seconds=FRESH_SECONDS + 1)
        await keys.find("a")
        published.door.clear()
        clock.advance(seconds=PAUSE_SECONDS)
        assert await asyncio.wait_for(keys.find("a"), timeout=60) == GOOD
        await asyncio.sleep(0)
        assert published.asked == 3, "it is asked again all the same"
        await keys.close()

    asyncio.run(run())


def test_while_the_issuer_is_down_nobody_says_that_it_has_no_such_key(clock: FakeClock) -> None:
    async def run() -> None:
        published = Published("a")
        keys = KeySet(published, clock)
        await keys.find("a")
        published.down = True
        clock.advance(seconds=PAUSE_SECONDS)
        with pytest.raises(Unreachable):
            await keys.find("b")
        assert await keys.find("a") == GOOD

    asyncio.run(run())
