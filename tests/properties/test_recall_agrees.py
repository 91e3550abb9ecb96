"""One scope, three ways to its index: kept open, loaded from segments, made from the rows."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay.adapters.embedders.static import NoEmbedder, StaticEmbedder
from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import Conflict, NotFound
from scrubjay.model.memory import Kind
from scrubjay.model.requests import Amend, Forget, Purge, Recall, Retain, Supersede
from scrubjay.model.results import Recalled
from scrubjay.model.scope import Scope
from scrubjay.ports import Embedder
from scrubjay.testing.clock import FakeClock
from tests.support.engines import MemoryHome

ALICE = Scope("local", "alice")
ASKED = datetime(2026, 2, 1, tzinfo=UTC)
WORDS = ("tea", "coffee", "garden", "violin", "river", "mountain", "letter", "winter", "key", "pot")
VERBS = ("retain", "retain", "retain", "retain", "supersede", "pin", "forget", "expire", "rotate",
         "purge", "recall", "recall", "other")  # fmt: skip
CLOSE = 1e-5
"""How far sums of vectors may differ that were added in another order."""


class History:
    """A scope with a past that one seed decides, lived through by an engine that stays open."""

    def __init__(self, seed: int, embedder: Embedder, segment_rows: int) -> None:
        self.home = MemoryHome(seed)
        self.home.embedder = embedder
        self.policy = Policy(segment_rows=segment_rows)
        self.open = self.home.engine(self.policy)
        self._random = Random(seed)
        self._ids: list[str] = []

    def live(self, verbs: list[str]) -> None:
        """Do one verb after the other; what is no longer there to be changed is let be."""
        for verb in verbs:
            engine = self.home.engine(self.policy) if verb == "other" else self.open
            with suppress(NotFound, Conflict):
                self._act(engine, "retain" if verb == "other" else verb)

    def _act(self, engine: Kernel, verb: str) -> None:
        one = self._random.choice(self._ids) if self._ids else "mem-none"
        match verb:
            case "retain":
                self._ids.append(engine.retain(ALICE, self._request()).id)
            case "supersede":
                self._ids.append(engine.supersede(ALICE, Supersede(id=one, content=self._say())).id)
            case "pin":
                engine.amend(ALICE, Amend(one, pinned=self._random.random() < 0.7))
            case "forget":
                engine.forget(ALICE, Forget(ids=(one,)))
            case "expire":
                engine.amend(ALICE, Amend(one, expires_at=ASKED + timedelta(days=300)))
            case "rotate":
                engine.rotate(ALICE)
            case "purge":
                self.home.clock.advance(days=10)
                engine.purge(ALICE, Purge(superseded_days=5))
            case "recall":
                ask(engine, self._say())

    def _say(self) -> str:
        return " ".join(self._random.choices(WORDS, k=self._random.randint(1, 8)))

    def _request(self) -> Retain:
        return Retain(
            content=self._say(),
            kind=self._random.choice(list(Kind)),
            tags=tuple(self._random.sample(WORDS, self._random.randint(0, 2))),
            session=self._random.choice((None, "s1", "s2")),
            speaker=self._random.choice((None, "Ann", "Bob")),
            position=self._random.choice((None, 1, 2, 3)),
            importance=self._random.random(),
            said_at=ASKED - timedelta(days=self._random.randint(0, 60)),
        )


def ask(engine: Kernel, query: str) -> Recalled:
    return engine.recall(ALICE, Recall(query=query, limit=100, asked_at=ASKED, superseded=True))


def from_rows(home: MemoryHome) -> Kernel:
    """An engine that has its index from the rows, whatever segments there are."""
    engine = home.engine(Policy(segment_rows=10**9))
    engine._indexed(ALICE).start_over()
    return engine


@pytest.fixture(scope="module")
def static() -> Embedder:
    """The default embedder, whose table is read once for all examples."""
    return StaticEmbedder(FakeClock())


histories = given(
    seed=st.integers(0, 2**32),
    verbs=st.lists(st.sampled_from(VERBS), min_size=10, max_size=60),
    segment_rows=st.sampled_from((0, 0, 3, 10)),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@histories
def test_however_an_index_came_about_it_finds_the_same_with_the_same_scores(
    seed: int, verbs: list[str], segment_rows: int
) -> None:
    """By words and structure, to the last bit."""
    history = History(seed, NoEmbedder(), segment_rows)
    history.live(verbs)
    for query in ("tea in the garden", "What did Ann say of the violin?", "winter key river"):
        expected = ask(from_rows(history.home), query)
        for engine in (history.open, history.home.engine(history.policy)):
            found = ask(engine, query)
            assert [(hit.memory, hit.score) for hit in found] == [
                (hit.memory, hit.score) for hit in expected
            ]


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@histories
def test_however_an_index_came_about_it_finds_the_same_by_meaning(
    static: Embedder, seed: int, verbs: list[str], segment_rows: int
) -> None:
    """Vectors are summed in another order, which shows in the last digits only."""
    history = History(seed, static, segment_rows)
    history.live(verbs)
    expected = {hit.memory.id: hit.score for hit in ask(from_rows(history.home), "hot drinks")}
    for engine in (history.open, history.home.engine(history.policy)):
        found = ask(engine, "hot drinks")
        assert {hit.memory.id: hit.score for hit in found} == pytest.approx(expected, abs=CLOSE)
