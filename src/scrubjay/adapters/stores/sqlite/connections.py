"""Connections to one file: opened with the same care, lent to one reader at a time."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import apsw

from scrubjay.model.errors import Busy, Full, NotFound, StoreError
from scrubjay.model.rows import Collection

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_HINT_DENIED: Final = "Check who owns the data folder, its permissions, and that it is writable."
_HINT_DAMAGED: Final = "Run verify to see what is affected; restore it from a backup."
_HINT_DISK: Final = "Check the disk; what was acknowledged before is not affected."


def absent() -> NotFound:
    """The error for a scope that is not there."""
    return NotFound("There is no such scope in this store.")


def closed() -> StoreError:
    """The error for a store that was closed."""
    return StoreError("The store is closed.", hint="Open it again.")


def busy() -> Busy:
    """The error for a lock that somebody held too long."""
    return Busy("Another writer held the lock for too long; nothing was written.")


def full() -> Full:
    """The error for a disk without space."""
    return Full("No space is left to write.")


def damaged() -> StoreError:
    """The error for a file that is not what was written."""
    return StoreError("A file of the store is damaged.", hint=_HINT_DAMAGED)


def foreign() -> StoreError:
    """The error for a file that scrubjay did not make."""
    return StoreError(
        "A file in the place of a store file is not one of scrubjay's.", hint=_HINT_DAMAGED
    )


def denied() -> StoreError:
    """The error for a file that the system keeps from us."""
    return StoreError("A file of the store cannot be opened or written.", hint=_HINT_DENIED)


def unexpected(code: int | None) -> StoreError:
    """The error for what has no better one."""
    return StoreError(f"The store failed in an unexpected way (code {code}).")


def fault(error: apsw.Error | OSError, system: int = 0) -> StoreError:
    """The domain's error for what SQLite or the system raised; `system` is SQLite's last errno."""
    if isinstance(error, OSError):
        return _system_fault(error.errno or 0)
    code: int | None = getattr(error, "extendedresult", None)
    if isinstance(error, apsw.FullError) or code == apsw.SQLITE_IOERR_SHMSIZE:
        return full()
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return busy()
    if isinstance(error, apsw.NotADBError):
        return foreign()
    if isinstance(error, apsw.CorruptError | apsw.FormatError):
        return damaged()
    if isinstance(error, apsw.CantOpenError | apsw.PermissionsError | apsw.ReadOnlyError):
        return full() if system in _NO_SPACE else denied()
    if isinstance(error, apsw.IOError):
        return _system_fault(system)
    return unexpected(code)


def _system_fault(code: int) -> StoreError:
    if code in _NO_SPACE:
        return full()
    if code in _DENIED:
        return denied()
    return StoreError("The disk failed to read or write a file of the store.", hint=_HINT_DISK)


def is_passing(error: StoreError) -> bool:
    """Whether the connection is as good as before: nothing but space or a lock was missing."""
    return isinstance(error.__cause__, apsw.FullError | apsw.BusyError)


@contextmanager
def translated() -> Iterator[None]:
    """Whatever SQLite or the system refuses inside, raised as an error of the domain."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise fault(error) from error


COLUMNS: Final = "seq, id, born, version, epoch, expiry, erased, session, key, cell, vector, blob"
_HEADING = re.compile(r"^-- ([a-z_]+(?: \d+)?) --\n", re.MULTILINE)


def sections(name: str) -> Mapping[str, str]:
    """The named texts of one SQL file of this package."""
    # Beside this module: importlib.resources takes longer to import than the rest together.
    _, *parts = _HEADING.split(Path(__file__).with_name(name).read_text("utf-8"))
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return MappingProxyType({heading: text.strip() for heading, text in pairs})


QUERIES: Final = sections("queries.sql")


class TableQueries:
    """The queries of one collection's table."""

    def __init__(self, collection: Collection) -> None:
        def query(name: str) -> str:
            text = QUERIES[name].replace("{columns}", COLUMNS)
            return text.replace("{table}", collection.value)

        self.row = query("row")
        self.row_by_key = query("row_by_key")
        self.rows_of_session = query("rows_of_session")
        self.changes = query("changes")
        self.latest = query("latest")
        self.overdue = query("overdue")
        self.stale = query("stale")
        self.insert = query("insert")
        self.rewrite = query("rewrite")
        self.reseal = query("reseal")
        self.erase = query("erase")
        self.drop = query("drop")
        self.clear = query("clear")
        self.beyond_head = query("beyond_head")
        self.erased_with_content = query("erased_with_content")


