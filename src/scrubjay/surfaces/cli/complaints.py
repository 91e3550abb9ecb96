"""How an error leaves the program: one sentence and a hint on stderr, or an object for `--json`."""

from __future__ import annotations

import json
import sys
from typing import Final

from scrubjay.domain import errors
from scrubjay.domain.errors import ScrubjayError

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
