"""The table of commands, and how a run of one begins and ends.

A run builds the one command it was asked for: reading the signatures of all the others would
take longer than most commands do.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Final

import typer
from typer.exceptions import TyperException

from scrubjay import __version__
from scrubjay.domain.errors import ScrubjayError
from scrubjay.surfaces.cli.complaints import complain, hint
from scrubjay.surfaces.cli.exits import Exit, exit_code

_HELP: Final = "Memory for AI agents: sealed at rest, forgotten for good."
_DONE: Final = "Nothing was done."


@dataclass(frozen=True, slots=True)
class Theme:
    """Commands that belong together: a heading of the help, and a module."""

    title: str
    module: str
    commands: tuple[tuple[str, str], ...]
    """Names as they are typed, and what they are called in the module."""


def _theme(title: str, module: str, names: str) -> Theme:
    """A theme of commands `name`, or `name=function` where the two differ."""
    pairs = (name.partition("=") for name in names.split())
    return Theme(title, module, tuple((name, other or name) for name, _, other in pairs))


THEMES: Final = (
    _theme("Remember", "writing", "remember correct pin unpin"),
    _theme("Remember", "talking", "record"),
    _theme("Look", "reading", "recall list=browse get history brief"),
    _theme("Look", "talking", "turns sessions"),
    _theme("Look", "looking", "stats inspect"),
    _theme("Erase", "erasing", "forget purge destroy rotate"),
    _theme("Trust", "trusting", "revoke quarantine"),
    _theme("Copy", "moving", "export import=load backup restore"),
    _theme("Care", "caring", "freeze unfreeze reindex verify audit scopes"),
    _theme("Care", "extracting", "extract"),
    _theme("Care", "mending", "doctor"),
    _theme("Set up", "vault", "vault"),
    _theme("Set up", "configuring", "config completion"),
    _theme("Plug in", "carapace", "tool carapace"),
    _theme("Serve", "serve", "serve"),
    _theme("Serve", "keys", "keys"),
    _theme("Serve", "plane", "plane"),
    _theme("Measure", "evaluate", "eval=evaluate"),
)


def build(wanted: str | None = None) -> typer.Typer:
    """The app with all commands, or with the one that is wanted."""
    app = typer.Typer(
        name="scrubjay",
        help=_HELP,
        no_args_is_help=True,
        add_completion=wanted is None,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
    )
    app.callback()(_root)
    for theme in THEMES:
        for name, _ in theme.commands:
            if wanted in (None, name):
                _register(app, name, theme)
    return app


def command(name: str) -> Callable[..., None] | typer.Typer:
    """The function of a command, or the app of one that has commands of its own."""
    (home,) = [
        (theme.module, function)
        for theme in THEMES
        for known, function in theme.commands
        if known == name
    ]
    module, function = home
    found: Callable[..., None] | typer.Typer = getattr(
        import_module(f"scrubjay.surfaces.cli.{module}"), function
    )
    return found


def _register(app: typer.Typer, name: str, theme: Theme) -> None:
    found = command(name)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name, rich_help_panel=theme.title)
    else:
        app.command(name, rich_help_panel=theme.title)(found)


def names() -> Iterable[str]:
    """Every command there is."""
    return (name for theme in THEMES for name, _ in theme.commands)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"scrubjay {__version__}\n")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
    ] = False,
) -> None:
    """Memory for AI agents: sealed at rest, forgotten for good."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an error is one sentence and a hint on stderr, and an exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    wanted = given[0] if given and given[0] in {*names(), "--version"} else None
    as_json = "--json" in given
    _prepare()
    try:
        result = build(wanted)(given, prog_name="scrubjay", standalone_mode=False)
    except ScrubjayError as error:
        complain(error.code, error.message, hint(error), as_json=as_json)
        return exit_code(error)
    except TyperException as error:
        return _misused(error, wanted, as_json=as_json)
    except typer.Abort:
        complain("aborted", "The input ended before it was answered.", _DONE, as_json=as_json)
        return Exit.FAILURE
    except KeyboardInterrupt:
        return Exit.INTERRUPT
    return result if isinstance(result, int) else Exit.OK


def _prepare() -> None:
    """Keep log lines off the terminal, and print what its encoding lacks as an escape."""
    logging.getLogger("scrubjay").addHandler(logging.NullHandler())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _misused(error: TyperException, wanted: str | None, *, as_json: bool) -> int:
    """Say that the command was written wrongly; a command without anything shows its help."""
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{message}\n")
        return Exit.USAGE
    sentence = message if message.endswith((".", "?")) else f"{message}."
    command = f"scrubjay {wanted} --help" if wanted else "scrubjay --help"
    complain("usage", sentence, f"See `{command}`.", as_json=as_json)
    return error.exit_code
