"""Every command explains itself, with an example; and none loads what it does not need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from scrubjay.cli import app
from tests.unit.cli.conftest import CommandLine

HEAVY = {"numpy", "pydantic", "rich", "asyncio", "sqlite3", "Stemmer", "http"}


def commands() -> Iterator[tuple[str, ...]]:
    """Every command there is, with those inside of others."""
    for name in app.names():
        found = app.command(name)
        yield (name,)
        if isinstance(found, typer.Typer):
            for inner in found.registered_commands:
                assert inner.callback is not None
                yield name, inner.name or inner.callback.__name__


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_every_command_shows_an_example(cli: CommandLine, command: tuple[str, ...]) -> None:
    text = cli.good(*command, "--help").out
    assert "Usage: scrubjay " + " ".join(command) in text
    nested = len(command) == 1 and isinstance(app.command(command[0]), typer.Typer)
    assert nested or "Example: " in text


def test_the_list_of_commands_is_the_one_of_the_issue(cli: CommandLine) -> None:
    wanted = (
        "remember recall list get history brief correct pin unpin forget export import backup "
        "restore freeze unfreeze destroy rotate reindex purge verify audit vault scopes stats "
        "inspect doctor config eval completion"
    )
    assert set(wanted.split()) <= set(app.names())
    text = cli.good("--help").out
    assert all(f"  {name} " in text for name in app.names())


def test_a_command_that_is_asked_for_alone_is_the_same_as_among_all() -> None:
    for name in app.names():
        (one,) = app.build(name).registered_commands + app.build(name).registered_groups
        assert one.name == name


def test_without_a_command_there_is_help_and_a_usage_error(cli: CommandLine) -> None:
    done = cli()
    assert done.code == 2
    assert "remember" in done.err


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
