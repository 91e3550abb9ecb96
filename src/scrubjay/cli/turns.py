"""Commands about conversations: record, turns, sessions, timeline, extract, jobs."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from scrubjay.cli import render
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import STDIN, opened, scoped, text_of
from scrubjay.cli.parser import ANEW, JSON, PAGING, SCOPE, Option, command, fields
from scrubjay.cli.render import Output, local, piece
from scrubjay.handle import Jay
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.filters import Filter
from scrubjay.model.results import Outcome, Stopped
from scrubjay.model.turns import Record, State

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
    fields(Record, "id", "at", "session", "origin", "shown"),
    ANEW,
    SCOPE,
    JSON,
)
def record(
    user: str, assistant: str = "", *, anew: bool = False, scope: str | None = None, **request: Any
) -> Output:
    """Record a turn: a message and its answer; prints the id of the turn.

    Example: scrubjay record "I prefer green tea." "Noted." --session chat-7
    """
    if user == assistant == STDIN:
        raise InvalidRequest("Only one side of a turn can be read from stdin.")
    said, answered = text_of(user), text_of(assistant)
    with opened(scope, create=True, anew=anew) as jay:
        receipt = jay.record(said, answered, **request)
    note = _NOTES.get(receipt.outcome) or _STATES.get(receipt.state)
    notes = [*([note] if note else []), *render.redactions(receipt.redacted)]
    return Output(receipt, lambda: render.line(receipt.id), notes)


def _limit(things: str, default: int, most: int | None = None) -> Option:
    text = f"Limit: how many {things} at most."
    return Option("--limit -n", text, int, default=str(default), least=1, most=most)


@scoped("turns", PAGING, fields(Filter, "session", "before"))
def turns(jay: Jay, **request: Any) -> Output:
    """List turns, newest first.

    Example: scrubjay turns --session chat-7 --limit 20
    """
    found = jay.turns(**request)
    rows = (
        (one.id, local(one.at), piece(one.session), piece(one.user), piece(one.assistant))
        for one in found
    )
    columns = ("id", "when", "session", "user", "assistant")
    return Output(found, lambda: render.table(columns, rows))


@scoped("sessions", PAGING)
def sessions(jay: Jay, **request: Any) -> Output:
    """List sessions (conversations), the most recently active first.

    Example: scrubjay sessions --limit 20
    """
    found = jay.sessions(**request)
    rows = (
        (piece(one.name), local(one.first), local(one.last), f"{one.memories:,}", f"{one.turns:,}",
         one.tainted)
        for one in found
    )  # fmt: skip
    columns = ("session", "first", "last", "memories", "turns", "tainted")
    return Output(found, lambda: render.table(columns, rows))


@scoped("timeline", PAGING)
def timeline(jay: Jay, **request: Any) -> Output:
    """Show the timeline: when each turn was, and how it begins; oldest first.

    Example: scrubjay timeline --limit 20
    """
    found = jay.timeline(**request)
    rows = (
        (one.id, local(one.at), one.state.name.lower(), piece(one.gist)) for one in found.moments
    )
    notes = [] if found.next_cursor is None else [f"Earlier ones: --cursor {found.next_cursor}"]
    return Output(found, lambda: render.table(("id", "when", "state", "gist"), rows), notes)


_SECONDS = 24 * 3600.0
"""A person waits for it, and interrupts it if it takes too long."""
_WHY = {
    Stopped.PAUSED: "It is paused: `scrubjay extract --resume` lets it go on.",
    Stopped.SPENT: "The tokens of this day are used up; it goes on tomorrow (UTC).",
    Stopped.UNAVAILABLE: "The model is unavailable; the turns wait.",
}


@command(
    "extract",
    _limit("turns the model reads", 100),
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
) -> Output:
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
            told = jay.extraction() if status else jay.pause_extraction(paused=pause)
            return Output(told, lambda: render.facts(asdict(told)))
        done = jay.extract(limit=limit, seconds=_SECONDS, again=again)
    read, found = render.plural(done.turns, "turn"), render.plural(done.memories, "memory")
    spent = f"{done.tokens_in:,} tokens in, {done.tokens_out:,} out"
    sentence = f"Read {read}: {found}; {spent}; {done.left:,} left."
    notes = [_WHY[done.stopped]] if done.stopped else []
    code = Exit.UNAVAILABLE if done.stopped is Stopped.UNAVAILABLE else Exit.OK
    return Output(done, lambda: render.say(sentence), notes, code)


@command(
    "jobs",
    Option("--allow", "Set a kind that runs by itself, or none.", str, metavar="KIND", many=True),
    Option("--work", "Do the jobs that are due."),
    Option(
        "--kind", "With --work: only this kind, allowed or not.", str, metavar="KIND", many=True
    ),
    _limit("jobs to do", 100),
    SCOPE,
    JSON,
)
def jobs(
    *,
    allow: list[str] | None = None,
    work: bool = False,
    kind: list[str] | None = None,
    limit: int = 100,
    scope: str | None = None,
) -> Output:
    """Jobs: what is derived in the background; extraction, consolidation, derivation.

    Prints what is allowed, waits and runs. A service does the allowed ones by itself.

    Example: scrubjay jobs --work --kind consolidation
    """
    if work and allow:
        raise InvalidRequest("These options do not go together.", hint="Allow first, then work.")
    with opened(scope) as jay:
        if not work:
            kinds = [one for one in allow or () if one != "none"]
            told = jay.allow_jobs(kinds) if allow else jay.jobs()
            return Output(told, lambda: render.facts(told.to_dict()))
        done = jay.work(limit=limit, seconds=_SECONDS, kinds=kind or ())
    written = render.plural(done.memories, "memory")
    finished = render.plural(sum(done.done.values()), "job")
    by = done.derived_by or "nobody"
    sentence = f"Did {finished}: {written} derived by {by}; {done.left:,} left."
    notes = [_WHY[done.stopped]] if done.stopped else []
    code = Exit.UNAVAILABLE if done.stopped is Stopped.UNAVAILABLE else Exit.OK
    return Output(done, lambda: render.say(sentence), notes, code)
