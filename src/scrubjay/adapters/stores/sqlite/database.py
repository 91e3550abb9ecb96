"""One open file: a queue of writers, connections lent to readers, and who still uses it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import apsw

from scrubjay.adapters.stores.sqlite import connections
from scrubjay.adapters.stores.sqlite.connections import Readers, discard, shut
from scrubjay.adapters.stores.sqlite.kind import LOCK, Kind
from scrubjay.adapters.stores.sqlite.lock import Anchor, FileLock, held
from scrubjay.adapters.stores.sqlite.writer import CommitQueue, FileWriter

_SETTLING_MS: Final = 50


class Database:
    """One file of a store, open in this process."""

    def __init__(self, kind: Kind, address: str) -> None:
        self.address = address
        self.users = 0
        self._kind = kind
        self._path = kind.path(address)
        self._timeout = kind.opening.timeout
        if not os.path.exists(self._path):
            raise connections.absent()
        with connections.translated():
            self._anchor = Anchor(self._path + LOCK)
            lock = FileLock(self._path + LOCK)
        self._readers = Readers(self._connect, self._timeout)
        self._writer = FileWriter(
            connect=self._connect,
            begin=kind.begin,
            lock=lock,
            ballast=kind.ballast,
            reach=kind.reach,
            failed=lambda: self._readers.close(shut),
        )
        self._queue = CommitQueue(self._writer, self._timeout)
        self._try_out()

    def _try_out(self) -> None:
        """Open the file once, so that whatever is wrong with it shows."""
        try:
            self.give(self.take())
        except BaseException:  # seam: nobody gets the object that would close the files
            self._writer.close(discard)
            self._anchor.close()
            raise

    def is_current(self) -> bool:
        """Whether the file was not removed since it was opened."""
        return self._anchor.holds()

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
        if not self.is_current():
            return
        connection = self.take()
        sound = False
        try:
            with connections.translated(), held(self._path + LOCK, self._timeout):
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
            if not self._kind.ballast.release():
                raise
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            connection.set_busy_timeout(int(self._timeout * 1000))

    def close(self, *, checkpoint: bool = True) -> None:
        """Close every connection that is not lent; those are closed when they come back."""
        close = shut if checkpoint else discard
        self._writer.close(close)
        self._readers.close(close)
        self._anchor.close()

    def _connect(self) -> apsw.Connection:
        connection = self._kind.opening.connect(self._path)
        try:
            if not self.is_current():
                raise connections.absent()
            self._bring_up(connection)
        except BaseException:  # seam: nobody gets the connection, so it is closed here
            discard(connection)
            raise
        return connection

    def _bring_up(self, connection: apsw.Connection) -> None:
        schema = self._kind.schema
        try:
            if schema.is_current(connection):
                return
            with held(self._path + LOCK, self._timeout):
                schema.migrate(connection, self._kind.reach)
        except (apsw.Error, OSError) as error:
            raise connections.fault(error, connection.system_errno) from error
