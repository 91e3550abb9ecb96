"""export, import, backup, restore: whole scopes out and in."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.unit.cli.conftest import CommandLine


@pytest.fixture
def full(cli: CommandLine) -> CommandLine:
    """A scope with a correction, tags, a pin and a line break."""
    tea = cli.remember("green tea", "--kind", "preference", "--tag", "food", "--session", "s")
    cli.good("correct", tea, "white tea", "--reason", "taste")
    cli.remember("one\ntwo", "--pin", "--importance", "0.9", "--expires", "2100-01-01")
    return cli


def everything(cli: CommandLine, scope: str = "default") -> list[object]:
    listed = cli.good("list", "--superseded", "--scope", scope, "--json").json["data"]
    return [{**memory, "number": 0, "version": 1, "edition": ""} for memory in listed]


def test_an_export_without_a_file_is_json_on_stdout(full: CommandLine) -> None:
    document = full.good("export").json
    assert (document["format"], document["count"]) == ("scrubjay-export", 3)


@pytest.mark.parametrize("form", ["json", "sqlite", "bundle"])
def test_a_copy_comes_in_again_without_loss(full: CommandLine, tmp_path: Path, form: str) -> None:
    file = tmp_path / "copy"
    told = full.good("export", "--format", form, "-o", file, "--json").json
    assert (told["file"], told["format"], told["memories"]) == (str(file), form, 3)
    key = ["--key", told["key"]] if told["key"] else []
    loaded = full.good("import", file, "--scope", "bob", *key, "--json").json
    assert loaded == {"loaded": 3, "known": 0, "forgotten": 0}
    assert everything(full, "bob") == everything(full)


@pytest.mark.parametrize("form", ["json", "sqlite", "bundle"])
def test_a_dry_run_of_an_import_counts_and_writes_nothing(
    full: CommandLine, tmp_path: Path, form: str
) -> None:
    file = tmp_path / "copy"
    made = full.good("export", "--format", form, "-o", file, "--json").json
    key = ["--key", made["key"]] if made["key"] else []
    told = full.good("import", file, "--scope", "bob", *key, "--dry-run", "--json").json
    assert told == {"from": "local/default", "memories": 3, "known": 0}
    assert full.good("scopes").out == "local/default\n"
    assert full.good("import", file, *key, "--dry-run", "--json").json["known"] == 3


def test_a_sealed_bundle_needs_its_key(full: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "copy"
    full.good("export", "--format", "bundle", "-o", file)
    assert full("import", file, "--scope", "bob").code == 2
    assert full("import", file, "--scope", "bob", "--dry-run").code == 2
    assert b"tea" not in file.read_bytes()


def test_a_bundle_with_a_passphrase_opens_with_it_alone(full: CommandLine, tmp_path: Path) -> None:
    file, asked = tmp_path / "copy", ("--passphrase", "--json")
    sealed = ("export", "--format", "bundle", "-o", file)
    told = full.good(*sealed, *asked, stdin="three jays\n").json
    assert told["key"] is None
    assert full(*sealed, "--yes", *asked, stdin="short\n").code == 2
    assert full("export", "-o", tmp_path / "plain", *asked, stdin="three jays\n").code == 2
    load = ("import", file, "--scope", "bob")
    assert full(*load).code == 2
    assert full(*load, *asked, stdin="three crows\n").code != 0
    told = full.good(*load, "--dry-run", *asked, stdin="three jays\n").json
    assert told["memories"] == 3
    assert full.good(*load, *asked, stdin="three jays\n").json["loaded"] == 3


def test_the_sqlite_copy_is_read_by_any_tool(full: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "copy.sqlite"
    full.good("export", "--format", "sqlite", "-o", file)
    with sqlite3.connect(file) as database:
        rows = database.execute(
            "SELECT content, session FROM memories JOIN tags USING (id) WHERE tag = 'food' "
            "AND superseded_by IS NULL"
        ).fetchall()
    database.close()
    assert rows == [("white tea", None)]


def test_the_markdown_copy_has_a_section_per_kind_and_no_history(full: CommandLine) -> None:
    text = full.good("export", "--format", "markdown").out
    assert "## Preference\n\n- white tea `#food`" in text
    assert "one\n  two" in text
    assert "green tea" not in text


def test_a_foreign_sqlite_file_is_refused(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "foreign.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    assert cli("import", file).code == 2
    file.write_bytes(file.read_bytes()[:20])
    assert cli("import", file).code == 2
    assert not cli.home.exists()


def test_a_file_that_is_there_is_not_replaced_unasked(full: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "copy"
    file.write_text("mine")
    assert full("export", "-o", file).code == 2
    assert full("backup", file).code == 2
    assert file.read_text() == "mine"
    full.good("export", "-o", file, "--yes")
    assert json.loads(file.read_text())["count"] == 3


def test_a_copy_of_bytes_is_not_mixed_with_json(full: CommandLine) -> None:
    assert full("export", "--format", "bundle", "--json").code == 2


def test_a_backup_prints_its_key_and_nothing_else(full: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    key = full.good("backup", file).words
    assert len(key.replace("-", "")) == 52
    assert full.good("backup", tmp_path / "other", "--json").json["memories"] == 3
    assert b"tea" not in file.read_bytes()


def test_a_restore_over_what_is_there_is_asked_first(full: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    full.good("backup", file)
    assert full("restore", file).code == 2
    assert full.good("restore", file, "--yes", "--json").json["known"] == 3


def test_a_restore_on_another_machine_needs_only_the_key(
    full: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, before = tmp_path / "backup", everything(full)
    key = full.good("backup", file).words
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path / "elsewhere"))
    assert full("restore", file).code == 2
    full.good("restore", file, "--key", key)
    assert everything(full) == before


@pytest.mark.parametrize("way", ["restored from a backup", "put back as a whole"])
def test_a_home_that_does_not_know_an_erasure_is_no_proof_of_it(
    full: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Neither its memory nor its scope may be called erased while it is listed here."""
    backup, elsewhere = tmp_path / "backup", tmp_path / "elsewhere"
    forgotten, destroyed = tmp_path / "forgotten.json", tmp_path / "destroyed.json"
    key = full.good("backup", backup).words
    shutil.copytree(full.home, tmp_path / "older")
    full.good("forget", "--tag", "food", "--yes", "--receipt", forgotten)
    assert full.good("verify", "--erased", forgotten).out.startswith("Sound")
    assert full("verify", "--erased", forgotten, "--scope", "bob").code == 2
    full.good("destroy", "--yes", "--receipt", destroyed)
    monkeypatch.setenv("SCRUBJAY_HOME", str(elsewhere))
    if way == "restored from a backup":
        full.good("restore", backup, "--key", key)
    else:
        (tmp_path / "older").rename(elsewhere)
    for receipt in (forgotten, destroyed):
        done = full("verify", "--erased", receipt)
        assert done.code == 1
        assert "This home does not know this erasure" in done.out
        assert "Sound" not in done.out
    assert "white tea" in full.good("list").out
    full.good("forget", "--tag", "food", "--yes", "--receipt", forgotten)
    assert full.good("verify", "--erased", forgotten).out.startswith("Sound")


