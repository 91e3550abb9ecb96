"""mem0 without its language model (`infer=False`): a user per conversation, one `add` per turn."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.peers.material import Question, Turn
from bench.peers.vectors import DIMENSIONS, Vectors


class _Looking:
    """What mem0 calls to embed a text."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        del memory_action
        return self._vectors.list(text)


class _Memory:
    """Either vector store; the rest is mem0's default."""

    _provider: str
    _packages: tuple[str, ...]

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        # No telemetry; and its clients for a model, which are never called, want a key.
        os.environ.update(MEM0_TELEMETRY="False", OPENAI_API_KEY="unused", MEM0_DIR=str(folder))
        from mem0 import Memory  # type: ignore[import-not-found]

        store = {
            "path": str(folder / "vectors"),
            "embedding_model_dims": DIMENSIONS,
            "collection_name": "turns",
            **self._options(),
        }
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": self._provider, "config": store},
                "embedder": {"provider": "openai", "config": {"embedding_dims": DIMENSIONS}},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _Looking(vectors)

    def _options(self) -> dict[str, Any]:
        return {}

    def version(self) -> str:
        return ", ".join(f"{name} {version(name)}" for name in ("mem0ai", *self._packages))

    def write(self, turn: Turn) -> object:
        message = {"role": "user", "content": turn.line}
        added = self._memory.add(
            [message], user_id=turn.owner, metadata={"turn": turn.id}, infer=False
        )
        return added["results"][0]["id"]

    def search(self, question: Question, limit: int) -> list[str]:
        found = self._memory.search(
            question.text, filters={"user_id": question.owner}, top_k=limit, threshold=0.0
        )
        return [item["metadata"]["turn"] for item in found["results"]]

    def delete(self, turn: Turn, handle: object) -> None:
        del turn
        self._memory.delete(handle)

    def close(self) -> None:
        self._memory.close()
        client = getattr(self._memory.vector_store, "client", None)
        if client is not None:
            client.close()


class Qdrant(_Memory):
    """Qdrant in the process: mem0's default store, told to keep what it has on disk."""

    _provider = "qdrant"
    _packages = ("qdrant-client",)

    def _options(self) -> dict[str, Any]:
        return {"on_disk": True}


class Faiss(_Memory):
    """FAISS in a file."""

    _provider = "faiss"
    _packages = ("faiss-cpu",)
