"""Values of the model as JSON; a memory as a record and back, the same in cells and exports.

Defaults are left out, so that a short memory makes a short cell. Reading checks every
field with the same rules as writing, and names the field that is wrong.
"""

from __future__ import annotations

import base64
import json
import types
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from enum import Enum, IntEnum
from operator import attrgetter
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Json, Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.scope import Scope
from scrubjay.model.text import checked

Record = dict[str, Json]
EXPORT: Final = "scrubjay-export"
"""The format an export as readable JSON names itself by."""
EXPORT_VERSION: Final = 1
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_PROVENANCE: Final = ("session", "channel", "key_id", "message_id", "reason")
_TIMES: Final = ("retired_at", "archived_at", "valid_from", "valid_to", "expires_at")
_OWN: Final = frozenset(
    {"id", "kind", "content", "recorded_at", "origin", "provenance", "tags", "importance"}
    | {"pinned", "sources", "metadata", "number", "version", *_TIMES}
)
"""Fields with a form of their own; others are left out if they are None."""
_OPTIONAL: Final = tuple(name for name in Memory.__struct_fields__ if name not in _OWN)
_times: Final = attrgetter(*_TIMES)
_optional: Final = attrgetter(*_OPTIONAL)
_origins: Final = attrgetter(*_PROVENANCE)
_LISTS: Final = frozenset({"tags", "sources"})
# By value: a look into a mapping is ten times as quick as a call of an enum's class.
_KINDS: Final = {kind.value: kind for kind in Kind}
_ORIGINS: Final = {origin.value: origin for origin in Origin}
_ACTORS: Final = {actor.value: actor for actor in Actor}


