"""Engines that destroy a scope and begin it anew at once, one call of a port at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from scrubjay.adapters.embedders.static import NoEmbedder
from scrubjay.engine import Kernel, Policy
from scrubjay.engine.scope.keyring import INSTALLATION
from scrubjay.model.errors import Destroyed, NotFound, ScrubjayError
from scrubjay.model.requests import Browse, Destroy, Retain
from scrubjay.model.scope import Scope
from scrubjay.ports import every_entry
from tests.properties import baton
from tests.properties.baton import Baton
from tests.support.engines import MemoryHome, RemoteHome

ALICE = Scope("local", "alice")
FOREVER = 10**9


class Scene:
    """One interleaving: when each verb began and ended, and what must be there in the end."""

    def __init__(self, seed: str, home: MemoryHome) -> None:
        self.random = Random(seed)
        self.home = home
        self.home.embedder = NoEmbedder()
        self.baton = Baton(self.random, risk=self.random.choice((0, 0.01, 0.05)))
        self.written: dict[str, tuple[int, int]] = {}
        self.destroyed: list[list[int]] = []
        if self.random.random() < 0.8:
            self.home.engine().retain(ALICE, Retain(content="before"))
        if self.random.random() < 0.5:
            self.home.engine().open(ALICE)
            self.home.engine().destroy(ALICE, Destroy(confirm=str(ALICE)))
        for number in range(self.random.randint(2, 5)):
            engine = baton.engine(self.home, self.baton, Policy())
            play = self.random.choice((self.destroy, self.begin, self.begin, self.write))
            self.baton.add(f"{play.__name__} {number}", self.part(play, engine, str(number)))

    def part(
        self, play: Callable[[Kernel, str], None], engine: Kernel, name: str
    ) -> Callable[[], None]:
        def run() -> None:
            for turn in range(self.random.randint(1, 3)):
                try:
                    play(engine, f"{name}/{turn}")
                except (Destroyed, NotFound):
                    continue

        return run

    def destroy(self, engine: Kernel, _: str) -> None:
        span = [self.baton.switches, FOREVER]
        self.destroyed.append(span)
        engine.destroy(ALICE, Destroy(confirm=str(ALICE)))
        span[1] = self.baton.switches

    def begin(self, engine: Kernel, name: str) -> None:
        engine.open(ALICE, anew=True)
        self.write(engine, name)

    def write(self, engine: Kernel, name: str) -> None:
        began = self.baton.switches
        engine.retain(ALICE, Retain(content=name))
        self.written[name] = began, self.baton.switches

    def check(self) -> None:
        """One life is left, nothing is left of the others, and what was written in it is there."""
        engine = self.home.engine()
        engine.open(ALICE, anew=True)
        catalog = self.home.ports().store.catalog
        living = [entry.address for entry in every_entry(catalog) if not entry.destroyed]
        assert len(living) == 1, "a life that nobody can reach, and nobody will destroy"
        assert engine.scopes() == (ALICE,)
        found = {one.content for one in engine.browse(ALICE, Browse())}
        for name, (began, ended) in self.written.items():
            if all(over < began for _, over in self.destroyed):
                assert name in found, "acknowledged, and not there"
            if any(start > ended and over < FOREVER for start, over in self.destroyed):
                assert name not in found, "destroyed, and there"
        assert engine.verify(ALICE).problems == ()
        if not self.baton.deaths:
            slots = set(self.home.ports().keyring.addresses())
            assert slots == {INSTALLATION.address, *living}
            assert set(self.home.rows()) == set(living)


def play(seed: str, home: MemoryHome, count: Counter[str]) -> None:
    scene = Scene(seed, home)
    try:
        scene.baton.run(lambda: None)
        assert [actor.error for actor in scene.baton.actors if actor.error] == []
        scene.check()
    except (AssertionError, ScrubjayError) as error:
        error.add_note(f"interleaving {seed}")
        raise
    count["written"] += len(scene.written)
    count["destroyed"] += len(scene.destroyed)
    count["deaths"] += scene.baton.deaths


def test_a_scope_has_one_life_though_many_destroy_it_and_begin_it_anew(
    more: bool, seed: int, record_property: Callable[..., None]
) -> None:
    count = Counter[str]()
    for number in range(10_000 if more else 300):
        name = f"{seed}/{number}"
        play(name, RemoteHome(name) if number % 3 else MemoryHome(name), count)
    for name, value in count.items():
        record_property(name, value)
    assert min(count["written"], count["destroyed"], count["deaths"]) > 0
