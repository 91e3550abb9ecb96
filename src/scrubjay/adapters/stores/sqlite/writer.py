"""Group commit: the writing connection of a file commits a batch of requests with one sync."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import apsw

from scrubjay.adapters.disk import busy
from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.files import FileKind, FileLock, discard, shut
from scrubjay.adapters.stores.sqlite.transaction import Statements
from scrubjay.model.errors import Busy, Full, StoreError
from scrubjay.ports import Failpoint, patient


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

    def outcome(self) -> Any:
        """The result of the work, durable by now; raises what it or the commit raised."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None  # an error that holds its own frame is garbage for long
        return self.result


class CommitQueue:
    """Queue of the writers of one file in this process."""

    def __init__(self, writer: FileWriter, timeout: float) -> None:
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
        try:
            request.gate.acquire()
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
            request.error = type(error)(error.message, hint=error.hint)
            request.error.__cause__ = error.__cause__
        else:
            request.error = StoreError(
                "The commit was interrupted; whether it happened is not known.",
                hint="Read the scope again before repeating the write.",
            )
            request.error.__cause__ = error


class FileWriter:
    """Commits batches to one file; its queue allows one thread at a time."""

    def __init__(
        self,
        kind: FileKind,
        lock: FileLock,
        connect: Callable[[], apsw.Connection],
        failed: Callable[[], None],
    ) -> None:
        self._kind = kind
        self._lock = lock
        self._connect = connect
        self._failed = failed
        self._session: Statements | None = None
        self._wary = False

    def acquire(self, timeout: float) -> None:
        """Acquire the lock that all processes share; Busy at the timeout."""
        try:
            if self._session is None:
                self._session = self._open()
            self._lock.acquire(timeout)
        except OSError as error:
            raise faults.fault(error) from error

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()

    def close(self, close: Callable[[apsw.Connection], None]) -> None:
        """Close the connection and the lock file."""
        session, self._session = self._session, None
        if session is not None:
            close(session.connection)
        self._lock.close()

    def commit(self, batch: Sequence[Request]) -> None:
        """Run and commit the batch, setting the outcome of each; raises a failure of all."""
        affordable = batch
        if not all(request.erasing for request in batch):
            try:
                self._demand_reserve()
            except StoreError as error:
                # While the reserve is used up, only erasing requests may run.
                affordable = [request for request in batch if request.erasing]
                for request in batch:
                    if not request.erasing:
                        request.error = type(error)(error.message, hint=error.hint)
        try:
            self._attempt(affordable)
        except Full:
            again = [request for request in batch if request.erasing and request.error is None]
            if not again:
                raise
            for request in batch:
                if request not in again and request.error is None:
                    request.error = faults.full()
        else:
            return
        self._kind.ballast.release()
        self._shorten_log()
        # What was rolled back runs once more: the only case in which work runs twice.
        self._attempt(again)

    def _demand_reserve(self) -> None:
        """The reserve is there, or made again; what fills the disk may be our own log."""
        try:
            self._kind.ballast.demand()
        except Full:
            self._shorten_log()
            self._kind.ballast.demand()

    def _shorten_log(self) -> None:
        """Let the log begin anew, if no reader needs it and the file finds space for the rest."""
        connection = self._ready().connection
        connection.set_busy_timeout(0)
        try:
            with suppress(apsw.Error):
                try:
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                except apsw.FullError:
                    self._kind.ballast.lend()
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            connection.set_busy_timeout(int(self._kind.timeout * 1000))

    def _attempt(self, batch: Sequence[Request]) -> None:
        if not batch:
            return
        session = self._ready()
        try:
            session.begin()
            if len(batch) == 1:
                _run(session, batch[0], is_own=True)
            else:
                for request in batch:
                    saved = session.save()
                    _run(session, request, is_own=request is batch[0])
                    if request.error is not None:
                        session.restore(saved)
                    session.run("RELEASE request")
            undone = len(batch) == 1 and batch[0].error is not None
            if undone:
                session.rollback()
            else:
                session.flush()
                self._kind.reach(Failpoint.STORE_BEFORE_COMMIT)
                session.commit()
        except BaseException as error:  # seam: the transaction ends before the lock is given back
            self._undo(session, error)
            raise
        if not undone:
            self._kind.reach(Failpoint.STORE_AFTER_COMMIT)

    def _undo(self, session: Statements, error: BaseException) -> None:
        """Roll back; the connection is not used again, except after Full or Busy.

        A sync that failed is never repeated: the kernel may have dropped the pages it could not
        write and call the next sync a success.
        """
        session.end()
        self._session = None
        passing = isinstance(error.__cause__, apsw.FullError | apsw.BusyError)
        sound = not isinstance(error, StoreError) or passing
        connection = session.connection
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error:
            sound = False
        if sound:
            self._session = self._kind.begin(connection)
        else:
            self._wary = True
            shut(connection)
            self._failed()

    def _open(self) -> Statements:
        connection = self._connect()
        connection.pragma("journal_mode", "wal")
        return self._kind.begin(connection)

    def _ready(self) -> Statements:
        """The transaction object; after a failure, only once the old log is checkpointed.

        The log may hold a transaction that was not acknowledged and is not on the disk; anything
        appended to it would be lost with it.
        """
        session = self._session = self._session or self._open()
        if not self._wary:
            return session
        try:
            session.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            pass  # a reader has kept the index of the log, which does not name the transaction
        except apsw.Error as error:
            self._session = None
            failure = faults.fault(error, session.connection.system_errno)
            discard(session.connection)
            raise failure from error
        self._wary = False
        return session


def _run(session: Statements, request: Request, *, is_own: bool) -> None:
    """Run the work of a request; its error, if any, is raised where it was submitted."""
    try:
        request.result = request.work(session)
    except BaseException as error:  # seam: it is raised where the work was submitted
        if isinstance(error, KeyboardInterrupt) and not is_own:
            raise
        request.error = error
    if session.failure is not None:
        request.error = None
        raise session.failure
