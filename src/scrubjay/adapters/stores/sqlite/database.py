"""Files of a store: locking, creation, removal and reserved disk space; their open connections.

One connection of a file writes, in a queue, and commits a batch of requests with one sync; others
are borrowed to read. Writers of all processes queue on an advisory lock (`flock`) per file.
SQLite's own lock is polled, and with many writers some starve; this one is a queue in the kernel.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, TypeVar

import apsw
from msgspec import Struct

from scrubjay.adapters.disk import Disk, LockWait, busy
from scrubjay.adapters.group_commit import CommitQueue, Request
from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.schema import Schema
from scrubjay.adapters.stores.sqlite.transaction import SqliteView, Statements
from scrubjay.model.errors import Full, NotFound, StoreError
from scrubjay.ports import Failpoint, Reach, patient, waited

LOCK: Final = ".lock"
_NEW: Final = ".new"
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
# The database goes first: without it the rest is nothing, while it without its log is old.
_SIDES: Final = ("", "-wal", "-shm", "-journal")
_FILES: Final = (*_SIDES, *(_NEW + side for side in _SIDES), LOCK + _NEW)
_ADDRESS: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_CHUNK: Final = 1 << 20
_RECHECK_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.01
_CACHE_KIB: Final = 2048
_CHECKPOINT_PAGES: Final = 1000
_LOG_BYTES: Final = 8 << 20
_PRAGMAS: Final = f"""
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
PRAGMA cache_size = -{_CACHE_KIB};
PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES};
PRAGMA journal_size_limit = {_LOG_BYTES};
"""


class FileLock:
    """Advisory file lock; not thread-safe.

    A lock file is unlinked with its database and created again with a new one, so an open one
    shows whether the database is still the one that was opened.
    """

    __slots__ = ("_fd", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = os.open(path, _FLAGS, 0o600)

    def acquire(self, timeout: float) -> None:
        """Acquire the lock; Busy after `timeout` seconds."""
        if self._fd is None:
            self._fd = os.open(self._path, _FLAGS, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            locked = LockWait(self._path).wait(timeout)
            self.close()
            self._fd = locked

    def release(self) -> None:
        """Release the lock; the file stays open."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file, which releases the lock."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def is_named(self) -> bool:
        """Whether the open file is still the one at its path."""
        return self._fd is not None and os.fstat(self._fd).st_nlink > 0


@contextmanager
def held(path: str, timeout: float) -> Iterator[None]:
    """Context manager: hold the lock of `path`, which exists while it is held."""
    deadline = monotonic() + patient(timeout)
    lock = FileLock(path)
    try:
        lock.acquire(deadline - monotonic())
        while not lock.is_named():  # its last holder removed the file together with the scope
            lock.close()
            lock.acquire(deadline - monotonic())
        yield
    finally:
        lock.close()


class Ballast:
    """Ballast file: disk space reserved for erasures, and for folding logs, on a full disk."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = os.fspath(path)
        self._size = size
        self._for_logs = size // 4
        self._seen_until = 0.0

    def demand(self) -> None:
        """Create the reserve if it is missing; Full if there is no space for it.

        A release by another process is noticed within a second.
        """
        now = monotonic()
        if not self._size or now < self._seen_until:
            return
        try:
            present = os.stat(self._path).st_size >= self._size
        except FileNotFoundError:
            present = False
        if not present:
            self._allocate()
        self._seen_until = now + _RECHECK_SECONDS

    def release(self) -> None:
        """Release the reserve, but for the part that a log needs to begin anew."""
        self._seen_until = 0.0
        with suppress(OSError):
            if os.stat(self._path).st_size > self._for_logs:
                os.truncate(self._path, self._for_logs)

    def lend(self) -> bool:
        """Release all of it, for a log that gives back more; whether there was any."""
        self._seen_until = 0.0
        with suppress(FileNotFoundError):
            os.unlink(self._path)
            return True
        return False

    def _allocate(self) -> None:
        try:
            fd = os.open(self._path, _FLAGS, 0o600)
            before = os.fstat(fd).st_size
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(fd, 0, self._size)
                    return
                # A file made longer without being written takes no space; zeros do.
                zeros = bytes(_CHUNK)
                for at in range(0, self._size, _CHUNK):
                    os.pwrite(fd, zeros[: self._size - at], at)
            except OSError:
                os.truncate(fd, min(before, self._for_logs))
                raise
            finally:
                os.close(fd)
        except OSError as error:
            raise faults.fault(error) from error


def shut(connection: apsw.Connection) -> None:
    """Close a connection; the last one of a file checkpoints its log, as far as possible."""
    # What could not be brought in stays in the log, and the next to open the file reads it there.
    with suppress(apsw.Error):
        connection.close()


def discard(connection: apsw.Connection) -> None:
    """Close a connection without a checkpoint."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    shut(connection)


