"""Confirmation: what cannot be undone is asked once, or said with `--yes`."""

from __future__ import annotations

import sys

from scrubjay.cli import render
from scrubjay.model.errors import NeedsConfirmation


def confirm(deed: str, *, yes: bool, word: str | None = None) -> bool:
    """Whether to go on with `deed`, a sentence; NeedsConfirmation where nobody can be asked.

    With `word` a plain yes is not enough: the person has to type it.
    """
    if yes:
        return True
    if not interactive():
        raise NeedsConfirmation(
            deed, hint="Nothing was done: add --yes to go ahead, or run it on a terminal."
        )
    wanted = word or "yes"
    render.say(deed)
    answer = ask(f"Type {wanted} to go ahead: ")
    agreed = answer == word if word else answer.lower() in {"y", "yes"}
    if not agreed:
        render.say("Nothing was done.")
    return agreed


def interactive() -> bool:
    """Whether somebody sits there who can read a question and type an answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> str:
    """What the person types after a question on stderr."""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def ask_secret(question: str) -> str:
    """The same without showing it."""
    from getpass import getpass

    return getpass(question, stream=sys.stderr)
