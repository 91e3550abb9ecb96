"""Exit codes and error messages: what a script and a person learn of an error."""

from __future__ import annotations

import sys
from enum import IntEnum
from typing import Final

from scrubjay.model import errors
from scrubjay.model.errors import ScrubjayError


class Exit(IntEnum):
    """Every exit code there is."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    FORBIDDEN = 4
    CONFLICT = 5
    FROZEN = 6
    UNAVAILABLE = 7
    INTERRUPT = 130


class Declined(Exception):
    """The person who was asked to confirm said no."""


_BY_CODE: Final[dict[Exit, tuple[type[ScrubjayError], ...]]] = {
    Exit.USAGE: (errors.InvalidRequest, errors.NeedsConfirmation),
    Exit.NOT_FOUND: (errors.NotFound,),
    Exit.FORBIDDEN: (errors.Forbidden, errors.LimitReached),
    Exit.CONFLICT: (errors.Conflict, errors.Destroyed, errors.Changed),
    Exit.FROZEN: (errors.Frozen,),
    Exit.UNAVAILABLE: (
        *(errors.Busy, errors.Full, errors.EmbedderError, errors.ExtractorError),
        *(errors.KeyMissing, errors.KeyUnavailable, errors.Locked, errors.OutcomeUnknown),
    ),
}
_HINTS: Final[dict[type[ScrubjayError], str]] = {
    errors.NotFound: "Check the id: mem- and its first eight characters; `scrubjay list` shows it.",
    errors.Destroyed: "`scrubjay remember --anew` begins an empty scope of the same name.",
    errors.Frozen: "`scrubjay unfreeze` lets it go on; forget, destroy and export work meanwhile.",
    errors.StoreError: "Run `scrubjay verify`; what was acknowledged before is not affected.",
    errors.Changed: "Run `scrubjay reindex`, or configure the embedder that was used before.",
    errors.SealBroken: "Run `scrubjay verify` to see what is damaged; restore it from a backup.",
    errors.UserLocked: "Set SCRUBJAY_USER_PASSPHRASE for the command.",
    errors.Locked: "Set SCRUBJAY_PASSPHRASE, or run it on a terminal to be asked.",
}
"""Hints for the command line, in place of the hints for programmers."""


def exit_code(error: ScrubjayError) -> Exit:
    """The exit code of an error, by its class; the first that fits."""
    return next(
        (code for code, kinds in _BY_CODE.items() if isinstance(error, kinds)), Exit.FAILURE
    )


def hint(error: ScrubjayError) -> str:
    """The hint of an error, in words of the command line."""
    if error.hint == error.default_hint:
        return _HINTS.get(type(error), error.hint)
    verb, call, rest = error.hint.partition("() lists")  # a verb of the library
    return f"`scrubjay {verb} list` lists{rest}" if call else error.hint


def complain(code: str, message: str, advice: str, *, as_json: bool) -> None:
    """Print an error to stderr: a sentence and a hint, in color on a terminal, or a JSON object."""
    if as_json:
        from scrubjay import codec

        told = {"ok": False, "error": {"code": code, "message": message, "hint": advice}}
        sys.stderr.write(codec.to_json(told).decode() + "\n")
    elif not sys.stderr.isatty():
        sys.stderr.write(f"error: {message}\nhint: {advice}\n")
    else:
        from rich.console import Console
        from rich.markup import escape

        console = Console(stderr=True, highlight=False, soft_wrap=True)
        console.print(f"[bold red]error[/]: {escape(message)}")
        console.print(f"[dim]hint[/]: {escape(advice)}")
