"""What is put before a model: a mix of what matches, what matters, what was last, and when.

The proxy keeps at most eight blocks and 8 KiB of text, and discards an answer over 16 KiB whole;
so what is best comes first, and everything is cut to fit here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from scrubjay.engine import Engine
from scrubjay.guard.clean import one_line
from scrubjay.model import echo
from scrubjay.model.errors import NotFound
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.requests import AGENT, Get, Recall, TimelineRequest
from scrubjay.model.results import Hit
from scrubjay.model.turns import Moment, State
from scrubjay.surfaces.clawdapus import spans
from scrubjay.surfaces.clawdapus.entries import Asked

BLOCKS: Final = 8
TEXT_BYTES: Final = 8_192
BODY_BYTES: Final = 16_384
SOURCE: Final = "scrubjay"
_SEARCH: Final = 0.6
"""The share of the time of an answer that the search may take."""
_SALIENT: Final = "salient"
_FEELING: Final = 0.9
"""From this importance on, a turn that stays worth telling is one that moved somebody."""
_TIMELINE_BYTES: Final = 1_200
_MOMENTS: Final = 200
_FOUND: Final = 12
_EVIDENCE: Final = ("coverage", "dated")
"""The parts of a score that say that a memory is about the question."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many blocks of one sort there are, and how long each may be."""

    blocks: int
    bytes: int


