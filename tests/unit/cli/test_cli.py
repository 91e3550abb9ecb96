"""The command line, run as a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import scrubjay

SECRET = "The spare key lies under the third flower pot"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with scrubjay.open("acme/alice", home=tmp_path) as jay:
        jay.retain(SECRET, session="kitchen table", tags=["household matters"])
    return tmp_path


def _scrubjay(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrubjay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _scope_file(home: Path) -> Path:
    return next((home / "data" / "scopes").glob("*.sqlite"))


def test_inspect_shows_the_rows_of_a_scope_and_not_one_readable_word(home: Path) -> None:
    done = _scrubjay("inspect", _scope_file(home))
    assert done.returncode == 0, done.stderr
    assert "memory rows" in done.stdout
    assert "readable text: none" in done.stdout


def test_inspect_shows_the_catalog_without_the_names_of_scopes(home: Path) -> None:
    done = _scrubjay("inspect", home / "data" / "catalog.sqlite")
    assert done.returncode == 0, done.stderr
    assert "readable text: none" in done.stdout
    assert "alice" not in done.stdout


def test_inspect_shows_every_readable_word_of_a_plain_file(home: Path) -> None:
    with scrubjay.open("acme/alice", home=home) as jay:
        jay.export(home / "plain.json")
    assert "spare key lies under" in _scrubjay("inspect", home / "plain.json").stdout


def test_inspect_leaves_the_file_as_it_was(home: Path) -> None:
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    _scrubjay("inspect", _scope_file(home))
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_a_file_that_is_not_there_is_one_sentence_a_hint_and_exit_code_three(home: Path) -> None:
    done = _scrubjay("inspect", home / "nothing")
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr == "error: There is no such file.\nhint: Check the path.\n"


def test_a_foreign_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(4080))
    done = _scrubjay("inspect", tmp_path / "x.sqlite")
    assert done.returncode == 1
    assert "not one of scrubjay's" in done.stderr or "damaged" in done.stderr


def test_version_says_which_one_this_is() -> None:
    assert _scrubjay("--version").stdout == f"scrubjay {scrubjay.__version__}\n"
