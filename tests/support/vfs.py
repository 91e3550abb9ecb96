"""A file system for SQLite that counts what reaches the disk, and can make it slow or refuse.

with CountingVfs("counted") as vfs:
    store = SqliteStore(folder, vfs=vfs.name)
    before = vfs.counts()
    store.write(address, work)
    assert (vfs.counts() - before).syncs == 1
    store.close()
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Final

import apsw

Name = str | apsw.URIFilename | None
FRAME_HEADER_BYTES: Final = 24


class Act(StrEnum):
    """What is about to be done to a file."""

    WRITE = "write"
    SYNC = "sync"


Before = Callable[[Act], None]


def willing(_: Act) -> None:
    """Do what is asked: what a disk does while it is sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What reached the disk: all files together."""

    syncs: int = 0
    writes: int = 0
    bytes: int = 0
    frames: int = 0
    """Pages written to a log, each of which begins with a header of its own."""

    def __sub__(self, other: Counts) -> Counts:
        return Counts(
            syncs=self.syncs - other.syncs,
            writes=self.writes - other.writes,
            bytes=self.bytes - other.bytes,
            frames=self.frames - other.frames,
        )


class CountingVfs(apsw.VFS):
    """The system's own files, with counters.

    `sync_delay_ms` is what each sync takes longer; `before` is called before each write and sync,
    and what it raises, such as `apsw.FullError`, is what SQLite is told instead.
    """

    def __init__(self, name: str, *, sync_delay_ms: float = 0.0, before: Before = willing) -> None:
        super().__init__(name, base="")
        self.name = name
        self.sync_delay_ms = sync_delay_ms
        self.before = before
        self._mutex = threading.Lock()
        self._syncs = self._writes = self._bytes = self._frames = 0

    def __enter__(self) -> CountingVfs:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.unregister()

    def counts(self) -> Counts:
        """The counts so far."""
        with self._mutex:
            return Counts(
                syncs=self._syncs, writes=self._writes, bytes=self._bytes, frames=self._frames
            )

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  # SQLite's name
        """Open a file that counts."""
        return _CountingFile(self, name, flags)

    def note_sync(self) -> None:
        """Count a sync, and take as long as asked for."""
        with self._mutex:
            self._syncs += 1
        if self.sync_delay_ms:
            time.sleep(self.sync_delay_ms / 1000)

    def note_write(self, size: int) -> None:
        """Count a write."""
        with self._mutex:
            self._writes += 1
            self._bytes += size
            self._frames += size == FRAME_HEADER_BYTES


class _CountingFile(apsw.VFSFile):
    def __init__(self, vfs: CountingVfs, name: Name, flags: Sequence[int]) -> None:
        super().__init__("", name, list(flags))
        self._vfs = vfs

    def xSync(self, flags: int) -> None:  # noqa: N802  # SQLite's name
        self._vfs.before(Act.SYNC)
        super().xSync(flags)
        self._vfs.note_sync()

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  # SQLite's name
        self._vfs.before(Act.WRITE)
        super().xWrite(data, offset)
        self._vfs.note_write(len(data))
