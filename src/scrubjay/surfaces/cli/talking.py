"""record, turns, sessions: conversations as they happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated

import typer

from scrubjay.domain.errors import InvalidRequest
from scrubjay.domain.memory import Json
from scrubjay.domain.origin import Origin
from scrubjay.domain.results import Outcome, Session
from scrubjay.domain.turns import TURNS_LIMIT, Recorded, State, Turn, to_record
from scrubjay.surfaces.cli import options, render
from scrubjay.surfaces.cli.opening import opened

_NOTES = {
    Outcome.KNOWN: "It was recorded already; nothing changed.",
    Outcome.FORGOTTEN: "It was forgotten once and stays so; nothing changed.",
}
_STATES = {
    State.REPEATED: "It says what a turn just before it said; nothing was derived.",
    State.TRIVIAL: "It says nothing worth keeping; nothing was derived.",
    State.FAILED: "Nothing could be derived from it.",
}


def record(
    user: Annotated[
        str, typer.Argument(metavar="USER", help="What the user said, or - to read it from stdin.")
    ],
    assistant: Annotated[
        str, typer.Argument(metavar="ASSISTANT", help="What was answered, or - for stdin.")
    ] = "",
    *,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Recorded under the same id again, it is one."),
    ] = None,
    at: options.HappenedAt = None,
    session: options.Session = None,
    origin: options.OneOrigin = Origin.USER,
    anew: options.Anew = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Record a turn, what was said and answered; prints the id it can be named by.

    Example: scrubjay record "I prefer green tea." "Noted." --session chat-7
    """
    if user == assistant == options.STDIN:
        raise InvalidRequest("Only one side of a turn can be read from stdin.")
    said, answered = options.text_of(user), options.text_of(assistant)
    with opened(scope, create=True, anew=anew) as jay:
        receipt = jay.record(said, answered, id=id, at=at, session=session, origin=origin)
    _tell(receipt, as_json=as_json)


def _tell(receipt: Recorded, *, as_json: bool) -> None:
    told = {
        "id": receipt.id,
        "outcome": receipt.outcome.value,
        "state": receipt.state.name.lower(),
        "memories": list(receipt.memories),
        "redacted": dict(receipt.redacted),
    }
    render.emit(told, lambda: render.line(receipt.id), as_json=as_json)
    if as_json:
        return
    if note := _NOTES.get(receipt.outcome) or _STATES.get(receipt.state):
        render.say(note)
    render.redactions(receipt.redacted)


def turns(
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=TURNS_LIMIT, help="How many at most.")
    ] = 50,
    session: options.Session = None,
    before: options.Before = None,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """List turns as they happened, newest first.

    Example: scrubjay turns --session chat-7 --limit 20
    """
    with opened(scope) as jay:
        found = jay.turns(limit, session=session, before=before)
    told = {"turns": [to_record(turn) for turn in found]}
    columns = ("id", "when", "session", "user", "assistant")
    render.emit(told, lambda: render.table(columns, _exchanges(found)), as_json=as_json)


def _exchanges(found: Iterable[Turn]) -> Iterator[tuple[str, ...]]:
    for turn in found:
        session = render.piece(turn.session or "")
        sides = render.piece(turn.user), render.piece(turn.assistant)
        yield turn.id, render.local(turn.at), session, *sides


def sessions(
    *,
    limit: options.Listed = 50,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """List sessions, the one that was spoken in last first.

    Example: scrubjay sessions --limit 20
    """
    with opened(scope) as jay:
        found = jay.sessions(limit)
    told = {"sessions": [_as_object(one) for one in found]}
    columns = ("session", "first", "last", "memories", "turns", "tainted")
    render.emit(told, lambda: render.table(columns, map(_row, found)), as_json=as_json)


def _as_object(one: Session) -> dict[str, Json]:
    return {
        "name": one.name,
        "first": _stamp(one.first),
        "last": _stamp(one.last),
        "memories": one.memories,
        "turns": one.turns,
        "tainted": one.tainted and one.tainted.value,
    }


def _stamp(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _row(one: Session) -> tuple[str, ...]:
    counts = f"{one.memories:,}", f"{one.turns:,}", one.tainted or ""
    return render.piece(one.name), render.local(one.first), render.local(one.last), *counts
