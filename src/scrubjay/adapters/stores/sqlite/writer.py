"""The one connection of a file that writes: a batch of requests, one commit, one sync."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Protocol

import apsw

from scrubjay.adapters.stores.sqlite import connections
from scrubjay.adapters.stores.sqlite.ballast import Ballast
from scrubjay.adapters.stores.sqlite.connections import discard, shut
from scrubjay.adapters.stores.sqlite.lock import FileLock
from scrubjay.adapters.stores.sqlite.transaction import Session
from scrubjay.model.errors import Busy, Full, StoreError
from scrubjay.ports import Failpoint, Reach


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


class FileWriter:
    """Commits batches to one file; its queue sees to it that one thread at a time does."""

    def __init__(
        self,
        *,
        connect: Callable[[], apsw.Connection],
        begin: Callable[[apsw.Connection], Session],
        lock: FileLock,
        ballast: Ballast,
        reach: Reach,
        failed: Callable[[], None],
    ) -> None:
        self._connect = connect
        self._begin = begin
        self._lock = lock
        self._ballast = ballast
        self._reach = reach
        self._failed = failed
        self._session: Session | None = None
        self._wary = False

    def acquire(self, timeout: float) -> None:
        try:
            if self._session is None:
                self._session = self._open()
            self._lock.acquire(timeout)
        except OSError as error:
            raise connections.fault(error) from error

    def release(self) -> None:
        self._lock.release()

    def close(self, close: Callable[[apsw.Connection], None]) -> None:
        """Let go of the connection and of the lock file."""
        session, self._session = self._session, None
        if session is not None:
            close(session.connection)
        self._lock.close()

    def commit(self, batch: Sequence[Request]) -> None:
        try:
            self._attempt(self._affordable(batch))
        except Full:
            again = [request for request in batch if request.erasing and request.error is None]
            if not again:
                raise
            for request in batch:
                if request not in again and request.error is None:
                    request.error = connections.full()
        else:
            # Its work may have found no space for a file of its own on the same disk: a key.
            again = [one for one in batch if one.erasing and isinstance(one.error, Full)]
            if not again:
                return
            for request in again:
                request.error = None
        self._make_room()
        # What was rolled back runs once more: the only case in which work runs twice.
        self._attempt(again)

    def _make_room(self) -> None:
        """Give up the reserve, and let the log begin anew in the space it has."""
        self._ballast.release()
        with suppress(apsw.Error):
            _empty_log(self._ready().connection)

    def _affordable(self, batch: Sequence[Request]) -> Sequence[Request]:
        """The requests that may run: while the reserve is used up, only erasing ones."""
        if all(request.erasing for request in batch):
            return batch
        try:
            self._ballast.demand()
        except StoreError as error:
            for request in batch:
                if not request.erasing:
                    request.error = type(error)(error.message, hint=error.hint)
            return [request for request in batch if request.erasing]
        return batch

    def _attempt(self, batch: Sequence[Request]) -> None:
        if not batch:
            return
        session = self._ready()
        try:
            session.begin()
            if _run(session, batch):
                session.flush()
                self._reach(Failpoint.STORE_BEFORE_COMMIT)
                session.commit()
            else:
                session.rollback()
        except BaseException as error:  # seam: the transaction ends before the lock is given back
            self._undo(session, error)
            raise
        self._reach(Failpoint.STORE_AFTER_COMMIT)

    def _undo(self, session: Session, error: BaseException) -> None:
        """Roll back; after anything but a lack of space or luck, the connection is not used again.

        A sync that failed is never repeated: the kernel may have dropped the pages it could not
        write and call the next sync a success.
        """
        session.end()
        self._session = None
        sound = not isinstance(error, StoreError) or connections.is_passing(error)
        connection = session.connection
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error:
            sound = False
        if sound:
            self._session = self._begin(connection)
        else:
            self._wary = True
            shut(connection)
            self._failed()

    def _open(self) -> Session:
        connection = self._connect()
        connection.pragma("journal_mode", "wal")
        return self._begin(connection)

    def _ready(self) -> Session:
        """The session, after a failure only once the log it left is out of the way.

        The log may hold a transaction that nobody was told of and that is not on the disk; what
        is appended to it would be lost with it.
        """
        if self._session is None:
            self._session = self._open()
        if self._wary:
            self._recover(self._session)
            self._wary = False
        return self._session

    def _recover(self, session: Session) -> None:
        try:
            _empty_log(session.connection)
        except apsw.BusyError:
            pass  # a reader has kept the index of the log, which does not name the transaction
        except apsw.Error as error:
            self._session = None
            failure = connections.fault(error, session.connection.system_errno)
            discard(session.connection)
            raise failure from error


def _empty_log(connection: apsw.Connection) -> None:
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _run(session: Session, batch: Sequence[Request]) -> bool:
    """Run all works; whether there is anything to commit."""
    if len(batch) == 1:
        _run_work(session, batch[0], is_own=True)
        return batch[0].error is None
    for request in batch:
        saved = session.save()
        _run_work(session, request, is_own=request is batch[0])
        if request.error is not None:
            session.restore(saved)
        session.run("RELEASE request")
    return True


def _run_work(session: Session, request: Request, *, is_own: bool) -> None:
    try:
        request.result = request.work(session)
    except BaseException as error:  # seam: it is raised where the work was submitted
        if isinstance(error, KeyboardInterrupt) and not is_own:
            raise
        request.error = error
    if session.failure is not None:
        request.error = None
        raise session.failure
