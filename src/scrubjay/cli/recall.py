"""recall, list, get, history, brief: what shows memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from scrubjay.cli import options, render
from scrubjay.cli.opening import opened
from scrubjay.conversation import brief_file
from scrubjay.model.memory import Memory
from scrubjay.model.results import Recalled


def recall(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    *,
    limit: options.Hits = 10,
    kind: options.Kinds = None,
    tag: options.Tags = None,
    since: options.Since = None,
    before: options.Before = None,
    as_of: options.AsOf = None,
    asked_at: options.AskedAt = None,
    session: options.Session = None,
    superseded: options.Superseded = False,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="SCOPE", help="Look there as well; may be repeated."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what every score is the sum of.")
    ] = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Find the memories that answer a question, best first.

    Example: scrubjay recall "what does Alice drink" --since 2w --explain
    """
    with opened(scope) as jay:
        found = jay.recall(
            options.text_of(query),
            limit=limit,
            kinds=kind or (),
            tags=tag or (),
            since=since,
            before=before,
            as_of=as_of,
            asked_at=asked_at,
            session=session,
            superseded=superseded,
            scopes=also or (),
        )
    _show(found, explain=explain, as_json=as_json)


def _show(found: Recalled, *, explain: bool, as_json: bool) -> None:
    told = {"hits": [render.hit_object(hit) for hit in found], "degraded": list(found.degraded)}
    show = render.arithmetic if explain else render.hits
    render.emit(told, lambda: show(found.hits), as_json=as_json)
    if as_json:
        return
    for sentence in found.degraded:
        render.say(f"note: {sentence}")
    if not found.hits:
        render.say("Nothing was found.")


def browse(
    *,
    limit: options.Listed = 50,
    kind: options.Kinds = None,
    tag: options.Tags = None,
    since: options.Since = None,
    before: options.Before = None,
    as_of: options.AsOf = None,
    session: options.Session = None,
    superseded: options.Superseded = False,
    cursor: Annotated[
        int | None, typer.Option(metavar="N", help="Go on where the page before ended.")
    ] = None,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """List memories, newest first.

    Example: scrubjay list --kind preference --limit 20
    """
    with opened(scope) as jay:
        page = jay.browse(
            limit=limit,
            kinds=kind or (),
            tags=tag or (),
            since=since,
            before=before,
            as_of=as_of,
            session=session,
            superseded=superseded,
            cursor=cursor,
        )
    told = {"memories": [render.as_object(memory) for memory in page], "next": page.next}
    render.emit(told, lambda: render.memories(page), as_json=as_json)
    if page.next is not None and not as_json:
        render.say(f"There are more: --cursor {page.next}")


def get(
    id: options.Id,
    *,
    as_of: options.AsOf = None,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one memory with all that is known of it.

    Example: scrubjay get mem-… --json
    """
    with opened(scope) as jay:
        found = jay.get(id, as_of=as_of)
    render.emit(render.as_object(found), lambda: render.memory(found), as_json=as_json)


def history(
    id: options.Id, *, scope: options.ScopeName = None, as_json: options.AsJson = False
) -> None:
    """Show every version of a memory, oldest first.

    Example: scrubjay history mem-…
    """
    with opened(scope) as jay:
        chain = jay.history(id)
    told = {"versions": [render.as_object(memory) for memory in chain]}
    render.emit(told, lambda: render.table(_COLUMNS, _versions(chain)), as_json=as_json)


_COLUMNS = ("id", "when", "memory", "why")


def _versions(chain: Sequence[Memory]) -> Iterator[tuple[str, ...]]:
    for one in chain:
        reason = render.piece(one.provenance.reason or "")
        yield one.id, render.local(one.recorded_at), render.piece(one.content), reason


class BriefFormat(StrEnum):
    """The forms of a brief."""

    MARKDOWN = "markdown"
    CLAUDE_MD = "claude-md"


def brief(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")] = 50,
    max_chars: Annotated[int, typer.Option(min=1, help="How many characters at most.")] = 10_000,
    form: Annotated[
        BriefFormat, typer.Option("--format", help="claude-md: between the marks of --inject.")
    ] = BriefFormat.MARKDOWN,
    inject: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it into this file, in place of the last one."),
    ] = None,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Print what a session should know before its first word, as Markdown.

    Example: scrubjay brief --format claude-md --inject CLAUDE.md
    """
    with opened(scope) as jay:
        found = jay.brief(limit=limit, max_chars=max_chars)
    if inject is not None:
        brief_file.inject(inject, found.markdown)
    told = {
        "markdown": found.markdown,
        "entries": [render.as_object(memory) for memory in found],
        "omitted": found.omitted,
    }
    text = brief_file.block(found.markdown) if form is BriefFormat.CLAUDE_MD else found.markdown
    show = text if inject is None else ""
    render.emit(told, lambda: render.block(show), as_json=as_json)
    if not as_json:
        _note(len(found), found.omitted)


def _note(shown: int, omitted: int) -> None:
    if not shown:
        render.say("There is nothing to say yet.")
    elif omitted:
        render.say(f"{render.plural(omitted, 'memory')} more did not fit.")
