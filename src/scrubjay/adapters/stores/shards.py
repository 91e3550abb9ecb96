"""Several databases as one store: each scope is in one of them, and may be moved while in use.

The first, `home`, has the catalog, the shared values and the place of every scope, a shared value
`place/<address>` without an end; a scope without one is at home if it is there. Each node remembers
places. One that is out of date finds nothing there, or a head that says `MOVED`, and looks again:
what decides is the database a scope is in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from itertools import chain
from typing import Any, Final, TypeVar

from scrubjay.model.errors import NotFound, OutcomeUnknown, StoreError
from scrubjay.model.results import FileInspection
from scrubjay.model.rows import MOVED, OPENING, Due, Head
from scrubjay.ports import (
    Arrive,
    Catalog,
    Result,
    Shared,
    Slots,
    Store,
    Tx,
    View,
    commit,
    every_entry,
)

HOME: Final = "home"
_FOREVER: Final = 2.0**40
_TRIES: Final = 16
_Answer = TypeVar("_Answer")


class _Moved(Exception):
    """The scope is in another database now."""


class _Lacking(Exception):
    """What a work did not find in a scope that is here."""

    def __init__(self, lacking: NotFound) -> None:
        super().__init__()
        self.lacking = lacking


class ShardedStore:
    """Store over several; new scopes are spread evenly, by the hash of their address."""

    def __init__(
        self,
        home: Store,
        others: Mapping[str, Store],
        *,
        arrive: Arrive,
        at_home: frozenset[str] = frozenset(),
    ) -> None:
        self.home = home
        self._arrive = arrive
        self._at_home = at_home
        """Addresses of no scope."""
        self._stores = {HOME: home, **others}
        self._places: dict[str, str] = {}
        self._slots = ShardSlots(self)

    @property
    def catalog(self) -> Catalog:
        """The catalog of this installation."""
        return self.home.catalog

    @property
    def shared(self) -> Shared:
        """Small values that all nodes share."""
        return self.home.shared

    @property
    def slots(self) -> Slots:
        """The slots, each beside the rows of its scope."""
        return self._slots

    # -- where a scope is ------------------------------------------------------------------

    def names(self) -> Sequence[str]:
        """The names of the databases, sorted."""
        return sorted(self._stores)

    def named(self, name: str) -> Store:
        """The database of a name; NotFound if none is configured under it."""
        try:
            return self._stores[name]
        except KeyError:
            raise NotFound(
                f"No shard named {name} is configured here.",
                hint=f"There are: {', '.join(self.names())}.",
            ) from None

    def place(self, address: str) -> str:
        """The name of the database a scope is in, or would be made in."""
        if address in self._at_home:
            return HOME
        if address not in self._places:
            told = self.shared.get(f"place/{address}", 0.0)
            if told is None:
                return self._chosen(address)
            self._places[address] = told.decode()
        return self._places[address]

    def _chosen(self, address: str) -> str:
        """Where a scope without a place is: at home from before there were others, or nowhere yet.

        Rendezvous hashing: another database takes its share, and no scope else moves.
        """
        if self.home.exists(address) or (self.home.slots and self.home.slots.read(address)):
            self._note(address, None, HOME)
            return HOME
        weigh = hashlib.sha256
        return max(self.names(), key=lambda name: weigh(f"{name}/{address}".encode()).digest())

    def settle_place(self, address: str) -> str:
        """The place of a scope that is about to be made; every node is told the same."""
        if address in self._at_home:
            return HOME
        if self.shared.get(f"place/{address}", 0.0) is None:
            self._note(address, None, self._chosen(address))
        self._places.pop(address, None)
        return self.place(address)

    def find(self, address: str) -> str:
        """The name of the database a scope turns out to be in; NotFound if it is in none."""

        def call(store: Store) -> str:
            _check_here(store.head(address))
            return self._name(store)

        return self.on(address, call)

    def _name(self, store: Store) -> str:
        return next(name for name, one in self._stores.items() if one is store)

    def replace_place(self, address: str, name: str) -> None:
        """Note that a scope is in another database now."""
        while (old := self.shared.get(f"place/{address}", 0.0)) != name.encode():
            self._note(address, old, name)
        self._places[address] = name

    def _note(self, address: str, old: bytes | None, name: str) -> None:
        until = _FOREVER
        self.shared.exchange(f"place/{address}", old, name.encode(), now=0.0, until=until)

    def look_again(self, address: str, before: str) -> bool:
        """Whether the scope turns out to be somewhere else than where it was looked for.

        Whoever moved it may have been killed before it arrived there, or before noting so.
        """
        store, onward = self.named(before), b""
        with suppress(NotFound):
            if Due.MOVED in store.head(address).due:
                with store.read(address) as view:
                    onward, key = view.value(MOVED) or b"", view.value(OPENING)
                if key is not None:
                    self._arrive(self.named(onward.decode()), address, key)
        self._places.pop(address, None)
        if self.place(address) != before:
            return True
        if onward:
            told = self.shared.get(f"place/{address}", 0.0)
            if told in {None, before.encode()}:
                self._note(address, told, onward.decode())
            self._places.pop(address, None)
        return bool(onward)

    def on(self, address: str, call: Callable[[Store], _Answer]) -> _Answer:
        """Carry out a call on the database of a scope, wherever it is by now."""
        for _ in range(_TRIES):
            place = self.place(address)
            try:
                return call(self.named(place))
            except (NotFound, _Moved):
                # By now it may even be back where it was.
                if not self.look_again(address, place) and not self.named(place).exists(address):
                    raise NotFound("There is no such scope in this store.") from None
        raise StoreError("A scope was moved again and again.")

    # -- the port ----------------------------------------------------------------------------

    def create(self, address: str) -> None:
        self.settle_place(address)
        self.on(address, lambda store: store.create(address))

    def exists(self, address: str) -> bool:
        def call(store: Store) -> bool:
            _check_here(store.head(address))
            return True

        try:
            return self.on(address, call)
        except NotFound:
            return False

    def head(self, address: str) -> Head:
        return self.on(address, lambda store: _check_here(store.head(address)))

    def read(self, address: str) -> AbstractContextManager[View]:
        if not self.exists(address):
            raise NotFound("There is no such scope in this store.")
        return _LazyView(self, address)

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        def here(tx: Tx) -> Result:
            _check_here(tx.head())
            try:
                return work(tx)
            except NotFound as error:
                raise _Lacking(error) from error

        def call(store: Store) -> Result:
            try:
                return store.write(address, here, erasing=erasing)
            except OutcomeUnknown as error:
                # The number of a transaction says something in its own database alone.
                told = f"{self._name(store)}:{error.commit}"
                raise OutcomeUnknown(error.message, commit=told) from error

        try:
            return self.on(address, call)
        except _Lacking as error:
            raise error.lacking from None

    def resolve(self, address: str, commit: str) -> bool | None:
        """By the database it was sent to, wherever the scope is by now."""
        name, _, number = commit.partition(":")
        return self._stores[name].resolve(address, number) if name in self._stores else None

    def lasting(self, address: str) -> bool:
        return self.on(address, lambda store: store.lasting(address))

    def warnings(self) -> Sequence[str]:
        return [
            f"{name}: {sentence}"
            for name, store in self._stores.items()
            for sentence in store.warnings()
        ]

    def make_room(self) -> None:
        for store in self._stores.values():
            store.make_room()

    def settle(self, address: str) -> None:
        self.on(address, lambda store: store.settle(address))

    def size(self, address: str) -> int:
        return self.on(address, lambda store: store.size(address))

    def check(self, address: str) -> Sequence[str]:
        return self.on(address, lambda store: store.check(address))

    def inspect(self, address: str) -> FileInspection:
        return self.on(address, lambda store: store.inspect(address))

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        """Of every database: what a move left behind would be there, too."""
        return chain.from_iterable(store.raw(address) for store in self._stores.values())

    def remove(self, address: str) -> None:
        for store in self._stores.values():
            store.remove(address)

    def strays(self) -> Sequence[str]:
        return [
            f"A scope of the catalog has lost its rows: {entry.address}."
            for entry in every_entry(self.catalog)
            if not entry.destroyed and not self.exists(entry.address)
        ]

    def close(self) -> None:
        for store in self._stores.values():
            store.close()


def _check_here(head: Head) -> Head:
    if Due.MOVED in head.due:
        raise _Moved
    return head


class _LazyView:
    """A view that begins with its first read, in the database the scope is in by then."""

    def __init__(self, store: ShardedStore, address: str) -> None:
        self._store = store
        self._address = address
        self._stack = ExitStack()
        self._view: View | None = None

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __getattr__(self, name: str) -> Any:
        if self._view is None:
            self._view = self._store.on(self._address, self._begin)
        return getattr(self._view, name)

    def _begin(self, store: Store) -> View:
        with ExitStack() as stack:
            view = stack.enter_context(store.read(self._address))
            _check_here(view.head())
            self._stack = stack.pop_all()
        return view


class ShardSlots:
    """The slots of every scope, where its rows are; those of no scope are at home."""

    place = "the databases"
    beside_rows = True
    traceless = False

    def __init__(self, store: ShardedStore) -> None:
        self._store = store

    def read(self, address: str, *, settled: bool = False) -> Mapping[str, bytes]:
        """A scope without any may have been moved: then it is looked for again.

        So it is if they are to be all: one that is just being added may lie where the scope was.
        """
        while True:
            place = self._store.place(address)
            found = self._of(place).read(address, settled=settled)
            if found and not settled:
                return found
            if not self._store.look_again(address, place):  # it may have arrived just now
                return self._of(place).read(address, settled=settled)

    def add(self, address: str, purpose: str, wrap: Callable[[], bytes]) -> bytes:
        """What is added behind a move that is just being made is added again where it went."""
        self._store.settle_place(address)
        while True:
            place = self._store.place(address)
            kept = self._of(place).add(address, purpose, wrap)
            if not self._store.look_again(address, place):
                return kept
            self._withdraw(address, purpose, self._store.named(place))

    def _withdraw(self, address: str, purpose: str, store: Store) -> None:
        """Take back what was added where the scope is not, unless it is there again by now."""

        def work(tx: Tx) -> None:
            if Due.MOVED in tx.head().due:
                tx.set_slot(purpose, None)

        try:
            commit(store, address, work)
        except NotFound:
            assert store.slots is not None
            store.slots.delete(address, [purpose])

    def exchange(self, address: str, purpose: str, old: bytes, new: bytes) -> bool:
        for _ in range(_TRIES):
            place = self._store.place(address)
            done = self._of(place).exchange(address, purpose, old, new)
            if self._store.look_again(address, place):
                continue
            # It may have been away only then.
            if done or self.read(address, settled=True).get(purpose) != old:
                return done
        raise StoreError("A scope was moved again and again.")

    def delete(self, address: str, purposes: Iterable[str]) -> None:
        """Everywhere, and again if a move took one along just then."""
        gone = list(purposes)
        while True:
            for name in self._store.names():
                self._of(name).delete(address, gone)
            if not self.read(address).keys() & gone:
                return

    def remove(self, address: str) -> None:
        for name in self._store.names():
            self._of(name).remove(address)

    def addresses(self, after: str, limit: int) -> Sequence[str]:
        """Those of the catalog, too, so that another root key wraps the slots of all scopes.

        The slots of a copy that has not arrived are none yet; whoever reads them lets it arrive.
        """
        found = [self._of(name).addresses(after, limit) for name in self._store.names()]
        found.append([entry.address for entry in self._store.catalog.entries(after, limit)])
        return sorted(set(chain.from_iterable(found)))[:limit]

    def check_deletable(self) -> None:
        for name in self._store.names():
            self._of(name).check_deletable()

    def _of(self, name: str) -> Slots:
        slots = self._store.named(name).slots
        assert slots is not None
        return slots
