"""Databases as Carapace makes them: by its document, and by its published code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw

DOCUMENTED = """
    PRAGMA journal_mode=WAL; PRAGMA user_version=1;
    CREATE TABLE memory_entries (
        id TEXT PRIMARY KEY, type TEXT NOT NULL, content TEXT NOT NULL,
        tags TEXT NOT NULL DEFAULT '[]', behavioral INTEGER NOT NULL DEFAULT 0,
        superseded_by TEXT, session_id TEXT NOT NULL, group_name TEXT NOT NULL,
        created_at TEXT NOT NULL
    );
    CREATE VIRTUAL TABLE memory_fts USING fts5(
        content, tags, content=memory_entries, content_rowid=rowid
    );
"""
PUBLISHED = """
    PRAGMA user_version=1;
    CREATE TABLE entries (
        id TEXT UNIQUE NOT NULL, type TEXT NOT NULL, content TEXT NOT NULL,
        behavioral INTEGER NOT NULL DEFAULT 0, tags TEXT NOT NULL DEFAULT '[]',
        supersedes TEXT, superseded_by TEXT, session_id TEXT NOT NULL,
        group_name TEXT NOT NULL, created_at TEXT NOT NULL
    );
"""


def row(public_id: str, **fields: Any) -> dict[str, Any]:
    """An entry, with what a test does not care about filled in."""
    day = public_id[-1] if public_id[-1:] in set("123456789") else "1"
    usual: dict[str, Any] = {
        "id": public_id,
        "type": "fact",
        "content": f"content of {public_id}",
        "tags": [],
        "superseded_by": None,
        "session_id": "sess-1",
        "group_name": "main",
        "created_at": f"2026-02-0{day}T10:00:00.000Z",
    }
    return {**usual, **fields}


def write(path: Path, rows: list[dict[str, Any]], schema: str = DOCUMENTED) -> Path:
    """A database with these entries."""
    table = "memory_entries" if schema is DOCUMENTED else "entries"
    database = apsw.Connection(str(path))
    for statement in schema.split(";"):
        database.execute(statement)
    for one in rows:
        tags = one["tags"] if isinstance(one["tags"], str) else json.dumps(one["tags"])
        values = {**one, "tags": tags}
        names, places = ", ".join(values), ", ".join("?" * len(values))
        database.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", tuple(values.values()))
    database.close()
    return path
