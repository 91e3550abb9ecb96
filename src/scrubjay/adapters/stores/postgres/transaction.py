"""Transactions on a scope: a read view, and a write transaction under the lock of its head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, LiteralString, Self

import psycopg
from msgspec.structs import replace

from scrubjay.adapters.stores.head_columns import ERASED_SEQ, MIN_SEQ, HeadColumns
from scrubjay.adapters.stores.postgres import faults
from scrubjay.adapters.stores.postgres.connections import Connections, Database, fetched
from scrubjay.adapters.stores.postgres.schema import EACH, QUERIES
from scrubjay.model.errors import Conflict, StoreError
from scrubjay.model.rows import AuditRow, Collection, Head, Row
from scrubjay.ports import patience, patient

_NUMBER: Final = {collection: number for number, collection in enumerate(Collection)}
_BEGIN_VIEW: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"


class PostgresView:
    """Read view of a scope: a snapshot as of its first read."""

    def __init__(self, connections: Connections, address: str) -> None:
        self._connections = connections
        self._address = address
        self._connection: Database | None = None
        self._ended = False
        self._head: HeadColumns | None = None
        self._scope = 0
        self._known: dict[str, bytes | None] = {}
        """Values that came with the head."""
        self.failure: psycopg.Error | None = None
        """Error of PostgreSQL: the transaction is lost, even if the error was caught."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Let go of the connection; a transaction that stands is undone with it."""
        connection, self._connection, self._ended = self._connection, None, True
        if connection is None:
            return
        try:
            if sound := self.failure is None:
                self._leave(connection)
        except psycopg.Error:  # seam: nothing is left to be done on it
            sound = False
        self._connections.give(connection, sound=sound)

    def _leave(self, connection: Database) -> None:
        connection.execute("COMMIT")

    def run(self, query: str, *bindings: object) -> list[tuple[Any, ...]]:
        """Every row that one of our queries yields."""
        with self._noted():
            return fetched(self.connection, QUERIES[query], *bindings)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            self.failure = error
            raise faults.fault(error) from error

    @property
    def connection(self) -> Database:
        """The connection of this transaction, which the first use begins."""
        if self._connection is None:
            self._columns()
        assert self._connection is not None
        return self._connection

    def _columns(self) -> HeadColumns:
        if self._ended:
            raise StoreError("A transaction was used after its end.")
        if self._head is None:
            self._connection, found = self._connections.begin(self._begin)
            self._met(found)
        assert self._head is not None
        return self._head

    def _begin(self, connection: Database) -> list[Sequence[Any]]:
        with connection.pipeline():
            connection.execute(_BEGIN_VIEW)
            name = self._connections.asked_first
            found = fetched(connection, QUERIES["head_and_value"], name, self._address)
        self._known = dict.fromkeys([name], found[0][-1] if found else None)
        return [columns for *columns, _ in found]

    def _met(self, found: list[Sequence[Any]]) -> None:
        if not found:
            self.end()
            raise faults.absent()
        *columns, self._scope = found[0]
        self._head = HeadColumns(tuple(columns))

    @property
    def scope(self) -> int:
        """The number of the scope; its address may be of another one later."""
        self._columns()
        return self._scope

    def head(self) -> Head:
        return self._columns().head()

    def _rows(self, query: str, collection: Collection, *bindings: object) -> list[Row]:
        found = self.run(query, self.scope, _NUMBER[collection], *bindings)
        return [
            Row(
                id=row_id, version=version, epoch=epoch, cell=cell, vector=vector, blob=blob,
                session=session, key=key, expiry=expiry, erased=erased, seq=seq, born=born,
            )
            for seq, row_id, born, version, epoch, expiry, erased, session, key, cell, vector, blob
            in found
        ]  # fmt: skip

    def row(self, collection: Collection, row_id: bytes) -> Row | None:
        return next(iter(self._rows("row", collection, row_id)), None)

    def rows(self, collection: Collection, ids: Iterable[bytes]) -> Mapping[bytes, Row]:
        wanted = list(ids)
        found = self._rows("rows", collection, wanted) if wanted else []
        return {row.id: row for row in found}

    def row_by_key(self, collection: Collection, key: bytes) -> Row | None:
        return next(iter(self._rows("row_by_key", collection, key)), None)

    def rows_of_session(self, collection: Collection, session: bytes) -> Sequence[Row]:
        return self._rows("rows_of_session", collection, session)

    def changes(self, collection: Collection, after: int, limit: int) -> Sequence[Row]:
        return self._rows("changes", collection, after, limit)

    def latest(self, collection: Collection, before: int, limit: int) -> Sequence[Row]:
        return self._rows("latest", collection, before, limit)

    def overdue(self, collection: Collection, day: int, limit: int) -> Sequence[Row]:
        return self._rows("overdue", collection, day, limit)

    def stale(self, collection: Collection, after: int, limit: int) -> Sequence[Row]:
        return self._rows("stale", collection, after, self.head().at(collection).epoch, limit)

    def count(self, collection: Collection) -> int:
        ((rows,),) = self.run("count", self.scope, _NUMBER[collection])
        return int(rows)

    def derived(self, source: bytes) -> Sequence[bytes]:
        return [found for (found,) in self.run("derived", self.scope, source)]

    def buried(self, ids: Iterable[bytes]) -> frozenset[bytes]:
        wanted = list(ids)
        found = self.run("buried", self.scope, wanted) if wanted else []
        return frozenset(row_id for (row_id,) in found)

    def tombstones(self) -> Sequence[bytes]:
        return [found for (found,) in self.run("tombstones", self.scope)]

    def value(self, name: str) -> bytes | None:
        scope = self.scope
        if name in self._known:
            return self._known[name]
        self._connections.asked_first = name
        found = self.run("value", scope, name)
        return found[0][0] if found else None

    def value_names(self) -> Sequence[str]:
        return [name for (name,) in self.run("value_names", self.scope)]

    def links(self) -> Sequence[tuple[bytes, bytes]]:
        return list(self.run("links", self.scope))

    def audit(self, after: int, limit: int) -> Sequence[AuditRow]:
        found = self.run("audit", self.scope, after, limit)
        return [AuditRow(count=count, cell=cell, mac=mac) for count, cell, mac in found]


