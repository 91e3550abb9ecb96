"""Listening socket: accepts connections, serves each in a thread of its own, until `stop`."""

from __future__ import annotations

import logging
import os
import socket
import stat
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from scrubjay.model.errors import Conflict, InvalidRequest
from scrubjay.ports import Clock

_POLL_SECONDS: Final = 0.2
_BACKLOG: Final = 128
_CONNECTIONS: Final = 512
"""Connections served at once; more are closed."""
_log = logging.getLogger(__name__)


class Listener(ABC):
    """Serves one address: `SCHEME://PATH`, a Unix socket of its owner, or `tcp://HOST:PORT`."""

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
        if scheme == "tcp":
            where = urlsplit(address)
            host = "" if where.hostname == "*" else where.hostname or ""
            return socket.create_server((host, where.port or 0), backlog=_BACKLOG)
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
