"""The keys of one open scope: its slots, read once, and what was unwrapped and derived of them."""

from __future__ import annotations

import threading
from contextlib import suppress
from math import inf

from scrubjay import vault
from scrubjay.engine.scope.keyring import Keyring
from scrubjay.engine.scope.provisions import Provisions
from scrubjay.model.errors import SealBroken
from scrubjay.model.rows import Collection
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock, SlotPlace
from scrubjay.vault import Purpose, Sealer

LOOKUP = "lookup"


def slot(collection: Collection, epoch: int) -> str:
    """The keyring purpose of one epoch key."""
    return f"{collection.value}.{epoch}"


class ScopeKeys:
    """Keys and sealers of an open scope, held for as long as the wrapper allows; thread-safe."""

    def __init__(self, keyring: Keyring, clock: Clock, scope: Scope, address: str) -> None:
        self._keyring = keyring
        self._clock = clock
        self._scope = scope
        self._address = address
        self._mutex = threading.Lock()
        self._secrets: dict[tuple[Collection, int], bytes] = {}
        self.sealers: dict[tuple[Collection, Purpose, int], Sealer] = {}
        """Cache of the sealers that `sealer` made."""
        self._slots = keyring.read(address)
        self._seconds = keyring.wrapper.seconds
        self._until = self._clock.monotonic() + self._seconds
        self.beside_rows = keyring.slots.beside_rows
        """Whether a transaction changes the slots together with the head."""
        self.lookup = self._unwrapped(LOOKUP)

    def renew(self) -> None:
        """Drop keys that were held for as long as the wrapper allows, and ask for them again.

        KeyUnavailable if it does not give them; then nothing of the scope is opened any more.
        """
        if self._seconds == inf or self._clock.monotonic() < self._until:
            return
        self._slots = self._keyring.read(self._address)
        with self._mutex:
            self._secrets.clear()
            self.sealers.clear()
        self._unwrapped(LOOKUP)
        self._until = self._clock.monotonic() + self._seconds

    def held(self, collection: Collection, epoch: int) -> bool:
        """Whether an epoch key is at hand."""
        return (collection, epoch) in self._secrets

    def secret(self, collection: Collection, epoch: int) -> bytes:
        """An epoch key; KeyMissing if it is gone."""
        if (found := self._secrets.get((collection, epoch))) is None:
            found = self._unwrapped(slot(collection, epoch))
            self.hold({(collection, epoch): found})
        return found

    def hold(self, secrets: dict[tuple[Collection, int], bytes]) -> None:
        """Keep epoch keys at hand."""
        if secrets:
            with self._mutex:
                self._secrets |= secrets

    def sealer(
        self, collection: Collection, purpose: Purpose, epoch: int, ahead: Provisions | None
    ) -> Sealer:
        """The sealer for one purpose and epoch; a key nobody may use yet is not kept."""
        fresh = None if ahead is None else ahead.keys.get((collection, epoch))
        secret = fresh or self.secret(collection, epoch)
        sealer = Sealer(secret, purpose, self._scope, collection.value, epoch)
        if fresh is None:
            with self._mutex:
                self.sealers[collection, purpose, epoch] = sealer
        return sealer

    def add(self, collection: Collection, epoch: int) -> None:
        """Keep a key for an epoch in its slot, unless that is taken; the one in it is at hand."""
        key, name = self._clock.random(vault.KEY_BYTES), slot(collection, epoch)
        kept = self._keyring.add(self._address, name, key, self._scope)
        self.hold({(collection, epoch): kept})

    def make(self, name: str) -> tuple[bytes, bytes]:
        """A new key, and the same wrapped, for the transaction that keeps it in a slot."""
        key = self._clock.random(vault.KEY_BYTES)
        place = SlotPlace(self._address, name, self._scope)
        return key, self._keyring.wrapper.wrap(place, key)

    def drop(self, collection: Collection, below: int) -> None:
        """Drop the keys of epochs that have been rotated away."""
        with self._mutex:
            for name in [n for n in self.sealers if n[0] is collection and n[2] < below]:
                del self.sealers[name]
            for key in [k for k in self._secrets if k[0] is collection and k[1] < below]:
                del self._secrets[key]
            gone = {slot(collection, epoch) for epoch in range(below)}
            self._slots = {name: one for name, one in self._slots.items() if name not in gone}

    def _unwrapped(self, purpose: str) -> bytes:
        """The key in a slot: they are read once, and again for one that is newer."""
        if (wrapped := self._slots.get(purpose)) is not None:
            place = SlotPlace(self._address, purpose, self._scope)
            with suppress(SealBroken):  # its generation was destroyed since it was read
                return self._keyring.unwrap(place, wrapped)
        return self._keyring.get(self._address, purpose, self._scope)
