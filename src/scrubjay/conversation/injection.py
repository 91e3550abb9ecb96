"""Injection: memories for a prompt, as blocks of one line each, within a budget.

The mix: memories that match the question, what the user wants at all times, decisions and strong
feelings, the last turns, and a timeline of the rest. The best come first, so that a tighter limit
cuts off the least. A turn that is told hides the statements made in it; a statement hides itself.
A brief can also stand in a file such as CLAUDE.md, between two marks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Final

from scrubjay import files
from scrubjay.engine import Kernel
from scrubjay.engine.search.verbs import InlineRecall
from scrubjay.model import echo
from scrubjay.model.clean import one_line
from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.model.memory import ANSWERED, Kind, Memory
from scrubjay.model.origin import Origin, excess
from scrubjay.model.pages import Paged
from scrubjay.model.requests import AGENT, Get, Recall
from scrubjay.model.results import Hit
from scrubjay.model.scope import Scope
from scrubjay.model.text import zone
from scrubjay.model.turns import EPISODE_TURNS, Moment, State, Timeline

_SEARCH: Final = 0.6
"""Share of the deadline for the search."""
_SALIENT: Final = "salient"
_DECISION: Final = "category:decision"
_LASTING: Final = (Kind.INSTRUCTION, Kind.PREFERENCE)
_ENDS: Final = ".!?…\u3002\uff01\uff1f"
_FEELING: Final = 0.9
"""Importance from which a salient turn counts as a strong feeling."""
_TIMELINE_BYTES: Final = 1_200
_MOMENTS: Final = 200
_FOUND: Final = 12
_GIST: Final = 60
_NOISE: Final = 10
"""Number of routine turns from which they are reported."""
_COMPARED: Final = 4_000


@dataclass(frozen=True, slots=True)
class Share:
    """Number and maximum length of the blocks of one sort."""

    blocks: int
    bytes: int


MATCHED: Final = Share(3, 1_000)
STANDING: Final = Share(1, 1_200)
SALIENT: Final = Share(2, 600)
RECENT: Final = Share(2, 1_300)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """The question for a model, and the conversation it has already."""

    scope: Scope
    query: str
    """The last user message; empty if there is none."""
    present: tuple[str, ...] = ()
    """Earlier user messages of the conversation, which the model has already."""
    timezone: str | None = None
    """IANA name of the time zone that times are told in; None for UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One line of injected memory.

    Its kind is that of the memory, or for a turn: `decision`, `feeling`, `recent`, `episode`; or
    `standing` for instructions and preferences together, `timeline` and `routine` for what is told
    of many turns.
    """

    text: str
    kind: str
    at: datetime | None = None
    score: float = 0.0
    origin: Origin | None = None
    """The origin of the memory it tells; None where it tells of many turns."""
    trusted: bool = True


def fitted(blocks: Iterable[Block], *, most: int, most_bytes: int) -> list[Block]:
    """The first blocks within a budget; one that is too long is skipped, a later one still tried.

    No block can end the fence it is put into.
    """
    kept: list[Block] = []
    for block in blocks:
        safe = replace(block, text=echo.defuse(block.text))
        size = len(safe.text.encode())
        if len(kept) < most and size <= most_bytes and safe.text:
            kept.append(safe)
            most_bytes -= size
    return kept


class Mixer:
    """Chooses the blocks for one question, without duplicates."""

    def __init__(
        self, engine: Kernel, context: PromptContext, seconds: float, short: InlineRecall | None
    ) -> None:
        self._engine = engine
        self._recall = engine.recall if short is None else short.recall
        self._context = context
        self._seconds = seconds * _SEARCH
        self._present = {_plain(one) for one in context.present}
        self._zone = zone(context.timezone)
        timeline = engine.timeline(context.scope, Paged(_MOMENTS), AGENT)
        self._episodes = Episodes(timeline, self._zone)
        kept = [one for one in timeline.moments if one.state is State.KEPT]
        begins = [(one.id, _plain(one.gist)) for one in kept] if self._present else []
        self._shown = {
            id for id, gist in begins if any(one.startswith(gist) for one in self._present)
        }
        """Turns in the conversation or in a block already, and memories in a block."""
        self._latest = [one for one in kept if one.id not in self._shown][-RECENT.blocks :]

    def blocks(self, most: int) -> list[Block]:
        """The blocks, best first; the number of routine turns, if there is room below `most`."""
        # Rather what was said than what was quoted.
        hits = sorted(self._search(), key=lambda hit: not hit.memory.trusted)
        # "What did I do yesterday?" shares no word with the day it asks about.
        about = [hit for hit in hits if hit.likely]
        chosen: list[Block] = []
        for hit in self._news(about if self._context.query else [], MATCHED.blocks):
            sources = hit.memory.sources
            is_latest = any(one.id in sources for one in self._latest)
            size = RECENT.bytes if is_latest else MATCHED.bytes
            around = self._episodes.around(sources)
            chosen.append(self._block(hit.memory, size, score=hit.score, around=around))
        matters = [one for one in hits if _SALIENT in one.memory.tags]
        lasting = [one for one in matters if one.memory.trusted and one.memory.kind in _LASTING]
        chosen += self._standing(self._news(lasting, len(lasting)))
        free = most - len(chosen) - len(self._latest) - 1
        for hit in self._news(matters, min(free, SALIENT.blocks)):
            chosen.append(self._block(hit.memory, SALIENT.bytes))
        for moment in [one for one in reversed(self._latest) if one.id not in self._shown]:
            with suppress(NotFound):  # forgotten by itself, or since we looked
                memory = self._engine.get(self._context.scope, Get(moment.memory), AGENT)
                if self._is_news(memory):
                    chosen.append(replace(self._block(memory, RECENT.bytes), kind="recent"))
        # Their share of what is injected: no request lifts it.
        if any(hit.memory.trusted for hit in about) or any(block.trusted for block in chosen):
            while (place := excess([(len(one.text), one.trusted) for one in chosen])) is not None:
                del chosen[place]
        if text := self._episodes.tell(self._shown, _TIMELINE_BYTES):
            chosen.append(Block(text=text, kind="timeline"))
        if len(chosen) < most and (text := self._episodes.noise()):
            chosen.append(Block(text=text, kind="routine"))
        return chosen

    def _search(self) -> tuple[Hit, ...]:
        """One search: hits about the question, and hits that matter for any question.

        It is local: no remote embedder is used.
        """
        query = self._context.query
        salient = frozenset({_SALIENT})
        request = Recall(
            query=query or _SALIENT,
            tags=frozenset() if query else salient,
            limit=_FOUND,
            seconds=self._seconds,
            timezone=self._context.timezone,
        )
        also = salient if query else frozenset()
        scope = self._context.scope
        return self._recall(scope, request, AGENT, local=True, also=also).hits

    def _standing(self, hits: Sequence[Hit]) -> list[Block]:
        """What the user wants at all times, as one block: it needs one label instead of many."""
        blocks = [self._block(hit.memory, SALIENT.bytes) for hit in hits]
        told = fitted(blocks, most=len(blocks), most_bytes=STANDING.bytes)
        if len(told) < 2:
            return told
        kinds, origins = {one.kind for one in told}, {one.origin for one in told}
        return [
            Block(
                text=" ".join(_ended(one.text) for one in told),
                kind=kinds.pop() if len(kinds) == 1 else "standing",
                at=max(one.at for one in told if one.at),
                origin=origins.pop() if len(origins) == 1 else None,
            )
        ]

    def _news(self, hits: Sequence[Hit], most: int) -> list[Hit]:
        """The first hits that are not shown yet."""
        found: list[Hit] = []
        for hit in hits:
            if len(found) < most and self._is_news(hit.memory):
                found.append(hit)
        return found

    def _is_news(self, memory: Memory) -> bool:
        """Whether it is in no block and not in the conversation; marks it as shown."""
        said = _plain(memory.content.partition(ANSWERED)[0])
        if not self._shown.isdisjoint([memory.id, *memory.sources]) or said in self._present:
            return False
        self._shown.add(memory.id)
        if memory.kind is Kind.EPISODE:  # it has all that was stated in its turns
            self._shown.update(memory.sources)
        return True

    def _block(self, memory: Memory, most: int, *, score: float = 0.0, around: str = "") -> Block:
        kind = memory.kind.value
        if memory.kind is Kind.EPISODE and _SALIENT in memory.tags:
            kind = "feeling" if memory.importance >= _FEELING else "decision"
        elif _DECISION in memory.tags:
            kind = "decision"
        elif memory.kind is Kind.EPISODE and self._episodes.is_open(memory.sources):
            kind = "recent"
        text = one_line(echo.cut(memory.content))
        text = f"{text} {around}" if around else text
        return Block(
            text=_fit(text, most),
            kind=kind,
            at=memory.said_at.astimezone(self._zone),
            score=score,
            origin=memory.origin,
            trusted=memory.trusted,
        )


class Episodes:
    """The latest episodes of a conversation; the first may lack its beginning.

    All but the last are closed, by a pause or by their number of turns; the text about a closed one
    no longer changes.
    """

    def __init__(self, timeline: Timeline, told_in: tzinfo) -> None:
        self._timeline = timeline
        self._zone = told_in
        groups = timeline.episodes()
        self._cut = groups.pop(0) if timeline.begun and groups else []
        self._groups = groups
        self._of = {one.id: group for group in groups for one in group}
        last = (groups or [self._cut])[-1]
        begun = timeline.begun if last and last[0] is timeline.moments[0] else 0
        self._open = [] if begun + len(last) == EPISODE_TURNS else last
        self._told: set[str] = set()

    def is_open(self, turns: Collection[str]) -> bool:
        """Whether one of the turns is in the open episode."""
        return not {one.id for one in self._open}.isdisjoint(turns)

    def around(self, turns: Collection[str]) -> str:
        """Other topics of a closed episode of one of the turns; once per episode."""
        group = next((self._of[one] for one in turns if one in self._of), [])
        others = [one for one in group if one.state is State.KEPT and one.id not in turns]
        if not others or group is self._open or group[0].id in self._told:
            return ""
        self._told.add(group[0].id)
        gists = "; ".join(one_line(one.gist, most=_GIST) for one in others)
        return f"(one of {_number(group)}, {self._time(group)}; also: {gists})"

    def tell(self, shown: Collection[str], most: int) -> str:
        """Timeline of the episodes that are not fully shown, oldest first; empty if there is none.

        If they do not all fit, the oldest ones are only counted.
        """
        told, lines = [], []
        for group in self._groups:
            kept = [one for one in group if one.state is State.KEPT]
            if group[0].id in self._told or all(one.id in shown for one in kept):
                continue
            routine = len(group) - len(kept)
            number = _number(group) + (f", {routine} of them routine" if routine else "")
            told.append(group)
            lines.append(f"{self._time(group)} ({number}): {one_line(kept[0].gist, most=_GIST)}")
        counted, since = self._timeline.earlier + len(self._cut), self._timeline.since
        if not lines and not counted:
            return ""
        text = ""
        for cut in range(len(lines) + 1):
            day = since.astimezone(self._zone).date() if since else None
            counts = [f"{counted:,} turns since {day}"] if day and counted else []
            text = "Earlier: " + "; ".join([*counts, *lines[cut:]])
            if len(text.encode()) <= most:
                break
            counted += len(told[cut]) if cut < len(told) else 0
        return _fit(text, most)

    def noise(self) -> str:
        """Number of routine turns among the latest, if they are many."""
        moments = self._timeline.moments
        routine = [one for one in moments if one.state in (State.REPEATED, State.TRIVIAL)]
        if len(routine) < _NOISE:
            return ""
        return (
            f"{len(routine)} of the last {len(moments)} turns were routine or said nothing new, "
            f"the last of them at {self._time(routine[-1:])}."
        )

    def _time(self, group: list[Moment]) -> str:
        """When it was, in the caller's zone; "UTC" says so where none was named."""
        first, last = (one.at.astimezone(self._zone) for one in (group[0], group[-1]))
        until = f"\u2013{last:%H:%M}" if f"{first:%H:%M}" != f"{last:%H:%M}" else ""
        return f"{first:%Y-%m-%d %H:%M}{until}" + " UTC" * (self._zone is UTC)


