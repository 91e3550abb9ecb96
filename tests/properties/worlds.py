"""Two worlds that a simulation drives by the same steps: SQLite on files, and memory alone.

Each has two engines and an observer. All that could make the worlds differ is the same in both:
one seeded clock, one installation key. So not only what is seen is compared, but every byte that
says something of the protocol: heads, tombstones, audit links, key slots, blobs.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scrubjay.adapters.blobs.files import FileBlobs
from scrubjay.adapters.blobs.s3 import S3Blobs
from scrubjay.adapters.embedders.static import NoEmbedder
from scrubjay.adapters.stores.postgres.store import PostgresStore
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.engine import Kernel, Keyring, Policy, Ports
from scrubjay.engine.ledger import conversations, documents
from scrubjay.engine.scope.counters_and_retention import Recalls
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.views import changes
from scrubjay.model import cells
from scrubjay.model.documents import Document
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.jobs import Consolidated, Insight, Restated
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.retention import RetentionState
from scrubjay.model.rows import Head
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Extracted, Turn
from scrubjay.ports import Blobs, Failpoint, Reach, Result, Store, Tx, View
from scrubjay.testing.clock import FakeClock
from tests.support.engines import LastingStore, SimulatedCrash
from tests.support.keyrings import file_keyring
from tests.support.memory_blobs import MemoryBlobs
from tests.support.memory_cluster import Fate, MemoryCluster, MemoryNode, Network
from tests.support.memory_keyring import MemoryWrapper, memory_keyring
from tests.support.networks import lossy
from tests.support.objects import ObjectServer
from tests.support.postgres import PostgresServer
from tests.support.watched import Watch

RAM_DISK: Final = Path("/dev/shm")
COMMITS: Final = frozenset({Failpoint.STORE_BEFORE_COMMIT, Failpoint.STORE_AFTER_COMMIT})
INSTALLATION: Final = bytes(range(32))


class DigestModel:
    """A model whose every answer is a number made of what it was given: the same in any world."""

    identity = "digest"

    def extract(
        self, turn: Turn, noted: Sequence[str], *, deadline: float | None = None
    ) -> Extracted:
        """Nothing: no rule of the simulation asks for it."""
        raise NotImplementedError

    def consolidate(
        self, episodes: Sequence[str], *, deadline: float | None = None
    ) -> Consolidated:
        """One fact of all episodes, and one of the first."""
        assert deadline is not None
        whole = Insight(category="fact", content=f"fact of {digest(episodes)}", of=())
        first = Insight(category="fact", content=f"first of {digest(episodes[:1])}", of=(1,))
        return Consolidated(insights=(whole, first))

    def restate(
        self, kind: Kind, sources: Sequence[str], *, deadline: float | None = None
    ) -> Restated:
        """One text of all sources."""
        assert deadline is not None
        return Restated(text=f"{RESTATED} {digest([kind, *sources])}")


RESTATED: Final = "text of"
"""How a text begins that was derived again: two of the same sources say the same."""


def digest(texts: Sequence[str]) -> str:
    """A short number of some texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


class Fuse:
    """Kills the engine that acts as soon as it reaches the failpoint that is armed.

    The commits of the catalog do not count, because only the SQLite store announces them.
    """

    def __init__(self) -> None:
        self.armed: Failpoint | None = None
        self._in_scope = False

    def __call__(self, reached: Failpoint) -> None:
        if reached is self.armed and (self._in_scope or reached not in COMMITS):
            self.armed = None
            raise SimulatedCrash(reached)

    @contextmanager
    def writing(self, *, scope: bool) -> Iterator[None]:
        """Count the commits inside if they are those of a scope."""
        before, self._in_scope = self._in_scope, scope
        try:
            yield
        finally:
            self._in_scope = before

    def inside(self, work: Callable[[Tx], Result]) -> Callable[[Tx], Result]:
        """The work of a scope's write: what it does to the catalog does not count."""

        def uncounted(tx: Tx) -> Result:
            with self.writing(scope=False):
                return work(tx)

        return uncounted


class FusedSqlite(SqliteStore):
    """The SQLite store, with failpoints that blow the fuse."""

    def __init__(self, directory: Path, fuse: Fuse) -> None:
        super().__init__(directory, reach=fuse, ballast_bytes=0)
        self._fuse = fuse

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        with self._fuse.writing(scope=True):
            return super().write(address, self._fuse.inside(work), erasing=erasing)


