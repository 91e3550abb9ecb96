"""Engines to test with: a home outlives its engines, as a disk outlives its processes.

home = MemoryHome()
engine = home.engine()
home.crashes.at(Failpoint.FORGET_COMMITTED)
with pytest.raises(SimulatedCrash):
    engine.forget(scope, request)
engine = home.engine()      # the next process, on what the last one left
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from msgspec.structs import replace

from scrubjay import bootstrap, settings
from scrubjay.adapters.distillers.rules import RulesDistiller
from scrubjay.adapters.embedders.static import StaticEmbedder
from scrubjay.adapters.stores.memory import MemoryStore, ScopeState
from scrubjay.engine import Kernel, Keyring, Policy, Ports
from scrubjay.ports import Distiller, Embedder, Extractor, Failpoint
from scrubjay.testing.clock import FakeClock
from tests.support.memory_blobs import MemoryBlobs
from tests.support.memory_cluster import MemoryCluster, MemoryNode, Network, still
from tests.support.memory_keyring import memory_keyring


class SimulatedCrash(BaseException):
    """The process died at a failpoint; nothing that catches errors may catch this."""


class Crashes:
    """Every failpoint that was reached, and the one at which the process is to die."""

    def __init__(self) -> None:
        self.reached: Counter[Failpoint] = Counter()
        self._at: Failpoint | None = None
        self._visits = 0

    def at(self, failpoint: Failpoint, *, visit: int = 1) -> None:
        """Die at this failpoint when it is reached for the `visit`-th time from now on."""
        self._at, self._visits = failpoint, visit

    def __call__(self, failpoint: Failpoint) -> None:
        """Reach a failpoint: go on, or die here."""
        self.reached[failpoint] += 1
        if failpoint is self._at:
            self._visits -= 1
            if not self._visits:
                self._at = None
                raise SimulatedCrash(failpoint)


class LastingStore(MemoryStore):
    """A memory store that outlives the engine that closes it, as files do."""

    def close(self) -> None:
        """Stay open for the next engine."""


class MemoryHome:
    """An installation in memory; every engine made here works on the same rows and keys."""

    def __init__(self, seed: int | str = 0, *, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock(seed)
        self.crashes = Crashes()
        self.store = LastingStore(reach=self.crashes)
        self.blobs = MemoryBlobs()
        self.keyring = memory_keyring(self.clock)
        self.embedder: Embedder = StaticEmbedder(self.clock)
        self.distiller: Distiller | None = RulesDistiller()
        self.extractor: Extractor | None = None

    def engine(self, policy: Policy | None = None) -> Kernel:
        """A fresh engine on this home, as a new process would make it."""
        return Kernel(self.ports(policy))

    def rows(self) -> dict[str, ScopeState]:
        """What is committed of every scope, by address."""
        return self.store._scopes

    def slots(self) -> dict[str, dict[str, bytes]]:
        """Every slot, by address and purpose."""
        slots = self.keyring.slots
        return {address: dict(slots.read(address)) for address in slots.addresses("", 10_000)}

    def ports(self, policy: Policy | None = None) -> Ports:
        """What an engine of this home stands on."""
        return Ports(
            store=self.store,
            blobs=self.blobs,
            keyring=self.keyring,
            clock=self.clock,
            embedder=self.embedder,
            distiller=self.distiller,
            extractor=self.extractor,
            reach=self.crashes,
            policy=policy or Policy(),
        )


class RemoteHome(MemoryHome):
    """An installation on a database far away: every engine is a node of its own.

    Slots lie beside the rows, unless they are `apart`: then in another place, which loses nothing.
    """

    def __init__(
        self,
        seed: int | str = 0,
        *,
        network: Network = still,
        synchronous: bool = True,
        apart: bool = False,
    ) -> None:
        super().__init__(seed)
        self.cluster = MemoryCluster(synchronous=synchronous, reach=self.crashes)
        self.network = network
        self.apart = apart

    def node(self) -> MemoryNode:
        """The store of one more node."""
        return self.cluster.node(self.network)

    def rows(self) -> dict[str, ScopeState]:
        return self.cluster.primary._scopes

    def ports(self, policy: Policy | None = None) -> Ports:
        node = self.node()
        keyring = self.keyring
        if not self.apart:
            keyring = Keyring(node.slots, self.keyring.wrapper, self.clock)
        return replace(super().ports(policy), store=node, keyring=keyring)


def home_settings(folder: Path) -> settings.Settings:
    """The settings of a home; files named `store` and `blobs` say where those are instead."""
    named = [folder / name for name in ("store", "blobs")]
    given = {one.name: one.read_text() for one in named if one.exists()}
    return replace(settings.at_home(folder), **given)


class SqliteHome:
    """An installation in a folder: the embedded default, but for the clock."""

    def __init__(self, folder: Path, seed: int | str = 0) -> None:
        self.folder = folder
        self.clock = FakeClock(seed)
        self.crashes = Crashes()

    def engine(self, policy: Policy | None = None) -> Kernel:
        """A fresh engine on this home, as a new process would make it."""
        found = home_settings(self.folder)
        return bootstrap.build(found, clock=self.clock, reach=self.crashes, policy=policy)
