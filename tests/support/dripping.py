"""A server on this machine that never finishes: it drips, or pours without end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

_HEAD: Final = b"HTTP/1.1 200 OK\r\n"
_CHUNKED: Final = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
DRIPS: Final[Mapping[str, tuple[bytes, bytes]]] = {
    "the status line": (b"", b"H"),
    "a header": (_HEAD, b"x"),
    "headers": (_HEAD, b"X: y\r\n"),
    "answers that are to be continued": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "the body": (_HEAD + b"Content-Length: 100000\r\n\r\n", b" "),
    "the size of a chunk": (_CHUNKED, b"1"),
    "trailers": (_CHUNKED + b"1\r\n \r\n0\r\n", b"a: b\r\n"),
}
"""What is sent at once, and what is sent again and again, by what is never finished."""
FLOOD: Final = _CHUNKED, b"10000\r\n" + b" " * 0x10000 + b"\r\n"
"""A body that has no end."""


@contextmanager
def dripping(first: bytes, then: bytes, *, pause: float = 0.02) -> Iterator[tuple[int, list[int]]]:
    """The port of a server, and how many bytes it could send on each connection."""
    over, sent = threading.Event(), list[int]()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.02)

        def answer(connection: socket.socket) -> None:
            place, total = len(sent), 0
            sent.append(0)
            with connection, suppress(OSError):
                connection.settimeout(5)
                connection.recv(65_536)
                connection.sendall(first)
                while not over.wait(pause):
                    connection.sendall(then)
                    total += len(then)
                    sent[place] = total

        def accept() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    answer(server.accept()[0])

        threads = [threading.Thread(target=accept) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            yield server.getsockname()[1], sent
        finally:
            over.set()
            for thread in threads:
                thread.join()
