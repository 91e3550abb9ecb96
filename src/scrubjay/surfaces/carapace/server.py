"""The socket of Carapace's `ipc` client: a ZeroMQ ROUTER that answers every frame it gets.

A client sends `[empty, payload]` from a DEALER, whose routing id is the identity of its session;
the reply goes back as `[identity, empty, payload]`. Which identity is which session of which group
is decided here, by the operator's table or by one group for all, never by what a client sends.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct

from scrubjay.model.errors import Conflict, InvalidRequest, NotFound
from scrubjay.surfaces.carapace.host import Host
from scrubjay.surfaces.carapace.manifest import PAYLOAD_BYTES
from scrubjay.surfaces.carapace.wire import (
    DEFAULT_GROUP,
    AgentSession,
    Code,
    ToolError,
    encode,
    scope_of,
)

SOCKET: Final = "ipc:///run/carapace.sock"
"""Default endpoint of the socket, as in Carapace's client."""
_SPARE: Final = 4
"""Factor of the frame limit up to which a frame is refused by an error; beyond, it is cut off."""
_POLL_MILLISECONDS: Final = 200
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


class Server:
    """ZeroMQ server on one address; one call at a time, until `stop`."""

    def __init__(self, host: Host, address: str, directory: Directory | None = None) -> None:
        try:
            import zmq
        except ImportError as error:
            raise NotFound(
                "The socket needs pyzmq, which is not installed.",
                hint="Install scrubjay[carapace]; `scrubjay tool` works without.",
            ) from error
        self._host = host
        self._directory = directory or Directory()
        self._zmq = zmq
        self._context = self._zmq.Context()
        self._socket = self._context.socket(self._zmq.ROUTER)
        self._stopping = threading.Event()
        try:
            self._bind(address)
        except BaseException:  # seam: nothing may stay open when opening fails, whatever it was
            self.close()
            raise

    def _bind(self, address: str) -> None:
        if address.startswith("ipc://"):
            # ZeroMQ would take the address over, and the other server would wait for nobody. A
            # socket file that nobody listens on any more is free to take.
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
                probe.connect(address.removeprefix("ipc://"))
                served = f"Another process serves {address} already."
                raise Conflict(served, hint="Stop it, or use another.")
        self._socket.setsockopt(self._zmq.LINGER, 0)
        self._socket.setsockopt(self._zmq.MAXMSGSIZE, _SPARE * PAYLOAD_BYTES)
        # A client connects anew for each call, under the identity of the call before.
        self._socket.setsockopt(self._zmq.ROUTER_HANDOVER, 1)
        # What a file system socket may be used by is decided before anybody can use it.
        before = os.umask(0o177)
        try:
            self._socket.bind(address)
        except self._zmq.ZMQError as error:
            raise InvalidRequest(
                f"The address {address} cannot be served: {error.strerror}.",
                hint="Write it like ipc:///run/carapace.sock; its folder must be there.",
            ) from error
        finally:
            os.umask(before)

    def run(self) -> None:
        """Answer until stop is called."""
        while not self._stopping.is_set():
            if self._socket.poll(_POLL_MILLISECONDS):
                frames = self._socket.recv_multipart()
                try:
                    self._answer(frames)
                except Exception as error:  # seam: one call must not end the server
                    _log.warning("carapace.call_failed", extra={"error": type(error)})

    def _answer(self, frames: list[bytes]) -> None:
        """Answer one message, whatever its frames are; a reply nobody waits for is dropped."""
        identity, payload = frames[0], frames[-1] if len(frames) > 1 else b""
        session = AgentSession(id=session_name(identity), group="")
        try:
            session = self._directory.session(identity)
            if len(frames) != 3 or frames[1]:
                told = "Send two frames: an empty one and the message."
                raise ToolError(Code.VALIDATION_FAILED, told, stage=1)
            reply = self._host.answer(payload, session)
        except ToolError as error:
            reply = self._host.pipeline.refuse(payload, session, error)
        try:
            sent = [identity, b"", encode(reply).encode()]
            self._socket.send_multipart(sent, flags=self._zmq.NOBLOCK)
        except self._zmq.ZMQError as error:
            _log.warning("carapace.not_sent", extra={"errno": error.errno})

    def stop(self) -> None:
        """End run soon; may be called from another thread or a signal."""
        self._stopping.set()

    def close(self) -> None:
        """Close the socket; idempotent."""
        self._socket.close(linger=0)
        self._context.term()
