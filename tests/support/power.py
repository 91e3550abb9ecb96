"""A disk that loses power: an SQLite VFS that knows which of its writes were synced.

    power = PowerVfs(seed)
    store = SqliteStore(data, vfs=power.name)
    power.cut_after(17)             # the seventeenth operation from now never completes
    with suppress(PowerLost): ...   # from then on every write, sync and deletion raises
    power.leave(data, target)       # the data folder as the next start finds it

What it does to the disk, and why that is fair:

- A write that was not followed by a sync of its file is kept, lost, or torn: cut at a boundary of
  512 bytes, or with sectors missing in between. Each write has its own fate, so they reach the
  disk in any order. Of two writes to one place the earlier never covers the later: both went
  through the same page of the kernel's cache.
- A truncation that was not followed by a sync happened or did not.
- Names change in the order in which they were changed, as on every journaling file system, but
  the last changes may be lost: a log that was created is gone, one that was deleted is back. A
  log's first sync makes the names of its folder durable, because SQLite's own VFS syncs the
  folder there.
- The -shm file is gone: it is never synced.
- Whatever code does to files without SQLite has happened when the call returns; what is written
  through `scrubjay.adapters.disk` can be cut short too, by watching it (`Disk(watch=...)`).
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Final

import apsw

from scrubjay.adapters.disk import Step

SECTOR: Final = 512
_CHANCES: Final = (0.0, 0.2, 0.5, 0.8, 1.0)
_NUMBERS = count()
_LOGS: Final = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL


class PowerLost(BaseException):
    """The power is gone; nothing that catches errors may catch this."""


@dataclass(slots=True)
class _Inode:
    """One file: what a sync has made durable, and what was written since."""

    durable: bytearray
    held: int
    """A descriptor that keeps the number of the file from being given to another one."""
    written: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes as (offset, bytes), and truncations as (size, None)."""
    names_folder: bool = False
    """Whether its next sync is to sync its folder, too."""

    def sync(self) -> None:
        for change in self.written:
            _apply(self.durable, *change)
        self.written.clear()

    def after_cut(self, chance: random.Random) -> bytes:
        content, kept = bytearray(self.durable), chance.choice(_CHANCES)
        for at, piece in self.written:
            if chance.random() < kept:
                _apply(content, at, piece)
            elif piece is not None and chance.random() < 0.5:
                for start, sector in _torn(at, piece, chance):
                    _apply(content, start, sector)
        return bytes(content)


def _apply(content: bytearray, at: int, piece: bytes | None) -> None:
    if len(content) < at:
        content.extend(bytes(at - len(content)))
    if piece is None:
        del content[at:]
    else:
        content[at : at + len(piece)] = piece


def _torn(at: int, piece: bytes, chance: random.Random) -> list[tuple[int, bytes]]:
    """Those sectors of a write that reach the disk: the first ones, or any."""
    edges = [at, *range(at - at % SECTOR + SECTOR, at + len(piece), SECTOR), at + len(piece)]
    sectors = [(a, piece[a - at : b - at]) for a, b in pairwise(edges)]
    if chance.random() < 0.5:
        return sectors[: chance.randrange(len(sectors))]
    return [sector for sector in sectors if chance.random() < 0.5]


def hears_all(_: str) -> bool:
    """Honour every sync: what a disk does."""
    return True