MATCHED: Final = Share(3, 1_000)
SALIENT: Final = Share(2, 600)
RECENT: Final = Share(2, 1_300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of an answer."""

    text: str
    kind: str
    at: str | None = None
    score: float = 0.0

    def fields(self) -> dict[str, Any]:
        """The block as the proxy reads it; what is empty is left out."""
        found: dict[str, Any] = {"text": self.text, "kind": self.kind, "source": SOURCE}
        if self.score:
            found["score"] = round(self.score, 4)
        if self.at:
            found["ts"] = self.at
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The body of an answer, and what there is to say of it in numbers."""

    body: bytes
    blocks: int
    bytes: int
    removed: int
    """How many blocks did not fit."""


def answer(engine: Engine, asked: Asked, seconds: float) -> Answer:
    """The answer to a recall, in about so many seconds, with what is found by then."""
    return render(Mixer(engine, asked, seconds).blocks())


def render(blocks: Iterable[Block]) -> Answer:
    """The body of an answer, within the limits of the proxy."""
    kept: list[Block] = []
    room, seen = TEXT_BYTES, 0
    for block in blocks:
        seen += 1
        safe = replace(block, text=echo.defuse(block.text))
        size = len(safe.text.encode())
        if len(kept) < BLOCKS and size <= room and safe.text:
            kept.append(safe)
            room -= size
    while len(body := _encoded(kept)) > BODY_BYTES:
        kept.pop()
    size = sum(len(block.text.encode()) for block in kept)
    return Answer(body=body, blocks=len(kept), bytes=size, removed=seen - len(kept))


def _encoded(blocks: list[Block]) -> bytes:
    body = {"memories": [block.fields() for block in blocks]}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


class Mixer:
    """Chooses the blocks for one question; no turn is told of twice."""

    def __init__(self, engine: Engine, asked: Asked, seconds: float) -> None:
        self._engine = engine
        self._asked = asked
        self._seconds = seconds * _SEARCH
        self._present = {spans.plain(one) for one in asked.present}
        timeline = engine.timeline(asked.scope, TimelineRequest(_MOMENTS), AGENT)
        self._episodes = spans.Episodes(timeline)
        kept = [one for one in timeline.moments if one.state is State.KEPT]
        before_it = [one for one in kept if self._present and self._is_present(one.gist)]
        self._shown = {one.id for one in before_it}
        self._latest = [one for one in kept if one.id not in self._shown][-RECENT.blocks :]

    def blocks(self) -> list[Block]:
        """What is best, first."""
        hits = [hit for hit in self._hits() if not hit.memory.quarantined]
        about = [hit for hit in hits if self._asked.query and _is_about(hit)]
        weighty = [hit for hit in hits if _SALIENT in hit.memory.tags]
        chosen = [*self._matched(about), *self._standing(weighty), *self._recent(), *self._when()]
        return [*chosen, *self._noise()] if len(chosen) < BLOCKS else chosen

    def _is_present(self, gist: str) -> bool:
        """Whether the conversation itself holds a turn that begins like this."""
        begins = spans.plain(gist)
        return any(one.startswith(begins) for one in self._present)

    def _hits(self) -> tuple[Hit, ...]:
        """What one search finds: what is about the question, and what matters whatever it is.

        Nothing of it leaves the machine, and no embedder is asked that could take long.
        """
        query = self._asked.query
        salient = frozenset({_SALIENT})
        request = Recall(
            query=query or _SALIENT,
            tags=frozenset() if query else salient,
            limit=_FOUND,
            seconds=self._seconds,
        )
        also = salient if query else frozenset()
        return self._engine.recall(self._asked.scope, request, AGENT, local=True, also=also).hits

    def _matched(self, hits: Iterable[Hit]) -> Iterator[Block]:
        left = MATCHED.blocks
        for hit in hits:
            if left and self._is_news(hit.memory):
                left -= 1
                is_latest = any(one.id in hit.memory.sources for one in self._latest)
                most = RECENT.bytes if is_latest else MATCHED.bytes
                around = self._episodes.around(hit.memory.sources)
                yield self._block(hit.memory, most, score=hit.score, around=around)

    def _standing(self, hits: Iterable[Hit]) -> Iterator[Block]:
        left = SALIENT.blocks
        for hit in hits:
            if left and self._is_news(hit.memory):
                left -= 1
                yield self._block(hit.memory, SALIENT.bytes)

    def _recent(self) -> Iterator[Block]:
        """The last turns that are not before the model anyway, at more length than others."""
        for moment in reversed(self._latest):
            memory = self._episode(moment)
            if memory is not None and self._is_news(memory):
                yield self._block(memory, RECENT.bytes, kind="recent_turn")

    def _episode(self, moment: Moment) -> Memory | None:
        if moment.id in self._shown:
            return None
        try:
            return self._engine.get(self._asked.scope, Get(moment.memory), AGENT)
        except NotFound:  # forgotten by itself, or since we looked
            return None

    def _is_news(self, memory: Memory) -> bool:
        """Whether neither a block nor the conversation itself has told of it; then one will."""
        ids = set(memory.sources) or {memory.id}
        said = spans.plain(memory.content.partition("\n→ ")[0])
        if not ids.isdisjoint(self._shown) or said in self._present:
            return False
        self._shown |= ids
        return True

    def _when(self) -> Iterator[Block]:
        text = self._episodes.tell(self._shown, _TIMELINE_BYTES)
        if text:
            yield Block(text=text, kind="timeline")

    def _noise(self) -> Iterator[Block]:
        if text := self._episodes.noise():
            yield Block(text=text, kind="noise_counter")

    def _block(
        self,
        memory: Memory,
        most: int,
        *,
        score: float = 0.0,
        kind: str | None = None,
        around: str = "",
    ) -> Block:
        text = one_line(echo.cut(memory.content))
        return Block(
            text=spans.fit(f"{text} {around}" if around else text, most),
            kind=kind or self._kind(memory),
            at=spans.stamp(memory.said_at),
            score=score,
        )

    def _kind(self, memory: Memory) -> str:
        """The kind in the pod's words; what it has no word for keeps ours."""
        if memory.kind is not Kind.EPISODE:
            return memory.kind.value
        if _SALIENT in memory.tags:
            return "affect_marker" if memory.importance >= _FEELING else "decision"
        return "recent_turn" if self._episodes.is_open(memory.sources) else "episode_summary"


def _is_about(hit: Hit) -> bool:
    return any(hit.why.get(part, 0) > 0 for part in _EVIDENCE)
