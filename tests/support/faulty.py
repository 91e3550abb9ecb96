"""A disk that refuses: an SQLite VFS whose writes find no space, or whose syncs fail."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import apsw

Name = str | apsw.URIFilename | None
_NUMBERS = count()


def never() -> bool:
    """What a sound disk says to every question whether it fails."""
    return False


class FaultyVfs(apsw.VFS):
    """The system's own files; before every write and sync it is asked whether that is to fail."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_NUMBERS)}"
        self.is_full: Callable[[], bool] = never
        self.sync_fails: Callable[[], bool] = never
        super().__init__(self.name, base="")

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  # SQLite's name
        """Open a file that may fail."""
        return _FaultyFile(self, name, flags)


class _FaultyFile(apsw.VFSFile):
    def __init__(self, vfs: FaultyVfs, name: Name, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._vfs = vfs

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  # SQLite's name
        # A full disk refuses what makes a file longer.
        if self._vfs.is_full() and offset + len(data) > self.xFileSize():
            raise apsw.FullError
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802  # SQLite's name
        if self._vfs.sync_fails():
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)
