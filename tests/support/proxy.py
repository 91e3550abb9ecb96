"""A proxy of ours before a PostgreSQL server: a network that is slow, cut, or loses one answer."""

from __future__ import annotations

import select
import socket
import tempfile
import threading
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_SOCKET: Final = ".s.PGSQL.5432"


class Loss(Enum):
    """What the network loses of the next commit."""

    REQUEST = auto()
    ANSWER = auto()


class PostgresProxy:
    """Forwards connections on a Unix socket of its own to that of a server."""

    def __init__(self, server: Path) -> None:
        self._server = str(server / _SOCKET)
        self._folder = tempfile.TemporaryDirectory(prefix="scrubjay-proxy-")
        self.folder = Path(self._folder.name)
        self.losing: Loss | None = None
        self.is_cut = False
        self.seconds = 0.0
        """What each piece takes on its way."""
        self._asleep = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / _SOCKET))
        self._listener.listen(64)
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._asleep.set()
        self._listener.close()
        self.cut()
        self._folder.cleanup()

    def through(self, url: str) -> str:
        """The address of a database, by way of this proxy."""
        before, _, after = url.partition("host=")
        return f"{before}host={self.folder}&{after.partition('&')[2]}"

    def cut(self) -> None:
        """Break every connection, and refuse new ones until `mend`."""
        self.is_cut = True
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._ends.clear()

    def mend(self) -> None:
        """Let connections through again."""
        self.is_cut = False

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self.is_cut:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._server)
                self._ends += [near, far]
                threading.Thread(target=self._forward, args=(near, far), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        deaf = False
        with near, far, suppress(OSError):
            while True:
                ready, _, _ = select.select([near, far], [], [])
                for end in ready:
                    piece = end.recv(1 << 16)
                    if not piece:
                        return
                    if self.seconds:
                        self._asleep.wait(self.seconds)
                    if end is near and b"COMMIT\0" in piece and self.losing is not None:
                        lost, self.losing = self.losing, None
                        if lost is Loss.REQUEST:
                            return
                        deaf = True
                    elif end is far and deaf:
                        return  # it has happened, and nobody is told
                    (far if end is near else near).sendall(piece)