def _stamp(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def to_record(memory: Memory) -> Record:
    """The memory as a JSON object, without `number` and `version`, which are in its row."""
    record: Record = {
        "id": memory.id,
        "kind": memory.kind.value,
        "content": memory.content,
        "recorded_at": _stamp(memory.recorded_at),
        "origin": memory.origin.value,
    }
    if provenance := _provenance_record(memory.provenance):
        record["provenance"] = provenance
    for name, value in zip(_OPTIONAL, _optional(memory), strict=True):
        if value is not None:
            record[name] = value
    if any(times := _times(memory)):
        record |= {name: _stamp(one) for name, one in zip(_TIMES, times, strict=True) if one}
    if memory.tags:
        record["tags"] = list(memory.tags)
    if memory.sources:
        record["sources"] = list(memory.sources)
    if memory.importance != 0.5:
        record["importance"] = memory.importance
    if memory.pinned:
        record["pinned"] = True
    if memory.metadata:
        record["metadata"] = dict(memory.metadata)
    return record


def export_record(memory: Memory) -> Record:
    """The memory as an export or a bundle carries it: with its row's number and version."""
    return {**to_record(memory), "number": memory.number, "version": memory.version}


def _provenance_record(provenance: Provenance) -> Record:
    record: Record = {}
    if provenance.actor is not Actor.USER:
        record["actor"] = provenance.actor.value
    for name, value in zip(_PROVENANCE, _origins(provenance), strict=True):
        if value is not None:
            record[name] = value
    if provenance.said_at is not None:
        record["said_at"] = _stamp(provenance.said_at)
    return record


def encode(memory: Memory) -> bytes:
    """The bytes that go into a cell: those of `json`, which writes floats in a form of its own."""
    record = to_record(memory)
    if "importance" in record or "metadata" in record:
        return _compact(record).encode()
    return msgspec.json.encode(record)  # the same bytes where there is no float


def decode(cell: bytes, *, number: int, version: int) -> Memory:
    """The memory a cell holds; the cell is authentic, so its fields are not checked again."""
    record: dict[str, Any] = msgspec.json.decode(cell)
    return _build(record, number=number, version=version)


def from_record(record: Json) -> Memory:
    """The memory a foreign record describes, every field checked.

    Raises InvalidRequest whose message begins with the name of the field that is wrong.
    """
    if not isinstance(record, dict):
        raise InvalidRequest("The record is not a JSON object.")
    found: dict[str, Any] = {"origin": None, **_timed(record, ("recorded_at", *_TIMES))}
    provenance = found.get("provenance")
    if isinstance(provenance, dict):
        try:
            if provenance.get("said_at", "") is None:
                raise InvalidRequest("said_at: it must not be null.")
            found["provenance"] = Provenance(
                **checked(Provenance, _timed(provenance, ("said_at",)))
            )
        except InvalidRequest as error:
            raise InvalidRequest(f"provenance: {error.message}", hint=error.hint) from error
    memory = Memory(**checked(Memory, found))
    for name in _LISTS & record.keys():
        if list(getattr(memory, name)) != record[name]:
            raise InvalidRequest(f"{name}: it must be a list of texts, each once.")
    return memory


def _timed(record: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The record with its times read; one that is no text is left to the check."""
    found = dict(record)
    for name in names:
        try:
            if isinstance(record.get(name), str):
                found[name] = datetime.fromisoformat(record[name])
        except ValueError as error:
            raise InvalidRequest(f"{name}: it must be a time with a time zone.") from error
    return found


def _build(record: dict[str, Any], *, number: int, version: int) -> Memory:
    """The memory of a record; missing fields get their defaults."""
    found = {**record, "number": number, "version": version}
    found["kind"], found["origin"] = _KINDS[record["kind"]], _ORIGINS[record["origin"]]
    found["recorded_at"] = datetime.fromisoformat(record["recorded_at"])
    if "provenance" in record:
        found["provenance"] = _provenance(record["provenance"])
    for name in _LISTS:
        if name in record:
            found[name] = tuple(record[name])
    for name in _TIMES:
        if name in record:
            found[name] = record[name] and datetime.fromisoformat(record[name])
    return Memory(**found)


def _provenance(record: dict[str, Any]) -> Provenance:
    found = dict(record)
    if "actor" in record:
        found["actor"] = _ACTORS[record["actor"]]
    if "said_at" in record:
        found["said_at"] = datetime.fromisoformat(record["said_at"])
    return Provenance(**found)


# -- results, on every surface ----------------------------------------------------------------


def plain(value: Any) -> Any:
    """The value as JSON."""
    kind = type(value)
    encode = _ENCODERS.get(kind)
    if encode is None:
        encode = _ENCODERS[kind] = _encoder(kind)
    return encode(value)


def _same(value: Any) -> Any:
    return value


def _memory(memory: Memory) -> Any:
    record = to_record(memory)
    record["number"] = memory.number
    record["version"] = memory.version
    record["edition"] = "{}.{}".format(*memory.edition)
    return record


def _base64(value: bytes) -> str:
    """Base64 in pieces: one call on a whole export would hold the GIL for long."""
    pieces = (value[at : at + PIECE] for at in range(0, len(value), PIECE))
    return b"".join(map(base64.b64encode, pieces)).decode("ascii")


def _mapping(value: Mapping[str, Any]) -> Any:
    return {name: plain(one) for name, one in value.items()}


def _list(value: Iterable[Any]) -> Any:
    return [plain(one) for one in value]


def _set(value: Iterable[Any]) -> Any:
    return sorted(map(plain, value))


PIECE: Final = 3 * 64 * 1024
"""Bytes encoded at a time."""
_BARE: Final[frozenset[type]] = frozenset({str, int, float, bool, type(None)})
_ENCODERS: Final[dict[type, Callable[[Any], Any]]] = {
    **dict.fromkeys(_BARE, _same),
    Memory: _memory,
    Scope: str,
    datetime: _stamp,
    date: date.isoformat,
    bytes: _base64,
    dict: _mapping,
    types.MappingProxyType: _mapping,
    tuple: _list,
    list: _list,
    frozenset: _set,
    set: _set,
}


def _encoder(kind: type) -> Callable[[Any], Any]:
    if issubclass(kind, IntEnum):
        return lambda value: value.name.lower()  # its numbers are for cells, and say nothing
    if issubclass(kind, Enum):
        return lambda value: value.value
    if issubclass(kind, Mapping):
        return _mapping
    if not issubclass(kind, Struct):
        raise TypeError(kind)
    hints = get_type_hints(kind)
    own = {name: _of_hint(hints[name]) for name in kind.__struct_fields__}
    return lambda value: {name: encode(getattr(value, name)) for name, encode in own.items()}


def _of_hint(hint: Any) -> Callable[[Any], Any]:
    """How a field of this type becomes JSON: most of them are JSON already."""
    kinds = set(get_args(hint)) if get_origin(hint) is types.UnionType else {hint}
    if kinds <= _BARE:
        return _same
    if get_origin(hint) is Mapping and set(get_args(hint)) <= _BARE:
        return dict
    return _ENCODERS.get(hint, plain)
