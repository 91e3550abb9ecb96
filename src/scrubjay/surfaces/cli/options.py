"""The options commands share, each written once."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from scrubjay.domain.errors import InvalidRequest
from scrubjay.domain.memory import Kind
from scrubjay.domain.origin import Origin
from scrubjay.domain.requests import BROWSE_LIMIT, RECALL_LIMIT

STDIN = "-"


def _past(text: str) -> datetime:
    from scrubjay import bootstrap
    from scrubjay.surfaces import times

    return times.past(text, bootstrap.clock().now())


def _future(text: str) -> datetime:
    from scrubjay import bootstrap
    from scrubjay.surfaces import times

    return times.future(text, bootstrap.clock().now())


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
