"""Wrappers with their root keys in this process: the base class, and the one with a key file.

`<keys>/key` is the root key that wraps; `<keys>/key.<n>` that of generation n, as long as slots may
be left that it wrapped.
"""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Final

from scrubjay import vault
from scrubjay.adapters.keyrings.folder import KeysFolder, read_line, unhex, write_line
from scrubjay.model.errors import InvalidRequest, KeyMissing, Locked, SealBroken
from scrubjay.ports import SlotPlace
from scrubjay.vault import Purpose

KEY_FILE: Final = "key"
PHRASE_FILE: Final = "passphrase"
KEYCHAIN_FILE: Final = "keychain"


class LocalWrapper(ABC):
    """Wrapper whose root keys are in this process; a subclass provides them."""

    seconds = inf
    attended = False
    renewed: str | None = None
    undo_days = 0

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self.random = random

    @abstractmethod
    def roots(self) -> Mapping[int, bytes]:
        """The root keys by generation, one at least; KeyMissing or Locked if there is none."""

    @abstractmethod
    def admit(self) -> None:
        """Raise Locked while it is locked."""

    @abstractmethod
    def found(self) -> None:
        """Make the first generation unless there is one."""

    @abstractmethod
    def begin(self) -> int:
        """Begin another generation; returns its number."""

    @abstractmethod
    def destroy(self, generation: int) -> None:
        """Destroy a past generation and all before it."""

    def secret(self, root: bytes, place: SlotPlace, generation: int) -> bytes:
        """The key that wraps the slot of a place: the root key itself."""
        del place, generation
        return root

    def generations(self) -> Sequence[int]:
        return sorted(self.roots())

    def generation_of(self, place: SlotPlace, slot: bytes) -> int | None:
        return self._wrapped_by(place, slot, self.roots())

    def wrap(self, place: SlotPlace, key: bytes) -> bytes:
        return self._wrap(place, key, self.roots())

    def unwrap(self, place: SlotPlace, slot: bytes) -> bytes:
        return self._unwrap(place, slot, self.roots())

    def rewrap(self, place: SlotPlace, slot: bytes) -> bytes:
        roots = self.roots()
        if self._wrapped_by(place, slot, roots) == max(roots):
            return slot
        return self._wrap(place, self._unwrap(place, slot, roots), roots)

    def _wrapped_by(self, place: SlotPlace, slot: bytes, roots: Mapping[int, bytes]) -> int | None:
        """The generation that wrapped a slot, by its commitment."""
        for generation, root in sorted(roots.items(), reverse=True):
            commitment = vault.commitment(self.secret(root, place, generation))
            if hmac.compare_digest(commitment, slot[: vault.HASH_BYTES]):
                return generation
        return None

    def _wrap(self, place: SlotPlace, key: bytes, roots: Mapping[int, bytes]) -> bytes:
        if len(key) != vault.KEY_BYTES:
            raise InvalidRequest(f"A key has {vault.KEY_BYTES} bytes.")
        last, nonce = max(roots), self.random(vault.NONCE_BYTES)
        secret = self.secret(roots[last], place, last)
        return vault.wrap(secret, key, address=place.address, purpose=place.purpose, nonce=nonce)

    def _unwrap(self, place: SlotPlace, slot: bytes, roots: Mapping[int, bytes]) -> bytes:
        last = max(roots)
        generation = last
        if len(roots) > 1:
            generation = self._wrapped_by(place, slot, roots) or last
        secret = self.secret(roots[generation], place, generation)
        return vault.unwrap(secret, slot, address=place.address, purpose=place.purpose)


def read_key(raw: bytes) -> tuple[int, bytes]:
    """The generation and the root key in a key file."""
    *number, word = read_line(raw, KEY_FILE, 1, 2)
    return int(*number or ["1"]), unhex(word, KEY_FILE, vault.KEY_BYTES)


def _key_line(generation: int, root: bytes) -> bytes:
    if generation == 1:  # as it was before there were generations
        return write_line(KEY_FILE, root.hex())
    return write_line(KEY_FILE, str(generation), root.hex(), version=2)


