"""Transactions on a scope's file: statements, a read view and a write transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import apsw
from msgspec.structs import replace

from scrubjay.adapters.stores.head_columns import ERASED_SEQ, MIN_SEQ, HeadColumns
from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.schema import QUERIES, TABLES
from scrubjay.model.errors import Conflict, StoreError
from scrubjay.model.rows import AuditRow, Collection, Head, Row

_CACHED_VALUES: Final = 8
"""How many values a view keeps, and a writing connection from one transaction to the next."""

_HEAD: Final = QUERIES["head"]
_MOVE_HEAD: Final = QUERIES["move_head"]
_APPEND_AUDIT: Final = QUERIES["append_audit"]


class Statements:
    """Prepared statements on one connection; failures are `StoreError`."""

    __slots__ = ("_cursor", "connection", "failure")

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._cursor: apsw.Cursor | None = connection.cursor()
        self.failure: StoreError | None = None
        """Error of SQLite: the transaction is lost, even if the error was caught."""

    def end(self) -> None:
        """Invalidate this object at the end of its transaction."""
        self._cursor = None

    def begin(self) -> None:
        """Begin a write transaction; it excludes other writers."""
        self.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make all changes durable."""
        self.run("COMMIT")

    def rollback(self) -> None:
        """Undo all changes."""
        self.run("ROLLBACK")

    def flush(self) -> None:
        """Write buffered changes, at the end of the transaction."""

    def save(self) -> object:
        """Set a savepoint for `restore`."""
        self.run("SAVEPOINT request")
        return None

    def restore(self, _saved: object) -> None:
        """Roll back to the savepoint."""
        self.run("ROLLBACK TO request")

    def run(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] = ()) -> apsw.Cursor:
        """Execute one statement."""
        if self._cursor is None:
            raise StoreError("A transaction was used after its end.")
        try:
            return self._cursor.execute(sql, bindings)
        except apsw.Error as error:
            self.failure = faults.fault(error, self.connection.system_errno)
            raise self.failure from error

    def many(self, sql: str, bindings: Iterable[Sequence[Any]]) -> list[Any]:
        """Execute a statement with each of the bindings; every row that they yield."""
        if self._cursor is None:
            raise StoreError("A transaction was used after its end.")
        try:
            return self._cursor.executemany(sql, bindings).fetchall()
        except apsw.Error as error:
            self.failure = faults.fault(error, self.connection.system_errno)
            raise self.failure from error

    def all(self, sql: str, bindings: Sequence[Any] = ()) -> list[Any]:
        """Every row a query yields."""
        cursor = self.run(sql, bindings)
        try:
            return cursor.fetchall()
        except apsw.Error as error:
            self.failure = faults.fault(error, self.connection.system_errno)
            raise self.failure from error


