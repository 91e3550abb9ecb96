"""scrubjay: a scope per conversation, one `retain` per turn, through the public handle."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import scrubjay
from bench.peers.material import Question, Turn
from bench.peers.vectors import DIMENSIONS, WEIGHTS_SHA256, Vectors
from scrubjay import bootstrap, settings
from scrubjay.handle import Jay
from scrubjay.model.memory import Kind
from scrubjay.model.scope import Scope
from scrubjay.ports import Embedder, Floats


class Default:
    """As installed, with one engine for all scopes, as a peer has one store for all users."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        self._engine = bootstrap.build(
            settings.at_home(folder / "jay"), embedder=self._embedder(vectors)
        )
        self._jays: dict[str, Jay] = {}

    def _embedder(self, vectors: Vectors) -> Embedder | None:
        del vectors
        return None

    def version(self) -> str:
        return f"scrubjay {scrubjay.__version__}"

    def write(self, turn: Turn) -> object:
        retained = self._jay(turn.owner).retain(
            turn.text,
            kind=Kind(turn.kind),
            session=turn.session,
            speaker=turn.speaker,
            position=turn.position,
            message_id=turn.id,
            said_at=_time(turn.time),
        )
        return retained.id

    def search(self, question: Question, limit: int) -> list[str]:
        recalled = self._jay(question.owner).recall(
            question.text, limit=limit, asked_at=_time(question.asked_at)
        )
        if recalled.degraded:
            raise RuntimeError(f"This recall was less than it should be: {recalled.degraded}")
        return [str(hit.memory.provenance.message_id) for hit in recalled.hits]

    def delete(self, turn: Turn, handle: object) -> None:
        self._jay(turn.owner).forget([str(handle)])

    def close(self) -> None:
        self._engine.close()

    def _jay(self, owner: str) -> Jay:
        if owner not in self._jays:
            scope = Scope.parse(f"bench/{len(self._jays)}")
            self._engine.open(scope)
            self._jays[owner] = Jay(self._engine, scope)
        return self._jays[owner]


class WithMiniLM(Default):
    """With the vectors the peers have, instead of those of the static table."""

    def _embedder(self, vectors: Vectors) -> Embedder | None:
        return _Looking(vectors)


class WithEncoder(Default):
    """With the embedder of the extra `encoder`."""

    def _embedder(self, vectors: Vectors) -> Embedder | None:
        del vectors
        chosen = settings.read({"SCRUBJAY_EMBEDDER": "encoder", "HOME": "."})
        return bootstrap.make_embedder(chosen, bootstrap.clock())


class BareLines(WithMiniLM):
    """Given no more than the peers are: a line per turn, and the id to know it by."""

    def write(self, turn: Turn) -> object:
        return self._jay(turn.owner).retain(turn.line, message_id=turn.id).id


class _Looking:
    """An Embedder that looks its vectors up."""

    identity = f"minilm:{DIMENSIONS}:{WEIGHTS_SHA256[:8]}"
    dimensions = DIMENSIONS
    costly = True
    languages = None

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        del deadline
        return np.array([self._vectors.row(text) for text in texts], np.float32)


def _time(text: str | None) -> datetime | None:
    """A time of the set; those without a zone count as UTC."""
    if text is None:
        return None
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
