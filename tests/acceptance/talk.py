"""Turns that a model reads, in a scope of their own: what was acknowledged is there, read once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from scrubjay.engine import Kernel
from scrubjay.model.errors import NotFound
from scrubjay.model.jobs import Consolidated, Insight, Restated
from scrubjay.model.memory import Kind
from scrubjay.model.requests import Extract, Get, TurnsRequest
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Extracted, Piece, Record, Turn, derived_id

TALK = Scope.parse("acme/talk")
_PART = "model-0"


class Answering:
    """An Extractor that finds one thing in every turn."""

    identity = "answering"

    def extract(
        self, turn: Turn, noted: Sequence[str], *, deadline: float | None = None
    ) -> Extracted:
        del noted, deadline  # it finds what nobody has noted, and at once
        digest = hashlib.sha256(turn.id.encode()).hexdigest()
        piece = Piece(
            part=_PART, kind=Kind.FACT, content=f"What matters is {digest}.", said_by_user=False
        )
        return Extracted(pieces=(piece,), tokens_in=1, tokens_out=1)

    def consolidate(
        self, episodes: Sequence[str], *, deadline: float | None = None
    ) -> Consolidated:
        del deadline
        digests = [hashlib.sha256(one.encode()).hexdigest() for one in episodes]
        insights = tuple(
            Insight(category="lesson", content=f"The lesson is {digest}.", of=(number,))
            for number, digest in enumerate(digests, 1)
        )
        return Consolidated(insights=insights, tokens_in=1, tokens_out=1)

    def restate(
        self, kind: Kind, sources: Sequence[str], *, deadline: float | None = None
    ) -> Restated:
        del deadline
        return Restated(text=f"{kind}: {' '.join(sources)}", tokens_in=1, tokens_out=1)


class Talk:
    """Records turns and has them read, and keeps count of what was acknowledged outside."""

    def __init__(self, engine: Kernel, folder: Path) -> None:
        self._engine = engine
        self._file = folder / "turns"

    def step(self, number: int) -> None:
        """One turn more, and a model that reads what waits: also what a dead process left."""
        turn = f"turn-{number}"
        digest = hashlib.sha256(turn.encode()).hexdigest()
        words = " ".join(digest[at : at + 6] for at in range(0, 60, 6))
        self._engine.record(TALK, Record(id=turn, user=f"Let us talk about {words}."))
        self._acknowledge(turn)
        self._engine.extract(TALK, Extract(limit=1000))
        assert self._engine.extraction(TALK).waiting == 0
        for one in self._acknowledged():
            self._engine.get(TALK, Get(derived_id(one, _PART)))

    def problems(self) -> Iterator[str]:
        """What is wrong with the scope, as the next process finds it."""
        known = self._acknowledged()
        if not known:
            return
        yield from self._engine.verify(TALK).problems
        there = {turn.id for turn in self._engine.turns(TALK, TurnsRequest(1000))}
        yield from (f"{turn} was acknowledged, and is gone" for turn in known if turn not in there)
        for turn in there:
            try:
                self._engine.get(TALK, Get(derived_id(turn, "episode")))
            except NotFound:
                yield f"{turn} is there without its episode"

    def _acknowledge(self, turn: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{turn}\n")
            file.flush()
            os.fsync(file.fileno())

    def _acknowledged(self) -> list[str]:
        return self._file.read_text().split() if self._file.exists() else []
