"""The socket of Carapace's `ipc` client: a ZeroMQ server that answers every message.

A client sends `[empty, payload]` from a DEALER, whose routing id is the identity of its session;
the reply goes back as `[empty, payload]` on the same connection, however many have this identity.
Which identity is which session of which group is decided here, by the operator's table or by one
group for all, never by what a client sends.

ZMTP 3.0, the protocol of ZeroMQ, is spoken here without libzmq: the ROUTER of libzmq knows one
connection for each identity, so calls of one session that overlap would lose their replies.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, Final

from msgspec import Struct

from scrubjay.ports import Clock
from scrubjay.surfaces.carapace.host import Host
from scrubjay.surfaces.carapace.listener import Listener
from scrubjay.surfaces.carapace.manifest import PAYLOAD_BYTES
from scrubjay.surfaces.carapace.wire import (
    DEFAULT_GROUP,
    AgentSession,
    Code,
    ToolError,
    encode,
    scope_of,
)

# -- ZMTP 3.0 -------------------------------------------------------------------------------------


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


# -- the server -----------------------------------------------------------------------------------


SOCKET: Final = "ipc:///run/carapace.sock"
"""Default endpoint of the socket, as in Carapace's client."""
_SPARE: Final = 4
"""Factor of the frame limit up to which a frame is refused by an error; beyond, it is cut off."""
_HANDSHAKE_SECONDS: Final = 10.0
_KEPT: Final = 32
"""Replies kept for an identity, and identities with some."""
_KEPT_SECONDS: Final = 35.0
"""How long a reply is kept: as long as a client waits for it."""
_NAME_CHARS: Final = 128
_HEX: Final = "zmq-"
_log = logging.getLogger(__name__)


class Directory(Struct, frozen=True, kw_only=True):
    """Which session and group an identity stands for."""

    group: str = DEFAULT_GROUP
    """The group of every identity, where there is no table."""
    groups: Mapping[str, str] = {}
    """The table: identity → group. With one, an identity that is not in it is nobody."""

    def __post_init__(self) -> None:
        for group in (self.group, *self.groups.values()):
            scope_of(group)

    def session(self, identity: bytes) -> AgentSession:
        """The session of an identity; ToolError for one that is not to be served."""
        name = session_name(identity)
        if not self.groups:
            return AgentSession(id=name, group=self.group)
        if name not in self.groups:
            raise ToolError(Code.UNAUTHORIZED, "This connection belongs to no session.", stage=1)
        return AgentSession(id=name, group=self.groups[name])

    def served(self) -> frozenset[str]:
        """Every group there may be calls of."""
        return frozenset(self.groups.values()) or frozenset({self.group})


def session_name(identity: bytes) -> str:
    """The name of a session by its identity: as it is where it can be printed, or else in hex."""
    text = identity.decode("ascii", "replace")
    plain = text.isascii() and text.isprintable() and " " not in text
    plain = plain and not text.startswith(_HEX)
    return text if plain and 0 < len(text) <= _NAME_CHARS else _HEX + identity.hex()


class Server(Listener):
    """ZeroMQ server on one address; connections under one identity do not disturb each other."""

    def __init__(
        self, host: Host, address: str, clock: Clock, directory: Directory | None = None
    ) -> None:
        self._host = host
        self._directory = directory or Directory()
        self._mutex = threading.Lock()
        self._newest: dict[bytes, RouterConnection] = {}
        self._kept = defaultdict[bytes, deque[tuple[float, bytes]]](lambda: deque(maxlen=_KEPT))
        super().__init__(address, clock)

    def serve(self, peer: socket.socket) -> None:
        """Answer every message; first, what an earlier connection of this identity missed."""
        with peer.makefile("rb") as stream:
            peer.settimeout(_HANDSHAKE_SECONDS)
            connection = RouterConnection(peer, stream, _SPARE * PAYLOAD_BYTES)
            peer.settimeout(None)
            identity = connection.identity or b"\0" + self._clock.random(4)
            with self._mutex:
                self._newest[identity] = connection
                missed = self._kept.pop(identity, ())
            for until, reply in missed:
                if until > self._clock.monotonic():
                    connection.send([b"", reply])
            try:
                for frames in connection:
                    self._deliver(identity, connection, self._answer(identity, frames))
            finally:
                with self._mutex:
                    if self._newest.get(identity) is connection:
                        del self._newest[identity]

    def _deliver(self, identity: bytes, to: RouterConnection, reply: bytes) -> None:
        """Send a reply; if its connection has ended, to a newer one of its identity."""
        with suppress(OSError):
            to.send([b"", reply])
            return
        with self._mutex:
            if (newer := self._newest.get(identity)) not in (None, to):
                with suppress(OSError):
                    newer.send([b"", reply])
                    return
            self._kept[identity].append((self._clock.monotonic() + _KEPT_SECONDS, reply))
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]

    def _answer(self, identity: bytes, frames: list[bytes]) -> bytes:
        """Answer one message, whatever its frames are."""
        payload, session = frames[-1], AgentSession(id=session_name(identity), group="")
        try:
            session = self._directory.session(identity)
            if len(frames) != 2 or frames[0]:
                told = "Send two frames: an empty one and the message."
                raise ToolError(Code.VALIDATION_FAILED, told, stage=1)
            reply = self._host.answer(payload, session)
        except ToolError as error:
            reply = self._host.pipeline.refuse(payload, session, error)
        except Exception as error:  # seam: one call must not end the others of its connection
            _log.warning("carapace.call_failed", extra={"error": type(error)})
            raise ConnectionAbortedError from error
        return encode(reply).encode()
