"""The proxy's reading side over a real socket, as it is and as it may go wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from tests.dialects.clawdapus.pod import Json

TOKEN = "memory-history"
MOST = 1_000
Kept = Json | str | bytes


class Historian(ThreadingHTTPServer):
    """Lines after a time, at most so many, in the order they were written."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Reading)
        self.kept: dict[str, list[Kept]] = {}
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        self.elsewhere: str | None = None
        """Where it sends who asks, if anywhere."""
        self.framing = "chunked"
        """How an answer says where it ends: chunked, length, or close."""
        self.cut: int | None = None
        """After how many bytes every answer breaks off."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/history"


class Reading(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Historian

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(where.query).items()}
        self.server.asked.append(self.path)
        self.server.tokens.append(self.headers.get("Authorization"))
        self.close_connection = True
        kept = self.server.kept.get(unquote(where.path.removeprefix("/history/")))
        if self.server.elsewhere:
            self.send_response(307)
            self.send_header("Location", f"{self.server.elsewhere}{self.path}")
            self.end_headers()
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.send_error(401, "forbidden")
        elif kept is None:
            self.send_error(404, "history not configured")
        else:
            self._give(kept, asked)

    def _give(self, kept: list[Kept], asked: dict[str, str]) -> None:
        after = datetime.fromisoformat(asked.get("after", "0001-01-01T00:00:00Z"))
        limit = int(asked.get("limit", 100))
        if not 0 < limit <= MOST:
            self.send_error(400, "limit must be > 0")
            return
        chosen = [one for one in kept if _is_after(one, after)][:limit]
        self._send(b"".join(_raw(one) + b"\n" for one in chosen))

    def _send(self, body: bytes) -> None:
        framing, cut = self.server.framing, self.server.cut
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        if framing == "length":
            self.send_header("Content-Length", str(len(body)))
        elif framing == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
            size = 100_000
            pieces = [body[at : at + size] for at in range(0, len(body), size)]
            body = b"".join(f"{len(one):x}\r\n".encode() + one + b"\r\n" for one in pieces)
            body += b"0\r\n\r\n"
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _is_after(one: Kept, after: datetime) -> bool:
    return not isinstance(one, dict) or datetime.fromisoformat(one["ts"]) > after


def _raw(one: Kept) -> bytes:
    if isinstance(one, bytes):
        return one
    return (one if isinstance(one, str) else json.dumps(one)).encode()


@contextmanager
def serving() -> Iterator[Historian]:
    """A history that is served meanwhile."""
    served = Historian()
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.shutdown()
        served.server_close()
        thread.join()