def test_what_was_forgotten_does_not_come_back(full: CommandLine, tmp_path: Path) -> None:
    copy, backup = tmp_path / "copy", tmp_path / "backup"
    full.good("export", "-o", copy)
    full.good("backup", backup)
    full.good("forget", "--tag", "food", "--yes")
    assert full.good("import", copy, "--json").json["forgotten"] == 2
    assert full.good("restore", backup, "--yes", "--json").json["forgotten"] == 2
    assert "tea" not in full.good("list", "--superseded").out


def test_an_export_is_no_backup(full: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "copy"
    full.good("export", "-o", file)
    assert full("restore", file, "--yes").code == 2


def test_a_backup_of_all_scopes_makes_another_home_with_what_the_first_had(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for scope in ("local/alice", "acme/bob"):
        cli.remember(f"tea of {scope}", "--scope", scope)
    cli.good("keys", "create", "agent", "--scope", "acme/bob")
    told = cli.good("backup", "--all", tmp_path / "copies")
    assert cli("backup", "--all", tmp_path / "copies").code == 2  # nobody there to confirm it
    lines = [line.split("\t") for line in told.out.splitlines()]
    assert {scope for scope, _, _ in lines} == {"local/alice", "acme/bob", "system/keys"}
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path / "elsewhere"))
    for scope, file, key in lines:
        done = cli("restore", file, "--scope", scope)
        assert done.code != 0
        assert "--key" in done.err
        told = cli.good("restore", file, "--scope", scope, "--key", key)
        assert ("A key that was revoked" in told.err) == (scope == "system/keys")
    for scope in ("local/alice", "acme/bob"):
        assert f"tea of {scope}" in cli.good("list", "--scope", scope).out
    assert [line.split("\t")[1] for line in cli.good("keys", "list").out.splitlines()] == ["agent"]
