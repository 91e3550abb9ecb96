"""Every byte a file's deletions may have left: what an auditor, or a thief, would look through."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw

OVERLAP: Final = 64
_CHUNK: Final = 1 << 20


def residue(database: str) -> Iterator[tuple[str, bytes]]:
    """All files beside and including `database`, as (file name, bytes) pieces that overlap.

    The -shm file is left out: it holds page numbers and checksums, never a byte of a row, and
    closing a file descriptor on it would drop the locks SQLite holds there for this process.
    """
    folder, stem = os.path.split(database)
    for name in sorted(path.name for path in Path(folder).glob(f"{stem}*")):
        path = os.path.join(folder, name)
        try:
            if name == stem:
                yield from _database_pieces(name, path)
            elif not name.endswith("-shm"):
                yield from _plain_pieces(name, path)
        except (OSError, apsw.Error):
            # A log may go while this runs: the last connection brought it into the database.
            if os.path.lexists(path):
                raise


def _database_pieces(name: str, path: str) -> Iterator[tuple[str, bytes]]:
    # Through SQLite's own files, which know of each other and keep the locks when one is closed.
    flags = [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0]
    with closing(_VfsFile(path, flags)) as file:
        size = file.xFileSize()
        for at in _starts(size):
            yield name, file.xRead(min(_CHUNK, size - at), at)


def _plain_pieces(name: str, path: str) -> Iterator[tuple[str, bytes]]:
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        for at in _starts(size):
            yield name, os.pread(file.fileno(), _CHUNK, at)


def _starts(size: int) -> range:
    return range(0, max(size - OVERLAP, 1 if size else 0), _CHUNK - OVERLAP)


class _VfsFile(apsw.VFSFile):
    def __init__(self, path: str, flags: list[int]) -> None:
        super().__init__("", path, flags)

    def close(self) -> None:
        self.xClose()
