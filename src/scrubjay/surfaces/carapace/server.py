"""The two sockets of Carapace: ZeroMQ for its `ipc` client, lines of JSON for `handler.js`.

The `ipc` client gets an answer to every message.

A client sends `[empty, payload]` from a DEALER, whose routing id is the identity of its session;
the reply goes back as `[empty, payload]` on the same connection, however many have this identity.
Which identity is which session of which group is decided here, by the operator's table or by one
group for all, never by what a client sends.

ZMTP 3.0, the protocol of ZeroMQ, is spoken here without libzmq: the ROUTER of libzmq knows one
connection for each identity, so calls of one session that overlap would lose their replies.

The socket of `handler.js`, the plugin inside of Carapace's core, speaks lines of JSON. A request is
`{"id", "verb": "invoke", "tool", "arguments", "session", "group"}`, its answer `{"id", "reply"}`
with what the plugin replied. The core has checked the call by then and names session and group
itself; so only its own user may connect, which the kernel says of every peer.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
import struct
import threading
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from scrubjay.model.errors import Conflict, InvalidRequest
from scrubjay.model.memory import Json
from scrubjay.ports import Clock
from scrubjay.surfaces.carapace.host import Host
from scrubjay.surfaces.carapace.manifest import BRIEF_HOOK, PAYLOAD_BYTES
from scrubjay.surfaces.carapace.wire import (
    DEFAULT_GROUP,
    AgentSession,
    Code,
    ToolError,
    encode,
    scope_of,
)

# -- the listener ---------------------------------------------------------------------------------


_POLL_SECONDS: Final = 0.2
_BACKLOG: Final = 128
_CONNECTIONS: Final = 512
"""Connections served at once; more are closed."""
_log = logging.getLogger(__name__)


class Listener(ABC):
    """Serves one address, `SCHEME://PATH`: a Unix socket of its owner.

    None on a network: ZMTP without security asks nobody who they are.
    """

    def __init__(self, address: str, clock: Clock, *, idle_seconds: float | None = None) -> None:
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._path: Path | None = None
        try:
            self._listening = self._bound(address)
        except (OSError, ValueError) as error:
            told = (error.strerror if isinstance(error, OSError) else None) or error
            raise InvalidRequest(
                f"The address {address} cannot be served: {told}.",
                hint="Write it like ipc:///run/carapace.sock, at most 107 bytes long; its folder "
                "must be there.",
            ) from error
        self._listening.settimeout(_POLL_SECONDS)

    def _bound(self, address: str) -> socket.socket:
        scheme, _, place = address.partition("://")
        if scheme not in ("ipc", "unix") or not place:
            raise ValueError("it is of no kind that is known")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
            probe.connect(place)
            raise Conflict(
                f"Another process serves {address} already.", hint="Stop it, or use another."
            )
        path, listening = Path(place), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # who may use the socket is decided before anybody can
        try:
            if path.exists() and stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()  # nobody listens on it any more
            listening.bind(place)
        except BaseException:  # seam: nothing may stay open when opening fails, whatever it was
            listening.close()
            raise
        finally:
            os.umask(before)
        self._path = path
        listening.listen(_BACKLOG)
        return listening

    def run(self) -> None:
        """Answer until stop is called, or nobody was connected for `idle_seconds`."""
        used = self._clock.monotonic()
        while not self._stopping.is_set():
            try:
                peer, _ = self._listening.accept()
            except TimeoutError:
                if self._open:
                    used = self._clock.monotonic()
                elif self._idle_seconds is not None and (
                    self._clock.monotonic() - used > self._idle_seconds
                ):
                    return
                continue
            used = self._clock.monotonic()
            if len(self._open) >= _CONNECTIONS:
                peer.close()
                continue
            self._open.add(peer)
            threading.Thread(target=self._served, args=(peer,), daemon=True).start()

    def _served(self, peer: socket.socket) -> None:
        try:
            self.serve(peer)
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            _log.warning("carapace.connection_failed", extra={"error": type(error)})
        finally:
            self._open.discard(peer)
            peer.close()

    @abstractmethod
    def serve(self, peer: socket.socket) -> None:
        """Answer one connection until it ends."""

    def stop(self) -> None:
        """End run soon; may be called from another thread or a signal."""
        self._stopping.set()

    def close(self) -> None:
        """Close every connection and remove the socket; idempotent."""
        self._listening.close()
        for peer in list(self._open):
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
        if self._path is not None:
            self._path.unlink(missing_ok=True)


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


# -- the socket of handler.js ---------------------------------------------------------------------


SCHEME: Final = "unix://"
_LINE_BYTES: Final = 2 * PAYLOAD_BYTES
_CREDENTIALS: Final = struct.Struct("3i")


class HandlerCall(Struct, frozen=True, kw_only=True):
    """One request."""

    id: int
    verb: str
    tool: str = ""
    arguments: dict[str, Any] = {}
    session: str = ""
    group: str = ""


class LineServer(Listener):
    """Serves connections of this user on one Unix socket."""

    def __init__(
        self, host: Host, address: str, clock: Clock, *, idle_seconds: float | None = None
    ) -> None:
        self._host = host
        super().__init__(address, clock, idle_seconds=idle_seconds)

    def serve(self, peer: socket.socket) -> None:
        """Answer line by line; one that is no request ends the connection."""
        if _user_of(peer) not in (os.getuid(), 0):
            return
        with peer.makefile("rwb") as stream:
            while (raw := stream.readline(_LINE_BYTES)).endswith(b"\n"):
                stream.write(encode(self._answer(raw)).encode() + b"\n")
                stream.flush()

    def _answer(self, raw: bytes) -> dict[str, Json]:
        line = msgspec.json.decode(raw, type=HandlerCall)
        session = AgentSession(id=line.session, group=line.group)
        match line.verb:
            case "invoke":
                reply = self._host.invoke(line.tool, line.arguments, session)
            case "brief":
                reply = self._host.invoke(BRIEF_HOOK, {}, session)
            case _:  # to see that somebody answers
                reply = {"ok": True, "result": None}
        return {"id": line.id, "reply": dict(reply)}


def _user_of(peer: socket.socket) -> int:
    """The user at the other end, as the kernel knows them."""
    if not hasattr(socket, "SO_PEERCRED"):  # not Linux: the mode of the socket has to do
        return os.getuid()
    told = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(told)[1])
