"""Sealed rows in SQLite files, one per scope."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

import apsw

from scrubjay.adapters.disk import Disk
from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.ballast import Ballast
from scrubjay.adapters.stores.sqlite.catalog import SqliteCatalog
from scrubjay.adapters.stores.sqlite.connections import Opening
from scrubjay.adapters.stores.sqlite.database import Database, Kind
from scrubjay.adapters.stores.sqlite.inspection import findings, size
from scrubjay.adapters.stores.sqlite.open_files import OpenFiles
from scrubjay.adapters.stores.sqlite.residue import residue
from scrubjay.adapters.stores.sqlite.schema import CATALOG, SCOPE, Schema
from scrubjay.adapters.stores.sqlite.transaction import Session, SqliteTx, SqliteView
from scrubjay.domain.errors import NotFound, SchemaTooNew, StoreError
from scrubjay.ports import Reach, Result, Tx, View, pass_by

BALLAST_BYTES: Final = 4 << 20
_ADDRESS: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")


class SqliteStore:
    """Sealed rows of many scopes under one folder; several processes may use it at once.

    Two exceptions to the port's words: the work of an `erasing` write may run a second time, after
    its first run was rolled back for lack of space; and opening a file may use the reserve too.
    """

    def __init__(
        self,
        directory: Path,
        *,
        reach: Reach = pass_by,
        vfs: str | None = None,
        lock_timeout: float = 30.0,
        ballast_bytes: int = BALLAST_BYTES,
        max_open: int = 64,
        schema: Schema = SCOPE,
    ) -> None:
        scopes = directory / "scopes"
        with faults.translated():
            if not scopes.is_dir():
                Disk().make_folder(scopes)
        ballast = Ballast(directory / "ballast", ballast_bytes)
        opening = Opening(vfs=vfs, timeout=lock_timeout, spare=ballast.release)

        def kind(schema: Schema, begin: Callable[[apsw.Connection], Session]) -> Kind:
            return Kind(schema=schema, begin=begin, opening=opening, ballast=ballast, reach=reach)

        self._folder = os.fspath(scopes)
        self._scopes = kind(schema, SqliteTx)
        self._catalogs = kind(CATALOG, Session)
        self._catalog_path = os.fspath(directory / "catalog.sqlite")
        self._files = OpenFiles(max_open)
        self._catalog = SqliteCatalog(self._using_catalog)

    @property
    def catalog(self) -> SqliteCatalog:
        """The catalog of this installation."""
        self._files.check()
        return self._catalog

    def create(self, address: str) -> None:
        self._files.check()
        self._scopes.create(self._path(address))

    def exists(self, address: str) -> bool:
        self._files.check()
        return self._scopes.exists(self._path(address))

    def read(self, address: str) -> AbstractContextManager[View]:
        return Reading(self._files, self._scopes, self._path(address))

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        database = self._files.lease(self._scopes, self._path(address))
        try:
            result: Result = database.write(work, erasing=erasing)
            return result
        finally:
            self._files.release(database)

    def settle(self, address: str) -> None:
        with self._files.using(self._scopes, self._path(address)) as database:
            database.settle()

    def size(self, address: str) -> int:
        with Reading(self._files, self._scopes, self._path(address)) as view:
            return size(view)

    def check(self, address: str) -> Sequence[str]:
        try:
            with Reading(self._files, self._scopes, self._path(address)) as view:
                return list(findings(view))
        except (NotFound, SchemaTooNew):
            raise
        except StoreError as error:
            return [error.message]

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        self._files.check()
        with faults.translated():
            yield from residue(self._path(address))
            yield from residue(self._catalog_path)

    def remove(self, address: str) -> None:
        self._files.check()
        path = self._path(address)
        self._files.withdraw(path)
        self._scopes.remove(path)

    def close(self) -> None:
        self._files.close()

    def abandon(self) -> None:
        """Let go of every file as a process that dies does: logs stay as they are."""
        self._files.close(checkpoint=False)

    def _path(self, address: str) -> str:
        if not _ADDRESS.fullmatch(address):
            raise StoreError("An address is 1 to 100 letters, digits, - and _.")
        return f"{self._folder}/{address}.sqlite"

    @contextmanager
    def _using_catalog(self) -> Iterator[Database]:
        self._files.check()
        self._catalogs.create(self._catalog_path)
        with self._files.using(self._catalogs, self._catalog_path) as database:
            yield database


class Reading:
    """A view for the length of a block, on a connection of its own."""

    __slots__ = ("_connection", "_database", "_files", "_kind", "_path", "_view")

    def __init__(self, files: OpenFiles, kind: Kind, path: str) -> None:
        self._files = files
        self._kind = kind
        self._path = path

    def __enter__(self) -> SqliteView:
        self._database = self._files.lease(self._kind, self._path)
        try:
            self._connection = self._database.take()
            self._view = SqliteView(self._connection)
            self._view.run("BEGIN")
        except BaseException:
            self._files.release(self._database)
            raise
        return self._view

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._view.failure is None:
                self._view.run("COMMIT")
        finally:
            self._view.end()
            self._database.give(self._connection, sound=self._view.failure is None)
            self._files.release(self._database)
