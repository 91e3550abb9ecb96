"""Derived wrapping keys: HKDF of a master, one for each owner and generation."""

from __future__ import annotations

from collections.abc import Mapping

from scrubjay import vault
from scrubjay.adapters.keyrings.file import LocalWrapper
from scrubjay.ports import SlotPlace
from scrubjay.vault import Purpose


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

    def admit(self) -> None:
        self._masters.admit()

    def found(self) -> None:
        self._masters.found()

    def begin(self) -> int:
        return self._masters.begin()

    def destroy(self, generation: int) -> None:
        self._masters.destroy(generation)
