"""The options commands share, each written once."""

from __future__ import annotations

import re
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Origin
from scrubjay.model.requests import BROWSE_LIMIT, RECALL_LIMIT

_DURATION = re.compile(r"(\d{1,6})\s*([hdw])", re.IGNORECASE)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_HINT = "Write a date (2026-05-01), a time (2026-05-01T18:30), or a duration (12h, 7d, 2w)."


def past(text: str, now: datetime) -> datetime:
    """The time meant; a duration counts back from now."""
    length = duration(text)
    return moment(text) if length is None else _shifted(text, now, -length)


def future(text: str, now: datetime) -> datetime:
    """The time meant, which lies ahead; a duration counts from now."""
    length = duration(text)
    time = moment(text) if length is None else _shifted(text, now, length)
    if time <= now:
        raise InvalidRequest(f"{text} is over already.", hint="Name a time to come.")
    return time


def duration(text: str) -> timedelta | None:
    """The length of a duration such as 12h, 7d or 2w; None if it is not written as one."""
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else int(found[1]) * _UNITS[found[2].lower()]


def moment(text: str) -> datetime:
    """The time of an ISO date, its first moment, or of an ISO time.

    What names no zone is meant where the reader is, as on any clock on a wall.
    """
    try:
        time = datetime.fromisoformat(text.strip())
        return time.astimezone() if time.tzinfo is None else time
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"{text!r} is not a time.", hint=_HINT) from error


def _shifted(text: str, now: datetime, by: timedelta) -> datetime:
    try:
        return now + by
    except OverflowError as error:
        raise InvalidRequest(f"{text} is outside the years 1 to 9999.", hint=_HINT) from error


STDIN = "-"


def _past(text: str) -> datetime:
    from scrubjay import bootstrap

    return past(text, bootstrap.clock().now())


def _future(text: str) -> datetime:
    from scrubjay import bootstrap

    return future(text, bootstrap.clock().now())


def text_of(given: str) -> str:
    """The text of an argument; `-` stands for all of stdin, without the last line break."""
    if given != STDIN:
        return given
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InvalidRequest("What was read from stdin is not UTF-8 text.") from error


_WHEN = "DATE"

ScopeName = Annotated[
    str | None,
    typer.Option(
        "--scope",
        "-s",
        metavar="SCOPE",
        help="Whose memory: tenant/owner, or owner alone.",
        show_default="local/default",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Go ahead without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="The text, or - to read it from stdin.")]
OneOrigin = Annotated[Origin, typer.Option("--origin", help="By which channel the text came in.")]
Importance = Annotated[
    float | None, typer.Option("--importance", min=0, max=1, help="How much it matters, 0 to 1.")
]
Session = Annotated[
    str | None, typer.Option("--session", metavar="NAME", help="The conversation it belongs to.")
]
Expires = Annotated[
    datetime | None,
    typer.Option(
        "--expires", metavar=_WHEN, parser=_future, help="When it expires: a date, or 12h, 7d, 2w."
    ),
]
Anew = Annotated[bool, typer.Option("--anew", help="Begin a destroyed scope again, empty.")]

Kinds = Annotated[
    list[Kind] | None, typer.Option("--kind", "-k", help="Only this kind; may be repeated.")
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", "-t", metavar="TAG", help="A tag; may be repeated."),
]
Since = Annotated[
    datetime | None,
    typer.Option(
        "--since", metavar=_WHEN, parser=_past, help="From then on: a date, or 7d for a week ago."
    ),
]
Before = Annotated[
    datetime | None,
    typer.Option(
        "--before", metavar=_WHEN, parser=_past, help="Before then: a date, or 7d for a week ago."
    ),
]
AsOf = Annotated[
    datetime | None,
    typer.Option("--as-of", metavar=_WHEN, parser=_past, help="As it was known then."),
]
AskedAt = Annotated[
    datetime | None,
    typer.Option("--asked-at", metavar=_WHEN, parser=_past, help="When it is asked, if not now."),
]
HappenedAt = Annotated[
    datetime | None,
    typer.Option("--at", metavar=_WHEN, parser=_past, help="When it happened, if not now."),
]
Superseded = Annotated[bool, typer.Option("--superseded", help="Show what was superseded as well.")]
Hits = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=RECALL_LIMIT, help="How many at most.")
]
Listed = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=BROWSE_LIMIT, help="How many at most.")
]
ReceiptFile = Annotated[
    Path | None,
    typer.Option(
        "--receipt", metavar="FILE", help="Write the receipt here, for `verify --erased`."
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="The key that opens a sealed file.")
]
