"""A keyring in memory: slots and a wrapper that keep the contracts of their ports."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from scrubjay.adapters.keyrings.file import LocalWrapper
from scrubjay.engine import Keyring
from scrubjay.model.errors import InvalidRequest, KeyMissing
from scrubjay.model.scope import check_place
from scrubjay.ports import Clock
from scrubjay.vault import KEY_BYTES


class MemorySlots:
    """Slots that last as long as the object; share the object to share them."""

    place = "the memory of this process"
    beside_rows = False
    traceless = True

    def __init__(self) -> None:
        self._slots: dict[tuple[str, str], bytes] = {}
        self._lock = threading.Lock()

    def read(self, address: str, *, settled: bool = False) -> Mapping[str, bytes]:
        del settled
        check_place("address", address)
        with self._lock:
            return {
                name: slot
                for (owner, name), slot in sorted(self._slots.items())
                if owner == address
            }

    def add(self, address: str, purpose: str, wrap: Callable[[], bytes]) -> bytes:
        place = _place(address, purpose)
        with self._lock:
            return self._slots.setdefault(place, wrap())

    def exchange(self, address: str, purpose: str, old: bytes, new: bytes) -> bool:
        place = _place(address, purpose)
        with self._lock:
            held = self._slots.get(place) == old
            if held:
                self._slots[place] = new
            return held

    def delete(self, address: str, purposes: Iterable[str]) -> None:
        places = [_place(address, purpose) for purpose in purposes]
        with self._lock:
            for place in places:
                self._slots.pop(place, None)

    def remove(self, address: str) -> None:
        check_place("address", address)
        with self._lock:
            self._slots = {slot: key for slot, key in self._slots.items() if slot[0] != address}

    def addresses(self, after: str, limit: int) -> Sequence[str]:
        with self._lock:
            found = {address for address, _ in self._slots}
        return sorted(address for address in found if address > after)[:limit]

    def check_deletable(self) -> None:
        """Always."""


class MemoryWrapper(LocalWrapper):
    """Root keys that last as long as the object."""

    def __init__(self, random: Callable[[int], bytes]) -> None:
        super().__init__(random)
        self._held: dict[int, bytes] = {}
        self._lock = threading.Lock()

    def roots(self) -> Mapping[int, bytes]:
        if not self._held:
            raise KeyMissing("There is no root key.")
        return self._held

    def admit(self) -> None:
        """Never locked."""

    def found(self) -> None:
        with self._lock:
            self._held = self._held or {1: self._random(KEY_BYTES)}

    def begin(self) -> int:
        with self._lock:
            last = max(self.roots()) + 1
            self._held = {**self._held, last: self._random(KEY_BYTES)}
            return last

    def destroy(self, generation: int) -> None:
        with self._lock:
            if generation >= max(self.roots()):
                raise InvalidRequest("The root key in use is not destroyed.")
            self._held = {one: root for one, root in self._held.items() if one > generation}


def memory_keyring(clock: Clock) -> Keyring:
    """A keyring of its own; share the object to share the keys."""
    return Keyring(MemorySlots(), MemoryWrapper(clock.random), clock)


def _place(address: str, purpose: str) -> tuple[str, str]:
    return check_place("address", address), check_place("purpose", purpose)
