"""The keyring: random keys in wrapped slots, over the two ports that keep and wrap them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Final, TypeVar

from scrubjay.model.errors import Busy, KeyMissing, SealBroken
from scrubjay.model.scope import Scope, check_place
from scrubjay.ports import Clock, Progress, SlotPlace, Slots, Wrapper, no_progress

INSTALLATION: Final = SlotPlace("installation", "root")
_READ_TRIES: Final = 3
_PAGE: Final = 256
_MOST_HELD: Final = 4096
_KEY_BYTES: Final = 32
_ASKING: Final = 64
"""How many different keys are unwrapped at once by a wrapper that is asked from afar."""
_T = TypeVar("_T")
Owners = Callable[[str], Scope | None]


class Keyring:
    """The keys of one installation: `slots` says where they lie, `wrapper` what wraps them."""

    def __init__(self, slots: Slots, wrapper: Wrapper, clock: Clock) -> None:
        self.slots = slots
        self.wrapper = wrapper
        self._clock = clock
        self._held: OrderedDict[bytes, tuple[bytes, float]] = OrderedDict()
        """Bounded cache of unwrapped keys by slot, for a wrapper that is asked from afar."""
        self._mutex = threading.Lock()
        self._asking = [threading.Lock() for _ in range(_ASKING)]

    @property
    def place(self) -> str:
        """Where the keys are looked for, as a person would say it."""
        return self.slots.place

    def installation(self) -> bytes:
        """The installation key; KeyMissing if there is none."""
        return self.get(INSTALLATION.address, INSTALLATION.purpose)

    def check(self) -> None:
        """KeyMissing unless the installation key is still there; a key service is not asked."""
        if self.wrapper.seconds == inf:
            self.installation()
        elif INSTALLATION.purpose not in self.purposes(INSTALLATION.address):
            raise KeyMissing(f"There is no installation key in {self.place}.")

    def found(self) -> bytes:
        """The installation key, made unless there is one; every process gets the same one.

        Nothing else makes a keyring where there was none.
        """
        try:
            return self.installation()
        except KeyMissing:
            if not self.slots.addresses("", 1):
                self.wrapper.found()
            key = self._clock.random(_KEY_BYTES)
            return self.add(INSTALLATION.address, INSTALLATION.purpose, key)

    def wrap(self, place: SlotPlace, key: bytes) -> bytes:
        """A key as a slot under the present generation."""
        return self.wrapper.wrap(place, key)

    def unwrap(self, place: SlotPlace, slot: bytes) -> bytes:
        """The key in a slot, from the cache if it was unwrapped lately."""
        seconds = self.wrapper.seconds
        if seconds == inf:  # it is at hand, and asking costs microseconds
            return self.wrapper.unwrap(place, slot)
        # Of many threads that need a key at once, one asks; others wait for its answer.
        with self._asking[hash(slot) % _ASKING]:
            now = self._clock.monotonic()
            with self._mutex:
                key, until = self._held.get(slot, (b"", -inf))
                if now < until:
                    return key
            key = self.wrapper.unwrap(place, slot)
            with self._mutex:
                self._held[slot] = key, now + seconds
                self._held.move_to_end(slot)
                while len(self._held) > _MOST_HELD:
                    self._held.popitem(last=False)
        return key

    def add(self, address: str, purpose: str, key: bytes, owner: Scope | None = None) -> bytes:
        """Keep `key` unless the slot is taken; returns the key the slot holds, durable."""
        self.wrapper.admit()
        place = SlotPlace(address, purpose, owner)
        mine = b""

        def wrap() -> bytes:
            nonlocal mine
            mine = self.wrapper.wrap(place, key)
            return mine

        slot = self.slots.add(address, purpose, wrap)
        if slot != mine:  # what another process has just made may not open at once
            return self.get(address, purpose, owner)
        self.keep(place, slot, key)
        return key

    def keep(self, place: SlotPlace, slot: bytes, key: bytes) -> None:
        """Wrap a slot anew that was just added, if another generation has begun meanwhile.

        A wrapper is not locked with the slots, and so the one that wrapped it may be destroyed.
        """
        if self.wrapper.generation_of(place, slot) != self.generation:
            self.slots.exchange(place.address, place.purpose, slot, self.wrapper.wrap(place, key))

    def get(self, address: str, purpose: str, owner: Scope | None = None) -> bytes:
        """The key in a slot; KeyMissing if there is none."""
        place = SlotPlace(address, check_place("purpose", purpose), owner)

        def open_it(settled: bool) -> bytes:
            slot = self.slots.read(address, settled=settled).get(purpose)
            if slot is None:
                raise KeyMissing(f"There is no such key slot in {self.place}.")
            return self.unwrap(place, slot)

        self.wrapper.admit()
        return self._steady(open_it)

    def read(self, address: str) -> Mapping[str, bytes]:
        """Every slot of an address by purpose, still wrapped."""
        self.wrapper.admit()
        return self.slots.read(address)

    def purposes(self, address: str) -> Sequence[str]:
        """The purposes of an address that have a slot, sorted."""
        return list(self.read(address))

    def delete(self, address: str, *purposes: str) -> None:
        """Delete slots for good, durably; absent ones are fine."""
        self.wrapper.admit()
        self.slots.delete(address, purposes)

    def remove(self, address: str) -> None:
        """Delete every slot of an address for good, durably."""
        self.wrapper.admit()
        self.slots.remove(address)

    def check_deletable(self) -> None:
        """Raise what a deletion would raise now, such as Busy; nothing is changed."""
        self.wrapper.admit()
        self.slots.check_deletable()

    # -- generations of the root key -----------------------------------------------------

    @property
    def generation(self) -> int:
        """The generation of the root key that wraps now."""
        return self.wrapper.generations()[-1]

    def rewrap(
        self, owners: Owners = lambda _: None, *, progress: Progress = no_progress
    ) -> tuple[int, int]:
        """Wrap every slot under the present generation; how many were, and how many are left.

        What is left does not open, and never will: it is damaged, or was deleted half. It may be
        repeated; a slot that is added meanwhile is under the present generation already. On
        return each that opens was seen under it: the ones before may be destroyed.
        """
        done = left = 0
        addresses = list(self.addresses())
        for number, address in enumerate(addresses):
            owner = owners(address)
            for _ in range(_READ_TRIES):
                more, broken, changed = self._rewrap(address, owner)
                done += more
                if not broken and not changed:
                    break
            if changed:
                raise Busy("A key slot was changed by others again and again; repeat it.")
            left += broken
            progress(number + 1, len(addresses))
        return done, left

    def _rewrap(self, address: str, owner: Scope | None) -> tuple[int, int, int]:
        """How many slots were wrapped anew, did not open just now, and were changed meanwhile."""
        done = broken = behind = 0
        for purpose, slot in self.slots.read(address, settled=self.slots.beside_rows).items():
            try:
                new = self.wrapper.rewrap(SlotPlace(address, purpose, owner), slot)
            except SealBroken:
                broken += 1
                continue
            behind += new != slot
            done += new != slot and self.slots.exchange(address, purpose, slot, new)
        return done, broken, behind - done

    def retire(self) -> None:
        """Wrap every slot under the present generation, and destroy those before it."""
        self.rewrap()
        self.wrapper.destroy(self.generation - 1)

    def prove(self) -> None:
        """Open every slot; SealBroken for the first that does not."""
        for address in self.addresses():
            for purpose in self.slots.read(address):
                self.get(address, purpose)

    def addresses(self) -> Iterator[str]:
        """Every address that has slots, those of no scope among them."""
        after = ""
        while page := self.slots.addresses(after, _PAGE):
            yield from page
            after = page[-1]

    def _steady(self, read: Callable[[bool], _T]) -> _T:
        """What is read, again while it does not open, at last when no deleter is at work."""
        for _ in range(_READ_TRIES):
            with suppress(SealBroken):
                return read(False)
        return read(True)
