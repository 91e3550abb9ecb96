"""Wrapped slots as files, and the keyring that any wrapping key makes of them.

`<keys>/slots/<address>/<purpose>` is one slot. Whoever adds or reads shares `<keys>/lock`;
whoever deletes or wraps anew holds it alone. So a leftover found while deleting belongs to
nobody, and nobody reads a slot that is being overwritten.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from scrubjay import vault
from scrubjay.adapters.disk import LEFTOVER, Disk, failures
from scrubjay.model.errors import InvalidRequest, KeyMissing, SchemaTooNew, SealBroken, StoreError
from scrubjay.model.scope import check_place
from scrubjay.ports import Clock

VERSION: Final = "1"
_CHECK_DIGITS: Final = 8


def write_line(kind: str, *words: str) -> bytes:
    """The file that says these words."""
    text = " ".join((f"scrubjay-{kind}", VERSION, *words))
    return f"{text} {_check(text)}\n".encode("ascii")


def read_line(raw: bytes, kind: str, count: int) -> list[str]:
    """The words a file of this kind says; SealBroken if it is damaged."""
    text, _, check = raw.decode("ascii", "replace").removesuffix("\n").rpartition(" ")
    if not text.startswith(f"scrubjay-{kind} ") or _check(text) != check:
        raise damaged(kind)
    version, *words = text.split(" ")[1:]
    if version != VERSION:
        raise SchemaTooNew(f"The {kind} file was written by a newer scrubjay.")
    if len(words) != count:
        raise damaged(kind)
    return words


def unhex(word: str, kind: str, size: int) -> bytes:
    """The bytes of a hexadecimal word; SealBroken if there are not as many."""
    try:
        raw = bytes.fromhex(word)
    except ValueError as error:
        raise damaged(kind) from error
    if len(raw) != size:
        raise damaged(kind)
    return raw


def damaged(kind: str) -> SealBroken:
    """The error for a file that is not what was written."""
    return SealBroken(
        f"The {kind} file in the keys folder is damaged.",
        hint=f"Put an undamaged copy of the {kind} file back; nothing was changed.",
    )


def _check(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_CHECK_DIGITS]


PLACE: Final = "keys folder"
_INSTALLATION: Final = ("installation", "root")


class KeysFolder:
    """The files of one keys folder, as bytes; it opens none of them."""

    def __init__(self, directory: Path, clock: Clock, disk: Disk | None = None) -> None:
        self.directory = directory
        self._slots = directory / "slots"
        self._lock = directory / "lock"
        self._noise = clock.random
        self._disk = disk or Disk()

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Share the folder, which is made if need be, with others who add or read."""
        with failures(PLACE):
            self._disk.make_folder(self.directory)
            with self._disk.locked(self._lock, shared=True):
                yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Share the folder with others who add or read."""
        with failures(PLACE):
            # No lock file: nothing was ever deleted here, and the folder may be read-only.
            if not self._lock.exists():
                yield
                return
            with self._disk.locked(self._lock, shared=True):
                yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have the folder, which is made if need be, to oneself."""
        with failures(PLACE):
            self._disk.make_folder(self.directory)
            with self._disk.locked(self._lock):
                yield

    # -- files beside the slots --------------------------------------------------------

    def file(self, name: str) -> bytes | None:
        """A file of the folder itself; None if it is not there."""
        with failures(PLACE):
            try:
                return self._disk.read(self.directory / name)
            except PermissionError as error:
                raise KeyMissing(
                    f"The {name} file in the keys folder may not be read.",
                    hint=f"Give the user scrubjay runs as the right to read the {name} file.",
                ) from error

    def add_file(self, name: str, content: bytes) -> None:
        """Write a file unless it is there already, durably."""
        self._disk.add(self.directory / name, content, self._noise)

    def replace_file(self, name: str, content: bytes) -> None:
        """Write a file in place of the one of that name, which is overwritten afterwards."""
        self._disk.exchange(self.directory / name, content, self._noise)

    def shred_file(self, name: str) -> None:
        """Overwrite a file and delete it, durably; an absent one is fine."""
        self._shred(self.directory, name)

    # -- slots -------------------------------------------------------------------------

    def add(self, address: str, purpose: str, slot: bytes) -> bytes:
        """Keep the slot unless it is taken; returns the one that is kept, durable."""
        path = self._path(address, purpose)
        self._disk.make_folder(self._slots)
        self._disk.make_folder(path.parent)
        self._disk.add(path, slot, self._noise)
        kept = self._disk.read(path)
        if kept is None:
            raise StoreError("A key slot vanished while it was added.")
        return kept

    def get(self, address: str, purpose: str) -> bytes:
        """The bytes of a slot; KeyMissing if there is none."""
        slot = self._disk.read(self._path(address, purpose))
        if slot is None:
            raise KeyMissing("There is no such key slot.")
        return slot

    def exchange(self, address: str, purpose: str, slot: bytes) -> None:
        """Put a slot in place of another, which is overwritten afterwards."""
        self._disk.exchange(self._path(address, purpose), slot, self._noise)

    def delete(self, address: str, purpose: str) -> None:
        """Overwrite a slot and delete it, durably, with all that was left of writing it."""
        path = self._path(address, purpose)
        self._shred(path.parent, purpose)

    def remove(self, address: str) -> None:
        """Overwrite and delete every slot of an address, durably."""
        folder = self._folder(address)
        for name in self._disk.names(folder):
            self._disk.shred(folder / name, self._noise)
        self._disk.remove_folder(folder)

    def purposes(self, address: str) -> Sequence[str]:
        """The purposes of an address that have a slot, sorted."""
        found = self._disk.names(self._folder(address))
        return [name for name in found if not name.startswith(".")]

    def addresses(self) -> Sequence[str]:
        """The addresses that have or had a slot, sorted."""
        return self._disk.names(self._slots)

    def _shred(self, folder: Path, name: str) -> None:
        for found in self._disk.names(folder):
            if found == name or _leftover_of(found) == name:
                self._disk.shred(folder / found, self._noise)
        if folder.is_dir():
            self._disk.sync_folder(folder)

    def _folder(self, address: str) -> Path:
        return self._slots / check_place("address", address)

    def _path(self, address: str, purpose: str) -> Path:
        return self._folder(address) / check_place("purpose", purpose)


