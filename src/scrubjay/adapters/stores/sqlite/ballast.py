"""Space held in reserve, so that erasure works on a full disk."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

from scrubjay.adapters.stores.sqlite import connections

_CHUNK: Final = 1 << 20
_RECHECK_SECONDS: Final = 1.0


class Ballast:
    """A file that takes up space for nothing, until an erasure needs it."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = os.fspath(path)
        self._size = size
        self._seen_until = 0.0

    def demand(self) -> None:
        """Make sure that the reserve is there; Full if there is no space for it.

        That another process gave it up is noticed within a second.
        """
        now = monotonic()
        if not self._size or now < self._seen_until:
            return
        if not self._is_there():
            self._allocate()
        self._seen_until = now + _RECHECK_SECONDS

    def release(self) -> bool:
        """Give the reserve up; whether there was one."""
        self._seen_until = 0.0
        with suppress(FileNotFoundError):
            os.unlink(self._path)
            return True
        return False

    def _is_there(self) -> bool:
        try:
            return os.stat(self._path).st_size >= self._size
        except FileNotFoundError:
            return False

    def _allocate(self) -> None:
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                _fill(fd, self._size)
            finally:
                os.close(fd)
        except OSError as error:
            self.release()
            raise connections.fault(error) from error


def _fill(fd: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
        return
    # A file made longer without being written takes no space; zeros do.
    zeros = bytes(_CHUNK)
    for at in range(0, size, _CHUNK):
        os.pwrite(fd, zeros[: size - at], at)
