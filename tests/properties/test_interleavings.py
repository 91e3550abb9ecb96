"""Forget races everything that could bring a memory back, in random order, with crashes between.

Each seed makes a scene: a memory, what was derived from it, an export and a backup that hold
both; then engines that forget, replay, load, restore and rotate, one call of a port at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from scrubjay.adapters.embedders.static import NoEmbedder
from scrubjay.engine import Kernel, Policy
from scrubjay.engine.scope.lifecycle import locate
from scrubjay.model.errors import NotFound, ScrubjayError, StoreError
from scrubjay.model.requests import Browse, Forget, Load, Recall, Restore, Retain
from scrubjay.model.results import Erasure
from scrubjay.model.rows import Collection, Due
from scrubjay.model.scope import Scope
from tests.acceptance.opening import words_left
from tests.properties import baton
from tests.properties.baton import Actor, Baton
from tests.support.engines import MemoryHome, RemoteHome
from tests.support.networks import lossy

ALICE = Scope("local", "alice")
SECRET = "the spare key is under the third pot"
NOTE = Retain(content=SECRET, id="note-1", key="k1", session="s1", tags=("t1",))
COFFEE = Retain(content="black coffee", key="k2")
BY_KEY = Retain(content=SECRET, key="k1")
LARGE = 64 * 1024


class Scene:
    """One interleaving: what was there before, who acts, and what must hold at every step."""

    def __init__(self, seed: str, home: MemoryHome | None = None) -> None:
        self.random = Random(seed)
        self.home = home or MemoryHome(seed)
        risk = self.random.choice((0, 0.01, 0.05))
        self.baton = Baton(self.random, risk=risk)
        self.home.embedder = NoEmbedder()
        self.searching = self.random.random() < 0.2
        """Whether there are recalls, and so segments; all scenes with them would take too long."""
        self.policy = Policy(rotate_below=self.random.choice((0, 2**40)), segment_rows=0)
        self._set()
        self.address, _ = locate(self.home.ports(), ALICE)
        self.acknowledged = False
        self.lost = False

    def _set(self) -> None:
        engine = self.home.engine(self.policy)
        engine.retain(ALICE, NOTE)
        engine.retain(ALICE, Retain(content=f"said again: {SECRET}", sources=("note-1",)))
        if self.random.random() < 0.2:
            large = f"at length: {SECRET}".ljust(LARGE, ".")
            engine.retain(ALICE, Retain(content=large, sources=("note-1",)))
        engine.retain(ALICE, Retain(content="green tea"))
        self.export = engine.export(ALICE).content
        self.backup, receipt = engine.backup(ALICE)
        self.key = receipt.key

    # -- who acts ----------------------------------------------------------------------

    def cast(self) -> None:
        """Who forgets, perhaps twice, and two to four of those who may bring something back."""
        self.forgetters = [
            self.act("forget", self.forget) for _ in range(self.random.choice((1, 2)))
        ]
        parts = [
            self.replay, self.replay_by_key, self.load, self.restore, self.restore, self.rotate,
            self.purge, self.read, self.write,
        ]  # fmt: skip
        if self.searching:
            self.act("recall", self.recall)
        for play in self.random.sample(parts, self.random.randint(2, 4)):
            self.act(play.__name__, play)

    def act(self, name: str, play: Callable[[Kernel], object]) -> Actor:
        engine = baton.engine(self.home, self.baton, self.policy)
        if self.random.random() < 0.5:
            engine.open(ALICE)  # a handle from before, with its keys and its view of the head
            engine.browse(ALICE, Browse())
            if self.searching:
                engine.recall(ALICE, Recall(query=SECRET))  # an index that will have slept
        return self.baton.add(name, lambda: play(engine))

    def forget(self, engine: Kernel) -> Erasure:
        request = self.random.choice(
            (Forget(ids=("note-1",)), Forget(session="s1"), Forget(tags=frozenset({"t1"})))
        )
        return engine.forget(ALICE, request)

    def replay(self, engine: Kernel) -> None:
        engine.retain(ALICE, NOTE)

    def replay_by_key(self, engine: Kernel) -> None:
        engine.retain(ALICE, BY_KEY)

    def load(self, engine: Kernel) -> None:
        engine.load(ALICE, Load(self.export))

    def restore(self, engine: Kernel) -> None:
        engine.restore(ALICE, Restore(self.backup, key=self.key))

    def rotate(self, engine: Kernel) -> None:
        engine.rotate(ALICE)

    def purge(self, engine: Kernel) -> None:
        self.home.clock.advance(days=31)
        engine.purge(ALICE)

    def write(self, engine: Kernel) -> None:
        engine.retain(ALICE, COFFEE)

    def read(self, engine: Kernel) -> None:
        for memory in engine.follow(ALICE).memories:
            assert not self.acknowledged or SECRET not in memory.content

    def recall(self, engine: Kernel) -> None:
        over = self.acknowledged
        contents = [hit.memory.content for hit in engine.recall(ALICE, Recall(query=SECRET))]
        assert not over or not any(SECRET in content for content in contents)

    # -- what must hold ----------------------------------------------------------------

    def look(self) -> None:
        """Nothing that has a tombstone is there; once forget is acknowledged, nothing is."""
        state = self.home.rows().get(self.address)
        if state is None:
            return
        living = [row for row in state.rows[Collection.MEMORY].values() if not row.erased]
        for row in living:
            assert row.id not in state.tombstones, "a forgotten memory is there"
            assert row.key not in state.tombstones, "a forgotten key is there under another id"
        if any(isinstance(actor.result, Erasure) for actor in self.forgetters):
            self.acknowledged = True
        if self.acknowledged:
            # Tea and coffee are left, or nothing of a file that was lost.
            assert len(living) <= 2, "something forgotten is there"

    def recover(self) -> None:
        """The next process finishes what was left; a forget that died is repeated."""
        engine = self.home.engine(self.policy)
        engine.finish_due(ALICE)
        if not self.acknowledged:
            engine.forget(ALICE, Forget(ids=("note-1",), unseen=True))
            self.acknowledged = True
        self.bring_back(engine)
        self.expect_the_rest(engine)

    def bring_back(self, engine: Kernel) -> None:
        """Everything that could bring it back, once more."""
        for play in (self.write, self.replay, self.replay_by_key, self.load, self.restore):
            play(engine)
            self.look()

    def expect_the_rest(self, engine: Kernel) -> None:
        rest = [memory.content for memory in engine.follow(ALICE).memories]
        assert sorted(rest) == ["black coffee", "green tea"]
        if self.searching:
            self.expect_recall(engine, rest)
        engine.finish_due(ALICE)
        assert engine.head(ALICE).due is Due.NOTHING
        assert words_left(engine, ALICE, SECRET.split()[-2:]) == set()
        problems = engine.verify(ALICE).problems
        assert not [one for one in problems if not (self.lost and "catalog knows" in one)]
        for receipt in engine.receipts(ALICE):
            assert engine.verify_erased(ALICE, receipt).sound

    def expect_recall(self, engine: Kernel, rest: list[str]) -> None:
        found = engine.recall(ALICE, Recall(query=SECRET))
        assert sorted(hit.memory.content for hit in found) == sorted(rest)
        assert found.degraded == ()


def test_forget_wins_every_race_against_replay_load_and_restore(
    more: bool, seed: int, record_property: Callable[..., None]
) -> None:
    """Under any interleaving, whoever dies on the way, what was forgotten never returns."""
    count: Counter[str] = Counter()
    for number in range(10_000 if more else 500):
        play(f"{seed}/{number}", count, lose=False)
    for name, value in count.items():
        record_property(name, value)
    assert count["deaths"] > 0
    assert count["switches"] > 10 * count["interleavings"]


def test_what_was_forgotten_does_not_come_back_with_a_file_that_was_lost(
    more: bool, seed: int, record_property: Callable[..., None]
) -> None:
    """The data file is lost; while one engine restores it, others replay into what it makes."""
    count: Counter[str] = Counter()
    for number in range(2_000 if more else 150):
        play(f"{seed}/lost/{number}", count, lose=True)
    record_property("interleavings", count["interleavings"])


def test_forget_wins_every_race_on_a_store_that_is_far_away(more: bool, seed: int) -> None:
    """Each engine is a node of its own; requests and answers are lost, those of commits too."""
    count: Counter[str] = Counter()
    for number in range(2_000 if more else 100):
        name = f"{seed}/far/{number}"
        home = RemoteHome(name, network=lossy(name, commits=0.1), apart=number % 4 == 0)
        play(name, count, lose=False, home=home)
    assert count["deaths"] > 0


def play(seed: str, count: Counter[str], *, lose: bool, home: MemoryHome | None = None) -> None:
    scene = Scene(seed, home)
    try:
        if lose:
            scene.home.engine(scene.policy).forget(ALICE, Forget(ids=("note-1",)))
            scene.acknowledged = scene.lost = True
            scene.forgetters = []
            for part in (scene.restore, scene.replay, scene.load, scene.replay_by_key, scene.write):
                scene.act(part.__name__, part)
            if scene.searching:
                scene.act("recall", scene.recall)
            scene.home.store.remove(scene.address)
        else:
            scene.cast()
        scene.baton.run(scene.look)
        refused = [type(actor.error) for actor in scene.baton.actors if actor.error]
        assert not refused or (lose and set(refused) <= {NotFound, StoreError}), refused
        if lose:
            scene.restore(scene.home.engine(scene.policy))
        scene.recover()
    except (AssertionError, ScrubjayError) as error:
        error.add_note(f"interleaving {seed}")
        raise
    count["interleavings"] += 1
    count["switches"] += scene.baton.switches
    count["deaths"] += scene.baton.deaths
