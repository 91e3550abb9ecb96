"""Gates within one process: something happens exactly when somebody comes by a named place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from scrubjay import bootstrap
from scrubjay.engine import Kernel, Keyring, Policy
from scrubjay.engine.scope.lifecycle import locate
from scrubjay.model.pages import Paged
from scrubjay.ports import Blobs, Result, SlotPlace, Store, Tx
from tests.acceptance.peers import ALICE
from tests.support.engines import SqliteHome, home_settings


class Gate:
    """A named place where something happens the first time somebody comes by."""

    def __init__(self, name: str, action: Callable[[], object]) -> None:
        self.name = name
        self.passed = False
        self._action = action

    def __call__(self, reached: str) -> None:
        if reached == self.name and not self.passed:
            self.passed = True
            self._action()


def gated(home: SqliteHome, gate: Gate, policy: Policy | None = None) -> Kernel:
    """An engine of the home with a gate on its way."""
    found = home_settings(home.folder)
    return bootstrap.build(found, clock=home.clock, reach=gate, policy=policy)


def reading_through(engine: Kernel, gate: Gate) -> Kernel:
    """The engine, stopped when it has taken rows and asks for the key to open them."""
    return Kernel(replace(engine._ports, keyring=AskedFirst(engine._ports.keyring, gate)))


class AskedFirst:
    """A keyring that lets a gate pass before it hands out an epoch key."""

    def __init__(self, keyring: Keyring, gate: Gate) -> None:
        self._keyring = keyring
        self._gate = gate

    def unwrap(self, place: SlotPlace, slot: bytes) -> bytes:
        """The key in a slot, as it is once the gate was passed."""
        if place.purpose.startswith("memory."):
            self._gate("reader.rows-taken")
            return self._keyring.get(place.address, place.purpose, place.owner)
        return self._keyring.unwrap(place, slot)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._keyring, name)


def loading_through(engine: Kernel, gate: Gate) -> Kernel:
    """The engine, stopped when it has the columns of a segment and asks for the rest of it."""
    return Kernel(replace(engine._ports, blobs=ColumnsFirst(engine._ports.blobs, gate)))


class ColumnsFirst:
    """Blobs that let a gate pass before they hand out the second one."""

    def __init__(self, blobs: Blobs, gate: Gate) -> None:
        self._blobs = blobs
        self._gate = gate
        self._given = 0

    def get(self, address: str, name: str) -> bytes:
        """A blob, as it is once the gate was passed."""
        if self._given == 1:
            self._gate("reader.columns-loaded")
        self._given += 1
        return self._blobs.get(address, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)


def writing_through(engine: Kernel, gate: Gate) -> Kernel:
    """The engine, stopped when it is about to begin a transaction on Alice's scope."""
    address, _ = locate(engine._ports, ALICE)
    return Kernel(replace(engine._ports, store=WaitsToWrite(engine._ports.store, gate, address)))


class WaitsToWrite:
    """A store that lets a gate pass before a transaction on one scope begins."""

    def __init__(self, store: Store, gate: Gate, address: str) -> None:
        self._store = store
        self._gate = gate
        self._address = address

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        """A transaction on what is there once the gate was passed."""
        if address == self._address:
            self._gate("writer.begins")
        return self._store.write(address, work, erasing=erasing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Follower:
    """A reader that keeps a copy of a scope by what `follow` tells it."""

    def __init__(self, engine: Kernel) -> None:
        self.engine = engine
        self.times_anew = 0
        self._cursor: str | None = None
        self._copy: dict[str, str] = {}

    def copy(self) -> Follower:
        """Another reader that knows as much and sleeps from now on."""
        other = Follower(self.engine)
        other._cursor, other._copy = self._cursor, dict(self._copy)
        return other

    @property
    def contents(self) -> set[str]:
        """What the copy holds."""
        return set(self._copy.values())

    def look(self) -> None:
        """Bring the copy up to date."""
        changes = self.engine.follow(ALICE, Paged(1000, cursor=self._cursor))
        if changes.anew:
            self.times_anew += 1
            self._copy = {}
        self._copy |= {one.row: one.memory.content for one in changes.changes if one.memory}
        for erased in changes.erased:
            self._copy.pop(erased, None)
        self._cursor = changes.next_cursor
