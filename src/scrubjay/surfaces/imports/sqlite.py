"""A scope as a plain SQLite file, to read with any tool; it is not sealed.

`about` says what the file is; `memories` has a row for each, the columns people ask for and the
whole record as JSON, from which it is read in again without loss; `tags` has one row per tag.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import apsw

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.records import EXPORT, export_record, from_record

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


def write(export: bytes) -> bytes:
    """The bytes of the file that holds a JSON export."""
    document = json.loads(export)
    memories = sorted(map(from_record, document["memories"]), key=lambda memory: memory.number)
    about = {
        "format": FORMAT,
        "version": str(document["version"]),
        "scope": document["scope"],
        "made_at": document["made_at"],
    }
    database = apsw.Connection(":memory:")
    database.execute(_SCHEMA)
    database.executemany("INSERT INTO about VALUES (?, ?)", about.items())
    for memory in memories:
        expires = memory.expires_at
        columns = (
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
            json.dumps(export_record(memory), ensure_ascii=False),
        )
        database.execute(
            "INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", columns
        )
    tags = ((memory.id, tag) for memory in memories for tag in memory.tags)
    database.executemany("INSERT INTO tags VALUES (?, ?)", tags)
    raw = database.serialize("main")
    database.close()
    return raw


def read(raw: bytes) -> bytes:
    """The same as a JSON export, for `load`; InvalidRequest if it is not a file of ours."""
    database = apsw.Connection(":memory:")
    try:
        database.deserialize("main", raw)
        about: dict[str, Any] = dict(rows(database, "about", "name, value", len(raw)))
        if about.get("format") != FORMAT:
            raise InvalidRequest("That SQLite file is not a copy scrubjay made.")
        found = rows(database, "memories", "record", len(raw), order="rowid")
        records = [json.loads(record) for (record,) in found]
        document = {
            "format": EXPORT,
            "version": int(about["version"]),
            "scope": about["scope"],
            "made_at": about["made_at"],
            "count": len(records),
            "memories": records,
        }
    except (apsw.Error, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidRequest(
            "That SQLite file is not a copy scrubjay made, or it is damaged.",
            hint="Make it again with `scrubjay export --format sqlite`.",
        ) from error
    finally:
        database.close()
    return json.dumps(document, ensure_ascii=False).encode()


def rows(
    database: apsw.Connection, table: str, columns: str, size: int, *, order: str = "1"
) -> Iterator[tuple[Any, ...]]:
    """The rows of a table in a stranger's file of `size` bytes; ValueError if they are forged.

    A view may run for ever, a generated column may make much of nothing, and pages that are used
    twice may tell the same row a billion times: what comes out of a file is no longer than it.
    """
    kind = "SELECT type FROM sqlite_master WHERE name = ? AND sql NOT LIKE '%VIRTUAL%'"
    if list(database.execute(kind, (table,))) != [("table",)]:
        raise ValueError("It is not a table.")
    database.limit(apsw.SQLITE_LIMIT_LENGTH, max(size, 1024))
    database.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    query: Any = database.execute(f"SELECT {columns} FROM {table} ORDER BY {order}")  # noqa: S608 - own names
    for row in query:
        size -= 1 + sum(len(value) for value in row if isinstance(value, str | bytes))
        if size < 0:
            raise ValueError("It tells more than it holds.")
        yield row
