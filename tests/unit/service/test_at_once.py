"""Where a recall is done: on the event loop while it is a short matter, else on a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import httpx2
import pytest

from scrubjay.ports import Floats
from scrubjay.testing.clock import FakeClock
from scrubjay.testing.fake_embedder import FakeEmbedder
from tests.serving import serving
from tests.support.engines import MemoryHome


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
