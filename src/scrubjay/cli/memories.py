"""Commands that write and read memories: remember, correct, pin, recall, list, get, brief."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from scrubjay.cli import render
from scrubjay.cli.home import said, scoped, text_of
from scrubjay.cli.parser import ID, PAGING, Option, fields
from scrubjay.cli.render import Output, line, local, piece, say, short
from scrubjay.handle import Jay
from scrubjay.model.errors import Conflict
from scrubjay.model.filters import Filter
from scrubjay.model.memory import Kind
from scrubjay.model.requests import BriefRequest, Browse, Recall, Retain, Supersede
from scrubjay.model.results import INJECTED, Outcome, Retained

_NOTES = {
    Outcome.KNOWN: ["It was there already; nothing changed."],
    Outcome.FORGOTTEN: ["It was forgotten once and stays so; nothing changed."],
    Outcome.WAITING: ["It waits, sealed, until the memory is unlocked."],
}
_A = {kind: f"an {kind}" if kind[0] in "aeiou" else f"a {kind}" for kind in Kind}
_FILTER = fields(
    Filter, "kinds --kind -k", "tags --tag -t", "origins --origin", "channel", "where", "since",
    "before", "as_of", "session", "superseded",
)  # fmt: skip
_TEXT = Option(
    "TEXT", "Text of the memory, with or without quotes; from stdin without one.", text_of,
    many=True,
)  # fmt: skip


# -- writing -----------------------------------------------------------------------------------


@scoped(
    "remember",
    _TEXT,
    fields(Retain, "kind -k", "tags --tag -t", "importance", "expires_at --expires"),
    fields(Retain, "pinned --pin", "said_at"),
    Option("--supersedes", "Id of the memory to replace; it stays as history.", str, metavar="ID"),
    fields(Retain, "session", "origin", "key"),
    create=True,
)
def remember(
    jay: Jay,
    *,
    text: Sequence[str] = (),
    supersedes: str | None = None,
    pinned: bool | None = None,
    **request: Any,
) -> Output:
    """Write a memory; prints its id.

    Example: scrubjay remember "Alice prefers green tea" --tag food
    """
    told = said(text)
    if supersedes is None:
        return _written(jay, jay.retain(told, pinned=bool(pinned), **request))
    return _written(jay, _replaced(jay, supersedes, told, pinned=pinned, **request))


@scoped("correct", ID, _TEXT, fields(Supersede, "reason", "said_at", "session", "origin"))
def correct(jay: Jay, id: str, *, text: Sequence[str] = (), **request: Any) -> Output:
    """Replace a memory by a new text; the old one stays as history. Prints the new id.

    Example: scrubjay correct mem-… "Alice prefers white tea" --reason "she said so"
    """
    return _written(jay, _replaced(jay, id, said(text), **request))


def _replaced(jay: Jay, id: str, text: str, **request: Any) -> Retained:
    """Supersede a memory; of an old version the newest is named."""
    try:
        return jay.supersede(id, text, **request)
    except Conflict as error:
        versions = list(jay.history(id))
        if not versions or versions[-1].id == id:
            raise
        newest = f"The newest version is {versions[-1].id}."
        raise Conflict(error.message, hint=newest) from error


def _written(jay: Jay, receipt: Retained) -> Output:
    notes = list(_NOTES.get(receipt.outcome, []))
    if receipt.redacted:
        kept = jay.get(receipt.id).content if receipt.outcome is Outcome.STORED else None
        notes += render.redactions(receipt.redacted, kept)
    if receipt.inferred is not None:
        notes.append(f"Stored as {_A[receipt.inferred]}; use --kind to choose another.")
    notes += receipt.degraded
    return Output(receipt, lambda: line(render.short(receipt.id)), notes)


@scoped("pin", ID)
def pin(jay: Jay, id: str) -> Output:
    """Pin a memory: it comes first in the brief.

    Example: scrubjay pin mem-…
    """
    return Output(jay.pin(id), lambda: say("Pinned."))


@scoped("unpin", ID)
def unpin(jay: Jay, id: str) -> Output:
    """Unpin a memory.

    Example: scrubjay unpin mem-…
    """
    return Output(jay.unpin(id), lambda: say("Unpinned."))


@scoped("archive", ID)
def archive(jay: Jay, id: str) -> Output:
    """Archive a memory: it is neither searched, listed nor in the brief, but kept.

    Example: scrubjay archive mem-…
    """
    return Output(jay.archive(id), lambda: say("Archived."))


@scoped("unarchive", ID)
def unarchive(jay: Jay, id: str) -> Output:
    """Take a memory back from the archive.

    Example: scrubjay unarchive mem-…
    """
    return Output(jay.unarchive(id), lambda: say("Taken back."))


# -- reading -----------------------------------------------------------------------------------


@scoped(
    "recall",
    Option("QUERY", "The question to search by, in words.", text_of, "query", many=True),
    fields(Recall, "limit -n"),
    _FILTER,
    fields(Recall, "untrusted", "asked_at", "timezone", "min_relevance", "min_similarity"),
    fields(Recall, "scopes --also"),
    Option("--explain", "Score breakdown: show the parts each score is the sum of."),
)
def recall(jay: Jay, *, query: Sequence[str] = (), explain: bool = False, **request: Any) -> Output:
    """Search: find the memories that answer a question, best first.

    Example: scrubjay recall "what does Alice drink" --since 2w --explain
    """
    found = jay.recall(said(query, "QUERY", "what does Alice drink"), **request)
    show = render.arithmetic if explain else render.hits
    notes = [f"note: {sentence}" for sentence in found.degraded]
    notes += [] if found.hits else ["Nothing was found."]
    if found.hits and not any(hit.likely for hit in found):
        notes.append(f"note: No hit is likely to answer; `--min-relevance {INJECTED}` lists none.")
    return Output(found, lambda: show(found.hits) if found.hits else None, notes)


@scoped("list", fields(Browse, "limit -n"), _FILTER, fields(Browse, "archived", "cursor"))
def browse(jay: Jay, **request: Any) -> Output:
    """List memories, last recorded first.

    Example: scrubjay list --kind preference --limit 20
    """
    page = jay.browse(**request)
    return Output(page, lambda: render.memories(page))


@scoped("count", _FILTER, fields(Filter, "archived"))
def count(jay: Jay, **request: Any) -> Output:
    """Count the memories that a filter accepts.

    Example: scrubjay count --where project=apollo
    """
    number = jay.count(**request)
    return Output(number, lambda: line(f"{number:,}"))


@scoped("get", ID, fields(Filter, "as_of"))
def get(jay: Jay, id: str, *, as_of: datetime | None = None) -> Output:
    """Show one memory with its metadata and provenance.

    Example: scrubjay get mem-… --json
    """
    found = jay.get(id, as_of=as_of)
    return Output(found, lambda: render.memory(found))


@scoped("history", ID, PAGING)
def history(jay: Jay, id: str, **request: Any) -> Output:
    """Show every version of a memory, oldest first.

    Example: scrubjay history mem-…
    """
    chain = jay.history(id, **request)
    rows = (
        (short(one.id), local(one.recorded_at), piece(one.content), piece(one.provenance.reason))
        for one in chain
    )
    return Output(chain, lambda: render.table(("id", "when", "memory", "why"), rows, lead=2))


@scoped(
    "counters",
    Option("ID…", "Ids of the memories.", str, name="ids", many=True, required=True),
)
def counters(jay: Jay, ids: list[str]) -> Output:
    """Show how often memories were recalled, and when last.

    Example: scrubjay counters mem-…
    """
    found = jay.counters(tuple(ids))
    rows = [(short(one.id), f"{one.recalls:,}", local(one.recalled_at)) for one in found]
    return Output(found, lambda: render.table(("id", "recalls", "last"), rows))


@scoped("lineage", ID)
def lineage(jay: Jay, id: str) -> Output:
    """Show what a memory was derived from, and what was derived from it.

    Example: scrubjay lineage mem-3f0c9a1b
    """
    found = jay.lineage(id)
    rows = list[tuple[str, str, str, str]]()
    for relation, some in (("source", found.sources), ("derived", found.derived)):
        for one in some:
            if one.memory is not None:
                told = (short(one.memory.id), piece(one.memory.content))
            else:
                told = (one.turn.id, piece(one.turn.user)) if one.turn else ("", "")
            rows.append((relation, str(one.steps), *told))
    notes = [] if found.complete else ["There are more."]
    return Output(found, lambda: render.table(("is", "steps", "id", "text"), rows), notes)


@scoped("follow", PAGING)
def follow(jay: Jay, **request: Any) -> Output:
    """List the changes of memories after a cursor, oldest first: a change feed.

    Example: scrubjay follow --cursor 120.0 --json
    """
    found = jay.follow(**request)
    rows = [
        (str(one.seq), short(memory.id), piece(memory.content))
        if memory
        else (str(one.seq), "", "erased")
        for one in found.changes
        for memory in [one.memory]
    ]
    notes = ["Everything before is out of date: begin a new copy."] if found.anew else []
    notes.append(f"The next ones: --cursor {found.next_cursor}")
    return Output(found, lambda: render.table(("seq", "id", "memory"), rows), notes)


class BriefFormat(StrEnum):
    """The forms of a brief."""

    MARKDOWN = "markdown"
    CLAUDE_MD = "claude-md"


@scoped(
    "brief",
    fields(BriefRequest, "limit -n", "max_chars", "scopes --also"),
    Option(
        "--format", "Output format; claude-md puts it between the marks of --inject.", BriefFormat,
        name="form", default="markdown",
    ),
    Option("--inject", "File to write the brief into, in place of the last one.", Path),
)  # fmt: skip
def brief(
    jay: Jay,
    *,
    form: BriefFormat = BriefFormat.MARKDOWN,
    inject: Path | None = None,
    **request: Any,
) -> Output:
    """Print the brief: the memories to put before a session's first prompt, as Markdown.

    Example: scrubjay brief --format claude-md --inject CLAUDE.md
    """
    from scrubjay.conversation.injection import marked_brief, write_brief

    found = jay.brief(**request)
    text = found.markdown
    if inject is not None:
        write_brief(inject, text)
        text = ""
    elif form is BriefFormat.CLAUDE_MD:
        text = marked_brief(text)
    notes = list[str]()
    if found.omitted:
        limit = request.get("limit", BriefRequest().limit)
        bound = f"--limit {limit}" if len(found) >= limit else "--max-chars"
        notes = [f"{bound} left out {found.omitted:,} more."]
    if not len(found):
        notes = ["There is nothing to say yet."]
    return Output(found, lambda: sys.stdout.write(text), notes)