class PowerVfs(apsw.VFS):
    """SQLite's own VFS, and a memory of what it has not synced.

    `hears` says of a file name whether its syncs are honoured; to show that a missing sync is
    found, let it say no.
    """

    def __init__(self, seed: int | str, *, hears: Callable[[str], bool] = hears_all) -> None:
        self.name = f"power-{next(_NUMBERS)}"
        self.operations = 0
        self.is_lost = False
        self._cut_at: int | None = None
        self._chance = random.Random(seed)  # fates, not secrets
        self._hears = hears
        self._inodes: dict[int, _Inode] = {}
        self._renames: list[tuple[Path, int, bool]] = []
        super().__init__(self.name, "unix")

    def cut_after(self, operations: int) -> None:
        """Let the power fail in the middle of the n-th operation from now."""
        self._cut_at = self.operations + operations

    def step(self, step: Step, _: Path) -> None:
        """Count a step of `Disk` as an operation; to be called before it is taken."""
        if step is not Step.READ and self.operate():
            raise PowerLost

    def operate(self) -> bool:
        """Begin an operation; whether the power fails in it. Raises if it failed before."""
        if self.is_lost:
            raise PowerLost
        self.operations += 1
        self.is_lost = self.operations == self._cut_at
        return self.is_lost

    def leave(self, root: Path, target: Path) -> None:
        """Write the files below `root` to `target`, as they are after the cut."""
        names = {path: path.stat().st_ino for path in root.rglob("*") if path.is_file()}
        kept = self._chance.randint(0, len(self._renames))
        for path, number, created in reversed(self._renames[kept:]):
            if created:
                names.pop(path, None)
            else:
                names[path] = number
        for path, number in names.items():
            if not path.name.endswith("-shm"):
                self._leave(path, number, target / path.relative_to(root))

    def _leave(self, path: Path, number: int, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        if number in self._inodes:
            target.write_bytes(self._inodes[number].after_cut(self._chance))
        else:
            shutil.copyfile(path, target)

    def close(self) -> None:
        """Forget the disk; every connection must be closed."""
        for inode in self._inodes.values():
            os.close(inode.held)
        self.unregister()

    # -- what SQLite calls -------------------------------------------------------------------

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """Open a file, and remember one that is made by it."""
        assert name is not None, "nothing here needs temporary files"
        path = Path(name if isinstance(name, str) else name.filename())
        is_new = not path.exists()
        if is_new and self.operate():
            raise PowerLost
        before = b"" if is_new else self._content(path)
        file = PowerFile(self, path, name, flags)
        file.inode = self._enter(path, before, is_log=is_new and bool(flags[0] & _LOGS))
        if is_new:
            self._renames.append((path, path.stat().st_ino, True))
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        """Delete a file; without `syncdir` it may come back."""
        if self.operate():
            raise PowerLost
        path = Path(filename)
        if path.exists():
            self._renames.append((path, path.stat().st_ino, False))
        super().xDelete(filename, syncdir)
        if syncdir and self._hears(filename):
            self._sync_folder(path.parent)

    def _content(self, path: Path) -> bytes:
        """What a file holds that is opened for the first time: by then it is on the disk."""
        # Closing a descriptor drops the locks of the whole process, but nobody has one yet.
        return b"" if path.stat().st_ino in self._inodes else path.read_bytes()

    def _enter(self, path: Path, before: bytes, *, is_log: bool) -> _Inode:
        number = path.stat().st_ino
        if number not in self._inodes:
            held = os.open(path, os.O_PATH)
            self._inodes[number] = _Inode(bytearray(before), held, names_folder=is_log)
        return self._inodes[number]

    def _sync_folder(self, folder: Path) -> None:
        self._renames = [one for one in self._renames if one[0].parent != folder]

    # -- what its files call -----------------------------------------------------------------

    def change(self, inode: _Inode, at: int, piece: bytes | None) -> None:
        """Write or truncate; raises if the power fails in it, when it may still be kept."""
        is_lost = self.operate()
        inode.written.append((at, piece))
        if is_lost:
            raise PowerLost

    def sync(self, inode: _Inode, path: Path) -> None:
        """Make a file durable, unless the power fails in it or this disk does not listen."""
        if self.operate():
            raise PowerLost
        if not self._hears(path.name):
            return
        inode.sync()
        if inode.names_folder:
            inode.names_folder = False
            self._sync_folder(path.parent)


class PowerFile(apsw.VFSFile):
    """An open file of a `PowerVfs`; it never syncs really, since it knows better."""

    inode: _Inode

    def __init__(
        self, vfs: PowerVfs, path: Path, name: str | apsw.URIFilename, flags: list[int]
    ) -> None:
        super().__init__("unix", name, flags)
        self._vfs = vfs
        self._path = path

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        """Write, to the cache of the kernel and no further."""
        self._vfs.change(self.inode, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        """Truncate, likewise."""
        self._vfs.change(self.inode, newsize, None)
        super().xTruncate(newsize)

    def xSync(self, _: int) -> None:  # noqa: N802
        """Make all of the file durable."""
        self._vfs.sync(self.inode, self._path)
