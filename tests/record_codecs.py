"""The codecs of everything that is JSON in a sealed cell or an export, in one table.

A change of the code may change the imports and the few lines here, and nothing else: the vectors
in tests/vectors/records.json stay as they are. What has no function of its own that gives bytes is
written by the engine into a scope in memory and its cell is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from scrubjay import vault
from scrubjay.engine.ledger import derivation, sessions
from scrubjay.engine.ledger.backlog import Backlog
from scrubjay.engine.ledger.derivation import Derivation
from scrubjay.engine.ledger.timeline import Line, Mark
from scrubjay.engine.memories import receipts
from scrubjay.engine.scope import lifecycle as scopes
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.search import manifest
from scrubjay.engine.search.manifest import Manifest, SegmentBlobs
from scrubjay.engine.transfer import bundle
from scrubjay.engine.transfer.bundle import Content
from scrubjay.model import records, turns
from scrubjay.model.echo import plain_words
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import Allowance
from scrubjay.model.results import AuditEvent, BackupNote, ErasedCell, Erasure
from scrubjay.model.rows import AuditRow, CatalogEntry, Collection, Row
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Turn
from scrubjay.ports import Tx
from scrubjay.testing.clock import FakeClock
from scrubjay.vault import Purpose, Sealer
from tests.support.engines import MemoryHome

Fields = Mapping[str, Any]
SCOPE = Scope("tenant", "owner")
_SESSION = "a session"
SHOWN = "Alice prefers green tea in the morning"
"""What memory showed, where a vector has it."""
_KEY = bytes(range(32))


class Codec(NamedTuple):
    """How one type is made of plain fields, written and read."""

    build: Callable[[Any], Any]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def _times(fields: Fields, *names: str) -> dict[str, Any]:
    """The fields, with what stands for a time as one."""
    found = dict(fields)
    for name in names:
        if isinstance(found.get(name), str):
            found[name] = datetime.fromisoformat(found[name])
    return found


# -- memories and turns ----------------------------------------------------------------------


def memory(fields: Fields) -> Memory:
    """A memory of plain fields."""
    names = ("recorded_at", "retired_at", "archived_at", "valid_from", "valid_to", "expires_at")
    found = _times(fields, *names)
    found |= {"kind": Kind(fields["kind"]), "origin": Origin(fields.get("origin", "user"))}
    if "provenance" in fields:
        inner = _times(fields["provenance"], "said_at")
        found["provenance"] = Provenance(**{**inner, "actor": Actor(inner.get("actor", "user"))})
    for name in {"tags", "sources"} & found.keys():
        found[name] = tuple(found[name])
    return Memory(**found)


def turn(fields: Fields) -> Turn:
    """A turn of plain fields."""
    found = _times(fields, "at")
    found |= {"origin": Origin(fields.get("origin", "user"))}
    return Turn(**{**found, "actor": Actor(fields.get("actor", "agent"))})


def _encode_record(value: Memory) -> bytes:
    return json.dumps(records.export_record(value), ensure_ascii=False).encode()


def _encode_turn_record(value: Turn) -> bytes:
    return json.dumps(turns.to_record(value), ensure_ascii=False).encode()


# -- exports and bundles ---------------------------------------------------------------------


def content(fields: Fields) -> Content:
    """What an export or a bundle carries, of plain fields."""
    found = {**fields, "scope": Scope.parse(fields["scope"])}
    found["memories"] = tuple(map(memory, fields["memories"]))
    found["turns"] = tuple(map(turn, fields.get("turns", ())))
    if "lookup" in fields:
        found["lookup"] = bytes.fromhex(fields["lookup"])
    if "tombstones" in fields:
        found["tombstones"] = tuple(map(bytes.fromhex, fields["tombstones"]))
    if "audit" in fields:
        found["audit"] = tuple((bytes.fromhex(a), bytes.fromhex(b)) for a, b in fields["audit"])
    return Content(**found)


def _bundle_sealer() -> Sealer:
    return Sealer(_KEY, Purpose.BUNDLE, None, "bundle")


def _encode_bundle(value: Content) -> bytes:
    sealed = bundle.seal(value, name="b", key=_KEY, random=FakeClock().random)
    head, _, stream = sealed.partition(b"\n")
    lines = b"".join(_bundle_sealer().unseal_stream(stream, row_id=b"b", version=1))
    return head + b"\n" + lines


def _decode_bundle(raw: bytes) -> Content:
    head, _, lines = raw.partition(b"\n")
    sealer = _bundle_sealer()
    stream = sealer.seal_stream(lines, row_id=b"b", version=1, random=FakeClock().random)
    return bundle.unseal(head + b"\n" + stream, _KEY)


def receipt(fields: Fields) -> Erasure:
    """A receipt of plain fields."""
    found = _times(fields, "at")
    found["cells"] = tuple(ErasedCell(**one) for one in fields.get("cells", ()))
    found["backups"] = tuple(
        BackupNote(name=one["name"], expires=date.fromisoformat(one["expires"]))
        for one in fields.get("backups", ())
    )
    return Erasure(**found)


# -- what only the engine writes ---------------------------------------------------------------


_LOOKUP = bytes.fromhex("b95338a33a62bf3b2b9c7ac1fd7a21be94a4688a550bffea8f22ed3557642d6b")
"""The lookup key under which the hashes in the vectors were made."""


class Bench:
    """One open scope in memory, at a time that stands still."""

    def __init__(self, now: datetime | None = None, scope: Scope = SCOPE) -> None:
        still = timedelta()
        clock = FakeClock(step=still) if now is None else FakeClock(start=now, step=still)
        self.ports = MemoryHome(clock=clock).ports()
        address, _ = scopes.locate(self.ports, scope, make=True)
        scopes.make(self.ports, scope, address, lookup=_LOOKUP)
        self.opened = scopes.open_scope(self.ports, scope)

    def body(self, row_id: bytes) -> bytes:
        """What the cell of a session or a note holds."""
        row = self.opened.read(lambda view: view.row(Collection.SESSION, row_id))
        assert row is not None
        return self.opened.open_body(Collection.SESSION, row)

    def put(self, row_id: bytes, raw: bytes) -> None:
        """Seal bytes in the place of a session or a note."""
        home = Collection.SESSION
        row = Row(id=row_id, version=1, epoch=1, cell=None)
        sealed = self.opened.seal_body(home, row, raw)
        self.opened.write(lambda tx: tx.put(home, sealed))

    def session(self) -> bytes:
        """The row of the session."""
        return self.opened.session_hash(_SESSION)

    def note(self, name: str) -> bytes:
        """The row of a note."""
        return self.opened.row_id(f"/{name}")

    def noted(self, name: str, change: Callable[[ScopeValues], None]) -> bytes:
        """The bytes of a note after a change."""

        def store(tx: Tx) -> None:
            values = ScopeValues(self.opened, tx)
            change(values)
            values.write(tx)

        self.opened.write(store)
        return self.body(self.note(name))

    def read_note(self, name: str, raw: bytes, read: Callable[[ScopeValues], Any]) -> Any:
        """What is read of a note that holds these bytes."""
        self.put(self.note(name), raw)
        return self.opened.read(lambda view: read(ScopeValues(self.opened, view)))


def _encode_session(fields: Fields) -> bytes:
    """Do what leaves such a session, in the order of the fields."""
    bench = Bench(datetime.fromisoformat(fields["now"]))

    def spend(tx: Tx, what: str, limit: int) -> None:
        sessions.spend(bench.opened, tx, [Allowance(session=_SESSION, name=what, limit=limit)])

    def show(tx: Tx, shown: list[str]) -> None:
        sessions.note_shown(bench.opened, tx, _SESSION, shown)

    for name, value in fields.items():
        if name == "tainted":
            sessions.mark_tainted(bench.opened, _SESSION, Origin(value), actor=Actor.AGENT)
        elif name == "spent":
            for what, times in value.items():
                for _ in range(times):
                    bench.opened.write(partial(spend, what=what, limit=times))
        elif name == "shown":
            bench.opened.write(partial(show, shown=value))
    return bench.body(bench.session())


def _decode_session(raw: bytes) -> Fields:
    bench = Bench()
    bench.put(bench.session(), raw)
    tainted = bench.opened.read(lambda view: sessions.tainted(bench.opened, view, _SESSION))
    found: dict[str, Any] = {} if tainted is None else {"tainted": tainted.value}
    known = bench.opened.read(lambda view: sessions.shown_before(bench.opened, view, _SESSION))
    if known is not None and known(plain_words(SHOWN)):
        found["shown"] = [SHOWN]  # only its hash is kept
    spent = dict(sessions.spent(bench.opened, _SESSION))
    return found | ({"spent": spent} if spent else {})


def session(fields: Fields) -> Fields:
    """A session is what is known of it."""
    return fields


def note(fields: Fields) -> Any:
    """A note is any JSON."""
    return fields["value"]


def _encode_note(value: Any) -> bytes:
    return Bench().noted("any", lambda values: values.put("any", value))


def _decode_note(raw: bytes) -> Any:
    return Bench().read_note("any", raw, lambda values: values.get("any"))


def backlog(fields: Fields) -> Backlog:
    """A backlog of plain fields."""
    return Backlog(**fields)


def _encode_backlog(value: Backlog) -> bytes:
    return Bench().noted("extraction", value.put)


def _decode_backlog(raw: bytes) -> Backlog:
    found: Backlog = Bench().read_note("extraction", raw, Backlog.of)
    return found


def derivations(fields: Fields) -> list[Derivation]:
    """Texts to be derived again, of plain fields."""
    return [
        Derivation(sources=tuple(one["sources"]), hidden=one["hidden"]) for one in fields["jobs"]
    ]


def _encode_derivations(value: list[Derivation]) -> bytes:
    return Bench().noted("derivations", lambda values: derivation.leave_due(values, value))


def _decode_derivations(raw: bytes) -> list[Derivation]:
    found: list[Derivation] = Bench().read_note("derivations", raw, derivation.due)
    return found


def marks(fields: Fields) -> list[Mark]:
    """Turns in the timeline, of plain fields."""
    return [Mark(**one) for one in fields["marks"]]


def _line(value: list[Mark]) -> Callable[[ScopeValues], None]:
    def change(values: ScopeValues) -> None:
        line = Line(values)
        for mark in value:
            line.put(mark)

    return change


def _encode_leaf(value: list[Mark]) -> bytes:
    return Bench().noted("timeline/0", _line(value))


def _decode_leaf(raw: bytes) -> list[Mark]:
    bench = Bench()
    first, size = json.loads(raw)[0], len(json.loads(raw))
    bench.put(bench.note("timeline"), json.dumps([[*first[:2], 0, size]]).encode())
    return list(bench.read_note("timeline/0", raw, lambda values: list(Line(values))))


def _encode_root(value: list[Mark]) -> bytes:
    return Bench().noted("timeline", _line(value))


def _decode_root(raw: bytes) -> dict[str, Any]:
    def look(values: ScopeValues) -> dict[str, Any]:
        line = Line(values)
        return {"size": len(line), "begins": line.begins}

    found: dict[str, Any] = Bench().read_note("timeline", raw, look)
    return found


def listing(fields: Fields) -> Manifest:
    """A manifest of plain fields."""
    listed = [SegmentBlobs(**{**one, "dead": tuple(one["dead"])}) for one in fields["segments"]]
    return Manifest(**{**fields, "segments": tuple(listed)})


def _encode_manifest(value: Manifest) -> bytes:
    bench = Bench()
    bench.opened.write(lambda tx: manifest.write(bench.opened, tx, value))
    cell = bench.opened.read(lambda view: view.value(manifest.NAME))
    assert cell is not None
    sealer = manifest.sealer(bench.opened, value.epoch)
    return sealer.unseal(cell, row_id=b"segments", version=0)


def _decode_manifest(raw: bytes) -> Manifest:
    bench = Bench()
    sealer = manifest.sealer(bench.opened, 1)
    cell = sealer.seal(raw, row_id=b"segments", version=0, nonce=bytes(12))
    bench.opened.write(lambda tx: tx.set_value(manifest.NAME, cell))
    found = bench.opened.read(lambda view: manifest.read(bench.opened, view))
    assert found is not None
    return found


def event(fields: Fields) -> AuditEvent:
    """An event of the audit trail, of plain fields."""
    found = _times(fields, "at")
    return AuditEvent(**{**found, "subjects": tuple(fields.get("subjects", ()))})


def _encode_event(value: AuditEvent) -> bytes:
    bench = Bench(value.at)
    trail, ids = bench.opened.trail, [bytes.fromhex(name) for name in value.subjects]
    bench.opened.write(
        lambda tx: trail.record(tx, value.verb, value.actor, ids, number=value.number)
    )
    row = bench.opened.read(lambda view: view.audit(0, 1000))[-1]
    assert row.count == value.count
    return vault.unpad(trail.sealer.unseal(row.cell, row_id=b"", version=row.count))


def _decode_event(raw: bytes) -> AuditEvent:
    trail = Bench().opened.trail
    cell = trail.sealer.seal(vault.pad(raw), row_id=b"", version=1, nonce=bytes(12))
    return trail.event(AuditRow(count=1, cell=cell, mac=bytes(32)))


def name(fields: Fields) -> Scope:
    """The name of a scope."""
    return Scope(fields["tenant"], fields["owner"])


def _name_sealer(ports: Ports) -> Sealer:
    return Sealer(ports.keyring.found(), Purpose.NAME, None, "catalog")


def _encode_name(value: Scope) -> bytes:
    ports = Bench(scope=value).ports
    (entry,) = ports.store.catalog.entries()
    row_id = entry.address.encode()
    return vault.unpad(_name_sealer(ports).unseal(entry.name, row_id=row_id, version=0))


def _decode_name(raw: bytes) -> Scope:
    ports = MemoryHome().ports()
    sealer = _name_sealer(ports)
    cell = sealer.seal(vault.pad(raw), row_id=b"address", version=0, nonce=bytes(12))
    ports.store.catalog.enroll(CatalogEntry(address="address", name=cell))
    (found,), _ = scopes.scopes(ports)
    return found


CODECS: dict[str, Codec] = {
    "memory": Codec(memory, records.encode, lambda raw: records.decode(raw, number=0, version=1)),
    "memory record": Codec(
        memory, _encode_record, lambda raw: records.from_record(json.loads(raw))
    ),
    "turn": Codec(turn, turns.encode, turns.decode),
    "turn record": Codec(turn, _encode_turn_record, lambda raw: turns.from_record(json.loads(raw))),
    "export": Codec(content, bundle.to_json, bundle.from_json),
    "bundle": Codec(content, _encode_bundle, _decode_bundle),
    "receipt": Codec(
        receipt,
        lambda one: receipts.to_json(one).encode(),
        lambda raw: receipts.from_json(raw.decode()),
    ),
    "audit event": Codec(event, _encode_event, _decode_event),
    "manifest": Codec(listing, _encode_manifest, _decode_manifest),
    "session": Codec(session, _encode_session, _decode_session),
    "note": Codec(note, _encode_note, _decode_note),
    "backlog": Codec(backlog, _encode_backlog, _decode_backlog),
    "derivations": Codec(derivations, _encode_derivations, _decode_derivations),
    "timeline leaf": Codec(marks, _encode_leaf, _decode_leaf),
    "timeline root": Codec(marks, _encode_root, _decode_root),
    "scope name": Codec(name, _encode_name, _decode_name),
}
