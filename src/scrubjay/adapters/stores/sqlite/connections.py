"""Connections to one file: opened with the same care, lent to one reader at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import apsw

from scrubjay.adapters.stores.sqlite import faults
from scrubjay.domain.errors import Full

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
                raise faults.absent() from error
            raise faults.fault(error) from error
        try:
            connection.set_busy_timeout(int(self.timeout * 1000))
            connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            connection.execute(_PRAGMAS)
            # The first read opens the side files, so that all three are of one moment.
            connection.pragma("user_version")
        except apsw.Error as error:
            failure = faults.fault(error, connection.system_errno)
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
                raise faults.busy()
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