class FileWrapper(LocalWrapper):
    """Wrapper with its root key in `<keys>/key`; `found` creates it.

    It protects a copy of the data, but not a copy of data and keys together.
    """

    def __init__(self, folder: KeysFolder) -> None:
        super().__init__(folder.clock.random)
        self._folder = folder

    def admit(self) -> None:
        if self._folder.file(PHRASE_FILE) is not None:
            raise Locked("These keys are locked by a passphrase.")
        if self._folder.file(KEYCHAIN_FILE) is not None:
            raise Locked(
                "The root key of these keys is in the keyring of the operating system.",
                hint="Start this process again: it began before the key was moved there.",
            )

    def roots(self) -> Mapping[int, bytes]:
        with suppress(SealBroken):
            return self._roots()
        with self._folder.settled():  # another process may have been overwriting one
            return self._roots()

    def _roots(self) -> Mapping[int, bytes]:
        # Asked and read anew each time: a passphrase may take the key file's place meanwhile.
        self.admit()
        if (raw := self._folder.file(KEY_FILE)) is None:
            raise KeyMissing(
                f"There is no key file in {self._folder.place}.",
                hint="Put the file named key back into the keys folder; no new one was made.",
            )
        present, root = read_key(raw)
        roots = {present: root}
        for number in self._folder.numbered(KEY_FILE) if present > 1 else ():
            if (raw := self._folder.file(f"{KEY_FILE}.{number}")) is not None:
                roots.setdefault(*read_key(raw))
        return roots

    def found(self) -> None:
        path, random = self._folder.directory / KEY_FILE, self._folder.clock.random
        with self._folder.changing(shared=True):
            self.admit()
            if self._folder.file(KEY_FILE) is None:
                self._folder.disk.add(path, _key_line(1, random(vault.KEY_BYTES)), random)

    def begin(self) -> int:
        path, random = self._folder.directory / KEY_FILE, self._folder.clock.random
        with self._folder.changing():
            roots = self._roots()
            last = max(roots)
            kept = path.with_name(f"{KEY_FILE}.{last}")
            self._folder.disk.replace(kept, _key_line(last, roots[last]))
            line = _key_line(last + 1, random(vault.KEY_BYTES))
            self._folder.disk.exchange(path, line, random)
        return last + 1

    def destroy(self, generation: int) -> None:
        with self._folder.changing():
            if generation >= max(self._roots()):
                raise InvalidRequest("The root key in use is not destroyed: begin another first.")
            for number in self._folder.numbered(KEY_FILE):
                if number <= generation:
                    self._folder.shred(self._folder.directory / f"{KEY_FILE}.{number}")


# -- keys derived of a master ---------------------------------------------------------------------


class DerivedWrapper(LocalWrapper):
    """Wrapper whose keys are derived from the root keys of another, which are masters here.

    No two owners share a wrapping key, and each opens with the master alone. A master is not
    shredded for one owner: what is to be erased are the slots.
    """

    def __init__(self, masters: LocalWrapper) -> None:
        self._masters = masters
        self.attended = masters.attended
        super().__init__(masters.random)

    def roots(self) -> Mapping[int, bytes]:
        return self._masters.roots()

    def secret(self, root: bytes, place: SlotPlace, generation: int) -> bytes:
        return vault.derive(root, Purpose.ROOT, place.owner, generation)

    def _unwrap(self, place: SlotPlace, slot: bytes, roots: Mapping[int, bytes]) -> bytes:
        try:
            return super()._unwrap(place, slot, roots)
        except SealBroken:  # from before keys were derived here: `rotate --root` wraps it anew
            return self._masters.unwrap(place, slot)

    def admit(self) -> None:
        self._masters.admit()

    def found(self) -> None:
        self._masters.found()

    def begin(self) -> int:
        return self._masters.begin()

    def destroy(self, generation: int) -> None:
        self._masters.destroy(generation)