class PostgresTx(PostgresView):
    """Write transaction, in pipeline mode: what nobody reads is sent without waiting for it.

    The head is locked and read first, and written once. An error of what was sent shows at the
    next read or at the commit, and ends the transaction.
    """

    def __init__(self, connections: Connections, address: str) -> None:
        super().__init__(connections, address)
        self._pipeline = ExitStack()
        self._over = False
        self.name = ""
        """The name of the commit: transaction id and timeline."""

    def begin(self, timeout: float) -> None:
        """Begin, and lock the head; Busy at the timeout."""
        with patience(timeout):
            self._columns()

    def _leave(self, connection: Database) -> None:
        if not self._over:
            connection.close()

    def _begin(self, connection: Database) -> list[Sequence[Any]]:
        self._pipeline = ExitStack()
        self._pipeline.enter_context(connection.pipeline())
        connection.execute(_BEGIN_WRITE)
        limit = max(1, int(patient(self._connections.timeout) * 1000))
        connection.execute("SELECT set_config('lock_timeout', %s, true)", (str(limit),))
        found = fetched(connection, QUERIES["lock_head"], self._address)
        if found:
            *columns, self.name = found[0]
            return [tuple(columns)]
        self._finish(connection, "ROLLBACK")
        return []

    def commit(self) -> None:
        """Write the head if it was moved, and make all changes durable."""
        self.flush()
        self._finish(self.connection, "COMMIT")

    def flush(self) -> None:
        """Send the head if it was moved."""
        head = self._columns()
        if head.moved:
            self._send("move_head", *head.columns, self._scope)
            head.moved = False

    def rollback(self) -> None:
        """Undo all changes."""
        self._finish(self.connection, "ROLLBACK")

    def _finish(self, connection: Database, statement: LiteralString) -> None:
        connection.execute(statement)
        self._pipeline.close()
        self._over = True

    def save(self) -> object:
        """Set a savepoint for `restore`."""
        self.connection.execute("SAVEPOINT request")
        head = self._columns()
        return tuple(head.columns), head.moved

    def restore(self, saved: object) -> None:
        """Roll back to the savepoint."""
        assert isinstance(saved, tuple)
        self.connection.execute("ROLLBACK TO request")
        columns, moved = saved
        self._head = HeadColumns(columns)
        self._head.moved = moved

    def release(self) -> None:
        """Forget the savepoint."""
        self.connection.execute("RELEASE request")

    def _send(self, query: str, *bindings: object) -> None:
        """Send a statement whose answer nobody reads."""
        with self._noted():
            self.connection.execute(QUERIES[query], bindings)

    def set_head(self, head: Head) -> None:
        self._columns().set(head)

    def put(self, collection: Collection, row: Row) -> Row:
        if row.erased:
            raise StoreError("A row is erased by erase, not by put.")
        head = self._columns()
        seq = head.seq(collection) + 1
        bindings = {
            "scope": self._scope, "collection": _NUMBER[collection], "seq": seq, "id": row.id,
            "version": row.version, "epoch": row.epoch, "expiry": row.expiry,
            "session": row.session, "key": row.key, "cell": row.cell, "vector": row.vector,
            "blob": row.blob,
        }  # fmt: skip
        with self._noted():
            found = self.connection.execute(QUERIES["put"], bindings, binary=True).fetchone()
        if found is None:
            raise Conflict("Another row was written under the same key.")
        head.next_seq(collection)
        return replace(row, seq=seq, born=found[0])

    def reseal(self, collection: Collection, rows: Sequence[tuple[Row, Row]]) -> frozenset[bytes]:
        if not rows:
            return frozenset()
        scope, number = self.scope, _NUMBER[collection]
        exchanged = [
            (
                row.epoch, row.cell, row.vector, row.blob,
                scope, number, read.id, read.version, read.epoch, read.vector,
            )
            for read, row in rows
        ]  # fmt: skip
        with self._noted():
            cursor = self.connection.cursor(binary=True)
            cursor.executemany(QUERIES["reseal"], exchanged, returning=True)
            return frozenset(row_id for part in cursor.results() for (row_id,) in part)

    def erase(self, collection: Collection, row_id: bytes, *, drop_day: int) -> Row | None:
        known = self.row(collection, row_id)
        if known is None or known.erased:
            return None
        head = self._columns()
        seq = head.next_seq(collection)
        head.raise_to(collection, ERASED_SEQ, seq)
        self._send("erase", seq, drop_day, self._scope, _NUMBER[collection], row_id)
        self._send("unlink_source", self._scope, row_id)
        self._send("unlink_derived", self._scope, row_id)
        return known

    def drop(self, collection: Collection, ids: Iterable[bytes]) -> int:
        dropped = self.run("drop", self.scope, _NUMBER[collection], list(ids))
        if dropped:
            self._columns().raise_to(collection, MIN_SEQ, max(seq for (seq,) in dropped))
        return len(dropped)

    def bury(self, ids: Iterable[bytes]) -> None:
        self._send("bury", self.scope, list(ids))

    def link(self, source: bytes, derived: bytes) -> None:
        self._send("link", self.scope, source, derived)

    def set_value(self, name: str, cell: bytes | None) -> None:
        if cell is None:
            self._send("remove_value", self.scope, name)
        else:
            self._send("set_value", self.scope, name, cell)

    def slots(self) -> Mapping[str, bytes]:
        return dict(self.run("slots", self._address))

    def set_slot(self, purpose: str, slot: bytes | None) -> None:
        if slot is None:
            self._send("lock_slots", self._address)
            self._send("delete_slots", self._address, [purpose])
        else:
            self._send("set_slot", self._address, purpose, slot)

    def append_audit(self, cell: bytes, mac: bytes) -> None:
        self._send("append_audit", self.scope, self._columns().next_audit(mac), cell, mac)

    def place(self, collection: Collection, rows: Sequence[Row], gone: Iterable[bytes]) -> None:
        scope, number = self.scope, _NUMBER[collection]
        self._send("remove_rows", scope, number, [*gone, *(row.id for row in rows)])
        placed = [
            (
                scope, number, row.seq, row.id, row.born, row.version, row.epoch, row.expiry,
                row.erased, row.session, row.key, row.cell, row.vector, row.blob,
            )
            for row in rows
        ]  # fmt: skip
        with self._noted():
            self.connection.cursor(binary=True).executemany(QUERIES["place"], placed)

    def unlink(self, source: bytes, derived: bytes) -> None:
        self._send("unlink", self.scope, source, derived)

    def place_audit(self, rows: Sequence[AuditRow]) -> None:
        for row in rows:
            self._send("append_audit", self.scope, row.count, row.cell, row.mac)

    def place_head(self, head: Head) -> None:
        self._columns().place(head)

    def truncate(self) -> None:
        scope = self.scope
        with self._noted():
            for query in EACH["clear"]:
                self.connection.execute(query, (scope,))
