"""The files open in this process: the latest used stay open, one in use is never closed."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from scrubjay.adapters.stores.sqlite import connections
from scrubjay.adapters.stores.sqlite.database import Database
from scrubjay.adapters.stores.sqlite.kind import Kind
from scrubjay.adapters.stores.sqlite.transaction import SqliteView
from scrubjay.model.errors import NotFound, StoreError

# Files of a parent process, never to be closed here: SQLite's locks on them are not ours.
_INHERITED: Final[list[Database]] = []


class OpenFiles:
    """Databases of one kind by address, most recently used last."""

    def __init__(self, kind: Kind, limit: int) -> None:
        self._kind = kind
        self._limit = limit
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._opening = threading.Lock()
        self._files: OrderedDict[str, Database] = OrderedDict()
        self._closed = False

    def lease(self, address: str) -> Database:
        """The database of an address, not to be closed before it is released."""
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
        """Whether a removed file says itself that it is destroyed, and no other took its place."""
        if self._kind.exists(database.address):
            return False
        try:
            return _is_destroyed(database)
        except NotFound:  # its connections are all lent, and no more can be opened
            return False

    def release(self, database: Database) -> None:
        """Say that a lease is over."""
        with self._mutex:
            database.users -= 1
            left = not database.users and self._files.get(database.address) is not database
        if left:
            database.close()
        elif len(self._files) > self._limit:
            self._evict()

    @contextmanager
    def using(self, address: str) -> Iterator[Database]:
        """The database of an address for the length of a block."""
        database = self.lease(address)
        try:
            yield database
        finally:
            self.release(database)

    def withdraw(self, address: str) -> None:
        """Close a database as soon as nobody uses it; the next lease opens it anew."""
        with self._mutex:
            database = self._files.pop(address, None)
            idle = database is not None and not database.users
        if database is not None and idle:
            database.close()

    def close(self, *, checkpoint: bool = True) -> None:
        """Close all; what is in use is closed when it is released."""
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
            raise connections.closed()
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
        raise connections.closed()

    def _evict(self) -> None:
        with self._mutex:
            idle = [name for name, database in self._files.items() if not database.users]
            spare = idle[: max(0, len(self._files) - self._limit)]
            evicted = [self._files.pop(name) for name in spare]
        for database in evicted:
            database.close()


def _is_destroyed(database: Database) -> bool:
    """Whether an unlinked file says so itself: then whoever has it open is to read that."""
    connection = database.take()
    view = SqliteView(connection)
    try:
        return view.head().destroyed
    finally:
        view.end()
        database.give(connection, sound=view.failure is None)
