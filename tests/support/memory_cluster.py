"""The memory store behind a network: latency, lost answers, failover to an older copy, many nodes.

What a real database of several machines does to its clients, where a test decides when it happens.
`MemoryCluster` is the primary with its standby, and each `MemoryNode` is a client of it: a store
that keeps the contract of the port, with slots beside the rows.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, TypeVar

from scrubjay.adapters.stores.memory import MemoryStore
from scrubjay.model.errors import Busy, OutcomeUnknown, StoreError
from scrubjay.model.results import FileInspection
from scrubjay.model.rows import Head
from scrubjay.ports import Catalog, Reach, Result, Shared, Slots, Tx, View, pass_by

Answer = TypeVar("Answer")
_TRIES = 10


class Fate(Enum):
    """What becomes of one call over the network."""

    ARRIVES = auto()
    REQUEST_LOST = auto()
    ANSWER_LOST = auto()


Network = Callable[[str], Fate]
"""Told the name of each call, `tx.` before it within a transaction, and `commit` for its end.

It may wait, and decides what becomes of the call.
"""


def still(_: str) -> Fate:
    """A network that loses nothing and takes no time."""
    return Fate.ARRIVES


class MemoryCluster:
    """A primary and its standby, which lags behind unless it is `synchronous`."""

    def __init__(self, *, synchronous: bool = True, reach: Reach = pass_by) -> None:
        self.primary = MemoryStore(reach=reach, with_slots=True)
        self.synchronous = synchronous
        self.failovers = 0
        self._commits: dict[str, None] = {}
        self._numbers = itertools.count(1)
        self._standby = self._copy()

    def node(self, network: Network = still) -> MemoryNode:
        """A client of its own: the store that the engine of one node stands on."""
        return MemoryNode(self, network)

    def replicate(self) -> None:
        """Let the standby have what the primary has."""
        self._standby = self._copy()

    def fail_over(self) -> None:
        """Lose the primary: the standby takes over with what it has, and connections break."""
        if not self.synchronous:
            rows, commits = self._standby
            self.primary.become(rows)
            self._commits = dict(commits)
        self.failovers += 1

    def new_commit(self) -> str:
        """The name of a transaction, as its client notes it before the commit."""
        return str(next(self._numbers))

    def note(self, commit: str) -> None:
        """Note a commit: with what it committed, it is replicated or lost."""
        self._commits[commit] = None

    def committed(self, commit: str) -> bool:
        """Whether a transaction was committed, as far as this primary knows."""
        return commit in self._commits

    def lasting(self, address: str) -> bool:
        """Whether the standby has all of a scope that the primary has."""
        if self.synchronous:
            return True
        here, there = self._copy()[0], self._standby[0]
        return [one.get(address) for one in here] == [one.get(address) for one in there]

    def _copy(self) -> tuple[Sequence[dict[str, object]], dict[str, None]]:
        return self.primary.copy(), dict(self._commits)


class MemoryNode:
    """A store over a network: a lost answer is asked for again, except that to a commit."""

    def __init__(self, cluster: MemoryCluster, network: Network = still) -> None:
        self._cluster = cluster
        self._network = network
        self._closed = False
        self._local = threading.local()

    @property
    def catalog(self) -> Catalog:
        """The catalog, over the network."""
        self._check_open()
        catalog: Catalog = FarPart(self, self._cluster.primary.catalog, "catalog")
        return catalog

    @property
    def shared(self) -> Shared:
        """Shared values, over the network."""
        shared: Shared = FarPart(self, self._cluster.primary.shared, "shared")
        return shared

    @property
    def slots(self) -> Slots:
        """The slots beside the rows, over the network."""
        slots: Slots = FarPart(self, self._cluster.primary.slots, "slots")
        return slots

    def create(self, address: str) -> None:
        self.ask("create", lambda: self._cluster.primary.create(address))

    def exists(self, address: str) -> bool:
        return self.ask("exists", lambda: self._cluster.primary.exists(address))

    def head(self, address: str) -> Head:
        return self.ask("head", lambda: self._cluster.primary.head(address))

    @contextmanager
    def read(self, address: str) -> Iterator[View]:
        self._check_open()
        with self._cluster.primary.read(address) as view:
            yield FarView(self, view)

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        self._check_open()
        commit, fate, era = self._cluster.new_commit(), Fate.ARRIVES, self._cluster.failovers

        def far(tx: Tx) -> Result:
            nonlocal fate
            result = work(FarView(self, tx))
            fate = self._network("commit")
            if self._cluster.failovers != era:
                raise Busy("The connection was lost.")
            if fate is Fate.REQUEST_LOST:
                raise OutcomeUnknown("The answer to the commit was lost.", commit=commit)
            return result

        result = self._cluster.primary.write(address, far, erasing=erasing)
        self._cluster.note(commit)
        if fate is Fate.ANSWER_LOST:
            raise OutcomeUnknown("The answer to the commit was lost.", commit=commit)
        return result

    def resolve(self, address: str, commit: str) -> bool | None:
        del address
        return self.ask("resolve", lambda: self._cluster.committed(commit))

    def lasting(self, address: str) -> bool:
        return self.ask("lasting", lambda: self._cluster.lasting(address))

    def warnings(self) -> Sequence[str]:
        return self.ask("warnings", self._cluster.primary.warnings)

    def make_room(self) -> None:
        self._check_open()

    def settle(self, address: str) -> None:
        self.ask("settle", lambda: self._cluster.primary.settle(address))

    def size(self, address: str) -> int:
        return self.ask("size", lambda: self._cluster.primary.size(address))

    def check(self, address: str) -> Sequence[str]:
        return self.ask("check", lambda: self._cluster.primary.check(address))

    def inspect(self, address: str) -> FileInspection:
        return self.ask("inspect", lambda: self._cluster.primary.inspect(address))

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        yield from self.ask("raw", lambda: list(self._cluster.primary.raw(address)))

    def remove(self, address: str) -> None:
        self.ask("remove", lambda: self._cluster.primary.remove(address))

    def strays(self) -> Sequence[str]:
        return self.ask("strays", self._cluster.primary.strays)

    def close(self) -> None:
        """Let go of the connection; the cluster goes on."""
        self._closed = True

    def ask(self, name: str, call: Callable[[], Answer]) -> Answer:
        """Carry out a call that may be repeated, until its answer arrives."""
        self._check_open()
        for _ in range(_TRIES):
            fate = self._network(name)
            if fate is Fate.REQUEST_LOST:
                continue
            answer = call()
            if fate is Fate.ARRIVES:
                return answer
        raise Busy("The database does not answer.")

    def trip(self, name: str) -> None:
        """One call inside of a transaction; a lost one breaks the connection."""
        if self._network(name) is not Fate.ARRIVES:
            raise Busy("The connection was lost.")

    @property
    def era(self) -> int:
        """How often another primary took over."""
        return self._cluster.failovers

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The store is closed.", hint="Open it again.")


class FarPart:
    """A part of the store whose calls go over the network."""

    def __init__(self, node: MemoryNode, part: object, name: str) -> None:
        self._node = node
        self._part = part
        self._name = name

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        if not callable(method):
            return method
        asked = f"{self._name}.{name}"
        return lambda *args, **options: self._node.ask(asked, lambda: method(*args, **options))


class FarView:
    """A view or transaction whose calls go over the network, on one connection."""

    def __init__(self, node: MemoryNode, view: View) -> None:
        self._node = node
        self._view = view
        self._era = node.era

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._view, name)

        def call(*args: object, **options: object) -> object:
            if self._node.era != self._era:
                raise Busy("The connection was lost.")
            self._node.trip(f"tx.{name}")
            return method(*args, **options)

        return call
