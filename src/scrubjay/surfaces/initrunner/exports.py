"""Memories as InitRunner exports them: an array of objects, newest first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from scrubjay.conversation.capture import sound
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import CATEGORY, Json, Memory
from scrubjay.model.origin import Origin, lowest
from scrubjay.model.results import Outcome
from scrubjay.surfaces.initrunner.memory import (
    CONSOLIDATED,
    DERIVED_BY,
    GENERAL,
    LongTermMemory,
    category_of,
    created_at,
    sanitized,
)
from scrubjay.surfaces.initrunner.roles import MemoryType

_SOURCE: Final = {"source": "consolidation"}


class Imported(Struct, frozen=True, kw_only=True):
    """What an import brought."""

    memories: int = 0
    known: int = 0
    """How many were imported before."""
    forgotten: int = 0
    """How many were imported before and forgotten since: they stay so."""
    skipped: tuple[str, ...] = ()
    """What could not be imported, a sentence each."""


def export(memories: Iterable[Memory]) -> list[dict[str, Any]]:
    """Memories as InitRunner exports them.

    An episode also says if it was consolidated, and what is not trusted its origin.
    """
    return [_record(one) for one in memories]


def _record(memory: Memory) -> dict[str, Any]:
    told = dict(memory.metadata)
    consolidated, derived = told.pop(CONSOLIDATED, None), told.pop(DERIVED_BY, None)
    if derived is not None:
        told |= _SOURCE
    record: dict[str, Any] = {
        "id": memory.number,
        "content": memory.content,
        "category": category_of(memory),
        "created_at": created_at(memory),
        "memory_type": str(MemoryType.of(memory.kind)),
        "metadata": told or None,
    }
    if consolidated is not None:
        record["consolidated_at"] = consolidated
    if not memory.trusted:
        record["origin"] = str(memory.origin)
    return record


def read(raw: bytes) -> list[Mapping[str, Any]]:
    """The records of an export; InvalidRequest if it is none."""
    try:
        records = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("That is no JSON, and no database of InitRunner.") from error
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise InvalidRequest("That is no export of memories: it must be an array of objects.")
    return records


def load(memory: LongTermMemory, records: Sequence[Mapping[str, Any]]) -> Imported:
    """Store records, oldest first; what is there is known by its text, type and time."""
    here = {_key(MemoryType.of(one.kind), one.said_at, one.content) for one in memory.present()}
    found = [_draft(place, record) for place, record in enumerate(records)]
    given = [draft for draft in found if draft is not None]
    drafts = [draft for draft in given if draft["key"] not in here]
    drafts.sort(key=lambda draft: draft["said_at"] or datetime.max.replace(tzinfo=UTC))
    if not drafts:
        return Imported(known=len(given))
    batch = memory.jay.retain_many(drafts)
    memory.settle()
    skipped = tuple(
        f"{draft['content'][:60]!r}: {one.refused.message}"
        for draft, one in zip(drafts, batch, strict=True)
        if one.refused is not None
    )
    written = [one.retained.outcome for one in batch if one.retained is not None]
    forgotten = written.count(Outcome.FORGOTTEN)
    known = len(given) - batch.stored - batch.refused - forgotten
    return Imported(memories=batch.stored, known=known, forgotten=forgotten, skipped=skipped)


def _draft(place: int, record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of a memory; None if it is blank, InvalidRequest if the record is of no export."""
    content = record.get("content")
    if not isinstance(content, str):
        raise InvalidRequest(f"Record {place}: it has no content.")
    if not content.strip():
        return None
    content = sound(content)
    named = str(record.get("memory_type") or MemoryType.SEMANTIC)
    if named not in tuple(MemoryType):
        raise InvalidRequest(
            f"Record {place}: unknown memory type {named!r}.",
            hint="Use: episodic, semantic, procedural.",
        )
    type_, category = MemoryType(named), sanitized(str(record.get("category") or GENERAL))
    metadata, origin = record.get("metadata") or {}, record.get("origin") or Origin.IMPORT
    if not isinstance(metadata, dict) or origin not in tuple(Origin):
        raise InvalidRequest(
            f"Record {place}: its metadata must be an object, its origin one of scrubjay's."
        )
    metadata = dict(metadata)
    if metadata == _SOURCE:
        metadata = {DERIVED_BY: "initrunner"}
    if (consolidated := record.get("consolidated_at")) is not None:
        metadata[CONSOLIDATED] = consolidated
    time = _time(place, record.get("created_at"))
    return {
        "content": content,
        "kind": type_.kind,
        "tags": (f"{CATEGORY}{category}",),
        "said_at": time,
        "metadata": metadata,
        "origin": lowest((Origin.IMPORT, Origin(origin))),
        "key": _key(type_, time, content),
    }


def _time(place: int, given: Json) -> datetime | None:
    if given is None:
        return None
    try:
        time = datetime.fromisoformat(str(given))
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"Record {place}: {given!r} is no time.") from error


def _key(type_: MemoryType, time: datetime | None, content: str) -> str:
    at = "" if time is None else time.astimezone(UTC).isoformat()
    said = f"{type_}\0{at}\0{content}".encode()
    return f"initrunner-{hashlib.sha256(said).hexdigest()[:32]}"
