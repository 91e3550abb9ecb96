"""Group commit: one writer at a time commits a batch of waiting requests, with one sync or call.

A policy that stores share: a store says how a batch is committed (`BatchWriter`), and the queue
decides which requests are in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from copy import copy
from time import monotonic
from typing import Any, Protocol

from scrubjay.adapters.disk import busy
from scrubjay.model.errors import Busy, OutcomeUnknown, StoreError
from scrubjay.ports import patient, waited


class _Transaction(Protocol):
    @property
    def failure(self) -> BaseException | None:
        """What broke the transaction, and with it every request in it."""


class Request:
    """Work that one thread submits, and its outcome."""

    __slots__ = ("appointed", "deadline", "erasing", "error", "gate", "result", "work")

    def __init__(self, work: Callable[[Any], Any], *, erasing: bool, deadline: float) -> None:
        self.work = work
        self.erasing = erasing
        self.deadline = deadline
        self.result: Any = None
        self.error: BaseException | None = None
        self.gate: threading.Lock | None = None
        """Held until there is an outcome, or until its thread becomes the leader."""
        self.appointed = False

    def run(self, tx: _Transaction, *, is_own: bool) -> None:
        """Run the work on a transaction; its error, if any, is raised where it was submitted."""
        try:
            self.result = self.work(tx)
        except BaseException as error:  # seam: it is raised where the work was submitted
            if isinstance(error, KeyboardInterrupt) and not is_own:
                raise
            self.error = error
        if tx.failure is not None:
            self.error = None
            raise tx.failure

    def outcome(self) -> Any:
        """The result of the work, durable by now; raises what it or the commit raised."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None  # an error that holds its own frame is garbage for long
        return self.result


class BatchWriter(Protocol):
    """Commits batches of requests to one scope; its queue allows one thread at a time."""

    def acquire(self, timeout: float) -> None:
        """Exclude the writers of other processes; Busy at the timeout."""

    def release(self) -> None:
        """Let them in again."""

    def commit(self, batch: Sequence[Request]) -> None:
        """Run and commit the batch, setting the outcome of each; raises a failure of all."""


class CommitQueue:
    """Queue of the writers of one scope in this process: the first of them commits for all.

    Whoever comes while a batch is being committed is in the next one.
    """

    def __init__(self, writer: BatchWriter, timeout: float) -> None:
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
        request = Request(work, erasing=erasing, deadline=monotonic() + patient(self._timeout))
        with self._mutex:
            leads = self._leader is None
            if leads:
                self._leader = me
            elif patient(1.0) <= 0:
                raise busy()
            else:
                request.gate = threading.Lock()
                request.gate.acquire()
                self._waiting.append(request)
        if leads or self._wait(request):
            self._lead(request)
        return request.outcome()

    def _wait(self, request: Request) -> bool:
        """Wait for the outcome; True if this thread becomes the leader instead."""
        assert request.gate is not None
        begun = monotonic()
        try:
            request.gate.acquire()
            waited(monotonic() - begun)
        except BaseException:  # seam: who stops waiting must leave the queue, whatever stopped it
            with self._mutex:
                waits = request in self._waiting
                if waits:
                    self._waiting.remove(request)
            if not waits and request.appointed:
                self._pass_on()
            raise
        return request.appointed

    def _lead(self, leader: Request) -> None:
        """Commit the waiting requests as one batch and distribute the outcomes."""
        batch = [leader]
        try:
            self._leader = threading.get_ident()
            self._writer.acquire(leader.deadline - monotonic())
            try:
                with self._mutex:
                    batch, self._waiting = [leader, *self._waiting], []
                self._writer.commit(batch)
            finally:
                self._writer.release()
        except BaseException as error:  # seam: the others of the batch must not wait for ever
            if isinstance(error, Busy) and len(batch) == 1:
                # Those who have waited as long as the leader has are late, too.
                now = monotonic()
                with self._mutex:
                    batch += [request for request in self._waiting if request.deadline <= now]
                    self._waiting = [one for one in self._waiting if one.deadline > now]
            _fail(batch, error)
        finally:
            self._pass_on()
            for request in batch:
                if request is not leader and request.gate is not None:
                    request.gate.release()

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


def _fail(batch: Sequence[Request], error: BaseException) -> None:
    """Set the error of all requests without one; each thread gets its own exception object."""
    for request in batch:
        if request.error is not None:
            continue
        if request is batch[0]:
            request.error = error
        elif isinstance(error, StoreError):
            request.error = copy(error)
            request.error.__cause__ = error.__cause__
        else:
            request.error = OutcomeUnknown("The commit was interrupted.")
            request.error.__cause__ = error
