"""The socket of `handler.js`, the plugin inside of Carapace's core: lines of JSON, both ways.

A request is `{"id", "verb": "invoke", "tool", "arguments", "session", "group"}`, its answer
`{"id", "reply"}` with what the plugin replied. The core has checked the call by then and names
session and group itself; so only its own user may connect, which the kernel says of every peer.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from scrubjay.model.errors import Conflict, InvalidRequest
from scrubjay.model.memory import Json
from scrubjay.ports import Clock
from scrubjay.surfaces.carapace.host import Host
from scrubjay.surfaces.carapace.manifest import BRIEF_HOOK, PAYLOAD_BYTES
from scrubjay.surfaces.carapace.wire import AgentSession, encode

SCHEME: Final = "unix://"
_LINE_BYTES: Final = 2 * PAYLOAD_BYTES
_POLL_SECONDS: Final = 0.2
_BACKLOG: Final = 16
_CREDENTIALS: Final = struct.Struct("3i")
_log = logging.getLogger(__name__)


class HandlerCall(Struct, frozen=True, kw_only=True):
    """One request."""

    id: int
    verb: str
    tool: str = ""
    arguments: dict[str, Any] = {}
    session: str = ""
    group: str = ""


class LineServer:
    """Serves connections of this user on one Unix socket, each in a thread, until `stop`."""

    def __init__(
        self, host: Host, address: str, clock: Clock, *, idle_seconds: float | None = None
    ) -> None:
        self._host = host
        self._clock = clock
        self._path = Path(address.removeprefix(SCHEME))
        self._idle_seconds = idle_seconds
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._bind()
        except BaseException:  # seam: nothing may stay open when opening fails, whatever it was
            self._listening.close()
            raise

    def _bind(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
            probe.connect(str(self._path))
            raise Conflict(
                f"Another process serves {SCHEME}{self._path} already.",
                hint="Stop it, or use another.",
            )
        before = os.umask(0o177)  # who may use the socket is decided before anybody can
        try:
            if self._path.exists() and stat.S_ISSOCK(self._path.lstat().st_mode):
                self._path.unlink()  # nobody listens on it any more
            self._listening.bind(str(self._path))
        except OSError as error:
            raise InvalidRequest(
                f"The address {SCHEME}{self._path} cannot be served: {error.strerror or error}.",
                hint="Its folder must be there, and the path at most 107 bytes long.",
            ) from error
        finally:
            os.umask(before)
        self._listening.listen(_BACKLOG)
        self._listening.settimeout(_POLL_SECONDS)

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
            self._open.add(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        try:
            if _user_of(peer) not in (os.getuid(), 0):
                return
            with peer.makefile("rwb") as stream:
                while (raw := stream.readline(_LINE_BYTES)).endswith(b"\n"):
                    stream.write(encode(self._answer(raw)).encode() + b"\n")
                    stream.flush()
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning("carapace.connection_failed", extra={"error": type(error)})
        finally:
            self._open.discard(peer)
            peer.close()

    def _answer(self, raw: bytes) -> dict[str, Json]:
        """The answer to a line; one that is none ends the connection."""
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

    def stop(self) -> None:
        """End run soon; may be called from another thread or a signal."""
        self._stopping.set()

    def close(self) -> None:
        """Close every connection and remove the socket; idempotent."""
        self._listening.close()
        for peer in list(self._open):
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
        self._path.unlink(missing_ok=True)


def _user_of(peer: socket.socket) -> int:
    """The user at the other end, as the kernel knows them."""
    if not hasattr(socket, "SO_PEERCRED"):  # not Linux: the mode of the socket has to do
        return os.getuid()
    told = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(told)[1])
