"""A keyring in memory: a fake that keeps the contract of the port."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from scrubjay.model.errors import InvalidRequest, KeyMissing
from scrubjay.model.scope import check_place
from scrubjay.ports import Clock
from scrubjay.vault import KEY_BYTES

_INSTALLATION = ("installation", "root")


class MemoryKeyring:
    """Slots that last as long as the object; share the object to share the keys."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._slots: dict[tuple[str, str], bytes] = {}
        self._lock = threading.Lock()

    place = "the memory of this process"

    def installation(self) -> bytes:
        """The installation key; KeyMissing if there is none."""
        return self.get(*_INSTALLATION)

    def found(self) -> bytes:
        """The installation key, made unless there is one."""
        return self.add(*_INSTALLATION, self._clock.random(KEY_BYTES))

    def add(self, address: str, purpose: str, key: bytes) -> bytes:
        """Keep `key` unless the slot is taken; returns the key the slot holds."""
        if len(key) != KEY_BYTES:
            raise InvalidRequest(f"A key has {KEY_BYTES} bytes.")
        with self._lock:
            return self._slots.setdefault(_slot(address, purpose), key)

    def get(self, address: str, purpose: str) -> bytes:
        """The key in a slot; KeyMissing if there is none."""
        with self._lock:
            key = self._slots.get(_slot(address, purpose))
        if key is None:
            raise KeyMissing("There is no such key slot.")
        return key

    def delete(self, address: str, purpose: str) -> None:
        """Delete a slot for good; an absent one is fine."""
        with self._lock:
            self._slots.pop(_slot(address, purpose), None)

    def purposes(self, address: str) -> Sequence[str]:
        """The purposes of an address that have a slot, sorted."""
        check_place("address", address)
        with self._lock:
            return sorted(purpose for owner, purpose in self._slots if owner == address)

    def remove(self, address: str) -> None:
        """Delete every slot of an address for good."""
        check_place("address", address)
        with self._lock:
            self._slots = {slot: key for slot, key in self._slots.items() if slot[0] != address}


def _slot(address: str, purpose: str) -> tuple[str, str]:
    return check_place("address", address), check_place("purpose", purpose)
