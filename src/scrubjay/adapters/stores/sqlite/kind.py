"""Files of one kind: where they are, how they are made, and how they go."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from scrubjay.adapters.disk import Disk
from scrubjay.adapters.stores.sqlite import connections
from scrubjay.adapters.stores.sqlite.ballast import Ballast
from scrubjay.adapters.stores.sqlite.connections import Opening
from scrubjay.adapters.stores.sqlite.lock import NEW, held, renewed
from scrubjay.adapters.stores.sqlite.schema import Schema
from scrubjay.adapters.stores.sqlite.transaction import Session
from scrubjay.model.errors import StoreError
from scrubjay.ports import Reach

LOCK: Final = ".lock"
# The database goes first: without it the rest is nothing, while it without its log is old.
_SIDES: Final = ("", "-wal", "-shm", "-journal")
_FILES: Final = (*_SIDES, *(NEW + side for side in _SIDES), LOCK + NEW)
_ADDRESS: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
Begin = Callable[[apsw.Connection], Session]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What the files of one kind have in common: place, shape, sessions, how they are opened."""

    folder: str
    schema: Schema
    begin: Begin
    opening: Opening
    ballast: Ballast
    reach: Reach

    def path(self, address: str) -> str:
        """Where the file of an address is."""
        if not _ADDRESS.fullmatch(address):
            raise StoreError("An address is 1 to 100 letters, digits, - and _.")
        return f"{self.folder}/{address}.sqlite"

    def exists(self, address: str) -> bool:
        """Whether the file is there, complete."""
        return os.path.exists(self.path(address))

    def create(self, address: str) -> None:
        """Make the file unless it exists; durable, and never seen half made."""
        path = self.path(address)
        if os.path.exists(path):
            return
        with connections.translated(), held(path + LOCK, self.opening.timeout):
            if not os.path.exists(path):
                self._create(path)

    def _create(self, path: str) -> None:
        self.ballast.demand()
        # A log left by a removal that was cut short would be replayed into the new file.
        _unlink(path)
        self._build(path + NEW)
        with renewed(path + LOCK):
            os.rename(path + NEW, path)
            Disk().sync_folder(Path(self.folder))

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

    def remove(self, address: str) -> None:
        """Unlink all files of an address, durably; absent ones are fine."""
        path = self.path(address)
        with connections.translated(), held(path + LOCK, self.opening.timeout):
            _unlink(path)
            os.unlink(path + LOCK)
            Disk().sync_folder(Path(self.folder))


def _unlink(path: str) -> None:
    for suffix in _FILES:
        if os.path.lexists(path + suffix):
            os.unlink(path + suffix)
