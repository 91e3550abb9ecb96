"""What is put before a model: a mix of what matches, what matters, what was last, and when.

The proxy keeps at most eight blocks and 8 KiB of text, and discards an answer over 16 KiB whole;
so what is best comes first, and everything is cut to fit here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from scrubjay.domain import echo
from scrubjay.domain.errors import NotFound
from scrubjay.domain.memory import Memory
from scrubjay.domain.origin import Actor
from scrubjay.domain.requests import Recall
from scrubjay.domain.results import Hit
from scrubjay.domain.turns import Moment, State
from scrubjay.engine import Engine
from scrubjay.guard.clean import one_line
from scrubjay.surfaces.dialects.clawdapus import spans
from scrubjay.surfaces.dialects.clawdapus.entries import Asked

BLOCKS: Final = 8
TEXT_BYTES: Final = 8_192
BODY_BYTES: Final = 16_384
SOURCE: Final = "scrubjay"
SECONDS: Final = 0.12
"""How long either search may take: the proxy waits 300 ms for everything."""
_SALIENT: Final = "salient"
_TIMELINE_BYTES: Final = 1_200
_MOMENTS: Final = 200
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


def answer(engine: Engine, asked: Asked) -> bytes:
    """The answer to a recall; a scope that is not there has nothing to tell."""
    try:
        engine.open(asked.scope, create=False)
    except NotFound:
        return render(())
    return render(Mixer(engine, asked).blocks())


def render(blocks: Iterable[Block]) -> bytes:
    """The body of an answer, within the limits of the proxy."""
    kept: list[dict[str, Any]] = []
    room = TEXT_BYTES
    for block in blocks:
        safe = replace(block, text=echo.defuse(block.text))
        size = len(safe.text.encode())
        if len(kept) < BLOCKS and size <= room and safe.text:
            kept.append(safe.fields())
            room -= size
    while len(body := _encoded(kept)) > BODY_BYTES:
        kept.pop()
    return body


def _encoded(blocks: list[dict[str, Any]]) -> bytes:
    body = {"memories": blocks}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


class Mixer:
    """Chooses the blocks for one question; no turn is told of twice."""

    def __init__(self, engine: Engine, asked: Asked) -> None:
        self._engine = engine
        self._asked = asked
        self._present = {spans.plain(one) for one in asked.present}
        self._timeline = engine.timeline(asked.scope, _MOMENTS, actor=Actor.AGENT)
        kept = [one for one in self._timeline.moments if one.state is State.KEPT]
        before_it = [one for one in kept if self._is_present(one.gist)]
        self._shown = {one.id for one in before_it}
        self._latest = [one for one in kept if one.id not in self._shown][-RECENT.blocks :]

    def blocks(self) -> list[Block]:
        """What is best, first."""
        chosen = [
            *self._found(MATCHED, related=True),
            *self._found(SALIENT, related=False),
            *self._recent(),
        ]
        return [*chosen, *self._when()]

    def _is_present(self, gist: str) -> bool:
        """Whether the conversation itself holds a turn that begins like this."""
        begins = spans.plain(gist)
        return any(one.startswith(begins) for one in self._present)

    def _found(self, share: Share, *, related: bool) -> Iterator[Block]:
        """What a search finds; what matters is told of whether it is related or not."""
        left = share.blocks
        for hit in self._hits(share, related=related):
            if left and not hit.memory.quarantined and self._is_news(hit.memory):
                left -= 1
                is_latest = any(one.id in hit.memory.sources for one in self._latest)
                most = RECENT.bytes if is_latest and related else share.bytes
                yield _block(hit.memory, most, hit.score if related else 0.0)

    def _hits(self, share: Share, *, related: bool) -> list[Hit]:
        query = self._asked.query
        if related and not query:
            return []
        request = Recall(
            query=query or _SALIENT,
            tags=frozenset() if related else frozenset({_SALIENT}),
            limit=share.blocks * 4,
            seconds=SECONDS,
            actor=Actor.AGENT,
        )
        hits = self._engine.recall(self._asked.scope, request).hits
        return [hit for hit in hits if not related or _is_about(hit)]

    def _recent(self) -> Iterator[Block]:
        """The last turns that are not before the model anyway, at more length than others."""
        for moment in reversed(self._latest):
            memory = self._episode(moment)
            if memory is not None and self._is_news(memory):
                yield _block(memory, RECENT.bytes, 0.0, kind="recent_turn")

    def _episode(self, moment: Moment) -> Memory | None:
        if moment.id in self._shown:
            return None
        try:
            return self._engine.get(self._asked.scope, moment.memory, actor=Actor.AGENT)
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
        text = spans.tell(self._timeline, self._shown, _TIMELINE_BYTES)
        if text:
            yield Block(text=text, kind="timeline")


def _is_about(hit: Hit) -> bool:
    return any(hit.why.get(part, 0) > 0 for part in _EVIDENCE)


def _block(memory: Memory, most: int, score: float, kind: str | None = None) -> Block:
    text = one_line(echo.cut(memory.content))
    return Block(
        text=spans.fit(text, most),
        kind=kind or memory.kind.value,
        at=spans.stamp(memory.said_at),
        score=score,
    )
