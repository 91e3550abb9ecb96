"""The only crossing from async to sync: pools of threads, deadlines, and who may be left.

Reads and writes have threads of their own. What goes over a whole scope, be it to read or to write
it, takes turns in one thread: it may take minutes, and must not keep recall from its own.

The one thing that does not cross is a recall so short that the crossing would cost more
(`engine/search/shelf.py`).

A read nobody waits for any more is left behind; its thread ends by itself. A write is carried to
its end whatever becomes of who asked for it: it may be in doubt to them, never to the store.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from scrubjay.model.errors import Busy

Result = TypeVar("Result")
_PATIENCE: Final = 0.25
"""How long a read runs before it is worth watching whether anybody still waits for it."""


class TooLate(Exception):  # it is what happened
    """The deadline passed; of a write, before it had begun."""


class Abandoned(Exception):  # it is what happened
    """Nobody waits for the answer any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may go on at once, and for how long."""

    readers: int = 4
    writers: int = 16
    """More than readers: writers mostly wait, and those that wait together share one sync."""
    waiting: int = 512
    """How many may be under way before new ones are told to come back,"""
    heavy: int = 8
    """and how many of those that go over a whole scope, which take turns in one thread."""
    read_seconds: float = 30.0
    write_seconds: float = 30.0
    """How long a write may wait to begin."""
    heavy_seconds: float = 300.0
    """The same for what goes over a whole scope, which waits for others of its kind."""


class Bridge:
    """Runs the engine's verbs beside the event loop."""

    def __init__(
        self, limits: Limits | None = None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits or Limits()
        self._monotonic = monotonic
        self._reads = ThreadPoolExecutor(self.limits.readers, thread_name_prefix="read")
        self._writes = ThreadPoolExecutor(self.limits.writers, thread_name_prefix="write")
        self._turns = ThreadPoolExecutor(1, thread_name_prefix="heavy")
        self._mutex = threading.Lock()
        self._queued: dict[object, float] = {}
        self.waiting = 0
        """How many calls have not been answered yet."""
        self._heavy = 0

    async def read(
        self,
        work: Callable[[], Result],
        *,
        seconds: float | None = None,
        gone: Callable[[], Awaitable[object]] | None = None,
        heavy: bool = False,
    ) -> Result:
        """What `work` returns; TooLate after the deadline, Abandoned once `gone` returns."""
        future = asyncio.wrap_future(self._begin(work, self._reads, heavy=heavy))
        try:
            limit = self.limits.heavy_seconds if heavy else self.limits.read_seconds
            limit = limit if seconds is None else seconds
            await asyncio.wait({future}, timeout=min(_PATIENCE, limit))
            if not future.done():
                await _wait(future, max(0.0, limit - _PATIENCE), gone)
            return future.result()
        finally:
            future.cancel()

    async def write(self, work: Callable[[], Result], *, heavy: bool = False) -> Result:
        """What `work` returns; once it has begun it ends, also if the caller is cancelled."""
        task = self._begin(work, self._writes, heavy=heavy)
        future = asyncio.wrap_future(task)
        # A caller that is cancelled leaves the result unread, which is no mistake.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        limit = self.limits.heavy_seconds if heavy else self.limits.write_seconds
        await asyncio.wait({future}, timeout=limit)
        if not future.done() and task.cancel():
            raise TooLate("The write did not begin within its deadline; nothing was written.")
        return await future

    def queue(self) -> tuple[int, float]:
        """How many wait for a thread, and for how many seconds the first of them has."""
        since = list(self._queued.values())
        return len(since), self._monotonic() - since[0] if since else 0.0

    def _begin(
        self, work: Callable[[], Result], pool: ThreadPoolExecutor, *, heavy: bool
    ) -> Future[Result]:
        with self._mutex:
            full = self.waiting >= self.limits.waiting
            if full or (heavy and self._heavy >= self.limits.heavy):
                raise Busy("Too many requests are in progress.", hint="Retry in a moment.")
            self.waiting += 1
            self._heavy += heavy
        ticket = object()
        self._queued[ticket] = self._monotonic()

        def begun() -> Result:
            self._queued.pop(ticket, None)
            return work()

        def settled(_done: object) -> None:
            self._queued.pop(ticket, None)
            with self._mutex:
                self.waiting -= 1
                self._heavy -= heavy

        task = (self._turns if heavy else pool).submit(begun)
        task.add_done_callback(settled)
        return task

    async def close(self) -> None:
        """Finish every write that was accepted; reads that still run are left behind."""
        self._reads.shutdown(wait=False, cancel_futures=True)
        for pool in (self._writes, self._turns):
            await asyncio.to_thread(pool.shutdown, wait=True)


async def _wait(
    future: asyncio.Future[Result], seconds: float, gone: Callable[[], Awaitable[object]] | None
) -> None:
    """Wait for the work, the deadline, or for nobody to be there any more."""
    watch = asyncio.ensure_future(gone()) if gone else None
    both: set[asyncio.Future[Any]] = {future, watch} if watch else {future}
    try:
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not future.done():
            raise Abandoned if watch and watch.done() else TooLate("The deadline passed.")
    finally:
        if watch:
            watch.cancel()
