"""A small embedding server on this machine: speaks `/v1/embeddings`, and fails as it is told to."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support import loopback
from tests.support.loopback import Failure


@dataclass(slots=True, kw_only=True)
class EmbeddingServer:
    """What the server was asked, and which failures come before its next good answer."""

    dimensions: int = 16
    port: int = 0
    failures: deque[Failure] = field(default_factory=deque)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/v1"

    def answer(self, texts: Sequence[str]) -> bytes:
        """Vectors that are the same for the same text, in no particular order."""
        rows = [
            {"object": "embedding", "index": number, "embedding": self.vector(text)}
            for number, text in enumerate(texts)
        ]
        return json.dumps({"object": "list", "data": rows[::-1]}).encode()

    def vector(self, text: str) -> list[float]:
        """The vector of one text, not of length 1."""
        drawn = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(self.dimensions)
        return [float(byte - 127) for byte in drawn]


@contextmanager
def serve_embeddings(*, dimensions: int = 16) -> Iterator[EmbeddingServer]:
    """A running server; it is gone when the block ends."""
    state = EmbeddingServer(dimensions=dimensions)

    class Handler(_Handler):
        server_state = state

    with loopback.running(Handler, state.closing) as state.port:
        yield state


class _Handler(loopback.Handler):
    server_state: EmbeddingServer

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        state = self.server_state
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        state.requests.append({"path": self.path, **asked})
        state.keys.append(self.headers["Authorization"])
        failure = state.failures.popleft() if state.failures else Failure()
        if failure.delay:
            state.closing.wait(failure.delay)
        if not failure.hang_up:
            body = state.answer(asked["input"]) if failure.body is None else failure.body
            self.answer(failure, body)
