"""Connection pools of the open files: one writing connection with a queue, several to read."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final, TypeVar

import apsw

from scrubjay.adapters.disk import busy
from scrubjay.adapters.group_commit import CommitQueue
from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.files import LOCK, FileKind, FileLock, discard, held, shut
from scrubjay.adapters.stores.sqlite.transaction import SqliteView, Statements
from scrubjay.adapters.stores.sqlite.writer import FileWriter
from scrubjay.model.errors import NotFound, StoreError
from scrubjay.ports import patient, waited

Session = TypeVar("Session", bound=Statements)
_SETTLING_MS: Final = 50
_MAX_READERS: Final = 32
_MAX_IDLE: Final = 4


class Database:
    """Connection pool of one file: one connection writes, others are borrowed to read."""

    def __init__(self, kind: FileKind, address: str) -> None:
        self.address = address
        self.users = 0
        self._kind = kind
        self._path = kind.path(address)
        self._changed = threading.Condition()
        self._idle: list[apsw.Connection] = []
        self._lent: set[apsw.Connection] = set()
        self._count = 0
        if not os.path.exists(self._path):
            raise faults.absent()
        with faults.translated():
            # Never locked: it only tells whether the file was removed.
            self._anchor = FileLock(self._path + LOCK)
            self._number = os.stat(self._path).st_ino
            lock = FileLock(self._path + LOCK)
        self._writer = FileWriter(
            kind, lock, self._connect, failed=lambda: self._close_readers(shut)
        )
        self._queue = CommitQueue(self._writer, kind.timeout)
        try:
            self.give(self.take())  # so that whatever is wrong with the file shows
        except BaseException:  # seam: nobody gets the object that would close the files
            self._writer.close(discard)
            self._anchor.close()
            raise

    def is_current(self) -> bool:
        """Whether the file still exists as it was opened."""
        try:
            return self._anchor.is_named() and os.stat(self._path).st_ino == self._number
        except OSError:
            return False

    def take(self) -> apsw.Connection:
        """Borrow a connection to read with; Busy if all are in use for too long."""
        begun = monotonic()
        with self._changed:
            found = self._changed.wait_for(
                lambda: self._idle or self._count < _MAX_READERS, patient(self._kind.timeout)
            )
            waited(monotonic() - begun)
            if not found:
                raise busy()
            if self._idle:
                connection = self._idle.pop()
                self._lent.add(connection)
                return connection
            self._count += 1
        try:
            connection = self._connect()
        except BaseException:  # seam: the place in the pool is free again
            self._free_place()
            raise
        with self._changed:
            self._lent.add(connection)
        return connection

    def give(self, connection: apsw.Connection, *, sound: bool = True) -> None:
        """Return a connection; one that failed, or was disowned, is closed."""
        with self._changed:
            ours = connection in self._lent
            self._lent.discard(connection)
            if ours and sound and len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                self._changed.notify()
                return
        shut(connection)
        if ours:
            self._free_place()

    @contextmanager
    def lend(self, begin: Callable[[apsw.Connection], Session]) -> Iterator[Session]:
        """Borrow a connection for a block, to read with."""
        connection = self.take()
        session = begin(connection)
        try:
            yield session
        finally:
            session.end()
            self.give(connection, sound=session.failure is None)

    def _free_place(self) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify()

    def _close_readers(self, close: Callable[[apsw.Connection], None]) -> None:
        """Close idle connections; borrowed ones are closed when they are returned."""
        with self._changed:
            idle, self._idle = self._idle, []
            self._lent.clear()
            self._count = 0
            self._changed.notify_all()
        for connection in idle:
            close(connection)

    def write(self, work: Callable[[Any], Any], *, erasing: bool) -> Any:
        """Run `work` in a transaction; its result once it is durable."""
        return self._queue.submit(work, erasing=erasing)

    def settle(self) -> None:
        """Checkpoint and truncate the write-ahead log, unless a reader still needs it."""
        if not self.is_current():
            return
        connection = self.take()
        sound = False
        try:
            with faults.translated(), held(self._path + LOCK, self._kind.timeout):
                self._checkpoint(connection)
            sound = True
        finally:
            self.give(connection, sound=sound)

    def _checkpoint(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(_SETTLING_MS)
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            pass  # a reader needs the log; what it still holds goes with the next settling
        except apsw.FullError:
            if not self._kind.ballast.lend():
                raise
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            self._kind.be_patient(connection)

    def close(self, *, checkpoint: bool = True) -> None:
        """Close every idle connection; borrowed ones are closed when they are returned."""
        # SQLite would delete the log by its name, which may be that of another file by now.
        close = shut if checkpoint and self.is_current() else discard
        self._writer.close(close)
        self._close_readers(close)
        self._anchor.close()

    def _connect(self) -> apsw.Connection:
        """A connection to the file as it was opened, migrated to the newest schema."""
        kind = self._kind
        connection = kind.connect(self._path)
        try:
            if not self.is_current():
                raise faults.absent()
            if not kind.schema.is_current(connection):
                with held(self._path + LOCK, kind.timeout):
                    kind.schema.migrate(connection, kind.reach)
        except BaseException as error:  # seam: nobody gets the connection, so it is closed here
            system = connection.system_errno
            discard(connection)
            if isinstance(error, apsw.Error | OSError):
                raise faults.fault(error, system) from error
            raise
        return connection


# Files of a parent process, never to be closed here: SQLite's locks on them are not ours.
_INHERITED: Final[list[Database]] = []


class OpenFiles:
    """LRU cache of open databases of one kind, by address."""

    def __init__(self, kind: FileKind, limit: int) -> None:
        self._kind = kind
        self._limit = limit
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._opening = threading.Lock()
        self._files: OrderedDict[str, Database] = OrderedDict()
        self._closed = False

    def lease(self, address: str) -> Database:
        """Lease the database of an address: it is not closed before its release."""
        self.check()
        database = self._known(address)
        if database is None:
            with self._opening:
                database = self._known(address) or self._open(address)
        if database.is_current() or self._is_last_word(database):
            return database
        self.withdraw(address)
        self.release(database)
        return self.lease(address)

    def _is_last_word(self, database: Database) -> bool:
        """Whether the removed file is marked as destroyed, and no new file replaced it.

        Then open handles may still read the mark.
        """
        if self._kind.exists(database.address):
            return False
        try:
            with database.lend(SqliteView) as view:
                return view.head().destroyed
        except NotFound:  # its connections are all lent, and no more can be opened
            return False

    def release(self, database: Database) -> None:
        """End a lease."""
        unused = []
        with self._mutex:
            database.users -= 1
            if not database.users and self._files.get(database.address) is not database:
                unused.append(database)
            elif len(self._files) > self._limit:
                idle = [name for name, one in self._files.items() if not one.users]
                spare = idle[: len(self._files) - self._limit]
                unused = [self._files.pop(name) for name in spare]
        for one in unused:
            one.close()

    @contextmanager
    def using(self, address: str) -> Iterator[Database]:
        """Lease the database of an address for a block."""
        database = self.lease(address)
        try:
            yield database
        finally:
            self.release(database)

    def withdraw(self, address: str) -> None:
        """Close a database when its last lease ends; the next lease opens it again."""
        with self._mutex:
            database = self._files.pop(address, None)
            idle = database is not None and not database.users
        if database is not None and idle:
            database.close()

    def close(self, *, checkpoint: bool = True) -> None:
        """Close all databases; leased ones are closed on release."""
        with self._mutex:
            self._closed = True
            files, self._files = list(self._files.values()), OrderedDict()
            idle = [database for database in files if not database.users]
        if self._pid != os.getpid():
            _INHERITED.extend(files)
            return
        for database in idle:
            database.close(checkpoint=checkpoint)

    def check(self) -> None:
        """Raise unless the store can be used in this process."""
        if self._closed:
            raise faults.closed()
        if self._pid != os.getpid():
            raise StoreError(
                "The store was opened before this process was forked.",
                hint="Open a store of its own in every process.",
            )

    def _known(self, address: str) -> Database | None:
        with self._mutex:
            database = self._files.get(address)
            if database is not None:
                self._files.move_to_end(address)
                database.users += 1
            return database

    def _open(self, address: str) -> Database:
        database = Database(self._kind, address)
        database.users = 1
        with self._mutex:
            if not self._closed:
                self._files[address] = database
                return database
        database.close()
        raise faults.closed()
