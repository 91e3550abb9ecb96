"""A memory database of InitRunner 1.x: its memories as an export of its own, and its sessions.

The table of vectors is not needed: who takes the memories over embeds them again. Databases of the
first versions have no types, metadata and consolidation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import apsw
from msgspec import Struct

from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.surfaces.imports import sqlite

LEGACY_DIMENSIONS: Final = 1_536
"""Of the vectors of a database that does not say it."""
_MEMORIES: Final = ("id", "content", "category", "created_at")
_NEWER: Final = ("memory_type", "metadata_json", "consolidated_at")
_SESSIONS: Final = ("session_id", "agent_name", "timestamp", "messages_json")


class InitRunnerSession(Struct, frozen=True, kw_only=True):
    """The last state of a session."""

    id: str
    agent: str
    at: datetime
    messages: tuple[Mapping[str, Any], ...]


class InitRunnerDatabase(Struct, frozen=True, kw_only=True):
    """What a database holds."""

    records: tuple[Mapping[str, Any], ...]
    """Its memories as InitRunner exports them, and the time they were consolidated."""
    sessions: tuple[InitRunnerSession, ...]
    dimensions: int
    model: str | None
    skipped: tuple[str, ...]
    """Sessions that cannot be read, a sentence each."""


def is_database(raw: bytes) -> bool:
    """Whether a file that begins like this is an SQLite database."""
    return raw.startswith(sqlite.MAGIC)


def read(path: Path) -> InitRunnerDatabase:
    """Everything in a database, which is not changed; InvalidRequest if it is another."""
    if not path.is_file():
        raise NotFound("There is no such file.", hint="Check the path.")
    foreign = InvalidRequest(
        "That is no memory database of InitRunner 1.x, or it is damaged.",
        hint="It keeps them in ~/.initrunner/memory; later versions keep a folder, which they "
        "export as JSON.",
    )
    wal = path.with_name(f"{path.name}-wal")
    size = path.stat().st_size + (wal.stat().st_size if wal.exists() else 0)
    # Without a log beside it nobody writes to it, and SQLite need not make one to read it.
    address = f"{path.resolve().as_uri()}?mode=ro{'' if wal.exists() else '&immutable=1'}"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        with closing(apsw.Connection(address, flags=flags)) as database:
            database.set_busy_timeout(30_000)
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            if "memories" not in tables:
                raise foreign
            have = [column[1] for column in database.execute("PRAGMA table_info(memories)")]
            columns = [*_MEMORIES, *(one for one in _NEWER if one in have)]
            memories = _rows(database, "memories", columns, size, "created_at, id")
            sessions = _rows(database, "sessions", _SESSIONS, size, "timestamp, id")
            meta = {}
            if "store_meta" in tables:
                meta = {
                    row["key"]: row["value"]
                    for row in _rows(database, "store_meta", ("key", "value"), size, "key")
                }
        records = tuple(map(_record, memories))
        dimensions = int(meta.get("dimensions") or LEGACY_DIMENSIONS)
    except (apsw.Error, ValueError, TypeError, RecursionError) as error:
        raise foreign from error
    latest = {(row["session_id"], row["agent_name"]): row for row in sessions}
    found, skipped = [], []
    for row in latest.values():
        try:
            found.append(_session(row))
        except (ValueError, TypeError, RecursionError, OverflowError):
            skipped.append(f"The session {str(row['session_id'])[:40]!r} is damaged.")
    return InitRunnerDatabase(
        records=records,
        sessions=tuple(found),
        dimensions=dimensions,
        model=meta.get("embedding_model"),
        skipped=tuple(skipped),
    )


def _rows(
    database: apsw.Connection, table: str, columns: Any, size: int, order: str
) -> list[dict[str, Any]]:
    found = sqlite.rows(database, table, ", ".join(columns), size, order=order)
    return [dict(zip(columns, row, strict=True)) for row in found]


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = row.get("metadata_json")
    return {
        "id": row["id"],
        "content": row["content"],
        "category": row["category"],
        "created_at": row["created_at"],
        "memory_type": row.get("memory_type") or "semantic",
        "metadata": json.loads(metadata) if metadata else None,
        "consolidated_at": row.get("consolidated_at"),
    }


def _session(row: Mapping[str, Any]) -> InitRunnerSession:
    messages = json.loads(row["messages_json"])
    if not isinstance(messages, list) or not all(
        isinstance(one, dict) and isinstance(one.get("parts"), list) for one in messages
    ):
        raise TypeError(messages)
    at = datetime.fromisoformat(row["timestamp"])
    at.astimezone(UTC)  # OverflowError, if it is in no year there is
    return InitRunnerSession(
        id=str(row["session_id"]),
        agent=str(row["agent_name"]),
        at=at if at.tzinfo else at.replace(tzinfo=UTC),
        messages=tuple(messages),
    )
