"""A database that the real InitRunner 1.2.0 wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import initrunner_database


@pytest.fixture
def database(client_home: Path, tmp_path: Path) -> Path:
    """A database with four memories and a session of two turns."""
    path = tmp_path / "assistant.db"
    script = Path(__file__).with_name("write_database.py")
    subprocess.run([client_home / "bin" / "python", script, path], check=True)
    return path


def test_it_has_the_tables_that_our_own_fixture_has(database: Path) -> None:
    assert initrunner_database.columns(database) == initrunner_database.COLUMNS


def test_it_is_imported_with_its_memories_types_metadata_and_session(
    database: Path, tmp_path: Path
) -> None:
    before = database.read_bytes()
    role = tmp_path / "role.yaml"
    role.write_text(
        "kind: Agent\nmetadata: {name: assistant}\nspec:\n  role: You help.\n"
        "  model: {provider: openai, name: m}\n  memory: {embeddings: {provider: local}}\n"
    )

    def scrubjay(*words: object) -> str:
        return subprocess.run(
            [sys.executable, "-m", "scrubjay", *map(str, words)],
            env={**os.environ, "SCRUBJAY_HOME": str(tmp_path / "home")},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    done = scrubjay("memory", "import", role, database)
    assert done == f"Imported 4 memories and 1 session from {database}.\n"
    assert database.read_bytes() == before
    scrubjay("memory", "export", role, "-o", "out.json")
    found = {one["content"]: one for one in json.loads((tmp_path / "out.json").read_text())}
    assert {one["memory_type"] for one in found.values()} == {"semantic", "episodic", "procedural"}
    deployed = found["Deployed 2.1 to staging."]
    assert deployed["metadata"] == {"trigger_type": "cron"}
    assert deployed["consolidated_at"] == "2026-02-20T10:00:00+00:00"
    assert "consolidated_at" not in found["The backup failed."]
    assert found["Alice prefers dark mode."]["category"] == "preferences"
    listed = json.loads(scrubjay("conversations", "list", "--scope", "agents/assistant", "--json"))
    (session,) = listed["data"]
    assert (session["name"], session["title"]) == ("0123456789ab", "My name is Alice.")
    assert session["entries"] == 4
