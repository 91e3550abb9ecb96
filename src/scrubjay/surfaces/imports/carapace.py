"""A group's database of Carapace: its entries with their versions and where they come from.

Two schemas are known: the documented one (`memory_entries`, which says what replaced an entry) and
the one of the published code (`entries`, which also says what an entry replaces). Chains are made
straight on the way: where two entries replace the same one, the database says which of them counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import apsw
from msgspec.structs import replace

from scrubjay.engine.transfer import bundle
from scrubjay.model.errors import InvalidRequest, NotFound, SchemaTooNew
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.scope import Scope
from scrubjay.model.text import check_content, check_id, check_tags, check_time

VERSION: Final = 1
"""The newest version of a Carapace database that is understood."""
_CHANNEL: Final = "carapace"
_COLUMNS: Final = "id, type, content, tags, superseded_by, session_id, group_name, created_at"
_TABLES: Final = ("memory_entries", "entries")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a database holds."""

    groups: tuple[str, ...]
    """The groups its entries name; one, unless files were mixed."""
    memories: tuple[Memory, ...]
    skipped: tuple[str, ...]
    """Entries that cannot be memories, a sentence each."""

    def document(self, scope: Scope, made_at: datetime) -> bytes:
        """The same as an export of a scope, for `load`."""
        content = bundle.Content(scope=scope, made_at=made_at.isoformat(), memories=self.memories)
        return bundle.to_json(content)


def read(path: Path) -> Found:
    """Everything in a database; NotFound if there is no file, InvalidRequest if it is another."""
    if not path.is_file():
        raise NotFound("There is no such file.", hint="Check the path.")
    try:
        database = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as error:
        raise _foreign() from error
    try:
        rows = _rows(database)
    except apsw.Error as error:
        raise _foreign() from error
    finally:
        database.close()
    return _found(rows)


def _foreign() -> InvalidRequest:
    return InvalidRequest(
        "That is no memory database of Carapace, or it is damaged.",
        hint="Carapace keeps one file for each group, named after it.",
    )


def _rows(database: apsw.Connection) -> list[dict[str, Any]]:
    version = int(database.pragma("user_version"))
    if version > VERSION:
        raise SchemaTooNew(
            f"The database has version {version}; up to version {VERSION} is understood.",
            hint="Upgrade scrubjay.",
        )
    tables = {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master")}
    table = next((name for name in _TABLES if name in tables), None)
    if table is None:
        raise _foreign()
    names = _COLUMNS.split(", ")
    query = f"SELECT {_COLUMNS} FROM {table} ORDER BY created_at, rowid"  # noqa: S608 - own names
    return [dict(zip(names, row, strict=True)) for row in database.execute(query)]


def _found(rows: list[dict[str, Any]]) -> Found:
    memories: dict[str, Memory] = {}
    skipped = []
    for row in rows:
        try:
            memory = _memory(row, len(memories) + 1)
        except (InvalidRequest, ValueError, TypeError) as error:
            why = error.message if isinstance(error, InvalidRequest) else "a field is damaged."
            skipped.append(f"{str(row['id'])[:80]!r}: {why}")
            continue
        memories[memory.id] = memory
    groups = tuple(sorted({str(row["group_name"]) for row in rows}))
    return Found(groups=groups, memories=_straight(memories), skipped=tuple(skipped))


def _memory(row: Mapping[str, Any], number: int) -> Memory:
    tags = json.loads(row["tags"])
    at = check_time("The time", datetime.fromisoformat(row["created_at"]))
    assert at is not None
    return Memory(
        id=check_id(row["id"]),
        kind=Kind(row["type"]),
        content=check_content(row["content"]),
        recorded_at=at,
        origin=Origin.IMPORT,
        provenance=Provenance(
            actor=Actor.AGENT, session=str(row["session_id"])[:512] or None, channel=_CHANNEL
        ),
        tags=check_tags([str(tag) for tag in tags if str(tag).strip()]),
        superseded_by=check_id(row["superseded_by"]) if row["superseded_by"] else None,
        number=number,
    )


# -- chains ---------------------------------------------------------------------------------------


def _straight(memories: dict[str, Memory]) -> tuple[Memory, ...]:
    """The memories with chains that are lines, both ends of each link agreeing.

    An entry whose successor is gone, or is in a circle, stays superseded: what was replaced once
    must not come back for it.
    """
    taken: dict[str, str] = {}
    """Successor → the entry it replaces: the newest of those that name it."""
    for memory in memories.values():
        if memory.superseded_by in memories and not _circles(memory, memories):
            taken[memory.superseded_by] = memory.id
    return tuple(_linked(memory, memories, taken) for memory in memories.values())


def _circles(start: Memory, memories: Mapping[str, Memory]) -> bool:
    seen = {start.id}
    after = memories.get(start.superseded_by or "")
    while after is not None and after.id not in seen:
        seen.add(after.id)
        after = memories.get(after.superseded_by or "")
    return after is not None


def _linked(memory: Memory, memories: Mapping[str, Memory], taken: Mapping[str, str]) -> Memory:
    supersedes = taken.get(memory.id)
    if memory.superseded_by is None:
        return replace(memory, supersedes=supersedes)
    after = memories.get(memory.superseded_by)
    kept = after is not None and taken.get(after.id) == memory.id
    retired = after.recorded_at if after is not None else memory.recorded_at
    return replace(
        memory,
        supersedes=supersedes,
        # A link that is not part of a line leads to an id that nothing has.
        superseded_by=memory.superseded_by if kept or after is None else f"{memory.id[:190]}.gone",
        retired_at=max(retired, memory.recorded_at + timedelta(microseconds=1)),
    )
