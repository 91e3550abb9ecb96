"""Commands about conversations: record, turns, sessions, extract."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from scrubjay.cli import render
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import STDIN, opened, text_of
from scrubjay.cli.parser import ANEW, JSON, SCOPE, Option, command, fields
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.requests import BROWSE_LIMIT, Filter
from scrubjay.model.results import ExtractionStatus, Outcome, Stopped
from scrubjay.model.turns import TURNS_LIMIT, Record, State

_NOTES = {
    Outcome.KNOWN: "It was recorded already; nothing changed.",
    Outcome.FORGOTTEN: "It was forgotten once and stays so; nothing changed.",
}
_STATES = {
    State.REPEATED: "It says what a turn just before it said; nothing was derived.",
    State.TRIVIAL: "It says nothing worth keeping; nothing was derived.",
    State.FAILED: "Nothing could be derived from it.",
}


@command(
    "record",
    Option("USER", "Message of the user; - reads it from stdin.", str, required=True),
    Option("ASSISTANT", "Answer of the assistant; - reads it from stdin.", str),
    fields(Record, "id", "at", "session", "origin"),
    ANEW,
    SCOPE,
    JSON,
)
def record(
    user: str,
    assistant: str = "",
    *,
    anew: bool = False,
    scope: str | None = None,
    as_json: bool = False,
    **request: Any,
) -> None:
    """Record a turn: a message and its answer; prints the id of the turn.

    Example: scrubjay record "I prefer green tea." "Noted." --session chat-7
    """
    if user == assistant == STDIN:
        raise InvalidRequest("Only one side of a turn can be read from stdin.")
    said, answered = text_of(user), text_of(assistant)
    with opened(scope, create=True, anew=anew) as jay:
        receipt = jay.record(said, answered, **request)
    render.emit(receipt, lambda: render.line(receipt.id), as_json=as_json)
    if not as_json:
        if note := _NOTES.get(receipt.outcome) or _STATES.get(receipt.state):
            render.say(note)
        render.redactions(receipt.redacted)


@command(
    "turns",
    Option(
        "--limit -n", "Limit: how many turns are listed at most.", int, default="50", least=1,
        most=TURNS_LIMIT,
    ),
    fields(Filter, "session", "before"),
    SCOPE,
    JSON,
)  # fmt: skip
def turns(*, scope: str | None = None, as_json: bool = False, **request: Any) -> None:
    """List turns, newest first.

    Example: scrubjay turns --session chat-7 --limit 20
    """
    with opened(scope) as jay:
        found = jay.turns(**request)
    rows = (
        (
            turn.id,
            render.local(turn.at),
            render.piece(turn.session or ""),
            render.piece(turn.user),
            render.piece(turn.assistant),
        )
        for turn in found
    )
    columns = ("id", "when", "session", "user", "assistant")
    render.emit(found, lambda: render.table(columns, rows), as_json=as_json)


@command(
    "sessions",
    Option(
        "--limit -n", "Limit: how many sessions are listed at most.", int, default="50", least=1,
        most=BROWSE_LIMIT,
    ),
    SCOPE,
    JSON,
)  # fmt: skip
def sessions(*, limit: int = 50, scope: str | None = None, as_json: bool = False) -> None:
    """List sessions (conversations), the most recently active first.

    Example: scrubjay sessions --limit 20
    """
    with opened(scope) as jay:
        found = jay.sessions(limit)
    rows = (
        (
            render.piece(one.name),
            render.local(one.first),
            render.local(one.last),
            f"{one.memories:,}",
            f"{one.turns:,}",
            one.tainted or "",
        )
        for one in found
    )
    columns = ("session", "first", "last", "memories", "turns", "tainted")
    render.emit(found, lambda: render.table(columns, rows), as_json=as_json)


_SECONDS = 24 * 3600.0
"""A person waits for it, and interrupts it if it takes too long."""
_WHY = {
    Stopped.PAUSED: "It is paused: `scrubjay extract --resume` lets it go on.",
    Stopped.SPENT: "The tokens of this day are used up; it goes on tomorrow (UTC).",
    Stopped.UNAVAILABLE: "The model cannot be had; the turns wait.",
}


@command(
    "extract",
    Option(
        "--limit -n", "Limit: how many turns the model reads at most.", int, default="100", least=1
    ),
    Option("--again", "Reprocess: read turns again that were read before."),
    Option("--status", "Only print the progress and the tokens used."),
    Option("--pause", "Pause: send no turns of this scope to the model."),
    Option("--resume", "Resume after a pause."),
    SCOPE,
    JSON,
)
def extract(
    *,
    limit: int = 100,
    again: bool = False,
    status: bool = False,
    pause: bool = False,
    resume: bool = False,
    scope: str | None = None,
    as_json: bool = False,
) -> int:
    """Extract memories: the configured model reads the turns that wait.

    A service does this by itself. Only turns that were kept are sent; again only if it fails.

    Example: scrubjay extract --limit 20
    """
    if (status + pause + resume) > 1 or (again and (status or pause or resume)):
        raise InvalidRequest(
            "These options do not go together.", hint="Use one of --status, --pause, --resume."
        )
    with opened(scope) as jay:
        if status or pause or resume:
            told: ExtractionStatus = (
                jay.extraction() if status else jay.pause_extraction(paused=pause)
            )
            render.emit(told, lambda: render.facts(asdict(told)), as_json=as_json)
            return Exit.OK
        done = jay.extract(limit=limit, seconds=_SECONDS, again=again)
    read, found = render.plural(done.turns, "turn"), render.plural(done.memories, "memory")
    spent = f"{done.tokens_in:,} tokens in, {done.tokens_out:,} out"
    sentence = f"Read {read}: {found}; {spent}; {done.left:,} left."
    render.emit(done, lambda: render.say(sentence), as_json=as_json)
    if done.stopped and not as_json:
        render.say(_WHY[done.stopped])
    return Exit.UNAVAILABLE if done.stopped is Stopped.UNAVAILABLE else Exit.OK