class SlotKeyring(ABC):
    """A Keyring over a keys folder; what it is made of says where the wrapping key comes from."""

    def __init__(self, folder: KeysFolder, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    @abstractmethod
    def _wrapping_key(self) -> bytes:
        """The key that wraps the slots; called while the folder is held."""

    @abstractmethod
    def _admit(self) -> None:
        """Raise what keeps this keyring from being used at all, such as Locked."""

    def installation(self) -> bytes:
        """The installation key, made on first use; every process gets the same one."""
        try:
            return self.get(*_INSTALLATION)
        except KeyMissing:
            return self.add(*_INSTALLATION, self._clock.random(vault.KEY_BYTES))

    def add(self, address: str, purpose: str, key: bytes) -> bytes:
        """Keep `key` unless the slot is taken; returns the key the slot holds, durable."""
        self._admit()
        if len(key) != vault.KEY_BYTES:
            raise InvalidRequest(f"A key has {vault.KEY_BYTES} bytes.")
        check_place("address", address)
        check_place("purpose", purpose)
        with self._folder.adding():
            secret = self._wrapping_key()
            nonce = self._clock.random(vault.NONCE_BYTES)
            slot = vault.wrap(secret, key, address=address, purpose=purpose, nonce=nonce)
            kept = self._folder.add(address, purpose, slot)
        return vault.unwrap(secret, kept, address=address, purpose=purpose)

    def get(self, address: str, purpose: str) -> bytes:
        """The key in a slot; KeyMissing if there is none."""
        self._admit()
        with self._folder.reading():
            slot = self._folder.get(address, purpose)
            secret = self._wrapping_key()
        return vault.unwrap(secret, slot, address=address, purpose=purpose)

    def delete(self, address: str, purpose: str) -> None:
        """Delete a slot for good, durably; an absent one is fine."""
        self._admit()
        with self._folder.alone():
            self._folder.delete(address, purpose)

    def purposes(self, address: str) -> Sequence[str]:
        """The purposes of an address that have a slot, sorted."""
        self._admit()
        with self._folder.reading():
            return self._folder.purposes(address)

    def remove(self, address: str) -> None:
        """Delete every slot of an address for good, durably."""
        self._admit()
        with self._folder.alone():
            self._folder.remove(address)


def _leftover_of(name: str) -> str | None:
    """The file a leftover was to become."""
    return name.removeprefix(LEFTOVER).rpartition(".")[0] if name.startswith(LEFTOVER) else None
