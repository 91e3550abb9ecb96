"""A memory as a JSON record and back: the one codec for cells, exports and bundles.

Defaults are left out, so that a short memory makes a short cell. Reading checks every
field with the same rules as writing, and names the field that is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from scrubjay.model import text
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Json, Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin

Record = dict[str, Json]
EXPORT: Final = "scrubjay-export"
"""The format an export as readable JSON names itself by."""
EXPORT_VERSION: Final = 1
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_PROVENANCE: Final = ("session", "channel", "key_id", "message_id", "reason")
_TIMES: Final = ("retired_at", "valid_from", "valid_to", "expires_at")
_OWN: Final = frozenset(
    {"id", "kind", "content", "recorded_at", "origin", "provenance", "tags", "importance"}
    | {"pinned", "sources", "metadata", "number", "version", *_TIMES}
)
"""Fields with a form of their own; others are left out if they are None."""
_OPTIONAL: Final = tuple(name for name in Memory.__struct_fields__ if name not in _OWN)
_TIMED: Final = frozenset(_TIMES)
_LISTS: Final = frozenset({"tags", "sources"})
# By value: a look into a mapping is ten times as quick as a call of an enum's class.
_KINDS: Final = {kind.value: kind for kind in Kind}
_ORIGINS: Final = {origin.value: origin for origin in Origin}
_ACTORS: Final = {actor.value: actor for actor in Actor}
_KNOWN: Final = frozenset(Memory.__struct_fields__)


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
    for name in _OPTIONAL:
        if (value := getattr(memory, name)) is not None:
            record[name] = value
    for name in _TIMES:
        if (time := getattr(memory, name)) is not None:
            record[name] = _stamp(time)
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
    for name in _PROVENANCE:
        if (value := getattr(provenance, name)) is not None:
            record[name] = value
    if provenance.said_at is not None:
        record["said_at"] = _stamp(provenance.said_at)
    return record


def encode(memory: Memory) -> bytes:
    """The bytes that go into a cell."""
    return _compact(to_record(memory)).encode()


def decode(cell: bytes, *, number: int, version: int) -> Memory:
    """The memory a cell holds; the cell is authentic, so its fields are not checked again."""
    record: dict[str, Any] = json.loads(cell.decode())
    return _build(record, _trusted_time, number=number, version=version)


def from_record(record: Json) -> Memory:
    """The memory a foreign record describes, every field checked.

    Raises InvalidRequest whose message begins with the name of the field that is wrong.
    """
    if not isinstance(record, dict):
        raise InvalidRequest("The record is not a JSON object.")
    if unknown := sorted(set(record) - _KNOWN):
        raise InvalidRequest(f"{unknown[0]}: no such field in a memory.")
    for field, check in _CHECKS.items():
        _checked(field, check, record)
    number, version = record.get("number", 0), record.get("version", 1)
    assert isinstance(number, int)
    assert isinstance(version, int)
    return _build(record, _foreign_time, number=number, version=version)


def _build(
    record: dict[str, Any], time: Callable[[str], datetime], *, number: int, version: int
) -> Memory:
    """The memory of a record; missing fields get their defaults."""
    found = {**record, "number": number, "version": version}
    found["kind"], found["origin"] = _KINDS[record["kind"]], _ORIGINS[record["origin"]]
    found["recorded_at"] = time(record["recorded_at"])
    if "provenance" in record:
        found["provenance"] = _provenance(record["provenance"], time)
    for name in _LISTS & record.keys():
        found[name] = tuple(record[name])
    for name in _TIMED & record.keys():
        found[name] = _maybe(time, record[name])
    return Memory(**found)


def _provenance(record: dict[str, Any], time: Callable[[str], datetime]) -> Provenance:
    found = dict(record)
    if "actor" in record:
        found["actor"] = _ACTORS[record["actor"]]
    if "said_at" in record:
        found["said_at"] = time(record["said_at"])
    return Provenance(**found)


def _maybe(time: Callable[[str], datetime], stamp: str | None) -> datetime | None:
    return None if stamp is None else time(stamp)


def _trusted_time(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def _foreign_time(stamp: str) -> datetime:
    time = text.check_time("It", datetime.fromisoformat(stamp))
    assert time is not None
    return time


def _checked(field: str, check: Callable[[Any], object], record: Mapping[str, Json]) -> None:
    try:
        check(record.get(field, _ABSENT.get(field)))
    except InvalidRequest as error:
        raise InvalidRequest(f"{field}: {error.message}", hint=error.hint) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidRequest(f"{field}: the value has a wrong type.") from error


def _check_provenance(value: dict[str, Any]) -> None:
    if unknown := sorted(set(value) - {"actor", "said_at", *_PROVENANCE}):
        raise InvalidRequest(f"{unknown[0]} is no field of provenance.")
    text.check_choice("The actor", value.get("actor", "user"), Actor)
    for name in _PROVENANCE:
        text.check_name(name, value.get(name))
    if "said_at" in value:
        _foreign_time(value["said_at"])


def _list(check: Callable[[Any], tuple[str, ...]]) -> Callable[[Any], object]:
    def checked(value: object) -> None:
        if not isinstance(value, list) or list(check(value)) != value:
            raise InvalidRequest("It must be a list of texts, each once.")

    return checked


def _present(check: Callable[[Any], object]) -> Callable[[Any], object]:
    def checked(value: object) -> None:
        if value is None:
            raise InvalidRequest("It must not be null.")
        check(value)

    return checked


def _optional(check: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda value: None if value is None else check(value)


_ABSENT: Final[Mapping[str, Any]] = {
    "provenance": {},
    "tags": [],
    "sources": [],
    "importance": 0.5,
    "pinned": False,
    "metadata": {},
    "number": 0,
    "version": 1,
}
_CHECKS: Final[Mapping[str, Callable[[Any], object]]] = {
    **dict.fromkeys(_OPTIONAL, lambda value: text.check_name("It", value)),
    "id": text.check_id,
    "kind": lambda value: text.check_choice("The kind", value, Kind),
    "content": text.check_content,
    "recorded_at": _foreign_time,
    "origin": lambda value: text.check_choice("The origin", value, Origin),
    "provenance": _check_provenance,
    "tags": _list(text.check_tags),
    "sources": _list(lambda value: text.check_ids("It", value)),
    "importance": lambda value: text.check_share("It", value),
    "pinned": lambda value: text.check_flag("It", value),
    "metadata": text.check_metadata,
    "number": _present(lambda value: text.check_count("It", value)),
    "version": _present(lambda value: text.check_count("It", value, least=1)),
    "position": lambda value: text.check_count("It", value),
    "supersedes": _optional(text.check_id),
    "superseded_by": _optional(text.check_id),
    **{name: _optional(_foreign_time) for name in _TIMES},
}
