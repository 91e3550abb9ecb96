"""The SQLite store: sealed rows, one file per scope, and the catalog in a file of its own."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from msgspec.structs import replace

from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.database import Ballast, FileKind, OpenFiles
from scrubjay.adapters.stores.sqlite.schema import CATALOG, QUERIES, SCOPE, Schema
from scrubjay.adapters.stores.sqlite.transaction import SqliteTx, SqliteView, Statements
from scrubjay.model.errors import SchemaTooNew, StoreError
from scrubjay.model.results import FileInspection
from scrubjay.model.rows import BackupEntry, CatalogEntry, Head
from scrubjay.ports import CATALOG_PAGE, Reach, Result, Tx, View, every_entry, pass_by

BALLAST_BYTES: Final = 4 << 20
_CATALOG: Final = "catalog"


class SqliteStore:
    """SQLite store: one file per scope under one folder; safe for concurrent processes.

    Two exceptions to the port's contract: the work of an `erasing` write may run a second time,
    after a rollback for lack of space; and opening a file may use the reserved space, too.
    """

    def __init__(
        self,
        directory: Path,
        *,
        reach: Reach = pass_by,
        vfs: str | None = None,
        lock_timeout: float = 30.0,
        ballast_bytes: int = BALLAST_BYTES,
        max_open: int | None = None,
        schema: Schema = SCOPE,
    ) -> None:
        self._scope_kind = FileKind(
            folder=os.fspath(directory / "scopes"),
            schema=schema,
            begin=SqliteTx,
            vfs=vfs,
            timeout=lock_timeout,
            ballast=Ballast(directory / "ballast", ballast_bytes),
            reach=reach,
        )
        catalog = replace(
            self._scope_kind, folder=os.fspath(directory), schema=CATALOG, begin=Statements
        )
        # A file has about seven descriptors; half of those the process may have are for others.
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        most = max(4, min(64, soft // 14)) if max_open is None else max_open
        self._scopes = OpenFiles(self._scope_kind, most)
        self._catalog = SqliteCatalog(catalog)

    @property
    def catalog(self) -> SqliteCatalog:
        """The catalog of this installation."""
        self._scopes.check()
        return self._catalog

    @property
    def slots(self) -> None:
        """None: its keys lie in a folder of their own, where no byte of a deleted one is left."""

    @property
    def shared(self) -> SqliteShared:
        """Small values of this installation, in the file of the catalog."""
        return SqliteShared(self.catalog)

    def create(self, address: str) -> None:
        self._scopes.check()
        self._scope_kind.create(address)

    def exists(self, address: str) -> bool:
        self._scopes.check()
        return self._scope_kind.exists(address)

    def head(self, address: str) -> Head:
        with self._scopes.using(address) as database, database.lend(SqliteView) as view:
            return view.head()

    def read(self, address: str) -> AbstractContextManager[View]:
        return Reading(self._scopes, address)

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        database = self._scopes.lease(address)
        try:
            result: Result = database.write(work, erasing=erasing)
            return result
        finally:
            self._scopes.release(database)

    def resolve(self, address: str, commit: str) -> bool | None:
        """No name is ever given: what a sync has become is not known before the next start."""

    def lasting(self, address: str) -> bool:
        """Always: a commit is acknowledged when it is synced, and there is no other copy."""
        return self.exists(address)

    def warnings(self) -> Sequence[str]:
        """None: the disk is the only copy, and said to be."""
        return []

    def make_room(self) -> None:
        self._scope_kind.ballast.release()

    def settle(self, address: str) -> None:
        with self._scopes.using(address) as database:
            database.settle()

    def size(self, address: str) -> int:
        with Reading(self._scopes, address) as view:
            ((pages,),) = view.all(QUERIES["used_pages"])
            ((page_bytes,),) = view.all(QUERIES["page_size"])
            return int(pages * page_bytes)

    def check(self, address: str) -> Sequence[str]:
        from scrubjay.adapters.stores.sqlite.inspection import findings

        try:
            with Reading(self._scopes, address) as view:
                return list(findings(view))
        except SchemaTooNew:
            raise
        except StoreError as error:
            return [error.message]

    def inspect(self, address: str) -> FileInspection:
        from scrubjay.adapters.stores.sqlite.inspection import inspect_open

        with Reading(self._scopes, address) as view:
            return inspect_open(view, self._scope_kind.path(address))

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        from scrubjay.adapters.stores.sqlite.inspection import residue

        self._scopes.check()
        with faults.translated():
            yield from residue(self._scope_kind.path(address))
            yield from residue(self._catalog.path)

    def remove(self, address: str) -> None:
        self._scopes.check()
        self._scopes.withdraw(address)
        self._scope_kind.remove(address)

    def strays(self) -> Sequence[str]:
        entries = {entry.address: entry for entry in every_entry(self.catalog)}
        found = []
        for path in sorted(Path(self._scope_kind.folder).glob("*.sqlite")):
            if path.stem not in entries:
                found.append(f"{path} belongs to no scope of the catalog.")
        for address, entry in entries.items():
            if not entry.destroyed and not self.exists(address):
                found.append(f"A scope of the catalog has lost its data file {address}.sqlite.")
        return found

    def close(self) -> None:
        self._scopes.close()
        self._catalog.close()

    def abandon(self) -> None:
        """Close every file as if the process died: without checkpoints."""
        self._scopes.close(checkpoint=False)
        self._catalog.close(checkpoint=False)


class Reading:
    """Context manager of a read view; a class, because a generator is slower."""

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


class SqliteCatalog:
    """Catalog of all scopes. Writes of an erasure may use the reserved space."""

    def __init__(self, kind: FileKind) -> None:
        self._kind = kind
        self._files = OpenFiles(kind, 1)
        self.path = kind.path(_CATALOG)

    def close(self, *, checkpoint: bool = True) -> None:
        """Close the file, with or without a checkpoint."""
        self._files.close(checkpoint=checkpoint)

    def enroll(self, entry: CatalogEntry) -> CatalogEntry:
        def work(statements: Statements) -> CatalogEntry:
            statements.run(
                QUERIES["enroll"],
                (
                    entry.address, entry.name, int(entry.destroyed), entry.audit_count,
                    entry.audit_mac,
                ),
            )  # fmt: skip
            return _entry(statements.all(QUERIES["entry"], (entry.address,))[0])

        return self.write(work, erasing=False)

    def entry(self, address: str) -> CatalogEntry | None:
        found = self.all("entry", address)
        return _entry(found[0]) if found else None

    def entries(self, after: str = "", limit: int = CATALOG_PAGE) -> Sequence[CatalogEntry]:
        return [_entry(columns) for columns in self.all("entries", after, limit)]

    def mark_destroyed(self, address: str) -> None:
        self._note("mark_destroyed", address)

    def note_audit(self, address: str, count: int, mac: bytes) -> None:
        self._note("note_audit", count, mac, address, count)

    def bury(self, address: str, ids: Iterable[bytes]) -> None:
        wanted = list(ids)

        def work(statements: Statements) -> None:
            for row_id in wanted:
                statements.run(QUERIES["bury_in_catalog"], (address, row_id))

        self.write(work, erasing=True)

    def tombstones(self, address: str) -> frozenset[bytes]:
        return frozenset(found for (found,) in self.all("tombstones_in_catalog", address))

    def add_receipt(self, address: str, cell: bytes) -> None:
        def work(statements: Statements) -> None:
            statements.run(QUERIES["add_receipt"], {"address": address, "cell": cell})

        self.write(work, erasing=True)

    def receipts(self, address: str) -> Sequence[bytes]:
        return [found for (found,) in self.all("receipts", address)]

    def add_backup(self, backup: BackupEntry) -> None:
        self._note("add_backup", backup.address, backup.expires, backup.name, erasing=False)

    def backups(self, address: str) -> Sequence[BackupEntry]:
        return [
            BackupEntry(address=found, expires=expires, name=name)
            for found, expires, name in self.all("backups", address)
        ]

    def remove_backup(self, backup: BackupEntry) -> None:
        self._note("remove_backup", backup.address, backup.expires, backup.name)

    def _note(self, query: str, *bindings: object, erasing: bool = True) -> None:
        def work(statements: Statements) -> None:
            statements.run(QUERIES[query], bindings)

        self.write(work, erasing=erasing)

    def write(self, work: Callable[[Statements], Result], *, erasing: bool) -> Result:
        """Run `work` in a transaction on the file, which the first one makes."""
        self._files.check()
        self._kind.create(_CATALOG)
        with self._files.using(_CATALOG) as database:
            result: Result = database.write(work, erasing=erasing)
            return result

    def all(self, query: str, *bindings: object) -> list[Any]:
        """Every row that a query yields."""
        self._files.check()
        if not self._kind.exists(_CATALOG):
            return []  # the first write makes it
        with (
            self._files.using(_CATALOG) as database,
            database.lend(Statements) as statements,
        ):
            return statements.all(QUERIES[query], bindings)


def _entry(columns: tuple[Any, ...]) -> CatalogEntry:
    address, name, destroyed, audit_count, audit_mac = columns
    return CatalogEntry(
        address=address, name=name, destroyed=destroyed == 1,
        audit_count=audit_count, audit_mac=audit_mac,
    )  # fmt: skip


class SqliteShared:
    """Small values that all processes share, in the file of the catalog."""

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._catalog = catalog

    def get(self, name: str, now: float) -> bytes | None:
        found = self._catalog.all("shared", name, now)
        return found[0][0] if found else None

    def exchange(
        self, name: str, old: bytes | None, new: bytes | None, *, now: float, until: float
    ) -> bool:
        def work(statements: Statements) -> bool:
            held = statements.all(QUERIES["shared"], (name, now))
            if (held[0][0] if held else None) != old:
                return False
            statements.run(QUERIES["remove_shared"], (name, now))
            if new is not None:
                statements.run(QUERIES["set_shared"], (name, new, until))
            return True

        return self._catalog.write(work, erasing=False)

    def names(self, prefix: str, after: str, limit: int, now: float) -> Sequence[str]:
        bindings = (after, prefix, prefix, prefix, now, limit)
        return [name for (name,) in self._catalog.all("shared_names", *bindings)]
