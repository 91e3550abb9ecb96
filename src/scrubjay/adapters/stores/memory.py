"""In-memory store: the executable specification of the port, for tests and simulations.

A scope is one immutable `ScopeState`. A reader keeps the state of its first read; a writer works on
a copy and replaces the state on commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from scrubjay.model.errors import Conflict, NotFound, StoreError
from scrubjay.model.results import FileInspection
from scrubjay.model.rows import AuditRow, BackupEntry, CatalogEntry, Collection, Head, Position, Row
from scrubjay.model.scope import check_place
from scrubjay.ports import (
    CATALOG_PAGE,
    Failpoint,
    Reach,
    Result,
    Tx,
    View,
    every_entry,
    pass_by,
)


class MemoryCatalog:
    """In-memory catalog of all scopes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, CatalogEntry] = {}
        self._tombstones: dict[str, frozenset[bytes]] = {}
        self._receipts: dict[str, tuple[bytes, ...]] = {}
        self._backups: dict[BackupEntry, None] = {}

    def enroll(self, entry: CatalogEntry) -> CatalogEntry:
        with self._lock:
            return self._entries.setdefault(entry.address, entry)

    def entry(self, address: str) -> CatalogEntry | None:
        return self._entries.get(address)

    def entries(self, after: str = "", limit: int = CATALOG_PAGE) -> Sequence[CatalogEntry]:
        with self._lock:
            found = sorted(self._entries.items())
        return _first(limit, (entry for address, entry in found if address > after))

    def mark_destroyed(self, address: str) -> None:
        with self._lock:
            if known := self._entries.get(address):
                self._entries[address] = replace(known, destroyed=True)

    def note_audit(self, address: str, count: int, mac: bytes) -> None:
        with self._lock:
            known = self._entries.get(address)
            if known and count > known.audit_count:
                self._entries[address] = replace(known, audit_count=count, audit_mac=mac)

    def bury(self, address: str, ids: Iterable[bytes]) -> None:
        with self._lock:
            self._tombstones[address] = self.tombstones(address).union(ids)

    def tombstones(self, address: str) -> frozenset[bytes]:
        return self._tombstones.get(address, frozenset())

    def add_receipt(self, address: str, cell: bytes) -> None:
        with self._lock:
            kept = self._receipts.get(address, ())
            self._receipts[address] = kept if cell in kept else (*kept, cell)

    def receipts(self, address: str) -> Sequence[bytes]:
        return self._receipts.get(address, ())

    def add_backup(self, backup: BackupEntry) -> None:
        with self._lock:
            self._backups[backup] = None

    def backups(self, address: str) -> Sequence[BackupEntry]:
        held = [backup for backup in self._backups if backup.address == address]
        return sorted(held, key=lambda backup: (backup.expires, backup.name))

    def remove_backup(self, backup: BackupEntry) -> None:
        with self._lock:
            self._backups.pop(backup, None)

    def raw(self) -> Iterator[tuple[str, bytes]]:
        """Every byte held, as (place, bytes)."""
        for entry in every_entry(self):
            yield f"catalog/{entry.address}", entry.name + entry.audit_mac
        for address, ids in sorted(self._tombstones.items()):
            yield f"catalog/{address}/tombstones", b"".join(sorted(ids))
        for address, cells in sorted(self._receipts.items()):
            yield f"catalog/{address}/receipts", b"".join(cells)


