"""The catalog of an installation, in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from scrubjay.adapters.stores.sqlite.connections import QUERIES
from scrubjay.adapters.stores.sqlite.database import Database
from scrubjay.adapters.stores.sqlite.transaction import Session
from scrubjay.model.rows import BackupEntry, CatalogEntry
from scrubjay.ports import Result


class SqliteCatalog:
    """What is known of all scopes. What an erasure needs to note may use the space in reserve."""

    def __init__(self, using: Callable[[], AbstractContextManager[Database]]) -> None:
        self._using = using

    def enroll(self, entry: CatalogEntry) -> CatalogEntry:
        def work(session: Session) -> CatalogEntry:
            session.run(
                QUERIES["enroll"],
                (
                    entry.address, entry.name, int(entry.destroyed), entry.audit_count,
                    entry.audit_mac,
                ),
            )  # fmt: skip
            return _entry(session.all(QUERIES["entry"], (entry.address,))[0])

        return self._write(work, erasing=False)

    def entry(self, address: str) -> CatalogEntry | None:
        found = self._all("entry", address)
        return _entry(found[0]) if found else None

    def entries(self) -> Sequence[CatalogEntry]:
        return [_entry(columns) for columns in self._all("entries")]

    def mark_destroyed(self, address: str) -> None:
        self._note("mark_destroyed", address)

    def note_audit(self, address: str, count: int, mac: bytes) -> None:
        self._note("note_audit", count, mac, address, count)

    def bury(self, address: str, ids: Iterable[bytes]) -> None:
        wanted = list(ids)

        def work(session: Session) -> None:
            for row_id in wanted:
                session.run(QUERIES["bury_in_catalog"], (address, row_id))

        self._write(work, erasing=True)

    def tombstones(self, address: str) -> frozenset[bytes]:
        return frozenset(found for (found,) in self._all("tombstones_in_catalog", address))

    def add_receipt(self, address: str, cell: bytes) -> None:
        self._note("add_receipt", address, cell)

    def receipts(self, address: str) -> Sequence[bytes]:
        return [found for (found,) in self._all("receipts", address)]

    def add_backup(self, backup: BackupEntry) -> None:
        self._note("add_backup", backup.address, backup.expires, backup.name, erasing=False)

    def backups(self, address: str) -> Sequence[BackupEntry]:
        return [
            BackupEntry(address=found, expires=expires, name=name)
            for found, expires, name in self._all("backups", address)
        ]

    def remove_backup(self, backup: BackupEntry) -> None:
        self._note("remove_backup", backup.address, backup.expires, backup.name)

    def _note(self, query: str, *bindings: object, erasing: bool = True) -> None:
        def work(session: Session) -> None:
            session.run(QUERIES[query], bindings)

        self._write(work, erasing=erasing)

    def _write(self, work: Callable[[Session], Result], *, erasing: bool) -> Result:
        with self._using() as database:
            result: Result = database.write(work, erasing=erasing)
            return result

    def _all(self, query: str, *bindings: object) -> list[Any]:
        with self._using() as database:
            connection = database.take()
            session = Session(connection)
            try:
                return session.all(QUERIES[query], bindings)
            finally:
                session.end()
                database.give(connection, sound=session.failure is None)


def _entry(columns: tuple[Any, ...]) -> CatalogEntry:
    address, name, destroyed, audit_count, audit_mac = columns
    return CatalogEntry(
        address=address, name=name, destroyed=destroyed == 1,
        audit_count=audit_count, audit_mac=audit_mac,
    )  # fmt: skip
