"""The table of commands, and how a run of one begins and ends.

A run builds the one command it was asked for: reading the signatures of all the others would
take longer than most commands do.
"""

from __future__ import annotations

import json
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
from scrubjay.cli.exits import Exit, exit_code
from scrubjay.model import errors
from scrubjay.model.errors import ScrubjayError

_HINTS: Final[dict[type[ScrubjayError], str]] = {
    errors.NotFound: "Check the id; `scrubjay list` shows what the scope holds.",
    errors.Destroyed: "`scrubjay remember --anew` begins an empty scope of the same name.",
    errors.Frozen: "`scrubjay unfreeze` lets it go on; forget, destroy and export work meanwhile.",
    errors.StoreError: "Run `scrubjay verify`; what was acknowledged before is not affected.",
    errors.Changed: "Run `scrubjay reindex`, or configure the embedder that was used before.",
    errors.SealBroken: "Run `scrubjay verify` to see what is damaged; restore it from a backup.",
    errors.Locked: "Set SCRUBJAY_PASSPHRASE, or run it on a terminal to be asked.",
}
"""What to type, where the library's own hint speaks to a programmer."""


def hint(error: ScrubjayError) -> str:
    """What to do about an error, in words of the command line."""
    if error.hint == error.default_hint:
        return _HINTS.get(type(error), error.hint)
    return error.hint


def complain(code: str, message: str, advice: str, *, as_json: bool) -> None:
    """Say what went wrong, on stderr."""
    if as_json:
        told = {"ok": False, "error": {"code": code, "message": message, "hint": advice}}
        sys.stderr.write(json.dumps(told, ensure_ascii=False) + "\n")
    elif sys.stderr.isatty():
        _paint(message, advice)
    else:
        sys.stderr.write(f"error: {message}\nhint: {advice}\n")


def _paint(message: str, advice: str) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]error[/]: {escape(message)}")
    console.print(f"[dim]hint[/]: {escape(advice)}")


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
    _theme("Remember", "remember", "remember correct pin unpin"),
    _theme("Remember", "turns", "record"),
    _theme("Look", "recall", "recall list=browse get history brief"),
    _theme("Look", "turns", "turns sessions"),
    _theme("Look", "inspect", "stats inspect"),
    _theme("Erase", "erase", "forget purge destroy rotate"),
    _theme("Trust", "trust", "revoke quarantine"),
    _theme("Copy", "transfer", "export import=load backup restore"),
    _theme("Care", "maintenance", "freeze unfreeze reindex verify audit scopes"),
    _theme("Care", "turns", "extract"),
    _theme("Care", "doctor", "doctor"),
    _theme("Set up", "vault", "vault"),
    _theme("Set up", "config", "config completion"),
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
        import_module(f"scrubjay.cli.{module}"), function
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
