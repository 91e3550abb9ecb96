"""Where a recall is done: on the event loop while it is a short matter, else on a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import httpx2
import pytest

from scrubjay.model.requests import Retain
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Piece, Turn
from scrubjay.ports import Floats
from scrubjay.surfaces.clawdapus.descriptor import RECALL, PlaneOffer
from scrubjay.surfaces.clawdapus.names import scope_of
from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane
from scrubjay.testing.clock import FakeClock
from scrubjay.testing.embedder_contract import FakeEmbedder
from tests.serving import serving
from tests.support.engines import MemoryHome

ALICE = Scope.parse("acme/alice")


class _Noting(FakeEmbedder):
    """Notes on which thread each question is embedded."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock, costly=False)
        self.threads: dict[str, str] = {}

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        self.threads |= dict.fromkeys(texts, threading.current_thread().name)
        return super().embed(texts, deadline=deadline)


@pytest.fixture
def noting(home: MemoryHome) -> _Noting:
    home.embedder = _Noting(home.clock)
    return home.embedder


@pytest.fixture
def http(home: MemoryHome, noting: _Noting) -> Iterator[httpx2.Client]:
    engine = home.engine()
    with serving(engine, home.clock) as running:
        headers = {"Authorization": f"Bearer {running.key('acme/alice')}"}
        with httpx2.Client(base_url=running.url, headers=headers, timeout=30) as client:
            client.post("/v1/memories", json={"content": "green tea"})
            yield client
    engine.close()


class _Told:
    """A distiller that notes the turns it was given, and trips over each."""

    identity = "told"

    def __init__(self) -> None:
        self.turns: list[str] = []

    def distill(self, turn: Turn) -> Sequence[Piece]:
        self.turns.append(turn.user)
        raise RuntimeError(turn.id)

    def words(self, _turn: Turn) -> frozenset[str]:
        return frozenset()


def test_a_service_has_loaded_its_rules_before_it_is_ready(home: MemoryHome) -> None:
    home.distiller = told = _Told()
    with serving(home.engine(), home.clock) as running:
        assert httpx2.get(f"{running.url}/readyz").status_code == 200  # though they failed
        assert len(told.turns) == 1


def _ask(http: httpx2.Client, query: str, **more: object) -> list[str]:
    answer = http.post("/v1/recall", json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    return [hit["memory"]["content"] for hit in answer.json()["hits"]]


def test_the_first_recall_is_done_on_a_thread_and_the_next_on_the_loop(
    http: httpx2.Client, noting: _Noting
) -> None:
    assert _ask(http, "first") == _ask(http, "second") == ["green tea"]
    assert noting.threads["first"].startswith("read")
    assert not noting.threads["second"].startswith("read")


@pytest.mark.parametrize("more", [{"limit": 100}, {"scopes": ["acme/alice"]}])
def test_a_recall_that_asks_for_much_is_done_on_a_thread(
    http: httpx2.Client, noting: _Noting, more: dict[str, object]
) -> None:
    _ask(http, "first")
    _ask(http, "second", **more)
    assert noting.threads["second"].startswith("read")


def test_a_long_question_is_done_on_a_thread(http: httpx2.Client, noting: _Noting) -> None:
    _ask(http, "first")
    long = "tea " * 1_000
    _ask(http, long)
    assert noting.threads[long[:4_000]].startswith("read")


def test_a_question_that_is_wrong_is_refused_on_the_loop_as_on_a_thread(
    http: httpx2.Client,
) -> None:
    answers = [http.post("/v1/recall", json={"query": ["no"]}) for _ in range(2)]
    _ask(http, "first")
    answers.append(http.post("/v1/recall", json={"query": ["no"]}))
    assert {one.status_code for one in answers} == {422}
    assert len({one.json()["errors"][0]["detail"] for one in answers}) == 1


def test_after_a_restart_the_first_recall_finds_its_index_loaded(
    home: MemoryHome, noting: _Noting
) -> None:
    engine = home.engine()
    engine.retain(ALICE, Retain("green tea"))
    engine.close()
    again = home.engine()
    with serving(again, home.clock) as running:
        headers = {"Authorization": f"Bearer {running.key('acme/alice')}"}
        with httpx2.Client(base_url=running.url, headers=headers, timeout=30) as client:
            client.post("/v1/memories", json={"content": "black tea"})
            assert "green tea" in _ask(client, "tea?")
    assert noting.threads["green tea"].startswith("read")  # before anything was asked
    again.close()


def test_a_short_recall_of_the_plane_is_done_on_the_loop(home: MemoryHome, noting: _Noting) -> None:
    engine = home.engine()
    engine.retain(scope_of("desk", "pod"), Retain("Ann drinks green tea"))
    plane = ClawdapusPlane(PlaneOffer(token="t", recall_seconds=30))
    with (
        serving(engine, home.clock, planes=[plane]) as running,
        httpx2.Client(base_url=running.url, headers={"Authorization": "Bearer t"}) as client,
    ):
        said = {"role": "user", "content": "What tea does Ann drink?"}
        asked = {"agent_id": "desk", "pod": "pod", "messages": [said]}
        answer = client.post(RECALL, json=asked)
    assert "green tea" in answer.text
    assert not noting.threads[said["content"]].startswith("read")
    engine.close()


def test_a_recall_of_the_plane_without_time_is_too_late_and_no_mistake(home: MemoryHome) -> None:
    engine = home.engine()
    plane = ClawdapusPlane(PlaneOffer(recall_seconds=0))
    with serving(engine, home.clock, planes=[plane]) as running:
        asked = {"agent_id": "desk", "pod": "pod", "messages": []}
        assert httpx2.post(running.url + RECALL, json=asked).status_code == 503
    engine.close()