class FusedMemory(LastingStore):
    """The memory store, with failpoints that blow the fuse."""

    def __init__(self, fuse: Fuse, *, with_slots: bool) -> None:
        super().__init__(reach=fuse, with_slots=with_slots)
        self._fuse = fuse

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        with self._fuse.writing(scope=True):
            return super().write(address, self._fuse.inside(work), erasing=erasing)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a verb ended: with a result, an error of the domain, or at a failpoint."""

    result: object = None
    error: type[ScrubjayError] | None = None
    crash: Failpoint | None = None

    @property
    def ok(self) -> bool:
        """Whether the verb was acknowledged."""
        return self.error is None and self.crash is None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a scope holds at one moment, seen by somebody who is no part of the steps."""

    head: Head
    memories: dict[str, Memory]
    turns: dict[str, str]
    held: tuple[str, ...]
    papers: tuple[Document, ...]
    """Conversations, entries and documents as they are in their cells."""
    tombstones: frozenset[bytes]
    pushed: frozenset[bytes]
    slots: tuple[str, ...]
    blobs: tuple[str, ...]
    counters: Mapping[int, Recalls]
    limits: RetentionState | None


def _held(opened: OpenScope, view: View) -> tuple[str, ...]:
    rows = [row for row in changes(view, conversations.HOME) if not row.erased]
    said = [conversations.opened_row(opened, row) for row in sorted(rows, key=lambda row: row.born)]
    return tuple(cells.encode(one).decode() for one in (*said, *_papers(opened, view)) if one)


def _papers(opened: OpenScope, view: View) -> tuple[Document, ...]:
    return tuple(one for _, one in documents.documents(opened, view))


class World(ABC):
    """Two engines on the same data, an observer, and a clock that one seed decides."""

    def __init__(self, seed: int, policy: Policy) -> None:
        self.clock = FakeClock(seed)
        self.fuse = Fuse()
        self.watch = Watch()
        self._policy = policy
        self._lives: dict[Scope, OpenScope] = {}

    def begin(self) -> None:
        """Start the engines on what is there."""
        keyring = self.keyring()
        keyring.found()
        keyring.delete("installation", "root")
        keyring.add("installation", "root", INSTALLATION)
        self.observer = self._engine()
        self.engines = [self._engine(), self._engine()]

    @abstractmethod
    def keyring(self) -> Keyring:
        """The keyring of a process that starts now."""

    @abstractmethod
    def blobs(self) -> Blobs:
        """The blobs as such a process has them."""

    @abstractmethod
    def store(self) -> Store:
        """The store as such a process has it."""

    @abstractmethod
    def kill(self, which: int) -> None:
        """End an engine as a dying process does, without another word."""

    @abstractmethod
    def end(self) -> None:
        """Let go of everything."""

    def _engine(self) -> Kernel:
        reach: Reach = self.fuse
        ports = Ports(
            store=self.store(), blobs=self.blobs(), keyring=self.keyring(),
            clock=self.clock, embedder=NoEmbedder(), extractor=DigestModel(), reach=reach,
            policy=self._policy,
        )  # fmt: skip
        return Kernel(self.watch.over(ports))

    def restart(self, which: int) -> None:
        """End an engine in good order and start another in its place."""
        self.engines[which].close()
        self.engines[which] = self._engine()

    def act(
        self, which: int, verb: Callable[[Kernel], object], armed: Failpoint | None = None
    ) -> Outcome:
        """Let an engine carry out a verb; one that dies of it is replaced."""
        self.fuse.armed = armed
        try:
            return Outcome(verb(self.engines[which]))
        except ScrubjayError as error:
            return Outcome(error=type(error))
        except SimulatedCrash as crash:
            self.kill(which)
            self.engines[which] = self._engine()
            return Outcome(crash=crash.args[0])
        finally:
            self.fuse.armed = None

    # -- the observer ------------------------------------------------------------------

    def meet(self, scope: Scope) -> None:
        """Let the observer have the latest life of a scope, which must be there."""
        self.observer.open(scope, create=False, anew=True)
        self._lives[scope] = self.observer._open(scope)

    def snapshot(self, scope: Scope) -> Snapshot:
        """What the scope holds; it neither finishes due work nor refreshes any engine's handle."""
        opened = self._lives[scope]
        ports = opened.ports

        def look(view: View) -> Snapshot:
            return Snapshot(
                head=view.head(),
                memories={memory.id: memory for _, memory in opened.memories(view)},
                turns={turn.id: turn.assistant for _, turn in opened.turns(view)},
                held=_held(opened, view),
                papers=_papers(opened, view),
                tombstones=frozenset(view.tombstones()),
                pushed=ports.store.catalog.tombstones(opened.address),
                slots=tuple(ports.keyring.purposes(opened.address)),
                blobs=tuple(ports.blobs.names(opened.address)),
                counters=opened.counters.every(view),
                limits=opened.limits.read(view),
            )

        return opened.read(look)

    def lose(self, scope: Scope) -> None:
        """Delete the data file of a scope, as an accident would."""
        opened = self._lives[scope]
        opened.ports.store.remove(opened.address)


