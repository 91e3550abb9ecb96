"""The home a command works on: settings, the open scope or installation, and the person there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from scrubjay import bootstrap, handle
from scrubjay import settings as reading
from scrubjay.cli import render
from scrubjay.cli.exits import Declined
from scrubjay.cli.parser import (
    ANEW,
    JSON,
    SCOPE,
    Fields,
    Function,
    Option,
    WrongUsage,
    command,
)
from scrubjay.engine import Kernel
from scrubjay.handle import Jay
from scrubjay.model.errors import InvalidRequest, NeedsConfirmation, NotFound
from scrubjay.model.scope import Scope
from scrubjay.settings import Settings

STDIN = "-"


# -- what is opened ----------------------------------------------------------------------------


def settings() -> Settings:
    """The settings, with the passphrase a person types if the keys are locked by one."""
    found = reading.read()
    if found.passphrase is None and interactive() and bootstrap.has_passphrase(found):
        return replace(found, passphrase=ask_secret("Passphrase: "))
    return found


def scope_of(name: str | None, found: Settings) -> Scope:
    """The scope a command means."""
    return Scope.parse(name or found.scope)


@contextmanager
def opened(name: str | None, *, create: bool = False, anew: bool = False) -> Iterator[Jay]:
    """The handle on a scope; only a command that writes creates one that is not there."""
    found = settings()
    scope = str(scope_of(name, found))
    if not create and found.unused:
        # Asking the library would make the keys folder of an installation nobody wanted.
        raise NotFound(f"There is no scope {scope}.", hint="`scrubjay remember` makes it.")
    with handle.open(scope, passphrase=found.passphrase, create=create, anew=anew) as jay:
        yield jay


@contextmanager
def installed(found: Settings | None = None, *, create: bool = False) -> Iterator[Kernel]:
    """The engine of the whole home; only a command that writes creates one that is not there."""
    found = settings() if found is None else found
    if not create and found.unused:
        raise NotFound(
            "Nothing was ever remembered here.",
            hint=f"The data would be in {found.data}; the first write makes it.",
        )
    engine = bootstrap.build(found)
    try:
        yield engine
    finally:
        engine.close()


def scoped(
    name: str, *declared: Option | Fields, create: bool = False
) -> Callable[[Function], Function]:
    """Declare a command on one scope: the function gets the open handle first."""

    def declare(function: Function) -> Function:
        def perform(*, scope: str | None = None, anew: bool = False, **given: Any) -> Any:
            with opened(scope, create=create, anew=anew) as jay:
                return function(jay, **given)

        perform.__doc__ = function.__doc__
        command(name, *declared, *([ANEW] if create else []), SCOPE, JSON)(perform)
        return function

    return declare


# -- what a person says ------------------------------------------------------------------------


def interactive() -> bool:
    """Whether a person sits at the terminal who can read a question and type an answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(deed: str, *, yes: bool, word: str | None = None) -> None:
    """Confirmation of `deed`, a sentence: Declined if the person says no.

    With `word` a plain yes is not enough: the person has to type it. NeedsConfirmation where nobody
    can be asked.
    """
    if yes:
        return
    if not interactive():
        raise NeedsConfirmation(
            deed, hint="Nothing was done: add --yes to go ahead, or run it on a terminal."
        )
    render.say(deed)
    sys.stderr.write(f"Type {word or 'yes'} to go ahead: ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if answer != word if word else answer.lower() not in {"y", "yes"}:
        raise Declined


def ask_secret(question: str) -> str:
    """Password prompt: asks on stderr and reads an answer without echo."""
    from getpass import getpass

    return getpass(question, stream=sys.stderr)


def new_passphrase() -> str:
    """A new passphrase, typed unseen and twice; InvalidRequest if the two differ."""
    new = secret_line("New passphrase: ")
    if interactive() and new != ask_secret("Once more: "):
        raise InvalidRequest("The two are not the same.", hint="Nothing was changed.")
    if not new:
        raise InvalidRequest("The passphrase is empty.", hint="Nothing was changed.")
    return new


def secret_line(question: str) -> str:
    """Password input without echo; without a terminal, the next line of stdin."""
    return ask_secret(question) if interactive() else sys.stdin.readline().rstrip("\r\n")


def text_of(given: str) -> str:
    """The text of an argument; `-` stands for all of stdin, without the last line break."""
    if given != STDIN:
        return given
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InvalidRequest("What was read from stdin is not UTF-8 text.") from error


def said(words: Sequence[str], name: str = "TEXT", example: str = "Alice likes tea") -> str:
    """The text of words, or that of a pipe where there are none; WrongUsage without either."""
    text = " ".join(words)
    if not words and not sys.stdin.isatty():
        text = text_of(STDIN)
    if not words and not text.strip():
        raise WrongUsage(f"Missing argument {name}.", hint=f'For example "{example}".')
    return text


def confirm_replace(path: Path, *, yes: bool) -> None:
    """Confirmation that a file may be written, where one of that name is there already."""
    if path.exists():
        confirm(f"{path} is there already and would be replaced.", yes=yes)
