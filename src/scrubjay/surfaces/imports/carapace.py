"""A group's database of Carapace: its entries with their versions and where they come from.

Two schemas are known: the documented one (`memory_entries`, which says what replaced an entry) and
the one of the published code (`entries`, which also says what an entry replaces). Chains are made
straight on the way: where two entries replace the same one, the database says which of them counts.
"""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import apsw
from msgspec import Struct
from msgspec.structs import replace

from scrubjay.model.errors import InvalidRequest, NotFound, SchemaTooNew
from scrubjay.model.memory import Memory, Provenance
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.records import EXPORT, EXPORT_VERSION, export_record
from scrubjay.model.scope import Scope
from scrubjay.model.text import checked
from scrubjay.surfaces.imports import sqlite

VERSION: Final = 1
"""The newest version of a Carapace database that is understood."""
_CHANNEL: Final = "carapace"
_COLUMNS: Final = "id, type, content, tags, superseded_by, session_id, group_name, created_at"
_TABLES: Final = ("memory_entries", "entries")


class CarapaceEntries(Struct, frozen=True, kw_only=True):
    """Content of a Carapace database."""

    groups: tuple[str, ...]
    """The groups its entries name; one, unless files were mixed."""
    memories: tuple[Memory, ...]
    skipped: tuple[str, ...]
    """Entries that cannot be memories, a sentence each."""

    def document(self, scope: Scope, made_at: datetime) -> bytes:
        """The same as an export of a scope, for `load`."""
        document = {
            "format": EXPORT,
            "version": EXPORT_VERSION,
            "scope": str(scope),
            "made_at": made_at.isoformat(),
            "count": len(self.memories),
            "memories": [export_record(memory) for memory in self.memories],
        }
        return json.dumps(document, ensure_ascii=False).encode()


def read(path: Path) -> CarapaceEntries:
    """Everything in a database; NotFound if there is no file, InvalidRequest if it is another."""
    if not path.is_file():
        raise NotFound("There is no such file.", hint="Check the path.")
    foreign = InvalidRequest(
        "That is no memory database of Carapace, or it is damaged.",
        hint="Carapace keeps one file for each group, named after it.",
    )
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as database:
            version = int(database.pragma("user_version"))
            if version > VERSION:
                raise SchemaTooNew(
                    f"The database has version {version}; up to version {VERSION} is understood.",
                    hint="Upgrade scrubjay.",
                )
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            table = next((name for name in _TABLES if name in tables), None)
            if table is None:
                raise foreign
            size, names = path.stat().st_size, _COLUMNS.split(", ")
            found = sqlite.rows(database, table, _COLUMNS, size, order="created_at, rowid")
            rows = [dict(zip(names, row, strict=True)) for row in found]
    except (apsw.Error, ValueError) as error:
        raise foreign from error
    memories: dict[str, Memory] = {}
    skipped = []
    for row in rows:
        try:
            memory = _memory(row, len(memories) + 1)
        except (InvalidRequest, ValueError, TypeError, RecursionError) as error:
            why = error.message if isinstance(error, InvalidRequest) else "a field is damaged."
            skipped.append(f"{str(row['id'])[:80]!r}: {why}")
        else:
            memories[memory.id] = memory
    groups = tuple(sorted({str(row["group_name"]) for row in rows}))
    return CarapaceEntries(groups=groups, memories=_straight(memories), skipped=tuple(skipped))


def _memory(row: dict[str, Any], number: int) -> Memory:
    session = str(row["session_id"])[:512] or None
    fields = {
        "id": row["id"],
        "kind": row["type"],
        "content": row["content"],
        "recorded_at": datetime.fromisoformat(row["created_at"]),
        "origin": Origin.IMPORT,
        "provenance": Provenance(actor=Actor.AGENT, session=session, channel=_CHANNEL),
        "tags": [str(tag) for tag in json.loads(row["tags"]) if str(tag).strip()],
        "superseded_by": row["superseded_by"] or None,
        "number": number,
    }
    return Memory(**checked(Memory, fields))


def _straight(memories: dict[str, Memory]) -> tuple[Memory, ...]:
    """The memories with chains that are lines, both ends of each link agreeing.

    An entry whose successor is gone, or is in a circle, stays superseded: what was replaced once
    must not come back for it.
    """

    def after(memory: Memory) -> Memory | None:
        return memories.get(memory.superseded_by or "")

    taken: dict[str, str] = {}
    """Successor → the entry it replaces: the newest of those that name it."""
    in_circle: dict[str, bool] = {}
    """For each entry whether its chain ends in a circle, found out once for the whole chain."""
    for memory in memories.values():
        walked: dict[str, None] = {}
        link: Memory | None = memory
        while link is not None and link.id not in walked and link.id not in in_circle:
            walked[link.id] = None
            link = after(link)
        ends = link is not None and (link.id in walked or in_circle[link.id])
        in_circle.update(dict.fromkeys(walked, ends))
        if (successor := after(memory)) is not None and not in_circle[memory.id]:
            taken[successor.id] = memory.id
    straight = []
    for memory in memories.values():
        linked = replace(memory, supersedes=taken.get(memory.id))
        if memory.superseded_by is not None:
            successor = after(memory)
            retired = memory.recorded_at if successor is None else successor.recorded_at
            if successor is not None and taken.get(successor.id) != memory.id:
                # A link that is not part of a line leads to an id that nothing has.
                linked = replace(linked, superseded_by=f"{memory.id[:190]}.gone")
            moment = timedelta(microseconds=1)
            linked = replace(linked, retired_at=max(retired, memory.recorded_at + moment))
        straight.append(linked)
    return tuple(straight)
