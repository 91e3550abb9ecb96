"""Every command explains itself, with an example; and none loads what it does not need."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import fields

from scrubjay import codec
from scrubjay.cli import app
from scrubjay.cli.parser import COMMANDS, Fields
from tests.unit.cli.conftest import CommandLine

HEAVY = {
    "argparse", "asyncio", "click", "difflib", "email", "http", "numpy", "pydantic",
    "rich", "sqlite3", "Stemmer", "typer",
}  # fmt: skip
for theme in app.THEMES:
    theme.load()


@pytest.mark.parametrize("name", [*COMMANDS, *app.GROUPS])
def test_every_command_shows_an_example(cli: CommandLine, name: str) -> None:
    text = cli.good(*name.split(), "--help").out
    assert f"Usage: scrubjay {name}" in text
    assert name in app.GROUPS or "Example: " in text
    assert max(map(len, text.splitlines())) <= 110


def test_every_command_stands_in_the_table_and_every_name_of_the_table_is_one() -> None:
    assert {name.split()[0] for name in COMMANDS} == set(app.names())
    assert not set(app.GROUPS) & set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_a_name_of_its_own(name: str) -> None:
    options = COMMANDS[name].options
    flags = [flag for one in options for flag in one.names]
    assert len(flags) == len(set(flags))
    assert all(one.help.endswith(".") for one in options)


def test_an_option_of_a_field_has_its_help_and_its_default_from_there() -> None:
    declared = [one for one in COMMANDS["recall"].declared if isinstance(one, Fields)]
    described = {
        one.name: codec.help_of(one.type) for request in declared for one in fields(request.request)
    }
    options = {one.name: one for one in COMMANDS["recall"].options if one.name in described}
    assert {"query", "limit", "kinds", "tags", "since", "scopes"} <= set(options)
    for name, one in options.items():
        assert described[name].startswith(one.help.removesuffix("."))
    assert options["limit"].default == "10"


def test_the_list_of_commands_is_the_one_of_the_issue(cli: CommandLine) -> None:
    wanted = (
        "remember recall list get history brief correct pin unpin forget export import backup "
        "restore freeze unfreeze destroy rotate reindex purge verify audit vault scopes stats "
        "inspect doctor config eval completion"
    )
    assert set(wanted.split()) <= set(app.names())
    text = cli.good("--help").out
    assert all(f"  {name} " in text for name in app.names())


def test_without_a_command_there_is_help_and_a_usage_error(cli: CommandLine) -> None:
    done = cli()
    assert done.code == 2
    assert "remember" in done.err
    done = cli("vault")
    assert done.code == 2
    assert "passphrase" in done.err


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["recal", "x"], "recall"),
        (["--versoin"], "--version"),
        (["list", "--limt", "3"], "--limit"),
        (["vault", "stats"], "status"),
    ],
)
def test_a_word_nearly_right_is_named(cli: CommandLine, words: list[str], near: str) -> None:
    done = cli(*words)
    assert done.code == 2
    assert f"did you mean {near}?" in done.err


def test_options_are_taken_in_every_usual_spelling(cli: CommandLine) -> None:
    for text in ("one", "two", "three"):
        cli.remember(text, "-t", "a", "--tag=b")
    for words in (["--limit", "2"], ["--limit=2"], ["-n", "2"], ["-n2"]):
        assert len(cli.good("list", *words).out.splitlines()) == 2
    assert len(cli.good("list", "--tag", "a", "-t", "b").out.splitlines()) == 3
    assert cli.remember("--", "-x is an option") != ""
    assert cli.good("recall", "--limit", 1, "--", "-x").out


def test_a_shell_is_told_which_words_may_come_next(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SCRUBJAY_COMPLETE", "1")
    assert {"recall", "vault", "--version"} <= set(cli.good().out.split())
    assert cli.good("vault").out.split()[:2] == ["status", "passphrase"]
    assert {"--limit", "-n", "--json"} <= set(cli.good("recall").out.split())
    assert "preference" in cli.good("list", "--kind").out.split()
    assert cli.good("nonsense").out == ""
    assert not cli.home.exists()


@pytest.mark.parametrize(
    "arguments", [["remember", "tea"], ["list"], ["scopes"], ["forget", "mem-x"]], ids=" ".join
)
def test_a_command_loads_no_library_it_does_not_need(tmp_path: Path, arguments: list[str]) -> None:
    script = (
        "import sys\nfrom scrubjay.cli.app import run\n"
        "run(['remember', 'x']); run(sys.argv[1:])\n"
        "print('|'.join({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "SCRUBJAY_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split("|"))
    assert "apsw" in loaded
    assert not loaded & HEAVY


def test_a_command_that_reads_loads_no_code_that_writes(tmp_path: Path) -> None:
    """`list` of a scope that has nothing due loads neither retain nor forget nor the ledger."""
    script = (
        "import sys\nfrom scrubjay.cli.app import run\n"
        "run(sys.argv[1:]); print('|'.join(sys.modules))"
    )
    environment = {**os.environ, "SCRUBJAY_HOME": str(tmp_path)}
    for arguments in (["remember", "tea"], ["list"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    loaded = set(done.stdout.splitlines()[-1].split("|"))
    writing = {"memories.retain", "memories.forget", "ledger.turns", "transfer.copies"}
    assert "scrubjay.engine.memories.read" in loaded
    assert not loaded & {f"scrubjay.engine.{name}" for name in writing}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_cannot_do_without_is_required(name: str) -> None:
    """Else it would end in a traceback."""
    made = COMMANDS[name]
    given = {one.keyword for one in made.options if one.required}
    needed = {
        one.name
        for one in inspect.signature(made.function).parameters.values()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    }
    assert needed <= given
