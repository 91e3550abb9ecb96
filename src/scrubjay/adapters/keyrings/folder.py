"""The keys folder: slots as files, and the files of the wrappers beside them.

`<keys>/slots/<address>/<purpose>` is one wrapped slot. Adding takes a shared lock on `<keys>/lock`;
deleting and exchanging take an exclusive one, so that a draft found while deleting is not in use.
Reading takes no lock: what is just being overwritten does not open, and is read again, at last
under the lock for a moment. A deleter overwrites a slot before it is gone, and syncs in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from scrubjay.adapters.disk import LEFTOVER, Disk, failures
from scrubjay.model.endpoints import check_region
from scrubjay.model.errors import KeyMissing, SchemaTooNew, SealBroken, StoreError
from scrubjay.model.scope import check_place
from scrubjay.ports import Clock, patience

PLACE: Final = "keys folder"
REGION_FILE: Final = "region"
_CHECK_DIGITS: Final = 8
_READ_SECONDS: Final = 2.0


def write_line(kind: str, *words: str, version: int = 1) -> bytes:
    """Encode a one-line file with a checksum."""
    text = " ".join((f"scrubjay-{kind}", str(version), *words))
    return f"{text} {_check(text)}\n".encode("ascii")


def read_line(raw: bytes, kind: str, *counts: int) -> list[str]:
    """Decode a one-line file of this kind; SealBroken if it is damaged.

    Version n of it has the n-th of the counts of words.
    """
    text, _, check = raw.decode("ascii", "replace").removesuffix("\n").rpartition(" ")
    if not text.startswith(f"scrubjay-{kind} ") or _check(text) != check:
        raise damaged(kind)
    version, *words = text.split(" ")[1:]
    known = {str(number): count for number, count in enumerate(counts, 1)}
    if version not in known:
        raise SchemaTooNew(f"The {kind} file was written by a newer scrubjay.")
    if len(words) != known[version]:
        raise damaged(kind)
    return words


def unhex(word: str, kind: str, size: int) -> bytes:
    """The bytes of a hexadecimal word; SealBroken if the length is wrong."""
    try:
        raw = bytes.fromhex(word)
    except ValueError as error:
        raise damaged(kind) from error
    if len(raw) != size:
        raise damaged(kind)
    return raw


def damaged(kind: str) -> SealBroken:
    """The error for a damaged file."""
    return SealBroken(
        f"The {kind} file in the keys folder is damaged.",
        hint=f"Put an undamaged copy of the {kind} file back; nothing was changed.",
    )


def _check(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_CHECK_DIGITS]


class KeysFolder:
    """The slots of a keys folder, and its files, with the lock that they share."""

    beside_rows = False
    traceless = True

    def __init__(self, directory: Path, clock: Clock, disk: Disk | None = None) -> None:
        self.directory = directory
        self.clock = clock
        self.disk = disk or Disk()
        self._slots = directory / "slots"
        self._lock = directory / "lock"

    @property
    def place(self) -> str:
        """The keys folder."""
        return str(self.directory)

    def check_region(self, region: str) -> None:
        """Check the label of the folder; one with keys and without a label gets this one."""
        if (raw := self.file(REGION_FILE)) is not None:
            check_region(PLACE, read_line(raw, REGION_FILE, 1)[0], region)
        elif region and self.directory.exists():
            line = write_line(REGION_FILE, region)
            with self.changing():
                self.disk.add(self.directory / REGION_FILE, line, self.clock.random)

    # -- the slots -----------------------------------------------------------------------

    def read(self, address: str, *, settled: bool = False) -> Mapping[str, bytes]:
        folder = self._slots / check_place("address", address)
        if settled:
            with self.settled():
                return self.read(address)
        with self.reading():
            names = [name for name in self.disk.names(folder) if not name.startswith(".")]
            found = {name: self.disk.read(folder / name) for name in names}
        return {name: slot for name, slot in found.items() if slot is not None}

    def add(self, address: str, purpose: str, wrap: Callable[[], bytes]) -> bytes:
        path = self._path(address, purpose)
        with self.changing(shared=True):
            wrapped = wrap()
            self.disk.make_folder(self._slots)
            self.disk.make_folder(path.parent)
            self.disk.add(path, wrapped, self.clock.random)
            kept = self.disk.read(path)
        if kept is None:
            raise StoreError("A key slot vanished while it was added.")
        return kept

    def exchange(self, address: str, purpose: str, old: bytes, new: bytes) -> bool:
        path = self._path(address, purpose)
        with self.changing():
            held = self.disk.read(path) == old
            if held:
                self.shred(path, drafts_only=True)
                self.disk.exchange(path, new, self.clock.random)
        return held

    def delete(self, address: str, purposes: Iterable[str]) -> None:
        paths = [self._path(address, purpose) for purpose in purposes]
        if self._exists():
            with self.changing():
                for path in paths:
                    self.shred(path)

    def remove(self, address: str) -> None:
        folder = self._slots / check_place("address", address)
        if not self._exists():
            return
        with self.changing():
            for name in self.disk.names(folder):
                self.disk.shred(folder / name, self.clock.random)
            self.disk.remove_folder(folder)

    def addresses(self, after: str, limit: int) -> Sequence[str]:
        with self.reading():
            return [name for name in self.disk.names(self._slots) if name > after][:limit]

    def check_deletable(self) -> None:
        if self._exists():
            with self.changing():
                pass

    # -- the folder ----------------------------------------------------------------------

    @contextmanager
    def changing(self, *, shared: bool = False) -> Iterator[None]:
        """Create the folder if it is missing and lock it, exclusive or shared."""
        with failures(PLACE):
            self.disk.make_folder(self.directory)
            with self.disk.locked(self._lock, shared=shared):
                yield

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Lock it for a moment, so that nobody is overwriting a file."""
        with ExitStack() as stack:
            with suppress(OSError):  # a folder that may only be read has no writers
                stack.enter_context(patience(_READ_SECONDS))
                stack.enter_context(self.disk.locked(self._lock, shared=True))
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise KeyMissing for what may not be read, and an error of ours for what fails."""
        try:
            with failures(PLACE):
                yield
        except StoreError as error:
            if not isinstance(error.__cause__, PermissionError):
                raise
            raise KeyMissing(
                f"The keys in {self.directory} may not be read.",
                hint="Give the user scrubjay runs as the right to read them.",
            ) from error

    def file(self, name: str) -> bytes | None:
        """A file of the folder itself; None if it is not there."""
        with self.reading():
            return self.disk.read(self.directory / name)

    def numbered(self, name: str) -> list[int]:
        """The numbers n of the files `<name>.<n>`, ascending."""
        with self.reading():
            parts = (one.partition(".") for one in self.disk.names(self.directory))
        return sorted(int(end) for start, _, end in parts if start == name and end.isdecimal())

    def shred(self, path: Path, *, drafts_only: bool = False) -> None:
        """Overwrite a file and its drafts, or only those, and delete them, durably."""
        for name in self.disk.names(path.parent):
            if name.startswith(LEFTOVER):
                target = name.removeprefix(LEFTOVER).rpartition(".")[0]
            else:
                target = "" if drafts_only else name
            if target == path.name:
                self.disk.shred(path.parent / name, self.clock.random)
        if path.parent.is_dir():
            self.disk.sync_folder(path.parent)

    def _exists(self) -> bool:
        with self.reading():
            return self.directory.exists()

    def _path(self, address: str, purpose: str) -> Path:
        return self._slots / check_place("address", address) / check_place("purpose", purpose)
