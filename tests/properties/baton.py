"""Several engines at once, one step at a time: whoever holds the baton makes one call of a port.

A director hands it on by a seeded choice, so that a seed repeats an interleaving exactly. An
actor may also die where it stands, as a process does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from typing import Any, cast

from msgspec.structs import replace

from scrubjay.engine import Kernel, Keyring, Policy
from scrubjay.model.errors import ScrubjayError
from scrubjay.ports import Blobs, Failpoint, Result, Store, Tx
from tests.support.engines import MemoryHome, SimulatedCrash

PATIENCE = 60.0
"""How long a step may take before the test is called stuck; no step waits for anything."""


class Actor:
    """One process of the scene, in a thread of its own."""

    def __init__(self, name: str, baton: Baton, play: Callable[[], object]) -> None:
        self.name = name
        self.may_go = threading.Semaphore(0)
        self.doomed = False
        self.inside = False
        """Whether it is inside a transaction, where nobody else can go on."""
        self.done = False
        self.result: object = None
        self.error: ScrubjayError | None = None
        self.failure: BaseException | None = None
        self._baton = baton
        self._play = play
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        self.may_go.acquire()
        try:
            self.result = self._play()
        except ScrubjayError as error:
            self.error = error
        except SimulatedCrash:
            pass
        except BaseException as error:  # whatever else it is, the test is to show it
            self.failure = error
        self.done = True
        self._baton.came_back.release()


class Baton:
    """Runs actors so that between two calls of a port any other may make any number of them."""

    def __init__(self, random: Random, *, risk: float) -> None:
        self.came_back = threading.Semaphore(0)
        self.switches = 0
        self.deaths = 0
        self._random = random
        self._risk = risk
        self.actors: list[Actor] = []
        self._running: Actor | None = None

    def add(self, name: str, play: Callable[[], object]) -> Actor:
        """Give an actor a part; it begins when it is first handed the baton."""
        actor = Actor(name, self, play)
        self.actors.append(actor)
        return actor

    def run(self, after_each: Callable[[], None]) -> None:
        """Let all come to their end, or die; `after_each` looks at the scene between steps."""
        while waiting := [actor for actor in self.actors if not actor.done]:
            actor = self._random.choice(waiting)
            actor.doomed = self._random.random() < self._risk
            self._running = actor
            self.switches += 1
            actor.may_go.release()
            assert self.came_back.acquire(timeout=PATIENCE), f"{actor.name} is stuck"
            self._running = None
            if actor.failure is not None:
                raise actor.failure
            after_each()

    def pause(self) -> None:
        """Hand the baton back, unless inside a transaction; or die, wherever it is."""
        actor = self._running
        if actor is None:
            return  # the director itself sets the scene
        if not actor.inside:
            self.came_back.release()
            actor.may_go.acquire()
        if actor.doomed:
            self.deaths += 1
            raise SimulatedCrash(actor.name)

    def inside(self, work: Callable[[Tx], Result]) -> Callable[[Tx], Result]:
        """The work of a transaction, in which the baton is kept."""

        def kept(tx: Tx) -> Result:
            actor = self._running
            if actor is None:
                return work(tx)
            actor.inside = True
            try:
                return work(tx)
            finally:
                actor.inside = False

        return kept


class Paused:
    """A port whose every call is a step."""

    def __init__(self, port: object, baton: Baton) -> None:
        self._port = port
        self._baton = baton

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if not callable(method):
            return method

        def call(*args: object, **options: object) -> object:
            self._baton.pause()
            return method(*args, **options)

        return call


class PausedStore(Paused):
    """A store whose every call is a step, but what happens inside a transaction is one."""

    @property
    def catalog(self) -> Paused:
        """The catalog, each call of which is a step."""
        return Paused(cast(Store, self._port).catalog, self._baton)

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        """One step: nobody else can look in."""
        self._baton.pause()
        store = cast(Store, self._port)
        return store.write(address, self._baton.inside(work), erasing=erasing)


def engine(home: MemoryHome, baton: Baton, policy: Policy) -> Kernel:
    """An engine of the home that hands the baton back before every call of a port."""

    def reach(_: Failpoint) -> None:
        baton.pause()

    ports = home.ports(policy)
    return Kernel(
        replace(
            ports,
            store=cast(Store, PausedStore(ports.store, baton)),
            blobs=cast(Blobs, Paused(ports.blobs, baton)),
            keyring=cast(Keyring, Paused(ports.keyring, baton)),
            distiller=None,
            reach=reach,
        )
    )
