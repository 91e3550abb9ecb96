"""Replays in any order by several workers, and forgets that race them."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from urllib.parse import urlsplit

from msgspec.structs import force_setattr

from scrubjay.adapters.embedders.static import NoEmbedder
from scrubjay.engine import Kernel, Policy
from scrubjay.engine.scope.lifecycle import locate
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.pages import Paged
from scrubjay.model.requests import Forget, Load, TurnsRequest
from scrubjay.model.results import Erasure
from scrubjay.model.rows import Collection, Due
from scrubjay.model.turns import derived_id
from scrubjay.surfaces.clawdapus import entries
from tests.dialects.clawdapus.conftest import Serve
from tests.dialects.clawdapus.desk import AGENT, SCOPE, Desk, line
from tests.dialects.clawdapus.pod import Json
from tests.properties import baton
from tests.properties.baton import Actor, Baton
from tests.support.engines import MemoryHome, SqliteHome

WORKERS = 4
WORDS = (
    "lamps", "ropes", "bricks", "tiles", "nails", "boards", "pumps", "gears", "drums", "wires",
)  # fmt: skip


def conversation(count: int) -> list[Json]:
    """Turns of many sorts: news, repetitions, heartbeats, facts and their corrections."""

    def said(number: int) -> Json:
        thing = WORDS[number % 10]
        match number % 10:
            case 0 | 1 | 2:
                return line(number, f"Heartbeat {number}", "HEARTBEAT_OK")
            case 3:
                return line(number, f"My supplier of {thing} is firm number {number // 100}.")
            case 4:
                return line(number, f"Please read me list {number // 30}.", "It is empty.")
            case _:
                reply = f"There are {number * 7} of them in depot {number * 13}."
                return line(number, f"How many {thing} came with lot {number}?", reply)

    return [said(number) for number in range(count)]


def replay(retain: Callable[..., object], lines: list[Json], seed: int) -> None:
    """All lines, shuffled, by several workers at once."""
    shuffled = Random(seed).sample(lines, len(lines))
    failures: list[BaseException] = []

    def work(mine: list[Json]) -> None:
        try:
            retain(*mine)
        except BaseException as error:  # the test is to show it
            failures.append(error)

    workers = [threading.Thread(target=work, args=(shuffled[n::WORKERS],)) for n in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def answers(desk: Desk) -> list[list[Json]]:
    questions = ("How many bricks came?", "Who is my supplier of tiles?", "anything new?", "")
    return [desk.recall(question) for question in questions]


def test_three_shuffled_replays_by_four_workers_leave_no_duplicate_and_the_same_answers(
    more: bool,
    seed: int,
    sqlite_home: SqliteHome,
    serve: Serve,
    record_property: Callable[..., None],
) -> None:
    """Over real HTTP: the service is asked as the operator's own backfill asks it."""
    lines = conversation(10_000 if more else 1_200)
    live = Desk(MemoryHome().engine())
    live.retain(*lines)
    desk = Desk(sqlite_home.engine())
    url = serve(desk.engine)
    for turn in range(3):
        replay(lambda *mine: sent(url, mine), lines, seed + turn)
    timeline = desk.engine.timeline(SCOPE, Paged(10_000))
    assert [one.id for one in timeline.moments] == [one["id"] for one in lines]
    assert timeline == live.engine.timeline(SCOPE, Paged(10_000))
    assert memories(desk.engine) == memories(live.engine)
    assert answers(desk) == answers(live)
    assert desk.engine.verify(SCOPE).sound
    record_property("entries", 3 * len(lines))
    record_property("memories", len(memories(live.engine)))
    desk.engine.close()


