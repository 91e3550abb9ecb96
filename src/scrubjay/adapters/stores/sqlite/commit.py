"""Group commit without a timer: who waits while a sync runs shares the next one.

Threads queue requests. Whoever finds no leader leads: it commits all that is queued, hands out
the outcomes and appoints the first who queued meanwhile. A lone writer therefore never waits for
company, and under load one sync serves many.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Protocol

from scrubjay.domain.errors import Busy, StoreError


class Request:
    """Work that one thread wants committed, and what became of it."""

    __slots__ = ("appointed", "deadline", "erasing", "error", "gate", "result", "work")

    def __init__(self, work: Callable[[Any], Any], *, erasing: bool, deadline: float) -> None:
        self.work = work
        self.erasing = erasing
        self.deadline = deadline
        self.result: Any = None
        self.error: BaseException | None = None
        self.gate: threading.Lock | None = None
        """Held until there is an outcome, or until its thread is to lead."""
        self.appointed = False

    def outcome(self) -> Any:
        """The result of the work, durable by now; raises what it or the commit raised."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None  # an error that holds its own frame is garbage for long
        return self.result


class Writer(Protocol):
    """What a queue leads its requests to."""

    def acquire(self, timeout: float) -> None:
        """Take the lock all processes share; Busy if it is held for too long."""

    def commit(self, batch: Sequence[Request]) -> None:
        """Run and commit the batch, setting result or error of each; raises what ends them all."""

    def release(self) -> None:
        """Give the lock back."""


class CommitQueue:
    """The writers of one file in this process."""

    def __init__(self, writer: Writer, timeout: float) -> None:
        self._writer = writer
        self._timeout = timeout
        self._mutex = threading.Lock()
        self._leader: int | None = None
        self._waiting: list[Request] = []

    def submit(self, work: Callable[[Any], Any], *, erasing: bool) -> Any:
        """Run `work` in a transaction; its result once it is durable."""
        me = threading.get_ident()
        if self._leader == me:
            raise StoreError("A write was begun inside another write of the same scope.")
        request = Request(work, erasing=erasing, deadline=monotonic() + self._timeout)
        with self._mutex:
            leads = self._leader is None
            if leads:
                self._leader = me
            else:
                request.gate = threading.Lock()
                request.gate.acquire()
                self._waiting.append(request)
        if leads or self._wait(request):
            self._lead(request)
        return request.outcome()

    def _wait(self, request: Request) -> bool:
        """Wait for the outcome; True if there is none, because this thread is to lead."""
        assert request.gate is not None
        try:
            request.gate.acquire()
        except BaseException:  # seam: who stops waiting must leave the queue, whatever stopped it
            self._withdraw(request)
            raise
        return request.appointed

    def _withdraw(self, request: Request) -> None:
        with self._mutex:
            if request in self._waiting:
                self._waiting.remove(request)
                return
        if request.appointed:
            self._pass_on()

    def _lead(self, request: Request) -> None:
        batch = [request]
        try:
            self._leader = threading.get_ident()
            self._writer.acquire(request.deadline - monotonic())
            try:
                batch = self._gather(request)
                self._writer.commit(batch)
            finally:
                self._writer.release()
        except Busy as error:
            batch = self._expired(request) if len(batch) == 1 else batch
            _fail(batch, request, error)
        except BaseException as error:  # seam: the others of the batch must not wait for ever
            _fail(batch, request, error)
        finally:
            self._pass_on()
            _hand_out(batch, request)

    def _gather(self, first: Request) -> list[Request]:
        with self._mutex:
            batch = [first, *self._waiting]
            self._waiting = []
            return batch

    def _expired(self, first: Request) -> list[Request]:
        """The leader and those who have waited as long as it has."""
        now = monotonic()
        with self._mutex:
            late = [request for request in self._waiting if request.deadline <= now]
            self._waiting = [request for request in self._waiting if request.deadline > now]
        return [first, *late]

    def _pass_on(self) -> None:
        with self._mutex:
            if not self._waiting:
                self._leader = None
                return
            successor = self._waiting.pop(0)
            successor.appointed = True
            self._leader = -1  # somebody, who will say so as soon as it runs
        assert successor.gate is not None
        successor.gate.release()


def _fail(batch: Sequence[Request], leader: Request, error: BaseException) -> None:
    """Give the error to all that have none of their own."""
    for request in batch:
        if request.error is None:
            request.error = error if request is leader else _shared(error)


def _shared(error: BaseException) -> StoreError:
    """The same failure for another thread, which needs an exception object of its own."""
    if isinstance(error, StoreError):
        copy = type(error)(error.message, hint=error.hint)
    else:
        copy = StoreError(
            "The commit was interrupted; whether it happened is not known.",
            hint="Read the scope again before repeating the write.",
        )
    copy.__cause__ = error.__cause__ if isinstance(error, StoreError) else error
    return copy


def _hand_out(batch: Sequence[Request], leader: Request) -> None:
    for request in batch:
        if request is not leader and request.gate is not None:
            request.gate.release()
