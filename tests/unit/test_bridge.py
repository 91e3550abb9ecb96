"""The bridge: reads may be left behind, writes never."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from scrubjay.bridge import Abandoned, Bridge, Limits, TooLate
from scrubjay.model.errors import Busy, Frozen

Crossing = Callable[[Bridge], Awaitable[Any]]


def cross(work: Crossing, **limits: Any) -> Any:
    """Run async work with a bridge that is closed afterwards."""

    async def main() -> Any:
        bridge = Bridge(Limits(**limits))
        try:
            return await work(bridge)
        finally:
            await bridge.close()

    return asyncio.run(main())


def test_what_the_work_returns_or_raises_is_returned_or_raised() -> None:
    def frozen() -> None:
        raise Frozen("It is frozen.")

    async def main(bridge: Bridge) -> None:
        assert await bridge.read(lambda: 1) == 1
        assert await bridge.write(lambda: 2) == 2
        for verb in (bridge.read, bridge.write):
            with pytest.raises(Frozen):
                await verb(frozen)

    cross(main)


def test_reads_and_writes_have_threads_of_their_own() -> None:
    """A read that hangs keeps no write from being done."""
    stuck = threading.Event()

    async def main(bridge: Bridge) -> str:
        hanging = asyncio.ensure_future(bridge.read(stuck.wait))
        try:
            return await bridge.write(lambda: threading.current_thread().name)
        finally:
            stuck.set()
            await hanging

    assert cross(main, readers=1).startswith("write")


def test_what_goes_over_a_whole_scope_takes_turns_in_a_thread_of_its_own() -> None:
    """However many are asked for at once, a recall finds a thread."""
    stuck, together = threading.Event(), list[int]()

    def go_over() -> None:
        together.append(1)
        stuck.wait(10)

    async def main(bridge: Bridge) -> str:
        heavy = [
            asyncio.ensure_future(verb(go_over, heavy=True))
            for verb in (bridge.read, bridge.write, bridge.read, bridge.write)
        ]
        name = await bridge.read(lambda: threading.current_thread().name, seconds=5)
        assert len(together) <= 1
        stuck.set()
        await asyncio.gather(*heavy)
        return name

    assert cross(main, readers=1, writers=1).startswith("read")
    assert len(together) == 4


def test_too_many_that_go_over_a_whole_scope_are_told_to_come_back() -> None:
    stuck = threading.Event()

    async def main(bridge: Bridge) -> int:
        waiting = [asyncio.ensure_future(bridge.read(stuck.wait, heavy=True)) for _ in range(2)]
        await asyncio.sleep(0)  # lets them begin
        with pytest.raises(Busy):
            await bridge.write(lambda: None, heavy=True)
        assert await bridge.read(lambda: 1) == 1
        stuck.set()
        await asyncio.gather(*waiting)
        return await bridge.write(lambda: 2, heavy=True)

    assert cross(main, heavy=2) == 2


def test_the_queue_counts_what_waits_and_since_when() -> None:
    stuck, now = threading.Event(), [0.0]

    async def main() -> None:
        bridge = Bridge(Limits(readers=1), monotonic=lambda: now[0])
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hang() -> None:
            loop.call_soon_threadsafe(begun.set)
            stuck.wait(10)

        running = asyncio.ensure_future(bridge.read(hang))
        await begun.wait()
        assert bridge.queue() == (0, 0.0)
        waiting = asyncio.ensure_future(bridge.read(lambda: None))
        await asyncio.sleep(0)  # lets it be handed over
        now[0] = 7.0
        assert bridge.queue() == (1, 7.0)
        stuck.set()
        await asyncio.gather(running, waiting)
        assert bridge.queue() == (0, 0.0)
        await bridge.close()

    asyncio.run(main())


def test_a_read_is_left_at_its_deadline() -> None:
    stuck = threading.Event()

    async def main(bridge: Bridge) -> None:
        with pytest.raises(TooLate):
            await bridge.read(stuck.wait, seconds=0.01)
        stuck.set()

    cross(main)


def test_a_read_is_left_when_nobody_waits_for_it() -> None:
    stuck, hung_up = threading.Event(), asyncio.Event()

    async def main(bridge: Bridge) -> None:
        hung_up.set()
        with pytest.raises(Abandoned):
            await bridge.read(stuck.wait, gone=hung_up.wait)
        stuck.set()

    cross(main)


def test_a_write_that_has_begun_ends_although_its_caller_is_gone() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def write() -> None:
        begun.set()
        assert go_on.wait(60)
        done.set()

    async def main(bridge: Bridge) -> None:
        caller = asyncio.ensure_future(bridge.write(write))
        await asyncio.to_thread(begun.wait, 10)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert not done.is_set()
        go_on.set()

    cross(main)
    assert done.is_set()


def test_closing_waits_for_writes_that_were_accepted() -> None:
    go_on, done = threading.Event(), list[int]()
    waiting = list[asyncio.Future[None]]()

    def write(number: int) -> None:
        assert go_on.wait(60)
        done.append(number)

    async def main(bridge: Bridge) -> None:
        writes = [bridge.write(partial(write, number)) for number in range(3)]
        waiting.extend(asyncio.ensure_future(one) for one in writes)
        await asyncio.sleep(0)  # lets them be handed over, no longer
        closing = asyncio.ensure_future(bridge.close())
        await asyncio.wait({closing}, timeout=0.05)
        assert not closing.done()
        go_on.set()
        await closing

    cross(main, writers=1)
    assert done == [0, 1, 2]


def test_a_write_that_gets_no_turn_in_time_is_never_done() -> None:
    stuck, done = threading.Event(), threading.Event()

    async def main(bridge: Bridge) -> None:
        first = asyncio.ensure_future(bridge.write(stuck.wait))
        await asyncio.sleep(0)  # lets the first one take the only thread
        with pytest.raises(TooLate):
            await bridge.write(done.set)
        stuck.set()
        await first

    cross(main, writers=1, write_seconds=0.01)
    assert not done.is_set()


def test_too_many_at_once_are_told_to_come_back() -> None:
    stuck = threading.Event()

    async def main(bridge: Bridge) -> int:
        waiting = [asyncio.ensure_future(bridge.read(stuck.wait)) for _ in range(2)]
        await asyncio.sleep(0)  # lets them begin
        with pytest.raises(Busy):
            await bridge.read(lambda: None)
        stuck.set()
        await asyncio.gather(*waiting)
        return await bridge.read(lambda: 1)

    assert cross(main, waiting=2) == 1


def test_a_backlog_of_writes_refuses_no_read() -> None:
    stuck = threading.Event()

    async def main(bridge: Bridge) -> int:
        writes = [asyncio.ensure_future(bridge.write(stuck.wait)) for _ in range(2)]
        await asyncio.sleep(0)  # lets them be handed over
        with pytest.raises(Busy):
            await bridge.write(lambda: None)
        assert bridge.full
        found = await bridge.read(lambda: 1)
        stuck.set()
        await asyncio.gather(*writes)
        return found

    assert cross(main, waiting=2, writers=1) == 1


def test_a_read_that_could_not_be_done_in_time_is_refused_at_once() -> None:
    """As long as such reads take now, behind those that wait already."""
    stuck, now = threading.Event(), [0.0]

    async def main() -> None:
        bridge = Bridge(Limits(readers=1), monotonic=lambda: now[0])

        def slow() -> None:
            now[0] += 20.0

        await bridge.read(slow)
        waiting = asyncio.ensure_future(bridge.read(stuck.wait))
        await asyncio.sleep(0)  # lets it take the only thread
        done = list[int]()
        with pytest.raises(TooLate):
            await bridge.read(lambda: done.append(1), seconds=1.0)
        patient = asyncio.ensure_future(bridge.read(lambda: done.append(2), seconds=10.0))
        await asyncio.sleep(0)
        stuck.set()
        await asyncio.gather(waiting, patient)
        assert done == [2]
        assert await bridge.read(lambda: 3, seconds=1.0) == 3  # a thread is free
        await bridge.close()

    asyncio.run(main())
