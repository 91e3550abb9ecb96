"""The socket of Carapace's `ipc` client: ZeroMQ, each message of which is answered.

A client sends `[empty, payload]` from a DEALER, whose routing id is the identity of its session;
the reply goes back as `[empty, payload]` on the same connection, however many have this identity.
Which identity is which session of which group is decided here, by the operator's table or by one
group for all, never by what a client sends.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

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
from scrubjay.surfaces.carapace.zmtp import RouterConnection

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
