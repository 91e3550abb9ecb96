"""A small HTTP server on this machine that fails as it is told to; fakes of others' stand on it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One answer that goes wrong: late, refused, broken off, or not what was asked for."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    delay: float = 0.0
    hang_up: bool = False


@contextmanager
def running(
    handler: type[BaseHTTPRequestHandler],
    closing: threading.Event,
    *,
    tls: ssl.SSLContext | None = None,
) -> Iterator[int]:
    """The port of a running server; `closing` is set at its end, so that no answer is late then."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = False  # so that closing it waits for the last answer
    if tls is not None:
        # Shaken hands with in the thread of each request: one that is refused stops no other.
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers with a body, or as a failure says."""

    def answer(self, failure: Failure, body: bytes, *, status: int | None = None) -> None:
        """Send the body with the headers of the failure."""
        try:
            self.send_response(failure.status if status is None else status)
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


def lying_resolver(patch: pytest.MonkeyPatch) -> None:
    """Let every name of this process lead to an address elsewhere, as one that was rebound does."""
    honest = socket.getaddrinfo

    def resolve(host: Any, *args: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return honest(name if name in {"127.0.0.1", "::1"} else "192.0.2.1", *args, **named)

    patch.setattr(socket, "getaddrinfo", resolve)
