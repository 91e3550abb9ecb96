"""The commands, and how an error leaves the program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scrubjay import __version__, bootstrap
from scrubjay.domain.errors import (
    Busy,
    Conflict,
    Destroyed,
    Forbidden,
    Frozen,
    Full,
    KeyMissing,
    Locked,
    NotFound,
    ScrubjayError,
)
from scrubjay.surfaces.cli.evaluate import evaluate
from scrubjay.surfaces.cli.show import exhibit

app = typer.Typer(
    name="scrubjay",
    help="Memory for AI agents: sealed at rest, forgotten for good.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_FAILURE = 1
_EXITS: tuple[tuple[type[ScrubjayError], int], ...] = (
    (NotFound, 3),
    (Forbidden, 4),
    (Conflict, 5),
    (Destroyed, 5),
    (Frozen, 6),
    (Busy, 7),
    (Full, 7),
    (Locked, 7),
    (KeyMissing, 7),
)


def _version(wanted: bool) -> None:
    if wanted:
        Console().print(f"scrubjay {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
    ] = False,
) -> None:
    """Memory for AI agents: sealed at rest, forgotten for good."""


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(help="A file of the data folder, or a bundle.")],
) -> None:
    """Show what a thief sees of FILE: everything that can be read without a key.

    Example: scrubjay inspect ~/.local/share/scrubjay/catalog.sqlite
    """
    exhibit(Console(), bootstrap.inspect(file))


app.command("eval")(evaluate)


def run() -> None:
    """Run a command; an error is one sentence and a hint on stderr, and an exit code."""
    try:
        app()
    except ScrubjayError as error:
        problem = Console(stderr=True, highlight=False)
        problem.print(f"[bold red]error[/]: {error.message}")
        problem.print(f"[dim]hint[/]: {error.hint}")
        sys.exit(exit_code(error))


def exit_code(error: ScrubjayError) -> int:
    """The exit code of an error, by its class."""
    return next((code for kind, code in _EXITS if isinstance(error, kind)), _FAILURE)
