"""A memory database as InitRunner 1.x writes it, without its table of vectors."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

COLUMNS = {
    "store_meta": ("key", "value"),
    "sessions": ("id", "session_id", "agent_name", "timestamp", "messages_json"),
    "memories": (
        "id",
        "content",
        "category",
        "created_at",
        "memory_type",
        "metadata_json",
        "consolidated_at",
    ),
}
NEWER = ("memory_type", "metadata_json", "consolidated_at")
"""Columns of memories that the first versions did not have."""


def columns(path: Path) -> dict[str, tuple[str, ...]]:
    """The columns of the plain tables of a database."""
    with closing(sqlite3.connect(path)) as found:
        return {
            table: tuple(row[1] for row in found.execute(f"PRAGMA table_info({table})"))
            for table in COLUMNS
        }


def write(
    path: Path,
    *,
    memories: Iterable[Mapping[str, Any]] = (),
    sessions: Iterable[Sequence[str]] = (),
    meta: Mapping[str, str] | None = None,
    newer: bool = True,
) -> Path:
    """A database with these memories and rows of sessions; `newer` false is that of an old version.

    A row of a session is its id, agent, time and messages as JSON; without `meta` no table of it
    is made.
    """
    more = """, memory_type TEXT NOT NULL DEFAULT 'semantic'
        CHECK (memory_type IN ('episodic', 'semantic', 'procedural')),
        metadata_json TEXT, consolidated_at TEXT"""
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("PRAGMA journal_mode = WAL")
        made.execute(
            "CREATE TABLE sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,"
            " agent_name TEXT NOT NULL, timestamp TEXT NOT NULL, messages_json TEXT NOT NULL)"
        )
        made.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL,"
            " category TEXT NOT NULL DEFAULT 'general', created_at TEXT NOT NULL"
            f"{more if newer else ''})"
        )
        if meta is not None:
            made.execute("CREATE TABLE store_meta (key TEXT PRIMARY KEY, value TEXT)")
            made.executemany("INSERT INTO store_meta VALUES (?, ?)", meta.items())
        names = [name for name in COLUMNS["memories"] if newer or name not in NEWER]
        for memory in memories:
            told = {"memory_type": "semantic", "category": "general", **memory}
            if told.get("metadata_json") is not None:
                told["metadata_json"] = json.dumps(told["metadata_json"])
            made.execute(
                f"INSERT INTO memories ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
                [told.get(name) for name in names],
            )
        made.executemany(
            "INSERT INTO sessions (session_id, agent_name, timestamp, messages_json)"
            " VALUES (?, ?, ?, ?)",
            sessions,
        )
    return path
