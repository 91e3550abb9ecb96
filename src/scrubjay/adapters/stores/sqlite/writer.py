"""The writing connection of a file: it commits a batch of requests with one sync."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import apsw

from scrubjay.adapters.group_commit import Request
from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.files import FileKind, FileLock, discard, shut
from scrubjay.adapters.stores.sqlite.transaction import Statements
from scrubjay.model.errors import Full, StoreError
from scrubjay.ports import Failpoint


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
            self._kind.be_patient(connection)

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
