"""Commands that write and read memories: remember, correct, pin, recall, list, get, brief."""

from __future__ import annotations

import sys
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from scrubjay.cli import render
from scrubjay.cli.home import opened, text_of
from scrubjay.cli.parser import ANEW, ID, JSON, SCOPE, TEXT, Option, command, fields
from scrubjay.model.requests import BriefRequest, Browse, Filter, Recall, Retain, Supersede
from scrubjay.model.results import Outcome, Retained

_OUTCOMES = {
    Outcome.KNOWN: "It was there already; nothing changed.",
    Outcome.FORGOTTEN: "It was forgotten once and stays so; nothing changed.",
}
_FILTER = fields(
    Filter, "kinds --kind -k", "tags --tag -t", "since", "before", "as_of", "session", "superseded"
)


# -- writing -----------------------------------------------------------------------------------


@command(
    "remember",
    TEXT,
    fields(
        Retain, "kind -k", "tags --tag -t", "importance", "expires_at --expires", "pinned --pin",
    ),
    Option("--supersedes", "Id of the memory to replace; it stays as history.", str, metavar="ID"),
    fields(Retain, "session", "origin", "key"),
    ANEW,
    SCOPE,
    JSON,
)  # fmt: skip
def remember(
    text: str,
    *,
    supersedes: str | None = None,
    pinned: bool = False,
    expires_at: datetime | None = None,
    anew: bool = False,
    scope: str | None = None,
    as_json: bool = False,
    **request: Any,
) -> None:
    """Write a memory; prints its id.

    Example: scrubjay remember "Alice prefers green tea" --kind preference --tag food
    """
    content = text_of(text)
    with opened(scope, create=True, anew=anew) as jay:
        if supersedes is None:
            receipt = jay.retain(content, pinned=pinned, expires_at=expires_at, **request)
        else:
            receipt = jay.supersede(supersedes, content, **request)
            if pinned:
                jay.pin(receipt.id)
            if expires_at is not None:
                jay.expire(receipt.id, expires_at)
    _show_receipt(receipt, as_json=as_json)


@command("correct", ID, TEXT, fields(Supersede, "reason", "session", "origin"), SCOPE, JSON)
def correct(
    id: str, text: str, *, scope: str | None = None, as_json: bool = False, **request: Any
) -> None:
    """Replace a memory by a new text; the old one stays as history. Prints the new id.

    Example: scrubjay correct mem-… "Alice prefers white tea" --reason "she said so"
    """
    content = text_of(text)
    with opened(scope) as jay:
        receipt = jay.supersede(id, content, **request)
    _show_receipt(receipt, as_json=as_json)


def _show_receipt(receipt: Retained, *, as_json: bool) -> None:
    render.emit(receipt, lambda: render.line(receipt.id), as_json=as_json)
    if not as_json:
        if note := _OUTCOMES.get(receipt.outcome):
            render.say(note)
        render.redactions(receipt.redacted)


@command("pin", ID, SCOPE, JSON)
def pin(id: str, *, scope: str | None = None, as_json: bool = False) -> None:
    """Pin a memory: it comes first in the brief.

    Example: scrubjay pin mem-…
    """
    with opened(scope) as jay:
        changed = jay.pin(id)
    render.emit(changed, lambda: render.say("Pinned."), as_json=as_json)


@command("unpin", ID, SCOPE, JSON)
def unpin(id: str, *, scope: str | None = None, as_json: bool = False) -> None:
    """Unpin a memory.

    Example: scrubjay unpin mem-…
    """
    with opened(scope) as jay:
        changed = jay.unpin(id)
    render.emit(changed, lambda: render.say("Unpinned."), as_json=as_json)


# -- reading -----------------------------------------------------------------------------------


@command(
    "recall",
    fields(Recall, "query QUERY", "limit -n"),
    _FILTER,
    fields(Recall, "asked_at", "scopes --also"),
    Option("--explain", "Score breakdown: show the parts each score is the sum of."),
    SCOPE,
    JSON,
)
def recall(
    query: str,
    *,
    explain: bool = False,
    scope: str | None = None,
    as_json: bool = False,
    **request: Any,
) -> None:
    """Search: find the memories that answer a question, best first.

    Example: scrubjay recall "what does Alice drink" --since 2w --explain
    """
    with opened(scope) as jay:
        found = jay.recall(text_of(query), **request)
    show = render.arithmetic if explain else render.hits
    render.emit(found, lambda: show(found.hits), as_json=as_json)
    if not as_json:
        for sentence in found.degraded:
            render.say(f"note: {sentence}")
        if not found.hits:
            render.say("Nothing was found.")


@command("list", fields(Browse, "limit -n"), _FILTER, fields(Browse, "cursor"), SCOPE, JSON)
def browse(*, scope: str | None = None, as_json: bool = False, **request: Any) -> None:
    """List memories, newest first.

    Example: scrubjay list --kind preference --limit 20
    """
    with opened(scope) as jay:
        page = jay.browse(**request)
    render.emit(page, lambda: render.memories(page), as_json=as_json)
    if page.next is not None and not as_json:
        render.say(f"There are more: --cursor {page.next}")


@command("get", ID, fields(Filter, "as_of"), SCOPE, JSON)
def get(
    id: str, *, as_of: datetime | None = None, scope: str | None = None, as_json: bool = False
) -> None:
    """Show one memory with its metadata and provenance.

    Example: scrubjay get mem-… --json
    """
    with opened(scope) as jay:
        found = jay.get(id, as_of=as_of)
    render.emit(found, lambda: render.memory(found), as_json=as_json)


@command("history", ID, SCOPE, JSON)
def history(id: str, *, scope: str | None = None, as_json: bool = False) -> None:
    """Show every version of a memory, oldest first.

    Example: scrubjay history mem-…
    """
    with opened(scope) as jay:
        chain = jay.history(id)
    rows = (
        (
            one.id,
            render.local(one.recorded_at),
            render.piece(one.content),
            render.piece(one.provenance.reason or ""),
        )
        for one in chain
    )
    columns = ("id", "when", "memory", "why")
    render.emit(chain, lambda: render.table(columns, rows), as_json=as_json)


class BriefFormat(StrEnum):
    """The forms of a brief."""

    MARKDOWN = "markdown"
    CLAUDE_MD = "claude-md"


@command(
    "brief",
    fields(BriefRequest, "limit -n", "max_chars"),
    Option(
        "--format", "Output format; claude-md puts it between the marks of --inject.", BriefFormat,
        name="form", default="markdown",
    ),
    Option("--inject", "File to write the brief into, in place of the last one.", Path),
    SCOPE,
    JSON,
)  # fmt: skip
def brief(
    *,
    form: BriefFormat = BriefFormat.MARKDOWN,
    inject: Path | None = None,
    scope: str | None = None,
    as_json: bool = False,
    **request: Any,
) -> None:
    """Print the brief: the memories to put before a session's first prompt, as Markdown.

    Example: scrubjay brief --format claude-md --inject CLAUDE.md
    """
    from scrubjay.conversation import brief_file

    with opened(scope) as jay:
        found = jay.brief(**request)
    text = found.markdown
    if inject is not None:
        brief_file.inject(inject, text)
        text = ""
    elif form is BriefFormat.CLAUDE_MD:
        text = brief_file.block(text)
    render.emit(found, lambda: sys.stdout.write(text), as_json=as_json)
    if as_json:
        return
    if not len(found):
        render.say("There is nothing to say yet.")
    elif found.omitted:
        render.say(f"{render.plural(found.omitted, 'memory')} more did not fit.")