def _number(group: list[Moment]) -> str:
    return f"{len(group)} turn{'s' * (len(group) > 1)}"


def _ended(sentence: str) -> str:
    """The sentence with a full stop, if it has no end of its own."""
    return sentence if sentence[-1:] in _ENDS else f"{sentence}."


def _fit(text: str, most: int) -> str:
    """The text cut to a number of bytes, with an ellipsis."""
    raw = text.encode()
    if len(raw) <= most:
        return text
    return raw[: most - 4].decode("utf-8", "ignore").rstrip() + " …"


def _plain(text: str) -> str:
    """Normalized beginning of a text, for comparison."""
    return " ".join(text[:_COMPARED].split()).lower()[:500]


# -- the brief in a file --------------------------------------------------------------------------


BRIEF_BEGIN: Final = "<!-- scrubjay brief: begin -->"
BRIEF_END: Final = "<!-- scrubjay brief: end -->"
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


def marked_brief(markdown: str) -> str:
    """The brief between its marks."""
    return f"{BRIEF_BEGIN}\n{markdown}{BRIEF_END}\n"


def write_brief(path: Path, markdown: str) -> None:
    """Put the brief into a file, in place of the one before; all else in it stays as it is.

    The marks count only as whole lines. A line of a brief begins with a list's mark or a heading's,
    so that no memory can pass for one.
    """
    target = path.resolve()  # a link stays a link
    try:
        before = files.read(target).decode()
    except NotFound:
        before = ""
    except UnicodeDecodeError as error:
        raise InvalidRequest("The file is not UTF-8 text.", hint="Nothing was changed.") from error
    lines = _LINE.findall(before)
    begins = [at for at, line in enumerate(lines) if line.strip() == BRIEF_BEGIN]
    ends = [at for at, line in enumerate(lines) if line.strip() == BRIEF_END]
    if not begins and not ends:
        gap = "" if not before or before.endswith("\n\n") else "\n\n"
        gap = "\n" if gap and before.endswith("\n") else gap
        text = f"{before}{gap}{marked_brief(markdown)}"
    elif len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        raise InvalidRequest(
            "The marks of the brief in this file do not make a pair.",
            hint="Leave one begin and one end, or take both out. Nothing was changed.",
        )
    else:
        text = "".join([*lines[: begins[0]], marked_brief(markdown), *lines[ends[0] + 1 :]])
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    files.write(target, text.encode(), mode=mode)