class SqliteView(Statements):
    """Read view of a scope: a consistent snapshot as of its first read."""

    __slots__ = ("_head", "_values")

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self._head: HeadColumns | None = None
        self._values: dict[str, bytes | None] = {}
        """Values that were read: a recall asks for the retention once per hit."""

    def _columns(self) -> HeadColumns:
        if self._head is None:
            found = self.all(_HEAD)
            if len(found) != 1:
                raise faults.damaged()
            self._head = HeadColumns(found[0])
        return self._head

    def head(self) -> Head:
        return self._columns().head()

    def _rows(self, collection: Collection, query: str, *bindings: object) -> list[Row]:
        found = self.all(TABLES[collection][query], bindings)
        return [
            Row(
                id=row_id, version=version, epoch=epoch, cell=cell, vector=vector, blob=blob,
                session=session, key=key, expiry=expiry, erased=erased == 1, seq=seq, born=born,
            )
            for seq, row_id, born, version, epoch, expiry, erased, session, key, cell, vector, blob
            in found
        ]  # fmt: skip

    def row(self, collection: Collection, row_id: bytes) -> Row | None:
        found = self._rows(collection, "row", row_id)
        return found[0] if found else None

    def rows(self, collection: Collection, ids: Iterable[bytes]) -> Mapping[bytes, Row]:
        wanted = tuple(ids)
        if not wanted:
            return {}
        return {row.id: row for row in self._rows(collection, "rows", apsw.carray(wanted))}

    def row_by_key(self, collection: Collection, key: bytes) -> Row | None:
        found = self._rows(collection, "row_by_key", key)
        return found[0] if found else None

    def rows_of_session(self, collection: Collection, session: bytes) -> Sequence[Row]:
        return self._rows(collection, "rows_of_session", session)

    def changes(self, collection: Collection, after: int, limit: int) -> Sequence[Row]:
        return self._rows(collection, "changes", after, limit)

    def latest(self, collection: Collection, before: int, limit: int) -> Sequence[Row]:
        return self._rows(collection, "latest", before, limit)

    def overdue(self, collection: Collection, day: int, limit: int) -> Sequence[Row]:
        return self._rows(collection, "overdue", day, limit)

    def stale(self, collection: Collection, after: int, limit: int) -> Sequence[Row]:
        epoch = self.head().at(collection).epoch
        return self._rows(collection, "stale", after, epoch, limit)

    def count(self, collection: Collection) -> int:
        ((rows,),) = self.all(TABLES[collection]["count"])
        return int(rows)

    def derived(self, source: bytes) -> Sequence[bytes]:
        return [found for (found,) in self.all(QUERIES["derived"], (source,))]

    def buried(self, ids: Iterable[bytes]) -> frozenset[bytes]:
        wanted = tuple(ids)
        if not wanted:
            return frozenset()
        found = self.all(QUERIES["buried"], (apsw.carray(wanted),))
        return frozenset(row_id for (row_id,) in found)

    def tombstones(self) -> Sequence[bytes]:
        return [found for (found,) in self.all(QUERIES["tombstones"])]

    def value(self, name: str) -> bytes | None:
        if name not in self._values:
            if len(self._values) >= _CACHED_VALUES:
                self._values.clear()
            found = self.all(QUERIES["value"], (name,))
            self._values[name] = found[0][0] if found else None
        return self._values[name]

    def value_names(self) -> Sequence[str]:
        return [name for (name,) in self.all(QUERIES["value_names"])]

    def links(self) -> Sequence[tuple[bytes, bytes]]:
        return list(self.all(QUERIES["links"]))

    def audit(self, after: int, limit: int) -> Sequence[AuditRow]:
        found = self.all(QUERIES["audit"], (after, limit))
        return [AuditRow(count=count, cell=cell, mac=mac) for count, cell, mac in found]