def sent(url: str, lines: Iterable[Json]) -> None:
    """Retain over one connection, line by line."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    for one in lines:
        body = {"agent_id": AGENT, "pod": "desk", "entry": one, "metadata": {}}
        connection.request("POST", "/retain", json.dumps(body).encode())
        response = connection.getresponse()
        assert (response.status, response.read()) == (202, b"")
    connection.close()


def memories(engine: Kernel) -> dict[str, tuple[object, ...]]:
    """Every memory by id, without its place in the store; each is there once."""
    found: dict[str, tuple[object, ...]] = {}
    after: str | None = None
    while (page := engine.follow(SCOPE, Paged(1000, cursor=after))).memories:
        for one in page.memories:
            assert one.id not in found
            found[one.id] = (one.content, one.kind, one.supersedes, one.superseded_by)
        after = page.next_cursor
    return found


# -- forget races backfill ------------------------------------------------------------------------

SECRET = "The spare key is under the third pot."
TOLD = line(1, f"My hiding place is secret. {SECRET}", "I will not tell.")
AGAIN = line(2, f"My hiding place is secret! {SECRET}", "I will not tell.")
TEA = line(3, "I prefer green tea.", "So do I.")
HIDING = line(4, "Actually, my hiding place is empty now.", "Good to know.")
LINES = (TOLD, AGAIN, TEA, HIDING)
DOOMED = (TOLD, AGAIN)


class Scene:
    """One interleaving of operators that forget and workers that replay the history."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.home = MemoryHome(seed)
        self.home.embedder = NoEmbedder()
        self.baton = Baton(self.random, risk=self.random.choice((0, 0.01, 0.05)))
        self.policy = Policy(rotate_below=self.random.choice((0, 2**40)), segment_rows=0)
        engine = self.home.engine(self.policy)
        engine.open(SCOPE)
        for one in self.random.sample(LINES, self.random.randint(0, 4)):
            self.tell(engine, one)
        self.address, _ = locate(self.home.ports(), SCOPE)
        self.acknowledged: set[bytes] = set()
        self.forgetters: list[tuple[Actor, list[str]]] = []

    def tell(self, engine: Kernel, one: Json) -> None:
        told = entries.told({"agent_id": AGENT, "pod": "desk", "entry": one})
        assert told.record is not None
        engine.record(told.scope, told.record)

    def cast(self) -> None:
        """Who forgets both lines, and two to four who replay, rotate, purge or copy."""
        both = [TOLD["id"], AGAIN["id"]]
        for ids in (both, both[::-1])[: self.random.choice((1, 2))]:
            self.forgetters.append((self._act("forget", partial(self.forget, ids=ids)), ids))
        parts = [self.backfill, self.backfill, self.backfill, self.rotate, self.purge, self.copy]
        for play in self.random.sample(parts, self.random.randint(2, 4)):
            self._act(play.__name__, play)

    def _act(self, name: str, play: Callable[[Kernel], object]) -> Actor:
        engine = paused(self.home, self.baton, self.policy)
        return self.baton.add(name, lambda: play(engine))

    def forget(self, engine: Kernel, ids: list[str]) -> Erasure:
        return engine.forget(SCOPE, Forget(ids=tuple(ids), unseen=True))

    def backfill(self, engine: Kernel) -> None:
        for one in self.random.sample(LINES, len(LINES)):
            self.tell(engine, one)

    def rotate(self, engine: Kernel) -> None:
        engine.rotate(SCOPE)

    def purge(self, engine: Kernel) -> None:
        self.home.clock.advance(days=31)
        engine.purge(SCOPE)

    def copy(self, engine: Kernel) -> None:
        engine.load(SCOPE, Load(engine.export(SCOPE).content))

    def look(self) -> None:
        """Nothing tombstoned is there; of what a forget was acknowledged for, nothing is."""
        state = self.home.store._scopes[self.address]
        for collection in (Collection.TURN, Collection.MEMORY):
            living = {row.id for row in state.rows[collection].values() if not row.erased}
            assert living.isdisjoint(state.tombstones), f"a forgotten {collection} is there"
            assert living.isdisjoint(self.acknowledged), f"a {collection} came back"
        for actor, ids in self.forgetters:
            if isinstance(actor.result, Erasure):
                self.acknowledged |= self._rows_of(ids)

    def _rows_of(self, ids: list[str]) -> set[bytes]:
        opened = self.home.engine(self.policy)._open(SCOPE)
        parts = ("episode", "statement-0", "statement-1")
        names = [*ids, *(derived_id(one, part) for one in ids for part in parts)]
        return {opened.row_id(name) for name in names}

    def recover(self) -> None:
        """The next process finishes what was left, and the history is replayed once more."""
        engine = self.home.engine(self.policy)
        engine.finish_due(SCOPE)
        self.forget(engine, [TOLD["id"], AGAIN["id"]])
        self.acknowledged |= self._rows_of([TOLD["id"], AGAIN["id"]])
        self.backfill(engine)
        self.look()
        told = engine.follow(SCOPE, Paged(limit=1000))
        contents = "\n".join(memory.content for memory in told.memories)
        assert "third pot" not in contents
        assert sorted(turn.id for turn in engine.turns(SCOPE, TurnsRequest(10))) == sorted(
            [TEA["id"], HIDING["id"]]
        )
        engine.finish_due(SCOPE)
        assert engine.head(SCOPE).due is Due.NOTHING
        assert engine.verify(SCOPE).problems == ()
        for receipt in engine.receipts(SCOPE):
            assert engine.verify_erased(SCOPE, receipt).sound


def paused(home: MemoryHome, director: Baton, policy: Policy) -> Kernel:
    """An engine that hands the baton back before every call of a port, and distills."""
    engine = baton.engine(home, director, policy)
    force_setattr(engine._ports, "distiller", home.distiller)
    return engine


def test_forget_wins_every_race_against_a_backfill(
    more: bool, seed: int, record_property: Callable[..., None]
) -> None:
    """Under any interleaving, whoever dies on the way, no forgotten turn returns."""
    count: Counter[str] = Counter()
    for number in range(2_500 if more else 700):
        name = f"{seed}/{number}"
        scene = Scene(name)
        try:
            scene.cast()
            scene.baton.run(scene.look)
            assert not [actor.error for actor in scene.baton.actors if actor.error]
            scene.recover()
        except (AssertionError, ScrubjayError) as error:
            error.add_note(f"interleaving {name}")
            raise
        count += Counter(interleavings=1, switches=scene.baton.switches, deaths=scene.baton.deaths)
    for name, value in count.items():
        record_property(name, value)
    assert count["deaths"] > 0