TABLES: Final = MappingProxyType({name: TableQueries(name) for name in Collection})


# Without SQLITE_OPEN_CREATE: a scope that was removed is not found, never made again by accident.
_OPEN: Final = apsw.SQLITE_OPEN_READWRITE
_CACHE_KIB: Final = 2048
_CHECKPOINT_PAGES: Final = 1000
_LOG_BYTES: Final = 8 << 20
_MAX_READERS: Final = 32
_MAX_IDLE: Final = 4
_PRAGMAS: Final = f"""
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
PRAGMA cache_size = -{_CACHE_KIB};
PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES};
PRAGMA journal_size_limit = {_LOG_BYTES};
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How the files of a store are opened."""

    vfs: str | None
    timeout: float
    spare: Callable[[], bool]
    """Gives up the space held in reserve: who cannot open a file cannot erase from it."""

    def connect(self, path: str) -> apsw.Connection:
        """A connection to an existing file; NotFound if there is none."""
        try:
            return self._connect(path)
        except Full:
            if not self.spare():
                raise
            return self._connect(path)

    def _connect(self, path: str) -> apsw.Connection:
        try:
            connection = apsw.Connection(path, flags=_OPEN, vfs=self.vfs)
        except apsw.Error as error:
            if not os.path.exists(path):
                raise absent() from error
            raise fault(error) from error
        try:
            connection.set_busy_timeout(int(self.timeout * 1000))
            connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            connection.execute(_PRAGMAS)
            # The first read opens the side files, so that all three are of one moment.
            connection.pragma("user_version")
        except apsw.Error as error:
            failure = fault(error, connection.system_errno)
            discard(connection)
            raise failure from error
        return connection


def shut(connection: apsw.Connection) -> None:
    """Close a connection; the last one of a file brings the log into it, as far as it can."""
    # What could not be brought in stays in the log, and the next to open the file reads it there.
    with suppress(apsw.Error):
        connection.close()


def discard(connection: apsw.Connection) -> None:
    """Close a connection and leave the file and its log as they are."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    shut(connection)


class Readers:
    """The connections of one file that are lent to readers, each to one at a time."""

    def __init__(self, connect: Callable[[], apsw.Connection], timeout: float) -> None:
        self._connect = connect
        self._timeout = timeout
        self._changed = threading.Condition()
        self._idle: list[apsw.Connection] = []
        self._lent: set[apsw.Connection] = set()
        self._count = 0

    def take(self) -> apsw.Connection:
        """Borrow a connection; Busy when all are lent for too long."""
        with self._changed:
            if self._idle:
                connection = self._idle.pop()
                self._lent.add(connection)
                return connection
            if not self._changed.wait_for(self._may_open, self._timeout):
                raise busy()
            if self._idle:
                connection = self._idle.pop()
                self._lent.add(connection)
                return connection
            self._count += 1
        return self._open()

    def _may_open(self) -> bool:
        return bool(self._idle) or self._count < _MAX_READERS

    def _open(self) -> apsw.Connection:
        try:
            connection = self._connect()
        except BaseException:  # seam: the place in the pool is free again
            self._gone()
            raise
        with self._changed:
            self._lent.add(connection)
        return connection

    def give(self, connection: apsw.Connection, *, sound: bool = True) -> None:
        """Give a connection back; one that failed, or was disowned, is closed."""
        with self._changed:
            ours = connection in self._lent
            self._lent.discard(connection)
            if ours and sound and len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                self._changed.notify()
                return
        shut(connection)
        if ours:
            self._gone()

    def _gone(self) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify()

    def close(self, close: Callable[[apsw.Connection], None]) -> None:
        """Close what is idle; what is lent is closed when it comes back."""
        with self._changed:
            idle, self._idle = self._idle, []
            self._lent.clear()
            self._count = 0
            self._changed.notify_all()
        for connection in idle:
            close(connection)
