"""Transcripts of Claude: JSON lines that grow, read as turns, kept sealed, and shown as markdown.

A line is known by what it says, so whoever reads the same transcript later, in part or as a whole,
makes the same turns and entries.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from scrubjay.conversation import messages
from scrubjay.conversation.capture import sound
from scrubjay.conversation.taint import reads_web
from scrubjay.engine import Kernel
from scrubjay.model.conversations import (
    APPEND_LIMIT,
    READ_LIMIT,
    Append,
    NewEntry,
    ReadConversation,
)
from scrubjay.model.errors import NotFound
from scrubjay.model.memory import Json
from scrubjay.model.origin import Origin, lowest
from scrubjay.model.results import Outcome
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record

_SHOWN_CHARS: Final = 2_000
"""Characters of a message in the markdown."""
_SLUG_CHARS: Final = 50
_NOT_A_SLUG: Final = re.compile(r"[^a-z0-9]+")
_UNFINISHED: Final = "tool_use"
"""Why a message ended that the model goes on from, once a tool has answered."""
Line = Mapping[str, Any]


class Exchange(Struct, frozen=True, kw_only=True):
    """A turn of a transcript: what the user said, and all that was answered."""

    id: str
    at: datetime | None
    user: str
    assistant: str
    finished: bool
    """Whether the answer is complete: only then will a later look see the same turn."""


def lines(raw: Iterable[bytes]) -> Iterator[Line]:
    """The lines that are JSON objects; others are skipped."""
    for one in raw:
        parsed = messages.parsed(one)
        if isinstance(parsed, dict):
            yield parsed


def _is_said(line: Line) -> bool:
    """Whether somebody said it: no note of the program, no summary, no side conversation."""
    aside = ("isMeta", "isSidechain", "isCompactSummary")
    return line.get("type") in ("user", "assistant") and not any(line.get(one) for one in aside)


def _message(line: Line) -> Mapping[str, Any]:
    found = line.get("message")
    return found if isinstance(found, dict) else {}


def text_of(line: Line) -> str:
    """What a line says; empty for the result of a tool."""
    return sound(messages.text_of(_message(line).get("content"))).strip()


def _blocks(line: Line) -> Iterator[Mapping[str, Any]]:
    content = _message(line).get("content")
    yield from (
        (one for one in content if isinstance(one, dict)) if isinstance(content, list) else ()
    )


def time_of(line: Line) -> datetime | None:
    """When a line was written; None if it does not say."""
    try:
        found = datetime.fromisoformat(str(line.get("timestamp")))
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _digest(session: str, line: Line) -> str:
    told = json.dumps(line, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(f"{session}\0{told}".encode()).hexdigest()[:32]


def exchanges(session: str, found: Iterable[Line]) -> Iterator[Exchange]:
    """The turns of a transcript: each begins with words of the user."""
    begun: Line | None = None
    answer, finished = list[str](), False
    seen = dict[str, int]()

    def turn(first: Line, *, done: bool) -> Exchange:
        digest = _digest(session, first)
        seen[digest] = number = seen.get(digest, 0) + 1
        name = f"transcript-{digest}" if number == 1 else f"transcript-{digest}-{number}"
        said = "\n\n".join(answer)
        return Exchange(
            id=name, at=time_of(first), user=text_of(first), assistant=said, finished=done
        )

    for line in found:
        if not _is_said(line) or not (text := text_of(line)):
            continue
        if line["type"] == "assistant":
            answer.append(text)
            finished = _message(line).get("stop_reason") != _UNFINISHED
            continue
        if begun is not None:
            yield turn(begun, done=True)
        begun, answer, finished = line, [], False
    if begun is not None:
        yield turn(begun, done=finished)


# -- sealed --------------------------------------------------------------------------------------


def archive(
    engine: Kernel,
    scope: Scope,
    session: str,
    found: Sequence[Line],
    *,
    title: str | None = None,
    origin: Origin = Origin.USER,
) -> int:
    """Keep the lines as a conversation of the session; those that are there already are not added.

    The result of a tool that reads the web has its origin, which taints the session. No line is
    trusted more than `origin`, that of whoever can write the transcript.
    """
    try:
        there = engine.conversation(scope, ReadConversation(session, limit=0)).conversation
    except NotFound:
        there = None
    known, tools = there.entries if there else 0, dict[str, str]()
    origins = [lowest((_origin(line, tools), origin)) for line in found]
    rest = iter(zip(found[known:], origins[known:], strict=True))
    revision = there.revision if there else None
    while some := list(islice(rest, APPEND_LIMIT)):
        entries = tuple(
            NewEntry(body=dict(line), origin=origin, at=time_of(line)) for line, origin in some
        )
        request = Append(session, entries, title=title, expected_revision=revision)
        appended = engine.append(scope, request).conversation
        revision = appended.revision if appended else None
    return max(0, len(found) - known)


def _origin(line: Line, tools: dict[str, str]) -> Origin:
    """The origin of a line; `tools` are the names of the calls made so far, by their ids."""
    for block in _blocks(line):
        if block.get("type") == "tool_use":
            tools[str(block.get("id"))] = str(block.get("name"))
        if block.get("type") == "tool_result":
            web = reads_web(tools.get(str(block.get("tool_use_id")), ""))
            return Origin.WEB if web else Origin.AGENT
    return Origin.USER if line.get("type") == "user" else Origin.AGENT


def record(
    engine: Kernel,
    scope: Scope,
    session: str,
    found: Iterable[Exchange],
    *,
    channel: str | None = None,
    origin: Origin = Origin.USER,
) -> int:
    """Record the finished turns, the oldest first; returns how many are new."""
    requests = (
        Record(
            one.user,
            one.assistant,
            id=one.id,
            at=one.at,
            session=session,
            channel=channel,
            origin=origin,
        )
        for one in found
        if one.finished
    )
    return sum(engine.record(scope, one).outcome is Outcome.STORED for one in requests)


# -- as markdown ---------------------------------------------------------------------------------


def slug(title: str | None, now: datetime) -> str:
    """The name of an archive in a folder, as NanoClaw makes it."""
    made = _NOT_A_SLUG.sub("-", (title or "").lower()).strip("-")[:_SLUG_CHARS]
    return made or f"conversation-{now:%H%M}"


def markdown(
    found: Iterable[Line], *, title: str, now: datetime, assistant: str | None = None
) -> str:
    """What was said in a transcript, as NanoClaw archives it."""
    hour = f"{now:%I}".lstrip("0")
    parts = [
        f"# {title or 'Conversation'}",
        f"Archived: {now:%b} {now.day}, {hour}:{now:%M %p}",
        "---",
    ]
    for line in found:
        if not _is_said(line) or not (text := text_of(line)):
            continue
        name = "User" if line["type"] == "user" else assistant or "Assistant"
        cut = f"{text[:_SHOWN_CHARS]}..." if len(text) > _SHOWN_CHARS else text
        parts.append(f"**{name}**: {cut}")
    return "\n\n".join(parts) + "\n"


def spelled(found: Iterable[Line]) -> bytes:
    """Lines as a transcript has them."""
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in found).encode()


def stored(engine: Kernel, scope: Scope, session: str) -> list[Line]:
    """The lines of an archived transcript, without what was removed from them since."""
    pages, cursor = list[list[Json]](), None
    while True:
        request = ReadConversation(session, limit=READ_LIMIT, cursor=cursor)
        page = engine.conversation(scope, request)
        pages.append([entry.body for entry in page.entries])
        if (cursor := page.next_cursor) is None:
            return [one for page in reversed(pages) for one in page if isinstance(one, dict)]
