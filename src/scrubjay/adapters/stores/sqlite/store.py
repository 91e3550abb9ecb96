"""Sealed rows in SQLite files, one per scope."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

from scrubjay.adapters.disk import Disk
from scrubjay.adapters.stores.sqlite import connections
from scrubjay.adapters.stores.sqlite.ballast import Ballast
from scrubjay.adapters.stores.sqlite.catalog import SqliteCatalog
from scrubjay.adapters.stores.sqlite.connections import Opening
from scrubjay.adapters.stores.sqlite.database import Database
from scrubjay.adapters.stores.sqlite.inspection import findings, size
from scrubjay.adapters.stores.sqlite.kind import Begin, Kind
from scrubjay.adapters.stores.sqlite.open_files import OpenFiles
from scrubjay.adapters.stores.sqlite.raw_bytes import residue
from scrubjay.adapters.stores.sqlite.schema import CATALOG, SCOPE, Schema
from scrubjay.adapters.stores.sqlite.transaction import Session, SqliteTx, SqliteView
from scrubjay.model.errors import SchemaTooNew, StoreError
from scrubjay.ports import Reach, Result, Tx, View, pass_by

BALLAST_BYTES: Final = 4 << 20
_CATALOG: Final = "catalog"


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
        with connections.translated():
            if not scopes.is_dir():
                Disk().make_folder(scopes)
        ballast = Ballast(directory / "ballast", ballast_bytes)
        opening = Opening(vfs=vfs, timeout=lock_timeout, spare=ballast.release)

        def kind(folder: Path, schema: Schema, begin: Begin) -> Kind:
            return Kind(
                folder=os.fspath(folder), schema=schema, begin=begin,
                opening=opening, ballast=ballast, reach=reach,
            )  # fmt: skip

        self._scope_kind = kind(scopes, schema, SqliteTx)
        self._catalog_kind = kind(directory, CATALOG, Session)
        self._scopes = OpenFiles(self._scope_kind, max_open)
        self._catalogs = OpenFiles(self._catalog_kind, 1)
        self._catalog = SqliteCatalog(self._using_catalog)

    @property
    def catalog(self) -> SqliteCatalog:
        """The catalog of this installation."""
        self._catalogs.check()
        return self._catalog

    def create(self, address: str) -> None:
        self._scopes.check()
        self._scope_kind.create(address)

    def exists(self, address: str) -> bool:
        self._scopes.check()
        return self._scope_kind.exists(address)

    def read(self, address: str) -> AbstractContextManager[View]:
        return Reading(self._scopes, address)

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        database = self._scopes.lease(address)
        try:
            result: Result = database.write(work, erasing=erasing)
            return result
        finally:
            self._scopes.release(database)

    def settle(self, address: str) -> None:
        with self._scopes.using(address) as database:
            database.settle()

    def size(self, address: str) -> int:
        with Reading(self._scopes, address) as view:
            return size(view)

    def check(self, address: str) -> Sequence[str]:
        try:
            with Reading(self._scopes, address) as view:
                return list(findings(view))
        except SchemaTooNew:
            raise
        except StoreError as error:
            return [error.message]

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        self._scopes.check()
        with connections.translated():
            yield from residue(self._scope_kind.path(address))
            yield from residue(self._catalog_kind.path(_CATALOG))

    def remove(self, address: str) -> None:
        self._scopes.check()
        self._scopes.withdraw(address)
        self._scope_kind.remove(address)

    def close(self) -> None:
        self._scopes.close()
        self._catalogs.close()

    def abandon(self) -> None:
        """Let go of every file as a process that dies does: logs stay as they are."""
        self._scopes.close(checkpoint=False)
        self._catalogs.close(checkpoint=False)

    @contextmanager
    def _using_catalog(self) -> Iterator[Database]:
        self._catalogs.check()
        self._catalog_kind.create(_CATALOG)
        with self._catalogs.using(_CATALOG) as database:
            yield database


class Reading:
    """A view for the length of a block, on a connection of its own."""

    __slots__ = ("_address", "_connection", "_database", "_files", "_view")

    def __init__(self, files: OpenFiles, address: str) -> None:
        self._files = files
        self._address = address

    def __enter__(self) -> SqliteView:
        self._database = self._files.lease(self._address)
        try:
            self._connection = self._database.take()
        except BaseException:  # seam: there will be no exit to release it
            self._files.release(self._database)
            raise
        self._view = SqliteView(self._connection)
        try:
            self._view.run("BEGIN")
        except StoreError:
            self._give_back()
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
            self._give_back()

    def _give_back(self) -> None:
        self._view.end()
        self._database.give(self._connection, sound=self._view.failure is None)
        self._files.release(self._database)
