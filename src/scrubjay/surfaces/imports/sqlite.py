"""A scope as a plain SQLite file, to read with any tool; it is not sealed.

`about` says what the file is; `memories` has a row for each, the columns people ask for and the
whole record as JSON, from which it is read in again without loss; `tags` has one row per tag.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import apsw

from scrubjay.engine.transfer import bundle
from scrubjay.engine.transfer.bundle import Content
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Memory

MAGIC: Final = b"SQLite format 3\0"
FORMAT: Final = "scrubjay-sqlite"
_SCHEMA: Final = """
    CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE memories (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, content TEXT NOT NULL,
        said_at TEXT NOT NULL, recorded_at TEXT NOT NULL, origin TEXT NOT NULL,
        session TEXT, speaker TEXT, importance REAL NOT NULL, pinned INTEGER NOT NULL,
        superseded_by TEXT, expires_at TEXT, record TEXT NOT NULL
    ) STRICT;
    CREATE TABLE tags (id TEXT NOT NULL REFERENCES memories, tag TEXT NOT NULL) STRICT;
"""


def write(content: Content) -> bytes:
    """The file's bytes."""
    database = apsw.Connection(":memory:")
    database.execute(_SCHEMA)
    about = {
        "format": FORMAT,
        "version": str(bundle.VERSION),
        "scope": str(content.scope),
        "made_at": content.made_at,
    }
    database.executemany("INSERT INTO about VALUES (?, ?)", about.items())
    database.executemany(
        "INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        map(_row, content.memories),
    )
    tags = ((memory.id, tag) for memory in content.memories for tag in memory.tags)
    database.executemany("INSERT INTO tags VALUES (?, ?)", tags)
    raw = database.serialize("main")
    database.close()
    return raw


def _row(memory: Memory) -> tuple[str | float | int | None, ...]:
    expires = memory.expires_at
    return (
        memory.id,
        memory.kind.value,
        memory.content,
        memory.said_at.isoformat(),
        memory.recorded_at.isoformat(),
        memory.origin.value,
        memory.provenance.session,
        memory.speaker,
        memory.importance,
        int(memory.pinned),
        memory.superseded_by,
        None if expires is None else expires.isoformat(),
        json.dumps(bundle.record(memory), ensure_ascii=False),
    )


def read(raw: bytes) -> bytes:
    """The same as a JSON export, for `load`; InvalidRequest if it is not a file of ours."""
    database = apsw.Connection(":memory:")
    try:
        database.deserialize("main", raw)
        about = dict(_rows(database, "SELECT name, value FROM about"))
        if about.get("format") != FORMAT:
            raise InvalidRequest("That SQLite file is not a copy scrubjay made.")
        rows = _rows(database, "SELECT record FROM memories ORDER BY rowid")
        records = [json.loads(record) for (record,) in rows]
        document = {
            "format": bundle.EXPORT,
            "version": int(about["version"]),
            "scope": about["scope"],
            "made_at": about["made_at"],
            "count": len(records),
            "memories": records,
        }
    except (apsw.Error, ValueError, TypeError, KeyError) as error:
        raise InvalidRequest(
            "That SQLite file is not a copy scrubjay made, or it is damaged.",
            hint="Make it again with `scrubjay export --format sqlite`.",
        ) from error
    finally:
        database.close()
    return json.dumps(document, ensure_ascii=False).encode()


def _rows(database: apsw.Connection, query: str) -> Iterator[Any]:
    yield from database.execute(query)
