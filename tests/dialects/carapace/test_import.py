"""An existing database of Carapace moves in, with versions and provenance."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from scrubjay.model.errors import InvalidRequest, NotFound, SchemaTooNew
from scrubjay.model.origin import Origin
from scrubjay.model.requests import Forget, Get, History, Load
from scrubjay.surfaces.imports import carapace
from tests.dialects.carapace.old_database import DOCUMENTED, PUBLISHED, row, write
from tests.dialects.carapace.scene import MAIN, Stage

CHAIN = [
    row("mem-1", superseded_by="mem-2", content="lives in Bern"),
    row("mem-2", superseded_by="mem-3", content="lives in Basel"),
    row("mem-3", content="lives in Zurich", tags=["home"], session_id="sess-9"),
    row("mem-4", type="preference", content="prefers tea"),
]


def moved(stage: Stage, path: Path) -> Any:
    """Load a database into the group main; what load says."""
    found = carapace.read(path)
    return stage.engine.load(MAIN, Load(found.document(MAIN, stage.home.clock.now())))


@pytest.mark.parametrize("schema", [DOCUMENTED, PUBLISHED], ids=["documented", "published"])
def test_entries_come_with_their_versions_and_where_they_come_from(
    stage: Stage, tmp_path: Path, schema: str
) -> None:
    assert moved(stage, write(tmp_path / "main.sqlite", CHAIN, schema)).loaded == 4
    assert stage.found() == ["prefers tea", "lives in Zurich"]
    chain = stage.engine.history(MAIN, History("mem-1"))
    assert [memory.id for memory in chain] == ["mem-1", "mem-2", "mem-3"]
    newest = stage.engine.get(MAIN, Get("mem-3"))
    assert (newest.origin, newest.tags) == (Origin.IMPORT, ("home",))
    assert (newest.provenance.session, newest.provenance.channel) == ("sess-9", "carapace")
    assert newest.recorded_at == datetime(2026, 2, 3, 10, tzinfo=UTC)


def test_what_moved_in_is_used_like_everything_else(stage: Stage, tmp_path: Path) -> None:
    moved(stage, write(tmp_path / "main.sqlite", CHAIN))
    assert stage.found(query="Zurich") == ["lives in Zurich"]
    new = stage.call("memory_store", type="fact", content="lives in Chur", supersedes="mem-3")
    assert new["supersedes"] == "mem-3"
    assert "prefers tea" in stage.host.brief("main")
    stage.call("memory_delete", id=new["id"])
    assert stage.found(include_superseded=True) == ["prefers tea"]


def test_moving_in_twice_changes_nothing_and_brings_nothing_forgotten_back(
    stage: Stage, tmp_path: Path
) -> None:
    path = write(tmp_path / "main.sqlite", CHAIN)
    moved(stage, path)
    stage.engine.forget(MAIN, Forget(ids=("mem-4",)))
    again = moved(stage, path)
    assert (again.loaded, again.known, again.forgotten) == (0, 3, 1)
    assert stage.found() == ["lives in Zurich"]


@pytest.mark.parametrize(
    "rows",
    [
        [row("mem-1", superseded_by="mem-gone")],
        [row("mem-1", superseded_by="mem-1")],
        [row("mem-1", superseded_by="mem-2"), row("mem-2", superseded_by="mem-1")],
    ],
    ids=["successor is gone", "its own successor", "a circle"],
)
def test_what_was_replaced_once_does_not_come_back(
    stage: Stage, tmp_path: Path, rows: list[Any]
) -> None:
    assert moved(stage, write(tmp_path / "main.sqlite", rows)).loaded == len(rows)
    assert stage.found() == []
    assert len(stage.found(include_superseded=True)) == len(rows)


def test_two_entries_with_one_successor_become_a_line_and_a_loose_end(
    stage: Stage, tmp_path: Path
) -> None:
    rows = [
        row("mem-1", superseded_by="mem-3"),
        row("mem-2", superseded_by="mem-3"),
        row("mem-3"),
    ]
    assert moved(stage, write(tmp_path / "main.sqlite", rows)).loaded == 3
    assert stage.found() == ["content of mem-3"]
    assert [one.id for one in stage.engine.history(MAIN, History("mem-3"))] == ["mem-2", "mem-3"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "nonsense"},
        {"content": "  "},
        {"tags": "no json"},
        {"tags": "5"},
        {"created_at": "yesterday"},
        {"created_at": "2026-02-01T10:00:00"},
        {"id": "../../etc/passwd"},
        {"id": ""},
        {"content": b"\xff"},
        {"content": "x" * 70_000},
    ],
    ids=range(10),
)
def test_an_entry_that_cannot_be_a_memory_is_named_and_the_others_move_in(
    tmp_path: Path, wrong: Any
) -> None:
    rows = [row("mem-1"), {**row("mem-2"), **wrong}, row("mem-3")]
    found = carapace.read(write(tmp_path / "main.sqlite", rows))
    assert [memory.id for memory in found.memories] == ["mem-1", "mem-3"]
    assert len(found.skipped) == 1


def test_secrets_of_an_old_database_do_not_move_in(stage: Stage, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    moved(stage, write(tmp_path / "main.sqlite", [row("mem-1", content=f"token {token}")]))
    assert stage.found() == ["token [REDACTED]"]


def test_a_database_of_a_newer_carapace_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "main.sqlite", CHAIN)
    database = apsw.Connection(str(path))
    database.execute("PRAGMA user_version = 9")
    database.close()
    with pytest.raises(SchemaTooNew, match="version 9"):
        carapace.read(path)


def test_what_is_no_database_of_carapace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        carapace.read(tmp_path / "nothing.sqlite")
    (tmp_path / "text.sqlite").write_text("not a database" * 100)
    with pytest.raises(InvalidRequest):
        carapace.read(tmp_path / "text.sqlite")
    apsw.Connection(str(tmp_path / "empty.sqlite")).execute("CREATE TABLE x (y)")
    with pytest.raises(InvalidRequest):
        carapace.read(tmp_path / "empty.sqlite")


def test_the_database_is_left_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path / "main.sqlite", CHAIN)
    before = path.read_bytes()
    carapace.read(path)
    assert path.read_bytes() == before


def test_the_command_takes_the_group_from_the_database(tmp_path: Path) -> None:
    path = write(tmp_path / "x.sqlite", [row("mem-1", group_name="team"), row("mem-2", tags="{")])

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "scrubjay", "carapace", "import", str(path), *arguments],
            env={**os.environ, "SCRUBJAY_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )

    mixed = command("--json")
    assert (mixed.returncode, "--group" in mixed.stderr) == (2, True)
    dry = json.loads(command("--group", "team", "--dry-run", "--json").stdout)
    assert (dry["group"], dry["entries"], len(dry["skipped"])) == ("team", 1, 1)
    assert not (tmp_path / "home").exists()
    done = json.loads(command("--group", "team", "--json").stdout)
    assert (done["added"], done["known"], done["forgotten"]) == (1, 0, 0)
