"""Keyrings in a keys folder; the default one wraps its slots with a key file in the same folder.

`<keys>/slots/<address>/<purpose>` is one wrapped slot. Adding takes a shared lock on `<keys>/lock`;
deleting and re-wrapping take an exclusive one, so that a draft found while deleting is not in use.
Reading takes no lock: what is just being overwritten does not open, and is read again, at last
under the lock for a moment. A deleter overwrites a slot before it is gone, and syncs in between.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from scrubjay import vault
from scrubjay.adapters.disk import LEFTOVER, Disk, failures
from scrubjay.model.errors import (
    InvalidRequest,
    KeyMissing,
    Locked,
    SchemaTooNew,
    SealBroken,
    StoreError,
)
from scrubjay.model.scope import check_place
from scrubjay.ports import Clock, patience

KEY_FILE: Final = "key"
PHRASE_FILE: Final = "passphrase"
PLACE: Final = "keys folder"
VERSION: Final = "1"
_CHECK_DIGITS: Final = 8
_INSTALLATION: Final = ("installation", "root")
_READ_TRIES: Final = 3
_READ_SECONDS: Final = 2.0
_T = TypeVar("_T")


def write_line(kind: str, *words: str) -> bytes:
    """Encode a one-line file with a checksum."""
    text = " ".join((f"scrubjay-{kind}", VERSION, *words))
    return f"{text} {_check(text)}\n".encode("ascii")


def read_line(raw: bytes, kind: str, count: int) -> list[str]:
    """Decode a one-line file of this kind; SealBroken if it is damaged."""
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


class SlotKeyring(ABC):
    """Base class of keyrings in a keys folder; a subclass provides the wrapping key."""

    def __init__(self, directory: Path, clock: Clock, disk: Disk | None = None) -> None:
        self._directory = directory
        self._slots = directory / "slots"
        self._lock = directory / "lock"
        self._clock = clock
        self._disk = disk or Disk()

    @abstractmethod
    def _wrapping_key(self) -> bytes:
        """The key that wraps the slots; called under the lock."""

    @abstractmethod
    def _admit(self) -> None:
        """Raise if the keyring cannot be used, such as Locked."""

    @property
    def place(self) -> str:
        """The keys folder."""
        return str(self._directory)

    def installation(self) -> bytes:
        """The installation key; KeyMissing if there is none."""
        return self.get(*_INSTALLATION)

    def found(self) -> bytes:
        """The installation key, made unless there is one; every process gets the same one."""
        try:
            return self.get(*_INSTALLATION)
        except KeyMissing:
            return self.add(*_INSTALLATION, self._clock.random(vault.KEY_BYTES))

    def add(self, address: str, purpose: str, key: bytes) -> bytes:
        """Keep `key` unless the slot is taken; returns the key the slot holds, durable."""
        self._admit()
        if len(key) != vault.KEY_BYTES:
            raise InvalidRequest(f"A key has {vault.KEY_BYTES} bytes.")
        path = self._path(address, purpose)
        with self._changing(shared=True):
            secret = self._wrapping_key()
            self._disk.make_folder(self._slots)
            self._disk.make_folder(path.parent)
            wrapped = self._wrapped(secret, key, address, purpose)
            self._disk.add(path, wrapped, self._clock.random)
            kept = self._disk.read(path)
        if kept is None:
            raise StoreError("A key slot vanished while it was added.")
        return vault.unwrap(secret, kept, address=address, purpose=purpose)

    def get(self, address: str, purpose: str) -> bytes:
        """The key in a slot; KeyMissing if there is none."""
        return self._steady(lambda: self._read(address, purpose))

    def delete(self, address: str, purpose: str) -> None:
        """Delete a slot for good, durably, with its drafts; an absent one is fine."""
        path = self._path(address, purpose)
        self._admit()
        if self._exists():
            with self._changing():
                self._shred(path)

    def purposes(self, address: str) -> Sequence[str]:
        """The purposes of an address that have a slot, sorted."""
        self._admit()
        with self._reading():
            found = self._disk.names(self._slots / check_place("address", address))
        return [name for name in found if not name.startswith(".")]

    def remove(self, address: str) -> None:
        """Delete every slot of an address for good, durably."""
        folder = self._slots / check_place("address", address)
        self._admit()
        if not self._exists():
            return
        with self._changing():
            for name in self._disk.names(folder):
                self._disk.shred(folder / name, self._clock.random)
            self._disk.remove_folder(folder)

    # -- the keys folder ---------------------------------------------------------------

    @contextmanager
    def _changing(self, *, shared: bool = False) -> Iterator[None]:
        """Create the folder if it is missing and lock it, exclusive or shared."""
        with failures(PLACE):
            self._disk.make_folder(self._directory)
            with self._disk.locked(self._lock, shared=shared):
                yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise KeyMissing for what may not be read, and an error of ours for what fails."""
        try:
            with failures(PLACE):
                yield
        except StoreError as error:
            if not isinstance(error.__cause__, PermissionError):
                raise
            raise KeyMissing(
                f"The keys in {self._directory} may not be read.",
                hint="Give the user scrubjay runs as the right to read them.",
            ) from error

    def _steady(self, read: Callable[[], _T]) -> _T:
        """What is read, again while it does not open, at last where nobody may overwrite it."""
        for _ in range(_READ_TRIES):
            with suppress(SealBroken):
                return read()
        with (
            suppress(OSError),  # a folder that may only be read has no writers
            patience(_READ_SECONDS),
            self._disk.locked(self._lock, shared=True),
        ):
            return read()
        return read()

    def _exists(self) -> bool:
        with self._reading():
            return self._directory.exists()

    def _read(self, address: str, purpose: str) -> bytes:
        self._admit()
        with self._reading():
            slot = self._slot(address, purpose)
            secret = self._wrapping_key()
        return vault.unwrap(secret, slot, address=address, purpose=purpose)

    def _file(self, name: str) -> bytes | None:
        """A file of the folder itself; None if it is not there."""
        with self._reading():
            return self._disk.read(self._directory / name)

    def _file_key(self) -> bytes | None:
        """The key in the key file; None if there is no file, SealBroken if it is damaged."""
        raw = self._file(KEY_FILE)
        if raw is None:
            return None
        (word,) = read_line(raw, KEY_FILE, 1)
        return unhex(word, KEY_FILE, vault.KEY_BYTES)

    def _path(self, address: str, purpose: str) -> Path:
        return self._slots / check_place("address", address) / check_place("purpose", purpose)

    def _slot(self, address: str, purpose: str) -> bytes:
        slot = self._disk.read(self._path(address, purpose))
        if slot is None:
            raise KeyMissing(f"There is no such key slot in {self._directory}.")
        return slot

    def _wrapped(self, secret: bytes, key: bytes, address: str, purpose: str) -> bytes:
        nonce = self._clock.random(vault.NONCE_BYTES)
        return vault.wrap(secret, key, address=address, purpose=purpose, nonce=nonce)

    def _shred(self, path: Path, *, drafts_only: bool = False) -> None:
        """Overwrite a file and its drafts, or only those, and delete them, durably."""
        for name in self._disk.names(path.parent):
            if name.startswith(LEFTOVER):
                target = name.removeprefix(LEFTOVER).rpartition(".")[0]
            else:
                target = "" if drafts_only else name
            if target == path.name:
                self._disk.shred(path.parent / name, self._clock.random)
        if path.parent.is_dir():
            self._disk.sync_folder(path.parent)


class FileKeyring(SlotKeyring):
    """Keyring whose slots are wrapped with the key in `<keys>/key`; `found` creates it.

    It protects a copy of the data, but not a copy of data and keys together.
    """

    def _admit(self) -> None:
        if self._file(PHRASE_FILE) is not None:
            raise Locked("These keys are locked by a passphrase.")

    def _wrapping_key(self) -> bytes:
        # Asked and read anew each time: a passphrase may take the key file's place meanwhile.
        self._admit()
        if (key := self._file_key()) is None:
            raise KeyMissing(
                f"There is no key file in {self._directory}.",
                hint="Put the file named key back into the keys folder; no new one was made.",
            )
        return key

    def found(self) -> bytes:
        """The installation key, made with its key file unless there are slots already."""
        with self._changing(shared=True):
            self._admit()
            if self._file_key() is None and not self._disk.names(self._slots):
                line = write_line(KEY_FILE, self._clock.random(vault.KEY_BYTES).hex())
                self._disk.add(self._directory / KEY_FILE, line, self._clock.random)
        return super().found()