class FileKind(Struct, frozen=True, kw_only=True):
    """A kind of file (scopes, or catalogs): folder, schema, and how it is opened."""

    folder: str
    schema: Schema
    begin: Callable[[apsw.Connection], Statements]
    """Builds the statements object that the work of a write receives."""
    vfs: str | None
    timeout: float
    ballast: Ballast
    reach: Reach

    def path(self, address: str) -> str:
        """Path of the file of an address."""
        if not _ADDRESS.fullmatch(address):
            raise StoreError("An address is 1 to 100 letters, digits, - and _.")
        return f"{self.folder}/{address}.sqlite"

    def exists(self, address: str) -> bool:
        """Whether the complete file exists."""
        return os.path.exists(self.path(address))

    def create(self, address: str) -> None:
        """Create the file unless it exists; atomic and durable."""
        path = self.path(address)
        if os.path.exists(path):
            return
        with faults.translated():
            if not os.path.isdir(self.folder):
                Disk().make_folder(Path(self.folder))
        with faults.translated(), held(path + LOCK, self.timeout):
            if os.path.exists(path):
                return
            self.ballast.demand()
            # A log left by a removal that was cut short would be replayed into the new file.
            _unlink(path)
            self._build(path + _NEW)
            # Locked before it has its name: whoever opens the new lock file there waits like
            # those at the old one, which this block holds.
            fd = os.open(path + LOCK + _NEW, _FLAGS, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                os.rename(path + LOCK + _NEW, path + LOCK)
                os.rename(path + _NEW, path)
                Disk().sync_folder(Path(self.folder))
            finally:
                os.close(fd)

    def _build(self, path: str) -> None:
        os.close(os.open(path, _FLAGS | os.O_EXCL, 0o600))
        connection = apsw.Connection(path, apsw.SQLITE_OPEN_READWRITE, self.vfs)
        try:
            # Nobody has seen the file yet, so there is nothing a journal could bring back.
            connection.pragma("journal_mode", "off")
            connection.pragma("synchronous", "full")
            self.schema.build(connection)
            connection.pragma("journal_mode", "wal")
        finally:
            connection.close()

    def remove(self, address: str) -> None:
        """Unlink all files of an address, durably; absent ones are fine."""
        path = self.path(address)
        if not os.path.isdir(self.folder):
            return
        with faults.translated(), held(path + LOCK, self.timeout):
            _unlink(path)
            os.unlink(path + LOCK)
            Disk().sync_folder(Path(self.folder))

    def connect(self, path: str) -> apsw.Connection:
        """A connection to an existing file; NotFound if there is none."""
        try:
            return self._connect(path)
        except Full:
            # Who cannot open a file cannot erase from it.
            if not self.ballast.lend():
                raise
            return self._connect(path)

    def be_patient(self, connection: apsw.Connection) -> None:
        """Let SQLite wait for its own locks, too, only as long as the verb may still wait."""

        def again(tries: int) -> bool:
            if tries * _PAUSE_SECONDS >= self.timeout or patient(self.timeout) <= 0:
                return False
            sleep(_PAUSE_SECONDS)
            waited(_PAUSE_SECONDS)
            return True

        connection.set_busy_handler(again)

    def _connect(self, path: str) -> apsw.Connection:
        try:
            # Without SQLITE_OPEN_CREATE: a scope that was removed is never made again by accident.
            connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=self.vfs)
        except apsw.Error as error:
            if not os.path.exists(path):
                raise faults.absent() from error
            raise faults.fault(error) from error
        try:
            self.be_patient(connection)
            connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            connection.execute(_PRAGMAS)
            # The first read opens the side files, so that all three are of one moment.
            connection.pragma("user_version")
        except apsw.Error as error:
            failure = faults.fault(error, connection.system_errno)
            discard(connection)
            raise failure from error
        return connection


def _unlink(path: str) -> None:
    for suffix in _FILES:
        if os.path.lexists(path + suffix):
            os.unlink(path + suffix)


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


# -- the writing connection ------------------------------------------------------------------------


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
                batch[0].run(session, is_own=True)
            else:
                for request in batch:
                    saved = session.save()
                    request.run(session, is_own=request is batch[0])
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
