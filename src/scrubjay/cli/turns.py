"""record, turns, sessions: conversations as they happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated

import typer
from msgspec.structs import asdict

from scrubjay.cli import options, render
from scrubjay.cli.exits import Exit
from scrubjay.cli.opening import opened
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Json
from scrubjay.model.origin import Origin
from scrubjay.model.results import Extraction, ExtractionStatus, Outcome, Session, Stopped
from scrubjay.model.turns import TURNS_LIMIT, Recorded, State, Turn, to_record

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


_SECONDS = 24 * 3600.0
"""Somebody waits for it, and ends it if they do not want to any more."""
_WHY = {
    Stopped.PAUSED: "It is paused: `scrubjay extract --resume` lets it go on.",
    Stopped.SPENT: "The tokens of this day are used up; it goes on tomorrow (UTC).",
    Stopped.UNAVAILABLE: "The model cannot be had; the turns wait.",
}


def extract(
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="How many turns to read at most.")
    ] = 100,
    again: Annotated[
        bool, typer.Option("--again", help="Read turns again that were read before.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Only say how far it has come, and what it cost.")
    ] = False,
    pause: Annotated[
        bool, typer.Option("--pause", help="Send no turns of this scope to the model.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Let it go on.")] = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Have the configured model read turns that wait, and remember what it finds.

    A service does this by itself. Only turns that were kept are sent; again only if it fails.

    Example: scrubjay extract --limit 20
    """
    if (status + pause + resume) > 1 or (again and (status or pause or resume)):
        raise InvalidRequest(
            "These options do not go together.", hint="Use one of --status, --pause, --resume."
        )
    with opened(scope) as jay:
        if pause or resume:
            _tell_status(jay.pause_extraction(paused=pause), as_json=as_json)
        elif status:
            _tell_status(jay.extraction(), as_json=as_json)
        else:
            _tell_extraction(
                jay.extract(limit=limit, seconds=_SECONDS, again=again), as_json=as_json
            )


def _tell_extraction(done: Extraction, *, as_json: bool) -> None:
    def show() -> None:
        turns, found = render.plural(done.turns, "turn"), render.plural(done.memories, "memory")
        spent = f"{done.tokens_in:,} tokens in, {done.tokens_out:,} out"
        render.say(f"Read {turns}: {found}; {spent}; {done.left:,} left.")
        if done.stopped:
            render.say(_WHY[done.stopped])

    render.emit(asdict(done), show, as_json=as_json)
    if done.stopped is Stopped.UNAVAILABLE:
        raise typer.Exit(Exit.UNAVAILABLE)


def _tell_status(status: ExtractionStatus, *, as_json: bool) -> None:
    facts = ((name.replace("_", " "), _value(value)) for name, value in asdict(status).items())
    render.emit(asdict(status), lambda: render.facts(facts), as_json=as_json)


def _value(value: bool | int) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:,}"
