"""The socket of `handler.js`, the plugin inside of Carapace's core: lines of JSON, both ways.

A request is `{"id", "verb": "invoke", "tool", "arguments", "session", "group"}`, its answer
`{"id", "reply"}` with what the plugin replied. The core has checked the call by then and names
session and group itself; so only its own user may connect, which the kernel says of every peer.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import Any, Final

import msgspec
from msgspec import Struct

from scrubjay.model.memory import Json
from scrubjay.ports import Clock
from scrubjay.surfaces.carapace.host import Host
from scrubjay.surfaces.carapace.listener import Listener
from scrubjay.surfaces.carapace.manifest import BRIEF_HOOK, PAYLOAD_BYTES
from scrubjay.surfaces.carapace.wire import AgentSession, encode

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