class MemoryWorld(World):
    """The executable specification: every adapter keeps all in memory."""

    def __init__(self, seed: int, policy: Policy, *, with_slots: bool = False) -> None:
        super().__init__(seed, policy)
        self._store = FusedMemory(self.fuse, with_slots=with_slots)
        self._blobs = MemoryBlobs()
        self._keyring = memory_keyring(FakeClock("keyring"), self._store.slots)

    def keyring(self) -> Keyring:
        return self._keyring

    def blobs(self) -> Blobs:
        return self._blobs

    def store(self) -> Store:
        return self._store

    def kill(self, which: int) -> None:
        """There is nothing to let go of."""

    def end(self) -> None:
        """There is nothing to let go of."""


class FusedNode(MemoryNode):
    """A node of the cluster, with failpoints that blow the fuse."""

    def __init__(self, cluster: MemoryCluster, network: Network, fuse: Fuse) -> None:
        super().__init__(cluster, network)
        self._fuse = fuse

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        with self._fuse.writing(scope=True):
            return super().write(address, self._fuse.inside(work), erasing=erasing)


class RemoteWorld(World):
    """Two nodes on one database that loses answers, and whose standby takes over now and then.

    A lost request of a commit is left out: its work would run twice, and draw other nonces.
    """

    def __init__(self, seed: int, policy: Policy) -> None:
        super().__init__(seed, policy)
        self._cluster = MemoryCluster(reach=self.fuse)
        self._network = lossy(f"{seed}/network")
        self._blobs = MemoryBlobs()
        self._wrapper = MemoryWrapper(FakeClock("keyring").random)
        self._wrapper.found()

    def network(self, name: str) -> Fate:
        """Lose what may be lost: of a commit the answer alone."""
        fate = self._network("answer" if name == "commit" else name)
        lost = name == "commit" and fate is not Fate.ARRIVES
        return Fate.ANSWER_LOST if lost else fate

    def keyring(self) -> Keyring:
        node = self._cluster.node(self.network)
        return Keyring(node.slots, self._wrapper, FakeClock("keyring"))

    def blobs(self) -> Blobs:
        return self._blobs

    def store(self) -> Store:
        return FusedNode(self._cluster, self.network, self.fuse)

    def restart(self, which: int) -> None:
        """The primary is lost, too."""
        self._cluster.fail_over()
        super().restart(which)

    def kill(self, which: int) -> None:
        """What was committed is on the standby, whether its node was told or not."""

    def end(self) -> None:
        """There is nothing to let go of."""


class FileWorld(World):
    """What people use: SQLite files, blob files and a key file."""

    def __init__(self, seed: int, policy: Policy) -> None:
        super().__init__(seed, policy)
        base = RAM_DISK if RAM_DISK.is_dir() else None
        self._home = Path(tempfile.mkdtemp(prefix="scrubjay-simulation-", dir=base))

    def keyring(self) -> Keyring:
        # The noise of the files must not be drawn from the clock both worlds share in step.
        return file_keyring(self._home / "keys", FakeClock("keyring"))

    def blobs(self) -> Blobs:
        return FileBlobs(self._home / "blobs")

    def store(self) -> Store:
        return FusedSqlite(self._home / "data", self.fuse)

    def kill(self, which: int) -> None:
        _abandon(self.engines[which])

    def end(self) -> None:
        for engine in (*self.engines, self.observer):
            _abandon(engine)
        shutil.rmtree(self._home)


class FusedPostgres(PostgresStore):
    """The PostgreSQL store, with failpoints that blow the fuse."""

    def __init__(self, url: str, fuse: Fuse) -> None:
        super().__init__(url, reach=fuse, connections=4, lock_timeout=10.0)
        self._fuse = fuse

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        with self._fuse.writing(scope=True):
            return super().write(address, self._fuse.inside(work), erasing=erasing)


class PostgresWorld(World):
    """Two nodes on real servers: PostgreSQL, with slots beside the rows, and S3."""

    def __init__(
        self, seed: int, policy: Policy, server: PostgresServer, objects: ObjectServer
    ) -> None:
        super().__init__(seed, policy)
        self._server = server
        self._url = server.database()
        self._blobs = S3Blobs(objects.address())
        self._wrapper = MemoryWrapper(FakeClock("keyring").random)
        self._wrapper.found()
        self._stores = list[Store]()

    def keyring(self) -> Keyring:
        slots = self.store().slots
        assert slots is not None
        return Keyring(slots, self._wrapper, FakeClock("keyring"))

    def blobs(self) -> Blobs:
        return self._blobs

    def store(self) -> Store:
        self._stores.append(FusedPostgres(self._url, self.fuse))
        return self._stores[-1]

    def kill(self, which: int) -> None:
        """Its connections break: the server undoes what was not committed."""
        self.engines[which]._ports.store.close()

    def end(self) -> None:
        for store in self._stores:
            store.close()
        self._server.drop(self._url)


def _abandon(engine: Kernel) -> None:
    engine._ports.store.abandon()  # type: ignore[attr-defined]
