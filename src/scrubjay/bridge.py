"""Bridge from async to sync: thread pools with deadlines; the only one in the package.

Reads and writes have separate pools and separate limits, so that a backlog of writes refuses no
recall. Operations on a whole scope run one at a time in one thread: they may take minutes and must
not delay recall.

Only a short recall runs on the event loop, where a thread would cost more
(`engine/search/verbs.py`).

A read whose client is gone is abandoned; its thread ends by itself. A write that has begun is
always finished, even if its caller is cancelled.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
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
    """Maximum number of reads, and of writes, in progress; further ones are refused as Busy."""
    heavy: int = 8
    """Maximum number of operations on a whole scope in progress; they run one at a time."""
    read_seconds: float = 30.0
    write_seconds: float = 30.0
    """Maximum wait of a write before it begins."""
    heavy_seconds: float = 300.0
    """The same for operations on a whole scope."""


_RECENT: Final = 0.1
"""Share of the last call in the mean duration of a lane."""


@dataclass(slots=True, kw_only=True)
class _Lane:
    """A pool of threads, how many calls are in progress on it, and how long they take."""

    name: str
    threads: int
    most: int
    pool: ThreadPoolExecutor = field(init=False)
    busy: int = 0
    seconds: float = 0.0
    """Moving average of the duration of a call."""

    def __post_init__(self) -> None:
        self.pool = ThreadPoolExecutor(self.threads, thread_name_prefix=self.name)

    @property
    def expected(self) -> float:
        """How many seconds a further call would take with its wait; 0 if a thread is free."""
        waits = self.busy - self.threads + 1
        return self.seconds * (1 + waits / self.threads) if waits > 0 else 0.0


class Bridge:
    """Runs the engine's verbs in threads beside the event loop."""

    def __init__(
        self, limits: Limits | None = None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits or Limits()
        self._monotonic = monotonic
        most = self.limits.waiting
        self._reads = _Lane(name="read", threads=self.limits.readers, most=most)
        self._writes = _Lane(name="write", threads=self.limits.writers, most=most)
        self._turns = _Lane(name="heavy", threads=1, most=self.limits.heavy)
        self._mutex = threading.Lock()
        self._queued: dict[object, float] = {}

    @property
    def full(self) -> bool:
        """Whether further reads or writes would be refused."""
        return any(lane.busy >= lane.most for lane in (self._reads, self._writes))

    async def read(
        self,
        work: Callable[[], Result],
        *,
        seconds: float | None = None,
        gone: Callable[[], Awaitable[object]] | None = None,
        heavy: bool = False,
    ) -> Result:
        """Run a read; TooLate after the deadline, Abandoned once `gone` returns.

        One that could not be done by the deadline, as long as such calls take now, is TooLate at
        once: it would only delay those that can.
        """
        lane = self._turns if heavy else self._reads
        if seconds is not None and lane.expected > seconds:
            raise TooLate("The deadline would pass before an answer.")
        future = asyncio.wrap_future(self._begin(work, lane))
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
        task = self._begin(work, self._turns if heavy else self._writes)
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

    def _begin(self, work: Callable[[], Result], lane: _Lane) -> Future[Result]:
        with self._mutex:
            if lane.busy >= lane.most:
                raise Busy("Too many requests are in progress.", hint="Retry in a moment.")
            lane.busy += 1
        ticket = object()
        self._queued[ticket] = self._monotonic()

        def begun() -> Result:
            self._queued.pop(ticket, None)
            at = self._monotonic()
            try:
                return work()
            finally:
                lane.seconds += _RECENT * (self._monotonic() - at - lane.seconds)

        def settled(_done: object) -> None:
            self._queued.pop(ticket, None)
            with self._mutex:
                lane.busy -= 1

        task = lane.pool.submit(begun)
        task.add_done_callback(settled)
        return task

    async def close(self) -> None:
        """Finish every accepted write; running reads are abandoned."""
        self._reads.pool.shutdown(wait=False, cancel_futures=True)
        for lane in (self._writes, self._turns):
            await asyncio.to_thread(lane.pool.shutdown, wait=True)


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
