"""Bridge from async to sync: thread pools with deadlines; the only one in the package.

Reads and writes have separate pools. Operations on a whole scope run one at a time in one thread:
they may take minutes and must not delay recall.

Only a short recall runs on the event loop, where a thread would cost more
(`engine/search/shelf.py`).

A read whose client is gone is abandoned; its thread ends by itself. A write that has begun is
always finished, even if its caller is cancelled.
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
"""How long a read runs before the connection of its client is watched."""


class TooLate(Exception):  # it names an event, so it does not end in Error
    """The deadline passed; for a write, before it began."""


class Abandoned(Exception):  # it names an event, so it does not end in Error
    """The client disconnected before the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of concurrency and time."""

    readers: int = 4
    writers: int = 16
    """More than readers: writers mostly wait, and concurrent ones share one sync."""
    waiting: int = 512
    """Maximum number of calls in progress; further ones are refused as Busy."""
    heavy: int = 8
    """Maximum number of operations on a whole scope in progress; they run one at a time."""
    read_seconds: float = 30.0
    write_seconds: float = 30.0
    """Maximum wait of a write before it begins."""
    heavy_seconds: float = 300.0
    """The same for operations on a whole scope."""


class Bridge:
    """Runs the engine's verbs in threads beside the event loop."""

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
        """Number of calls in progress."""
        self._heavy = 0

    async def read(
        self,
        work: Callable[[], Result],
        *,
        seconds: float | None = None,
        gone: Callable[[], Awaitable[object]] | None = None,
        heavy: bool = False,
    ) -> Result:
        """Run a read; TooLate after the deadline, Abandoned once `gone` returns."""
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
        """Run a write; once begun it is finished, even if the caller is cancelled."""
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
        """Queue length, and the age of its first entry in seconds."""
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
        """Finish every accepted write; running reads are abandoned."""
        self._reads.shutdown(wait=False, cancel_futures=True)
        for pool in (self._writes, self._turns):
            await asyncio.to_thread(pool.shutdown, wait=True)


async def _wait(
    future: asyncio.Future[Result], seconds: float, gone: Callable[[], Awaitable[object]] | None
) -> None:
    """Wait for the work, the deadline, or the disconnect of the client."""
    watch = asyncio.ensure_future(gone()) if gone else None
    both: set[asyncio.Future[Any]] = {future, watch} if watch else {future}
    try:
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not future.done():
            raise Abandoned if watch and watch.done() else TooLate("The deadline passed.")
    finally:
        if watch:
            watch.cancel()
