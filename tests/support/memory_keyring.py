"""A keyring in memory, whose wrapper keeps the contract of its port."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from scrubjay.adapters.keyrings.file import LocalWrapper
from scrubjay.adapters.stores.memory import MemorySlots
from scrubjay.engine import Keyring
from scrubjay.model.errors import InvalidRequest, KeyMissing
from scrubjay.ports import Clock, Slots
from scrubjay.vault import KEY_BYTES


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
            self._held = self._held or {1: self.random(KEY_BYTES)}

    def begin(self) -> int:
        with self._lock:
            last = max(self.roots()) + 1
            self._held = {**self._held, last: self.random(KEY_BYTES)}
            return last

    def destroy(self, generation: int) -> None:
        with self._lock:
            if generation >= max(self.roots()):
                raise InvalidRequest("The root key in use is not destroyed.")
            self._held = {one: root for one, root in self._held.items() if one > generation}


def memory_keyring(clock: Clock, slots: Slots | None = None) -> Keyring:
    """A keyring of its own; share the object to share the keys."""
    wrapper = MemoryWrapper(clock.random)
    wrapper.found()
    return Keyring(slots or MemorySlots(), wrapper, clock)
