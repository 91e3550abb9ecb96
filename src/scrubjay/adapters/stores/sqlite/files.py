"""Files of a store: locking, creation, opening, removal, and reserved disk space.

Writers of all processes queue on an advisory lock (`flock`) per file. SQLite's own lock is polled,
and with many writers some starve; this one is a queue in the kernel.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import apsw
from msgspec import Struct

from scrubjay.adapters.disk import Disk, LockWait
from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.schema import Schema
from scrubjay.adapters.stores.sqlite.transaction import Statements
from scrubjay.model.errors import Full, StoreError
from scrubjay.ports import Reach, patient, waited

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
