"""A small embedding server on this machine: speaks `/v1/embeddings`, and fails as it is told to."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One answer that goes wrong: late, refused, broken off, or not what was asked for."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    delay: float = 0.0
    hang_up: bool = False


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

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # so that closing it waits for the last answer
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server_state: EmbeddingServer

    def do_POST(self) -> None:
        state = self.server_state
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        state.requests.append({"path": self.path, **asked})
        state.keys.append(self.headers["Authorization"])
        failure = state.failures.popleft() if state.failures else Failure()
        if failure.delay:
            state.closing.wait(failure.delay)
        if not failure.hang_up:
            body = state.answer(asked["input"]) if failure.body is None else failure.body
            self._send(failure, body)

    def _send(self, failure: Failure, body: bytes) -> None:
        try:
            self.send_response(failure.status)
            for name, value in failure.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            # The client has given up waiting, as some tests want it to.
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a test prints what it has to say itself."""
