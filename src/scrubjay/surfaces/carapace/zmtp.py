"""ZMTP 3.0, the protocol of ZeroMQ: the side of a ROUTER, on one connection, without security.

libzmq is not used here, because its ROUTER knows one connection for each identity: calls of one
session that overlap, as those of Carapace's ipc client may, would lose their replies.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

_GREETING: Final = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_MECHANISM: Final = slice(12, 32)
_READY: Final = b"\x05READY"
_MORE, _LONG, _COMMAND = 1, 2, 4
_FRAMES: Final = 16
"""Frames of a message that are kept; it has two."""


class ProtocolError(OSError):
    """The other side does not speak ZMTP 3, or sends more than it may."""


class RouterConnection:
    """One connection of a DEALER or REQ, after the handshake; messages are lists of frames."""

    def __init__(self, peer: socket.socket, stream: BinaryIO, most: int) -> None:
        self._peer = peer
        self._stream = stream
        self._sending = threading.Lock()
        self._most = most
        peer.sendall(_GREETING)
        told = self._read(len(_GREETING))
        if told[0] != 0xFF or told[10] < 3 or told[_MECHANISM] != _GREETING[_MECHANISM]:
            raise ProtocolError("no greeting of ZMTP 3")
        peer.sendall(_framed(_READY + _property("Socket-Type", b"ROUTER"), _COMMAND))
        flags, body = self._frame(most)
        if not flags & _COMMAND or not body.startswith(_READY):
            raise ProtocolError("no READY")
        self.identity = dict(_properties(body[len(_READY) :])).get("identity", b"")

    def __iter__(self) -> Iterator[list[bytes]]:
        """Messages, until the connection ends."""
        while True:
            frames, room, flags = list[bytes](), self._most, _MORE
            while flags & _MORE:
                try:
                    flags, body = self._frame(room)
                except EOFError:
                    return
                if flags & _COMMAND:
                    flags = _MORE  # of the connection, not of the message
                    continue
                room -= len(body) + 1
                if len(frames) < _FRAMES:
                    frames.append(body)
            yield frames

    def send(self, frames: Sequence[bytes]) -> None:
        """Send a message; may be called from several threads."""
        last = len(frames) - 1
        raw = b"".join(_framed(one, (n < last) * _MORE) for n, one in enumerate(frames))
        with self._sending:
            self._peer.sendall(raw)

    def _frame(self, most: int) -> tuple[int, bytes]:
        flags = self._read(1)[0]
        size = int.from_bytes(self._read(8 if flags & _LONG else 1))
        if size > most:
            raise ProtocolError("a frame that is too long")
        return flags, self._read(size)

    def _read(self, size: int) -> bytes:
        found = self._stream.read(size)
        if len(found) < size:
            raise EOFError("the connection ended")
        return found


def _framed(body: bytes, flags: int) -> bytes:
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | _LONG]) + len(body).to_bytes(8) + body


def _property(name: str, value: bytes) -> bytes:
    return bytes([len(name)]) + name.encode() + len(value).to_bytes(4) + value


def _properties(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Metadata of a READY command; names in lower case."""
    while body:
        name, rest = body[1 : 1 + body[0]], body[1 + body[0] :]
        size = int.from_bytes(rest[:4])
        yield name.decode("latin-1").lower(), rest[4 : 4 + size]
        body = rest[4 + size :]
