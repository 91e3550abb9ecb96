"""One open file: a queue of writers, connections lent to readers, and who still uses it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from scrubjay.adapters.disk import Disk
from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.ballast import Ballast
from scrubjay.adapters.stores.sqlite.commit import CommitQueue
from scrubjay.adapters.stores.sqlite.connections import Opening, Readers, discard
from scrubjay.adapters.stores.sqlite.lock import FileLock, held
from scrubjay.adapters.stores.sqlite.schema import Schema
from scrubjay.adapters.stores.sqlite.transaction import Session
from scrubjay.adapters.stores.sqlite.writer import FileWriter
from scrubjay.ports import Reach

# The database goes first: without it the rest is nothing, while it without its log is old.
SIDES = ("", "-wal", "-shm", "-journal", ".new", ".new-wal", ".new-shm", ".new-journal")
LOCK = ".lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What the files of one kind have in common: shape, sessions, and how they are opened."""

    schema: Schema
    begin: Callable[[apsw.Connection], Session]
    opening: Opening
    ballast: Ballast
    reach: Reach

    def exists(self, path: str) -> bool:
        """Whether the file is there, complete."""
        return os.path.exists(path)

    def create(self, path: str) -> None:
        """Make the file unless it exists; durable, and never seen half made."""
        if self.exists(path):
            return
        with faults.translated(), held(path + LOCK, self.opening.timeout):
            if not self.exists(path):
                self.ballast.demand()
                unlink(
                    path
                )  # a log left by a removal cut short would be replayed into the new file
                self._build(path + ".new")
                os.rename(path + ".new", path)
                Disk().sync_folder(Path(path).parent)

    def _build(self, path: str) -> None:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = apsw.Connection(path, apsw.SQLITE_OPEN_READWRITE, self.opening.vfs)
        try:
            # Nobody has seen the file yet, so there is nothing a journal could bring back.
            connection.pragma("journal_mode", "off")
            connection.pragma("synchronous", "full")
            self.schema.build(connection)
            connection.pragma("journal_mode", "wal")
        finally:
            connection.close()

    def remove(self, path: str) -> None:
        """Unlink all files of the database at `path`, durably; absent ones are fine."""
        with faults.translated(), held(path + LOCK, self.opening.timeout):
            unlink(path)
            os.unlink(path + LOCK)
            Disk().sync_folder(Path(path).parent)


def unlink(path: str) -> None:
    """Unlink the database at `path` and all that SQLite keeps beside it."""
    for side in SIDES:
        if os.path.lexists(path + side):
            os.unlink(path + side)


class Database:
    """One file of a store, open in this process."""

    def __init__(self, kind: Kind, path: str) -> None:
        self.path = path
        self.users = 0
        self.inode = _inode(path)
        self._kind = kind
        timeout = kind.opening.timeout
        self._readers = Readers(self._connect, timeout)
        self._writer = FileWriter(
            connect=self._connect,
            begin=kind.begin,
            lock=FileLock(path + LOCK),
            ballast=kind.ballast,
            reach=kind.reach,
            failed=lambda: self._readers.close(apsw.Connection.close),
        )
        self._queue = CommitQueue(self._writer, timeout)
        self._readers.give(self._readers.take())  # whatever is wrong with the file shows here

    def take(self) -> apsw.Connection:
        """Borrow a connection to read with."""
        return self._readers.take()

    def give(self, connection: apsw.Connection, *, sound: bool = True) -> None:
        """Give back a connection; one that failed is closed."""
        self._readers.give(connection, sound=sound)

    def write(self, work: Callable[[Any], Any], *, erasing: bool) -> Any:
        """Run `work` in a transaction; its result once it is durable."""
        return self._queue.submit(work, erasing=erasing)

    def settle(self) -> None:
        """Bring the log into the database and empty it, unless a reader still needs it."""
        connection = self.take()
        sound = False
        try:
            with faults.translated(), held(self.path + LOCK, self._kind.opening.timeout):
                self._checkpoint(connection)
            sound = True
        finally:
            self.give(connection, sound=sound)

    def _checkpoint(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(_PATIENCE_MS)
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            pass  # as far as readers allow
        except apsw.FullError:
            if not self._kind.ballast.release():
                raise
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            connection.set_busy_timeout(int(self._kind.opening.timeout * 1000))

    def close(self, *, checkpoint: bool = True) -> None:
        """Close every connection that is not lent; those are closed when they come back."""
        close = apsw.Connection.close if checkpoint else discard
        self._writer.close(close)
        self._readers.close(close)

    def _connect(self) -> apsw.Connection:
        connection = self._kind.opening.connect(self.path)
        try:
            if _inode(self.path) != self.inode:
                raise faults.absent()
            self._bring_up(connection)
        except BaseException:
            discard(connection)
            raise
        return connection

    def _bring_up(self, connection: apsw.Connection) -> None:
        schema = self._kind.schema
        try:
            if schema.is_current(connection):
                return
            with held(self.path + LOCK, self._kind.opening.timeout):
                schema.migrate(connection, self._kind.reach)
        except (apsw.Error, OSError) as error:
            raise faults.fault(error, connection.system_errno) from error


_PATIENCE_MS = 50


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError as error:
        raise faults.absent() from error
    except OSError as error:
        raise faults.fault(error) from error