class MemoryShared:
    """In-memory values that several engines share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, tuple[bytes, float]] = {}

    def get(self, name: str, now: float) -> bytes | None:
        value, until = self._values.get(name, (None, now))
        return value if until > now else None

    def exchange(
        self, name: str, old: bytes | None, new: bytes | None, *, now: float, until: float
    ) -> bool:
        with self._lock:
            held = self.get(name, now) == old
            if held and new is not None:
                self._values[name] = (new, until)
            elif held:
                self._values.pop(name, None)
            return held

    def names(self, prefix: str, after: str, limit: int, now: float) -> Sequence[str]:
        found = (name for name in sorted(self._values) if name.startswith(prefix) and name > after)
        return _first(limit, (name for name in found if self.get(name, now) is not None))


class MemorySlots:
    """In-memory slots, beside the rows or apart from them; they last as long as the object."""

    place = "the memory of this process"

    def __init__(self, lock: threading.Lock | None = None, *, beside_rows: bool = False) -> None:
        self.beside_rows = beside_rows
        self.traceless = not beside_rows  # a standby has them, too
        self._lock = lock or threading.Lock()
        self._slots: dict[str, Mapping[str, bytes]] = {}

    def read(self, address: str, *, settled: bool = False) -> Mapping[str, bytes]:
        del settled  # a deletion is done at once
        return dict(sorted(self._slots.get(check_place("address", address), {}).items()))

    def add(self, address: str, purpose: str, wrap: Callable[[], bytes]) -> bytes:
        check_place("purpose", purpose)
        with self._lock:
            held = self.read(address)
            if purpose not in held:
                self._slots[address] = held = {**held, purpose: wrap()}
            return held[purpose]

    def exchange(self, address: str, purpose: str, old: bytes, new: bytes) -> bool:
        with self._lock:
            held = self.read(address)
            if held.get(check_place("purpose", purpose)) != old:
                return False
            self._slots[address] = {**held, purpose: new}
            return True

    def delete(self, address: str, purposes: Iterable[str]) -> None:
        gone = {check_place("purpose", purpose) for purpose in purposes}
        with self._lock:
            self.replace(
                address, {n: one for n, one in self.read(address).items() if n not in gone}
            )

    def remove(self, address: str) -> None:
        with self._lock:
            self._slots.pop(check_place("address", address), None)

    def addresses(self, after: str, limit: int) -> Sequence[str]:
        return _first(limit, (one for one in sorted(self._slots) if one > after))

    def check_deletable(self) -> None:
        """Always."""

    def replace(self, address: str, slots: Mapping[str, bytes]) -> None:
        """Put all slots of an address in place of those it has."""
        self._slots[address] = slots
        if not slots:
            del self._slots[address]


Rows = Mapping[bytes, Row]
Item = TypeVar("Item")


class ScopeState(Struct, frozen=True, kw_only=True):
    """Immutable state of a scope at one moment."""

    head: Head = field(default_factory=Head)
    rows: Mapping[Collection, Rows] = field(
        default_factory=lambda: {collection: {} for collection in Collection}
    )
    """By id, in the order of seq: a row that is written again goes to the end."""
    tombstones: frozenset[bytes] = frozenset()
    links: frozenset[tuple[bytes, bytes]] = frozenset()
    values: Mapping[str, bytes] = field(default_factory=dict)
    audit: tuple[AuditRow, ...] = ()


class MemoryView:
    """Read view: the state at its first read."""

    def __init__(self, look: Callable[[], ScopeState]) -> None:
        self._look = look
        self._met: ScopeState | None = None

    @property
    def _state(self) -> ScopeState:
        if self._met is None:
            self._met = self._look()
        return self._met

    def _rows(self, collection: Collection) -> Iterable[Row]:
        return self._state.rows[collection].values()

    def _live(self, collection: Collection) -> Iterator[Row]:
        return (row for row in self._rows(collection) if not row.erased)

    def head(self) -> Head:
        return self._state.head

    def count(self, collection: Collection) -> int:
        return sum(1 for _ in self._live(collection))

    def row(self, collection: Collection, row_id: bytes) -> Row | None:
        return self._state.rows[collection].get(row_id)

    def rows(self, collection: Collection, ids: Iterable[bytes]) -> Mapping[bytes, Row]:
        rows = self._state.rows[collection]
        return {row_id: rows[row_id] for row_id in ids if row_id in rows}

    def row_by_key(self, collection: Collection, key: bytes) -> Row | None:
        return next((row for row in self._live(collection) if row.key == key), None)

    def rows_of_session(self, collection: Collection, session: bytes) -> Sequence[Row]:
        return [row for row in self._live(collection) if row.session == session]

    def changes(self, collection: Collection, after: int, limit: int) -> Sequence[Row]:
        return _first(limit, (row for row in self._rows(collection) if row.seq > after))

    def latest(self, collection: Collection, before: int, limit: int) -> Sequence[Row]:
        newest_first = reversed([row for row in self._live(collection) if row.seq < before])
        return _first(limit, newest_first)

    def overdue(self, collection: Collection, day: int, limit: int) -> Sequence[Row]:
        rows = self._rows(collection)
        return _first(limit, (row for row in rows if row.expiry is not None and row.expiry <= day))

    def stale(self, collection: Collection, after: int, limit: int) -> Sequence[Row]:
        epoch = self.head().at(collection).epoch
        rows = self._live(collection)
        return _first(limit, (row for row in rows if row.seq > after and row.epoch < epoch))

    def derived(self, source: bytes) -> Sequence[bytes]:
        return sorted(derived for origin, derived in self._state.links if origin == source)

    def buried(self, ids: Iterable[bytes]) -> frozenset[bytes]:
        return self._state.tombstones.intersection(ids)

    def tombstones(self) -> Sequence[bytes]:
        return sorted(self._state.tombstones)

    def value(self, name: str) -> bytes | None:
        return self._state.values.get(name)

    def value_names(self) -> Sequence[str]:
        return sorted(self._state.values)

    def links(self) -> Sequence[tuple[bytes, bytes]]:
        return sorted(self._state.links)

    def audit(self, after: int, limit: int) -> Sequence[AuditRow]:
        return _first(limit, (row for row in self._state.audit if row.count > after))


def _state(row: Row) -> tuple[int, int, bytes | None]:
    """What tells whether a row was changed since it was read."""
    return row.version, row.epoch, row.vector


def _first(limit: int, items: Iterable[Item]) -> list[Item]:
    return list(islice(items, limit))


class MemoryTx(MemoryView):
    """Transaction: a view of its own copy, which each change replaces."""

    def __init__(self, state: ScopeState, slots: Mapping[str, bytes] | None = None) -> None:
        super().__init__(lambda: state)
        self.beside = slots
        """The slots beside the rows after all changes so far; None where there are none."""

    @property
    def result(self) -> ScopeState:
        """The state after all changes so far."""
        return self._state

    def _become(self, **changes: object) -> None:
        self._met = replace(self._state, **changes)

    def _move(self, collection: Collection, position: Position) -> None:
        self._become(head=self.head().moved(collection, position))

    def _place(self, collection: Collection, row: Row, *, at_end: bool) -> None:
        rows = dict(self._state.rows[collection])
        if at_end:
            rows.pop(row.id, None)
        rows[row.id] = row
        self._become(rows={**self._state.rows, collection: rows})

    def set_head(self, head: Head) -> None:
        for collection in Collection:
            now, wanted = self.head().at(collection), head.at(collection)
            head = head.moved(collection, replace(now, epoch=wanted.epoch))
        self._become(head=head)

    def put(self, collection: Collection, row: Row) -> Row:
        if row.erased:
            raise StoreError("A row is erased by erase, not by put.")
        known = self.row(collection, row.id)
        rival = self.row_by_key(collection, row.key) if row.key is not None else None
        if rival and rival.id != row.id:
            raise Conflict("Another row was written under the same key.")
        position = self.head().at(collection)
        seq = position.seq + 1
        row = replace(row, seq=seq, born=known.born if known else seq)
        self._place(collection, row, at_end=True)
        self._move(collection, replace(position, seq=seq))
        return row

    def reseal(self, collection: Collection, rows: Sequence[tuple[Row, Row]]) -> frozenset[bytes]:
        done = []
        for read, row in rows:
            known = self.row(collection, read.id)
            if known is None or known.erased or _state(known) != _state(read):
                continue
            sealed = replace(
                known, cell=row.cell, vector=row.vector, blob=row.blob, epoch=row.epoch
            )
            self._place(collection, sealed, at_end=False)
            done.append(read.id)
        return frozenset(done)

    def erase(self, collection: Collection, row_id: bytes, *, drop_day: int) -> Row | None:
        known = self.row(collection, row_id)
        if known is None or known.erased:
            return None
        position = self.head().at(collection)
        seq = position.seq + 1
        empty = Row(
            id=row_id, version=known.version, epoch=known.epoch, cell=None,
            expiry=drop_day, erased=True, seq=seq, born=known.born,
        )  # fmt: skip
        self._place(collection, empty, at_end=True)
        self._become(links=frozenset(link for link in self._state.links if row_id not in link))
        self._move(collection, replace(position, seq=seq, erased_seq=seq))
        return known

    def drop(self, collection: Collection, ids: Iterable[bytes]) -> int:
        rows = dict(self._state.rows[collection])
        dropped = [rows.pop(i) for i in dict.fromkeys(ids) if i in rows and rows[i].erased]
        position = self.head().at(collection)
        min_seq = max([position.min_seq, *(row.seq for row in dropped)])
        self._become(rows={**self._state.rows, collection: rows})
        self._move(collection, replace(position, min_seq=min_seq))
        return len(dropped)

    def bury(self, ids: Iterable[bytes]) -> None:
        self._become(tombstones=self._state.tombstones.union(ids))

    def link(self, source: bytes, derived: bytes) -> None:
        self._become(links=self._state.links | {(source, derived)})

    def set_value(self, name: str, cell: bytes | None) -> None:
        values = {known: kept for known, kept in self._state.values.items() if known != name}
        self._become(values=values if cell is None else {**values, name: cell})

    def slots(self) -> Mapping[str, bytes]:
        return self.beside or {}

    def set_slot(self, purpose: str, slot: bytes | None) -> None:
        if self.beside is None:
            raise StoreError("This store keeps no slots beside the rows.")
        kept = {name: one for name, one in self.beside.items() if name != purpose}
        self.beside = kept if slot is None else {**kept, purpose: slot}

    def append_audit(self, cell: bytes, mac: bytes) -> None:
        count = self.head().audit_count + 1
        self._become(
            audit=(*self._state.audit, AuditRow(count=count, cell=cell, mac=mac)),
            head=replace(self.head(), audit_count=count, audit_mac=mac),
        )

    def place(self, collection: Collection, rows: Sequence[Row], gone: Iterable[bytes]) -> None:
        without = {row.id for row in rows}.union(gone)
        kept = [row for row in self._rows(collection) if row.id not in without]
        placed = {row.id: row for row in sorted([*kept, *rows], key=lambda row: row.seq)}
        self._become(rows={**self._state.rows, collection: placed})

    def unlink(self, source: bytes, derived: bytes) -> None:
        self._become(links=self._state.links - {(source, derived)})

    def place_audit(self, rows: Sequence[AuditRow]) -> None:
        self._become(audit=(*self._state.audit, *rows))

    def place_head(self, head: Head) -> None:
        self._become(head=head)

    def truncate(self) -> None:
        self._met = ScopeState(head=self.head())


class MemoryStore:
    """In-memory store of the sealed rows of many scopes, with or without slots beside them."""

    def __init__(self, *, reach: Reach = pass_by, with_slots: bool = False) -> None:
        self._reach = reach
        self._shared = MemoryShared()
        self._scopes: dict[str, ScopeState] = {}
        self._catalog = MemoryCatalog()
        self._writing = threading.Lock()
        self._slots = MemorySlots(self._writing, beside_rows=True) if with_slots else None
        self._writer: int | None = None
        self._closed = False

    @property
    def catalog(self) -> MemoryCatalog:
        """The catalog of this installation."""
        self._check_open()
        return self._catalog

    @property
    def shared(self) -> MemoryShared:
        """Small values of this installation."""
        self._check_open()
        return self._shared

    @property
    def slots(self) -> MemorySlots | None:
        """The slots beside the rows, if it was made with them."""
        return self._slots

    def create(self, address: str) -> None:
        self._check_open()
        with self._writing:
            self._scopes.setdefault(address, ScopeState())

    def exists(self, address: str) -> bool:
        self._check_open()
        return address in self._scopes

    def head(self, address: str) -> Head:
        return self._state(address).head

    @contextmanager
    def read(self, address: str) -> Iterator[View]:
        self._state(address)
        yield MemoryView(lambda: self._state(address))

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        del erasing  # there is no disk that could be full
        if self._writer == threading.get_ident():
            raise StoreError("A write was begun inside another write.")
        with self._writing:
            self._writer = threading.get_ident()
            try:
                slots = None if self._slots is None else self._slots.read(address)
                tx = MemoryTx(self._state(address), slots)
                result = work(tx)
                self._reach(Failpoint.STORE_BEFORE_COMMIT)
                self._scopes[address] = tx.result
                if self._slots is not None and tx.beside is not None and tx.beside != slots:
                    self._slots.replace(address, tx.beside)
                self._reach(Failpoint.STORE_AFTER_COMMIT)
                return result
            finally:
                self._writer = None

    def resolve(self, address: str, commit: str) -> bool | None:
        """No answer is ever lost."""

    def lasting(self, address: str) -> bool:
        """Always: there is no other copy that could be older."""
        del address
        self._check_open()
        return True

    def warnings(self) -> Sequence[str]:
        return []

    def make_room(self) -> None:
        self._check_open()

    def settle(self, address: str) -> None:
        self._state(address)

    def size(self, address: str) -> int:
        return sum(len(piece) for _, piece in _pieces(address, self._state(address)))

    def check(self, address: str) -> Sequence[str]:
        self._state(address)
        return []

    def inspect(self, address: str) -> FileInspection:
        rows = self._state(address).rows
        facts = tuple((f"{name.value} rows", str(len(some))) for name, some in rows.items())
        return FileInspection(title="a scope: sealed rows", facts=facts)

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        self._check_open()
        if address in self._scopes:
            yield from _pieces(address, self._scopes[address])
        yield from self._catalog.raw()

    def remove(self, address: str) -> None:
        self._check_open()
        with self._writing:
            self._scopes.pop(address, None)

    def strays(self) -> Sequence[str]:
        known = {entry.address: entry for entry in every_entry(self._catalog)}
        stray = [f"{one} belongs to no scope." for one in sorted(self._scopes.keys() - known)]
        lost = [a for a, one in known.items() if not one.destroyed and a not in self._scopes]
        return [*stray, *(f"The rows of {address} are lost." for address in lost)]

    def copy(self) -> Sequence[dict[str, object]]:
        """All that it holds now, as a standby would have it."""
        return [dict(held) for held in self._held()]

    def become(self, copied: Sequence[dict[str, object]]) -> None:
        """Hold what another copy holds."""
        with self._writing:
            for held, other in zip(self._held(), copied, strict=True):
                held.clear()
                held.update(other)

    def _held(self) -> Sequence[dict[str, object]]:
        parts = (
            self,
            self._catalog,
            self._shared,
            *(() if self._slots is None else (self._slots,)),
        )
        found = [vars(part) for part in parts]
        return [one for held in found for one in held.values() if isinstance(one, dict)]

    def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The store is closed.", hint="Open it again.")

    def _state(self, address: str) -> ScopeState:
        self._check_open()
        try:
            return self._scopes[address]
        except KeyError:
            raise NotFound("There is no such scope in this store.") from None


def _pieces(address: str, state: ScopeState) -> Iterator[tuple[str, bytes]]:
    for collection, rows in state.rows.items():
        for row in rows.values():
            kept = (row.id, row.cell, row.vector, (row.blob or "").encode(), row.session, row.key)
            yield f"{address}/{collection}/{row.seq}", b"".join(part or b"" for part in kept)
    for number, link in enumerate(sorted(state.links)):
        yield f"{address}/link/{number}", b"".join(link)
    for number, tombstone in enumerate(sorted(state.tombstones)):
        yield f"{address}/tombstone/{number}", tombstone
    for name, cell in state.values.items():
        yield f"{address}/value/{name}", cell
    for audit in state.audit:
        yield f"{address}/audit/{audit.count}", audit.cell + audit.mac
