"""MemPalace: a wing per conversation, a drawer per turn, found by its hybrid search."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers.material import Question, Turn
from bench.peers.vectors import Vectors


class Palace:
    """`add_drawer` and `search_memories` on its default backend."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        os.environ["ANONYMIZED_TELEMETRY"] = "False"
        from mempalace import embedding, miner, palace  # type: ignore[import-not-found]
        from mempalace.searcher import search_memories  # type: ignore[import-not-found]

        embedding._build_ef_class = lambda: _looking_with(vectors)
        self._miner, self._search = miner, search_memories
        self._ids = miner.make_drawer_id_from_chunk
        self._folder = str(folder / "palace")
        self._drawers: Any = palace.get_collection(self._folder, create=True)

    def version(self) -> str:
        return f"mempalace {version('mempalace')}, chromadb {version('chromadb')}"

    def write(self, turn: Turn) -> object:
        room = turn.session or "general"
        self._miner.add_drawer(self._drawers, turn.owner, room, turn.line, turn.id, 0, "bench")
        return self._ids(turn.owner, room, turn.id, 0)

    def search(self, question: Question, limit: int) -> list[str]:
        found = self._search(question.text, self._folder, wing=question.owner, n_results=limit)
        return [Path(hit["source_file"]).name for hit in found["results"]]

    def delete(self, turn: Turn, handle: object) -> None:
        del turn
        self._drawers.delete(ids=[handle])

    def close(self) -> None:
        """It has no call to close a palace; the end of the process does."""


def _looking_with(vectors: Vectors) -> type:
    """A class that stands where MemPalace builds its embedding function."""
    from chromadb.utils.embedding_functions import (  # type: ignore[import-not-found]
        ONNXMiniLM_L6_V2,
    )

    class Looking(ONNXMiniLM_L6_V2):  # type: ignore[misc]
        def __init__(self, preferred_providers: object = None, **_: object) -> None:
            del preferred_providers

        @staticmethod
        def name() -> str:
            return "default"

        def __call__(self, input: list[str]) -> Any:
            return [np.asarray(vectors.row(text)) for text in input]

    return Looking
