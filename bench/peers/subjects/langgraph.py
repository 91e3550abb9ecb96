"""LangGraph's stores: a namespace per conversation, one `put` per turn."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.peers.material import Question, Turn
from bench.peers.vectors import DIMENSIONS, Vectors


class _Store:
    """What both stores have in common: everything but how they are opened."""

    _store: Any

    def write(self, turn: Turn) -> object:
        self._store.put(("users", turn.owner), turn.id, {"text": turn.line})
        return turn.id

    def search(self, question: Question, limit: int) -> list[str]:
        found = self._store.search(("users", question.owner), query=question.text, limit=limit)
        return [item.key for item in found]

    def delete(self, turn: Turn, handle: object) -> None:
        self._store.delete(("users", turn.owner), handle)


class InMemory(_Store):
    """`InMemoryStore`: nothing is kept when the process ends."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        from langgraph.store.memory import InMemoryStore

        del folder
        index: Any = {"dims": DIMENSIONS, "embed": _embed_with(vectors), "fields": ["text"]}
        self._store = InMemoryStore(index=index)

    def version(self) -> str:
        return f"langgraph-checkpoint {version('langgraph-checkpoint')}"

    def close(self) -> None:
        """Nothing is open."""


class Sqlite(_Store):
    """`SqliteStore`, with the vectors in sqlite-vec."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        from langgraph.store.sqlite import SqliteStore  # type: ignore[import-untyped]

        # Its documentation says `fields`; what it reads is `text_fields`.
        index = {"dims": DIMENSIONS, "embed": _embed_with(vectors), "text_fields": ["text"]}
        path = str(folder / "store.sqlite")
        self._opened = ExitStack()
        self._store = self._opened.enter_context(SqliteStore.from_conn_string(path, index=index))
        self._store.setup()

    def version(self) -> str:
        return (
            f"langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')}, "
            f"sqlite-vec {version('sqlite-vec')}"
        )

    def close(self) -> None:
        self._opened.close()


def _embed_with(vectors: Vectors) -> Any:
    return lambda texts: [vectors.list(text) for text in texts]
