"""What a person reads at the terminal after a slip: where to go on from there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scrubjay.cli.exits import hint
from scrubjay.cli.maintenance import _reported
from scrubjay.cli.render import redactions
from scrubjay.model.errors import UserLocked
from scrubjay.model.results import Report
from tests.unit.cli.conftest import CommandLine


def test_a_note_without_its_secret_is_shown_as_it_is_stored(cli: CommandLine) -> None:
    words = ("remember", "temporary door code 9981", "--expires", "2999-11-20")
    told = cli.good(*words).err
    assert told.startswith("Stored without a secret (entry code): temporary door code [REDACTED")
    assert "9981" not in told
    assert told.rstrip().endswith(". scrubjay keeps no passwords or codes.")
    as_json = cli.good(*words, "--json")
    assert as_json.json["redacted"] == {"entry-code": 1}
    assert as_json.err == ""


def test_several_secrets_are_told_in_one_sentence() -> None:
    (told,) = redactions({"card-number": 2, "password": 1})
    assert told.startswith("Stored without secrets (card number 2 times, password). ")
    assert redactions({}) == []


def test_a_kind_that_was_inferred_is_told_with_the_way_to_choose(cli: CommandLine) -> None:
    told = cli.good("remember", "Alice prefers green tea").err
    assert "Stored as a preference; use --kind to choose another." in told


def test_a_new_folder_of_files_is_asked_for_and_told(cli: CommandLine, tmp_path: Path) -> None:
    cli.remember("Alice lives in Lyon")
    folder = tmp_path / "memorry"
    asked = cli("files", "sync", folder)
    assert asked.code == 2
    assert f"There is no folder {folder}." in asked.err
    assert "plain text" in asked.err
    assert not folder.exists()
    done = cli.good("files", "sync", folder, "--yes")
    assert f"The files are plain text, in {folder / 'local' / 'default'}." in done.err
    assert "plain text" not in cli.good("files", "sync", folder).err


def test_a_yes_to_a_folder_that_is_gone_forgets_nothing(cli: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    cli.remember("Alice lives in Lyon")
    cli.good("files", "sync", folder, "--yes")
    folder.rename(tmp_path / "elsewhere")
    refused = cli("files", "sync", folder, "--yes")
    assert refused.code == 2
    assert "is gone or empty" in refused.err
    assert "Lyon" in cli.good("list").out


def test_a_file_of_another_sort_is_told_where_it_belongs(cli: CommandLine, tmp_path: Path) -> None:
    cli.remember("tea")
    for name, form in (("week.json", "json"), ("week.md", "markdown")):
        cli.good("export", "-o", tmp_path / name, "--format", form)
    told = cli("restore", tmp_path / "week.json", "--yes")
    assert told.code == 2
    assert "week.json is no backup." in told.err
    assert "`scrubjay import`" in told.err
    assert "Markdown cannot be imported." in cli("import", tmp_path / "week.md").err


def test_a_backup_of_another_scope_is_sent_to_import(cli: CommandLine, tmp_path: Path) -> None:
    cli.remember("tea")
    key = cli.good("backup", tmp_path / "week.backup").words
    done = cli("restore", tmp_path / "week.backup", "--scope", "nel", "--key", key)
    assert "To copy it into local/nel, load it: `scrubjay import`." in done.err
    cli.good("import", tmp_path / "week.backup", "--scope", "nel", "--key", key)
    assert "tea" in cli.good("list", "--scope", "nel").out


@pytest.mark.parametrize("group", ["documents", "conversations"])
def test_a_hint_names_commands_of_the_terminal(cli: CommandLine, group: str) -> None:
    cli.remember("tea")
    assert f"`scrubjay {group} list` lists them." in cli(group, "show", "none").err


def test_a_file_in_a_folder_that_is_not_there_names_the_folder(
    cli: CommandLine, tmp_path: Path
) -> None:
    cli.remember("tea")
    done = cli("export", "-o", tmp_path / "none" / "week.json")
    assert done.code == 2
    assert f"There is no folder {tmp_path / 'none'}." in done.err


def test_a_correction_of_an_old_version_names_the_newest(cli: CommandLine) -> None:
    first = cli.remember("green tea")
    second = cli.good("correct", first, "white tea").words
    third = cli.good("correct", second, "black tea").words
    done = cli("correct", first, "red tea")
    assert done.code == 5
    assert f"The newest version is {third}." in done.err


def test_an_id_without_its_prefix_is_told_how_ids_begin(cli: CommandLine) -> None:
    id = cli.remember("tea")
    done = cli("get", id.removeprefix("mem-")[:8])
    assert done.code == 3
    assert "mem- and its first eight characters" in done.err


@pytest.mark.parametrize("words", [("-kind", "fact"), ("-kind=fact",)])
def test_a_long_option_with_one_dash_is_understood(
    cli: CommandLine, words: tuple[str, ...]
) -> None:
    done = cli("list", *words)
    assert done.code == 2
    assert "There is no option -kind; did you mean --kind?" in done.err


def test_a_text_may_look_like_an_option_with_one_dash(cli: CommandLine) -> None:
    id = cli.remember("tea")
    cli.good("correct", id, "coffee", "--reason", "-reason")
    cli.good("remember", "--", "-pin")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("list", "--kind", "preferance"), "preference"),
        (("export", "--format", "Markdwn"), "markdown"),
        (("remember", "tea", "--origin", "usr"), "user"),
    ],
)
def test_a_misspelled_choice_is_understood(
    cli: CommandLine, words: tuple[str, ...], meant: str
) -> None:
    done = cli(*words)
    assert done.code == 2
    assert f"; did you mean {meant}?" in done.err


def test_backups_that_may_hold_what_was_forgotten_are_one_line(
    cli: CommandLine, tmp_path: Path
) -> None:
    id = cli.remember("tea")
    for number in (1, 2, 3):
        cli.good("backup", tmp_path / f"{number}.backup")
    lines = [one for one in cli.good("forget", id).err.splitlines() if "backup" in one]
    assert len(lines) == 1
    assert lines[0].startswith("3 backups made before may hold them until ")


def test_a_brief_says_which_limit_left_memories_out(cli: CommandLine) -> None:
    for number in range(4):
        cli.remember(f"Alice has friend number {number} in Lyon", "--kind", "fact")
    assert "--limit 3 left out 1 more." in cli.good("brief", "--limit", "3").err
    assert "--max-chars left out 3 more." in cli.good("brief", "--max-chars", "40").err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_who_has_enough_changes_no_verdict(cli: CommandLine, options: list[str]) -> None:
    cli.remember("tea")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        words = [sys.executable, "-m", "scrubjay", "verify", *options]
        done = subprocess.run(words, stdout=closed, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_one_thing_that_was_checked_is_no_plural(capsys: pytest.CaptureFixture[str]) -> None:
    for number, told in ((1, "1 erased cell checked."), (2, "2 erased cells checked.")):
        _reported(Report(checked=number), "erased cells").emit(as_json=False)
        assert told in capsys.readouterr().out


def test_a_duration_of_an_unknown_unit_is_told_the_units(cli: CommandLine) -> None:
    assert "hours, days or weeks (12h, 7d, 2w)" in cli("remember", "x", "--expires", "1m").err


def test_a_memory_that_is_held_is_opened_by_what_works() -> None:
    assert hint(UserLocked("It is held.")) == "Set SCRUBJAY_USER_PASSPHRASE for the command."
