"""Commands about turns, sessions, conversations and documents, and the jobs on turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from scrubjay.cli import render
from scrubjay.cli.erasure import erased
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import (
    STDIN,
    confirm,
    installed,
    opened,
    scope_of,
    scoped,
    settings,
    text_of,
)
from scrubjay.cli.parser import ANEW, JSON, PAGING, RECEIPT, SCOPE, YES, Option, command, fields
from scrubjay.cli.render import Output, local, piece
from scrubjay.handle import Jay
from scrubjay.model.conversations import ListConversations, ReadConversation
from scrubjay.model.documents import Put
from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.model.filters import Filter
from scrubjay.model.results import Outcome, Stopped
from scrubjay.model.turns import Record, State

_NOTES = {
    Outcome.KNOWN: "It was recorded already; nothing changed.",
    Outcome.FORGOTTEN: "It was forgotten once and stays so; nothing changed.",
    Outcome.WAITING: "It waits, sealed, until the memory is unlocked.",
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


@command(
    "sessions resume",
    Option("SESSION", "Session to resume; the last one if it is left out.", str),
    Option("--transcripts", "Folder where the agent looks for SESSION.jsonl: put it back.", Path),
    SCOPE,
    JSON,
)
def resume(
    session: str | None = None, *, transcripts: Path | None = None, scope: str | None = None
) -> Output:
    """Print the id of a session that a hook kept, so that an agent goes on with it.

    With --transcripts its transcript is put back, in plain, if it is not there any more.

    Example: claude --resume "$(scrubjay sessions resume)"
    """
    from scrubjay.surfaces.hooks import precompact

    name = scope_of(scope, settings())
    with installed() as engine:
        engine.open(name, create=False)
        if session is None:
            latest = engine.conversations(name, ListConversations(limit=1)).data
            if not latest:
                raise NotFound(
                    f"No session was kept in {name}.",
                    hint="`scrubjay-hook precompact` and `scrubjay files sync` keep them.",
                )
            session = latest[0].name
        record = engine.conversation(name, ReadConversation(session, limit=0)).conversation
        if transcripts is not None:
            precompact.restore(engine, name, session, transcripts.expanduser())
    return Output(record, lambda: render.line(session or ""))


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
    Option(
        "--allow",
        "Allow only these kinds to run by themselves, or none.",
        str,
        metavar="KIND",
        many=True,
    ),
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
    """List background jobs (extraction, consolidation, derivation), or do those that are due.

    The list says which kinds are allowed, how many wait, and which run. A service does the allowed
    ones by itself.

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


_NAME = Option("NAME", "Name of a conversation.", str, required=True)
_PATH = Option("PATH", "Path of a document, such as notes/tea.md.", str, required=True)
_TREE = Option("--tree", "Folder: all documents in it as well.")


def _said(value: Any) -> str:
    """A value as a person reads it: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- conversations -------------------------------------------------------------------------------


@scoped("conversations list", PAGING)
def conversations(jay: Jay, **request: Any) -> Output:
    """List conversations, the last written first.

    Example: scrubjay conversations list --limit 20
    """
    found = jay.conversations(**request)
    rows = (
        (piece(one.name), local(one.updated_at), f"{one.entries:,}", piece(one.title))
        for one in found
    )
    return Output(found, lambda: render.table(("name", "written", "entries", "title"), rows))


@scoped("conversations show", _NAME, fields(ReadConversation, "limit -n", "cursor"))
def conversation(jay: Jay, name: str, **request: Any) -> Output:
    """Show the last entries of a conversation, oldest first.

    Example: scrubjay conversations show chat-7 --limit 20
    """
    found = jay.conversation(name, **request)
    rows = ((local(one.at), one.origin, piece(_said(one.body))) for one in found.entries)
    notes = [] if found.next_cursor is None else [f"Earlier ones: --cursor {found.next_cursor}"]
    return Output(found, lambda: render.table(("when", "origin", "entry"), rows), notes)


@scoped("conversations delete", _NAME, RECEIPT, YES)
def delete(jay: Jay, name: str, *, receipt: Path | None = None, yes: bool = False) -> Output:
    """Erase a conversation for good, with the entries that no other one shares.

    Example: scrubjay conversations delete chat-7 --yes
    """
    confirm(f"This erases the conversation {name} for good.", yes=yes)
    return erased(jay.delete_conversation(name), receipt)


# -- documents -----------------------------------------------------------------------------------


@scoped(
    "documents list",
    Option("FOLDER", "Folder to list; all without one.", str),
    PAGING,
)
def documents(jay: Jay, folder: str = "", **request: Any) -> Output:
    """List documents in the order of their names.

    Example: scrubjay documents list notes
    """
    found = jay.documents(folder, values=False, **request)
    rows = (
        (piece(one.path), local(one.updated_at), one.origin, "yes" if one.indexed else "")
        for one in found
    )
    return Output(found, lambda: render.table(("path", "written", "origin", "indexed"), rows))


@scoped("documents show", _PATH)
def document(jay: Jay, path: str) -> Output:
    """Print the value of a document.

    Example: scrubjay documents show notes/tea.md
    """
    found = jay.document(path)
    return Output(found, lambda: render.line(_said(found.value)))


@scoped(
    "documents put",
    _PATH,
    Option("TEXT", "Text of the document; - reads it from stdin.", str, required=True),
    fields(Put, "indexed", "session", "origin", "expected_revision"),
    create=True,
)
def put(jay: Jay, path: str, text: str, **request: Any) -> Output:
    """Write a document, new or in place of the one of that path.

    Example: scrubjay documents put notes/tea.md "Steep for three minutes."
    """
    stored = jay.put(path, text_of(text), **request)
    notes = render.redactions(stored.redacted)
    return Output(stored, lambda: render.line(stored.document.revision), notes)


@scoped(
    "documents move",
    _PATH,
    Option("TO", "The new path, which must be free.", str, required=True),
    _TREE,
)
def move(jay: Jay, path: str, to: str, *, tree: bool = False) -> Output:
    """Give a document another path.

    Example: scrubjay documents move notes/tea.md tea.md
    """
    moved = jay.move(path, to=to, tree=tree)
    return Output(moved, lambda: render.say(f"Moved {render.plural(len(moved), 'document')}."))


@scoped("documents remove", _PATH, _TREE, YES)
def remove(jay: Jay, path: str, *, tree: bool = False, yes: bool = False) -> Output:
    """Remove a document; the path may be used again.

    Example: scrubjay documents remove notes/tea.md --yes
    """
    confirm(f"This removes {path}.", yes=yes)
    done = jay.remove(path, tree=tree)
    return Output(done, lambda: render.say(f"Removed {render.plural(done.removed, 'document')}."))
