"""What is readable of one open scope, in memory only: its keys, and memories decrypted lately.

Decrypting a memory takes longer than ranking it, and an agent asks about the same things again. The
LRU cache of them is plaintext, but no more exposed than the keys beside it; it is emptied at the
first notice of an erasure, and when the scope is closed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from functools import partial
from math import inf
from typing import Final

from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.scope.keyring import Keyring
from scrubjay.engine.scope.provisions import Made, Provisions
from scrubjay.model.errors import SealBroken, UserLocked
from scrubjay.model.memory import Memory
from scrubjay.model.rows import Collection
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock, SlotPlace
from scrubjay.vault import Purpose, Sealer

LOOKUP = "lookup"
USER_HELD: Final = 2**30
"""The first user-held epoch: from here on a slot holds one half of a key, and the user the other.

So whoever has the number of an epoch knows what its key is made of, and no process that missed the
change can seal under half a key.
"""


def slot(collection: Collection, epoch: int) -> str:
    """The keyring purpose of one epoch key."""
    return f"{collection.value}.{epoch}"


def epochs(names: Iterable[str], collection: Collection) -> list[int]:
    """The epochs of a collection that have a slot among these names, ascending."""
    parts = (name.partition(".") for name in names)
    return sorted(int(epoch) for name, _, epoch in parts if name == collection.value)


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
        self._half: bytearray | None = None
        self._half_until = self._half_seconds = 0.0
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
            found = self._whole(epoch, self._unwrapped(slot(collection, epoch)))
            self.hold({(collection, epoch): found})
        return found

    # -- the user's half -----------------------------------------------------------------

    @property
    def half(self) -> bytes:
        """The user's half of the keys; UserLocked while it is not here."""
        with self._mutex:
            if self._half is None:
                raise UserLocked(f"The memory of {self._scope} is locked by its user.")
            return bytes(self._half)

    @property
    def locked(self) -> bool:
        """Whether the user's half is not here."""
        return self._half is None

    def take_half(self, half: bytes, seconds: float) -> None:
        """Keep the user's half, until it was not used for some seconds."""
        with self._mutex:
            self._half, self._half_seconds = bytearray(half), seconds
        self.touch()

    def touch(self) -> None:
        """Note a use of the user's half."""
        self._half_until = self._clock.monotonic() + self._half_seconds

    @property
    def lapsed(self) -> bool:
        """Whether the user's half is here, and was not used for too long."""
        return self._half is not None and self._clock.monotonic() >= self._half_until

    def lock(self) -> None:
        """Drop the user's half, overwriting it, and every key that was made with it."""
        with self._mutex:
            if self._half is not None:
                self._half[:] = bytes(len(self._half))
            self._half = None
            self._secrets = {at: one for at, one in self._secrets.items() if at[1] < USER_HELD}
            self.sealers = {at: one for at, one in self.sealers.items() if at[2] < USER_HELD}

    def _whole(self, epoch: int, kept: bytes) -> bytes:
        """The key of an epoch, by what its slot holds."""
        return kept if epoch < USER_HELD else vault.with_half(self.half, kept)

    def hold(self, secrets: dict[tuple[Collection, int], bytes], made: Made = {}) -> None:  # noqa: B006
        """Keep epoch keys at hand; of those that were made, the slots are kept by now."""
        for name in {slot(*one) for one in secrets} & made.keys():
            made[name][2]()
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
        self.hold({(collection, epoch): self._whole(epoch, kept)})

    def make(self, collection: Collection, epoch: int) -> tuple[bytes, bytes, Callable[[], None]]:
        """A new key, its slot for the transaction that keeps it there, and a call after that."""
        key = self._clock.random(vault.KEY_BYTES)
        place = SlotPlace(self._address, slot(collection, epoch), self._scope)
        wrapped = self._keyring.wrapper.wrap(place, key)
        return self._whole(epoch, key), wrapped, partial(self._keyring.keep, place, wrapped, key)

    def drop(self, collection: Collection, below: int) -> None:
        """Drop the keys of epochs that have been rotated away."""
        with self._mutex:
            for name in [n for n in self.sealers if n[0] is collection and n[2] < below]:
                del self.sealers[name]
            for key in [k for k in self._secrets if k[0] is collection and k[1] < below]:
                del self._secrets[key]
            past = {slot(collection, one) for one in epochs(self._slots, collection) if one < below}
            self._slots = {name: one for name, one in self._slots.items() if name not in past}

    def _unwrapped(self, purpose: str) -> bytes:
        """The key in a slot: they are read once, and again for one that is newer."""
        if (wrapped := self._slots.get(purpose)) is not None:
            place = SlotPlace(self._address, purpose, self._scope)
            with suppress(SealBroken):  # its generation was destroyed since it was read
                return self._keyring.unwrap(place, wrapped)
        return self._keyring.get(self._address, purpose, self._scope)


# -- decrypted memories ----------------------------------------------------------------------------

_OVERHEAD: Final = 1_000
"""Approximate bytes of a memory beside its texts."""
_NEVER: Final = -1
"""A seq that no state has."""


class PlaintextCache:
    """LRU cache of decrypted memories by row id, within a budget of bytes; thread-safe.

    Entries are valid at the change `seq`, and returned only to a reader of that state.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._held: OrderedDict[bytes, tuple[Memory, int]] = OrderedDict()
        self._seq = 0
        self._erased = 0
        self._size = 0
        self._mutex = threading.Lock()

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return self._size

    def get(self, row_id: bytes, seq: int) -> Memory | None:
        """The memory of a row in the state at this change, if it is here."""
        with self._mutex:
            if seq != self._seq or row_id not in self._held:
                return None
            self._held.move_to_end(row_id)
            return _copied(self._held[row_id][0])

    def put(self, row_id: bytes, memory: Memory, seq: int) -> None:
        """Cache a memory that was read in the state at this change.

        It is ignored if a later state was seen meanwhile: the memory may have changed.
        """
        memory, size = _copied(memory), _size(memory)
        with self._mutex:
            if seq != self._seq or size > self._budget:
                return
            self._take(row_id)
            self._held[row_id] = (memory, size)
            self._size += size
            while self._size > self._budget:
                self._take(next(iter(self._held)))

    def follow(self, seq: int, changed: Iterable[bytes]) -> None:
        """Invalidate the memories that changed up to a change."""
        with self._mutex:
            for row_id in changed:
                self._take(row_id)
            self._seq = seq

    def clear(self) -> None:
        """Empty the cache."""
        with self._mutex:
            self._held.clear()
            self._size = 0

    def noticed(self, erased: int) -> None:
        """Empty the cache if something was erased since the last call.

        Nothing is cached until the index has caught up: a reader of the state before the erasure
        would put erased memories back.
        """
        if erased > self._erased:
            self.clear()
            with self._mutex:
                self._erased, self._seq = erased, _NEVER

    def _take(self, row_id: bytes) -> None:
        gone = self._held.pop(row_id, None)
        self._size -= 0 if gone is None else gone[1]


def _copied(memory: Memory) -> Memory:
    """A copy of the memory with its own metadata, its only mutable part."""
    if not memory.metadata:
        return memory
    return replace(memory, metadata=deepcopy(dict(memory.metadata)))


def _size(memory: Memory) -> int:
    """Approximate size of a memory in bytes."""
    texts = (memory.content, *memory.tags, *memory.sources)
    metadata = len(repr(memory.metadata)) if memory.metadata else 0
    return _OVERHEAD + 2 * sum(map(len, texts)) + 4 * metadata