class SqliteTx(SqliteView):
    """Write transaction on a scope; the head is read once and written once, a value read once."""

    __slots__ = ("_head_of",)

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self._head_of: int | None = None
        """Data version of the head and the values that are cached from the last transaction."""

    def begin(self) -> None:
        super().begin()
        # By this number SQLite itself knows whether what it has cached is still true.
        if self.connection.data_version() != self._head_of:
            self._head = None
            self._values.clear()

    def flush(self) -> None:
        """Write the head if it was moved."""
        if self._head is not None and self._head.moved:
            self.run(_MOVE_HEAD, self._head.columns)
            self._head.moved = False

    def commit(self) -> None:
        super().commit()
        self._head_of = self.connection.data_version()

    def rollback(self) -> None:
        self._head = None
        self._values.clear()
        super().rollback()

    def save(self) -> object:
        super().save()
        return None if self._head is None else (tuple(self._head.columns), self._head.moved)

    def restore(self, saved: object) -> None:
        super().restore(saved)
        self._head = None
        self._values.clear()
        if isinstance(saved, tuple):
            self._head = HeadColumns(saved[0])
            self._head.moved = saved[1]

    def set_head(self, head: Head) -> None:
        self._columns().set(head)

    def put(self, collection: Collection, row: Row) -> Row:
        if row.erased:
            raise StoreError("A row is erased by erase, not by put.")
        head = self._columns()
        seq = head.seq(collection) + 1
        self.run(
            TABLES[collection]["insert"],
            (
                seq, row.id, seq, row.version, row.epoch, row.expiry, 0, row.session, row.key,
                row.cell, row.vector, row.blob,
            ),
        )  # fmt: skip
        born = seq if self.connection.changes() else self._rewrite(collection, row, seq)
        head.next_seq(collection)
        return replace(row, seq=seq, born=born)

    def _rewrite(self, collection: Collection, row: Row, seq: int) -> int:
        """Move the row with this id to `seq` with its new content; the seq it was born at."""
        if row.key is not None:
            rival = self.row_by_key(collection, row.key)
            if rival is not None and rival.id != row.id:
                raise Conflict("Another row was written under the same key.")
        known = self.row(collection, row.id)
        if known is None:
            # Nothing but a head behind its rows is left as the reason why it was not inserted.
            raise faults.damaged()
        self.run(
            TABLES[collection]["rewrite"],
            (
                seq, row.version, row.epoch, row.expiry, row.session, row.key,
                row.cell, row.vector, row.blob, row.id,
            ),
        )  # fmt: skip
        return known.born

    def reseal(self, collection: Collection, rows: Sequence[tuple[Row, Row]]) -> frozenset[bytes]:
        sql = TABLES[collection]["reseal"]
        found = self.many(
            sql,
            (
                (
                    row.epoch, row.cell, row.vector, row.blob,
                    read.id, read.version, read.epoch, read.vector,
                )
                for read, row in rows
            ),
        )  # fmt: skip
        return frozenset(row_id for (row_id,) in found)

    def erase(self, collection: Collection, row_id: bytes, *, drop_day: int) -> Row | None:
        known = self.row(collection, row_id)
        if known is None or known.erased:
            return None
        head = self._columns()
        seq = head.next_seq(collection)
        head.raise_to(collection, ERASED_SEQ, seq)
        self.run(TABLES[collection]["erase"], (seq, drop_day, row_id))
        self.run(QUERIES["unlink_source"], (row_id,))
        self.run(QUERIES["unlink_derived"], (row_id,))
        return known

    def drop(self, collection: Collection, ids: Iterable[bytes]) -> int:
        sql = TABLES[collection]["drop"]
        dropped = [seq for row_id in ids for (seq,) in self.all(sql, (row_id,))]
        if dropped:
            self._columns().raise_to(collection, MIN_SEQ, max(dropped))
        return len(dropped)

    def bury(self, ids: Iterable[bytes]) -> None:
        for row_id in ids:
            self.run(QUERIES["bury"], (row_id,))

    def link(self, source: bytes, derived: bytes) -> None:
        self.run(QUERIES["link"], (source, derived))

    def set_value(self, name: str, cell: bytes | None) -> None:
        self._values.pop(name, None)
        if cell is None:
            self.run(QUERIES["remove_value"], (name,))
        else:
            self.run(QUERIES["set_value"], (name, cell))

    def slots(self) -> Mapping[str, bytes]:
        return {}

    def set_slot(self, purpose: str, slot: bytes | None) -> None:
        del purpose, slot
        raise StoreError("This store keeps no slots beside the rows.")

    def append_audit(self, cell: bytes, mac: bytes) -> None:
        self.run(_APPEND_AUDIT, (self._columns().next_audit(mac), cell, mac))

    def place(self, collection: Collection, rows: Sequence[Row], gone: Iterable[bytes]) -> None:
        queries = TABLES[collection]
        self.many(queries["remove"], [(one,) for one in (*gone, *(row.id for row in rows))])
        self.many(
            queries["place"],
            [
                (
                    row.seq, row.id, row.born, row.version, row.epoch, row.expiry,
                    int(row.erased), row.session, row.key, row.cell, row.vector, row.blob,
                )
                for row in rows
            ],
        )  # fmt: skip

    def unlink(self, source: bytes, derived: bytes) -> None:
        self.run(QUERIES["unlink"], (source, derived))

    def place_audit(self, rows: Sequence[AuditRow]) -> None:
        self.many(_APPEND_AUDIT, [(row.count, row.cell, row.mac) for row in rows])

    def place_head(self, head: Head) -> None:
        self._columns().place(head)

    def truncate(self) -> None:
        self._values.clear()
        for queries in TABLES.values():
            self.run(queries["clear"])
        for table in ("clear_tombstones", "clear_lineage", "clear_values", "clear_audit"):
            self.run(QUERIES[table])
