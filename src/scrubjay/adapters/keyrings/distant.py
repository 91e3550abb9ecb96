"""Wrappers whose root keys never leave what holds them: the base class for KMS and PKCS#11.

A slot is a mark of 8 bytes, its generation in 4, and what the holder of the keys made of the key.
Generation n is a root key of its own there. The key file of a home that had one is the generation
before the first of them, until `rotate --root` has wrapped every slot anew.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from scrubjay import vault
from scrubjay.adapters.keyrings.file import KEY_FILE, FileWrapper, read_key
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.model.errors import InvalidRequest, KeyMissing, SealBroken
from scrubjay.ports import SlotPlace

_MARK: Final = b"sj-root\x01"
_HEAD: Final = struct.Struct(">8sI")
CACHE_SECONDS: Final = 300.0
"""How long an unwrapped key is used, by default, until it is unwrapped again."""
_LONGEST_CACHE: Final = 86_400.0
DERIVE: Final = "owner"
"""What `derive` says in an address for a wrapping key of each owner."""


class DistantWrapper(ABC):
    """Wrapper whose every wrap and unwrap is a call; a subclass makes the calls."""

    seconds = CACHE_SECONDS
    attended = False
    renewed: str | None = None

    def __init__(self, folder: KeysFolder, seconds: float = CACHE_SECONDS) -> None:
        self.seconds = seconds
        self._folder = folder
        self._former = FileWrapper(folder)

    @property
    @abstractmethod
    def undo_days(self) -> int:
        """Days for which whoever runs the key service could still undo a destruction."""

    @abstractmethod
    def numbers(self) -> Sequence[int]:
        """The numbers of the root keys there, ascending, in one call."""

    @abstractmethod
    def make(self, number: int) -> None:
        """Make the root key of a number; of several that are made at once, one is used."""

    @abstractmethod
    def end(self, number: int) -> None:
        """Destroy the root key of a number; an absent one is fine."""

    @abstractmethod
    def seal(self, number: int, place: SlotPlace, key: bytes) -> bytes:
        """A key under the root key of a number, for this place alone."""

    @abstractmethod
    def unseal(self, number: int, place: SlotPlace, sealed: bytes) -> bytes:
        """What `seal` sealed; SealBroken for anything else, or if that root key was destroyed."""

    def admit(self) -> None:  # noqa: B027
        """Whether it is locked is the holder's to say, at the next call."""

    def found(self) -> None:
        if not self._all():
            self.make(1)

    def generations(self) -> Sequence[int]:
        if not (found := self._all()):
            raise KeyMissing("The key service has no root key of this name; none was made.")
        return found

    def generation_of(self, place: SlotPlace, slot: bytes) -> int | None:
        if (number := _number(slot)) is None:
            return self._former.generation_of(place, slot) if self._file() else None
        return number if number in self._all() else None

    def wrap(self, place: SlotPlace, key: bytes) -> bytes:
        if len(key) != vault.KEY_BYTES:
            raise InvalidRequest(f"A key has {vault.KEY_BYTES} bytes.")
        last = self.generations()[-1]
        if last in self._file():
            return self._former.wrap(place, key)
        return _HEAD.pack(_MARK, last) + self.seal(last, place, key)

    def unwrap(self, place: SlotPlace, slot: bytes) -> bytes:
        if (number := _number(slot)) is not None:
            key = self.unseal(number, place, slot[_HEAD.size :])
            if len(key) != vault.KEY_BYTES:  # a key service need not notice a slot that was cut
                raise SealBroken("A key slot is not as long as it was.")
            return key
        if not self._file():
            raise SealBroken("This key slot was not wrapped by the key service.")
        return self._former.unwrap(place, slot)

    def rewrap(self, place: SlotPlace, slot: bytes) -> bytes:
        last = self.generations()[-1]
        if _number(slot) == last:
            return slot
        return self.wrap(place, self.unwrap(place, slot))

    def begin(self) -> int:
        number = self.generations()[-1] + 1
        self.make(number)
        return number

    def destroy(self, generation: int) -> None:
        if generation >= self.generations()[-1]:
            raise InvalidRequest("The root key in use is not destroyed: begin another first.")
        for number in self.numbers():
            if number <= generation:
                self.end(number)
        if any(number <= generation for number in self._file()):
            with self._folder.changing():
                self._folder.shred(self._folder.directory / KEY_FILE)
                for number in self._folder.numbered(KEY_FILE):
                    self._folder.shred(self._folder.directory / f"{KEY_FILE}.{number}")

    def _all(self) -> list[int]:
        return sorted({*self._file(), *self.numbers()})

    def _file(self) -> list[int]:
        """The generation of the key file this home had before, if it is still there."""
        raw = self._folder.file(KEY_FILE)
        return [] if raw is None else [read_key(raw)[0]]


def _number(slot: bytes) -> int | None:
    """The generation of a slot of a key service; None for another one's."""
    if len(slot) < _HEAD.size:
        return None
    mark, number = _HEAD.unpack_from(slot)
    return int(number) if mark == _MARK else None


def derives(url: str) -> bool:
    """Whether the address of a root key names a master that wrapping keys are derived from."""
    return f"derive={DERIVE}" in urlsplit(url).query.split("&")


def derivation(number: int, place: SlotPlace) -> bytes:
    """What a master's MAC is taken over for the wrapping key of an owner.

    It is HKDF-Expand: the same `info` as for masters in a file, and a byte of one. A master that is
    in a key service is random, and needs no extraction.
    """
    return vault.derived_info(vault.Purpose.ROOT, place.owner, number) + b"\x01"


def context(place: SlotPlace) -> Iterator[tuple[str, str]]:
    """What a sealed key is bound to: it opens only where it was put."""
    yield "scrubjay", "slot"
    yield "address", place.address
    yield "purpose", place.purpose


def query_of(text: str, known: frozenset[str], example: str) -> Mapping[str, str]:
    """The parameters after the `?` of an address; InvalidRequest for one that is not known."""
    try:
        given = dict(parse_qsl(text, strict_parsing=bool(text)))
    except ValueError:
        given = {"": ""}
    if given.keys() - known - {"cache"}:
        raise InvalidRequest("The address of the root key is not valid.", hint=example)
    return given


def cache_seconds(given: Mapping[str, str]) -> float:
    """How long unwrapped keys are used, from the address of the root key."""
    try:
        seconds = float(given.get("cache", CACHE_SECONDS))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST_CACHE:
        raise InvalidRequest(f"cache= takes seconds, from 0 to {_LONGEST_CACHE:,.0f}.")
    return seconds
