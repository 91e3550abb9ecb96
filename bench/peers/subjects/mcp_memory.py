"""mcp-memory-service on its default storage: a store per conversation, one `store` per turn."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Coroutine, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.peers.material import Question, Turn
from bench.peers.vectors import DIMENSIONS, Vectors


class _Looking:
    """What the service calls to embed texts."""

    embedding_dimension = DIMENSIONS

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def encode(self, texts: Sequence[str], **_: object) -> list[list[float]]:
        return [self._vectors.list(text) for text in texts]


class Semantic:
    """`retrieve`: nearest vectors in sqlite-vec."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        os.environ["MCP_MEMORY_BASE_DIR"] = str(folder)
        from mcp_memory_service.models.memory import Memory  # type: ignore[import-not-found]
        from mcp_memory_service.storage.sqlite_vec import (  # type: ignore[import-not-found]
            SqliteVecMemoryStorage,
        )

        class Storage(SqliteVecMemoryStorage):  # type: ignore[misc]
            async def _initialize_embedding_model(self) -> None:
                self.embedding_model = _Looking(vectors)
                self.embedding_dimension = DIMENSIONS

        self._memory = Memory
        self._loop = asyncio.new_event_loop()
        self._storage = Storage(str(folder / "memory.db"))
        self._run(self._storage.initialize())

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)

    def version(self) -> str:
        names = ("mcp-memory-service", "sqlite-vec")
        return ", ".join(f"{name} {version(name)}" for name in names)

    def write(self, turn: Turn) -> object:
        # Two turns may say the same; by the hash of the text alone the second would be refused.
        unique = hashlib.sha256(f"{turn.owner}\n{turn.id}\n{turn.line}".encode()).hexdigest()
        memory = self._memory(
            content=turn.line, content_hash=unique, tags=[], metadata={"turn": turn.id}
        )
        done, why = self._run(
            self._storage.store(memory, skip_semantic_dedup=True, store=turn.owner)
        )
        if not done:
            raise RuntimeError(why)
        return unique

    def search(self, question: Question, limit: int) -> list[str]:
        found = self._run(
            self._storage.retrieve(question.text, n_results=limit, store=question.owner)
        )
        return [result.memory.metadata["turn"] for result in found]

    def delete(self, turn: Turn, handle: object) -> None:
        done, why = self._run(self._storage.delete(handle, store=turn.owner))
        if not done:
            raise RuntimeError(why)

    def close(self) -> None:
        self._run(self._storage.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


class Hybrid(Semantic):
    """`retrieve_hybrid`: the same, with BM25."""

    def search(self, question: Question, limit: int) -> list[str]:
        found = self._run(
            self._storage.retrieve_hybrid(question.text, n_results=limit, store=question.owner)
        )
        return [result.memory.metadata["turn"] for result in found]
