"""An embedder over HTTP: its dimensions are learned, and what is amiss is said at every door."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx2
import pytest

from scrubjay import Jay
from scrubjay.access import Grant
from scrubjay.adapters.embedders.openai import Endpoint, OpenAIEmbedder
from scrubjay.engine import Kernel, Policy
from scrubjay.model.requests import Forget, Retain
from scrubjay.testing.clock import FakeClock
from tests.serving import serving
from tests.support.embedding_server import EmbeddingServer, serve_embeddings
from tests.support.engines import MemoryHome
from tests.support.loopback import Failure
from tests.unit.cli.conftest import CommandLine
from tests.unit.cli.conftest import cli as cli  # noqa: PLC0414 - a fixture
from tests.unit.engine.asking import EAGER, ask, fill
from tests.unit.engine.scene import ALICE, retain

DOWN = "Found by words alone until reindex: The embedding endpoint"
Opened = Callable[..., Kernel]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serve_embeddings() as server:
        yield server


@pytest.fixture
def opened(home: MemoryHome, server: EmbeddingServer) -> Opened:
    """A new process on the home, with an embedder of these dimensions or of none yet."""

    def make(dimensions: int = 0, policy: Policy | None = None) -> Kernel:
        endpoint = Endpoint(base_url=server.base_url, model="m", dimensions=dimensions, attempts=1)
        home.embedder = OpenAIEmbedder(endpoint, clock=home.clock, sleep=time.sleep)
        return home.engine(policy)

    return make


# -- dimensions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [False, True], ids=["rows", "segments"])
def test_dimensions_that_are_not_configured_are_those_of_the_first_answer(
    opened: Opened, server: EmbeddingServer, written: bool
) -> None:
    policy = EAGER if written else None
    fill(opened(policy=policy), 40)
    answers = [ask(opened(known, policy), "note7") for known in (16, 0, 0)]
    assert [answer.degraded for answer in answers] == [()] * 3
    ranked = [[(hit.memory.id, round(hit.score, 6)) for hit in answer] for answer in answers]
    assert ranked[0] == ranked[1] == ranked[2]
    assert len(ranked[0]) > 0


def test_while_the_endpoint_is_down_unknown_dimensions_cost_only_the_vectors(
    opened: Opened, server: EmbeddingServer
) -> None:
    fill(opened(), 20)
    engine = opened()
    server.failures.append(Failure(status=400))
    answer = ask(engine, "note7")
    assert len(answer) > 0
    (told,) = answer.degraded
    assert told.startswith("By words alone: The embedding endpoint")
    assert ask(engine, "note7").degraded == ()  # it answers again, and no reindex is needed


@pytest.mark.parametrize("written", [False, True], ids=["rows", "segments"])
@pytest.mark.parametrize("learned", [False, True], ids=["configured", "learned"])
def test_a_model_that_gives_other_dimensions_is_said_with_a_hint_and_nothing_fails(
    opened: Opened, server: EmbeddingServer, written: bool, learned: bool
) -> None:
    """The name of the model and its address are as before, so the identity is."""
    policy = EAGER if written else None
    engine = opened(policy=policy)
    ids = fill(engine, 40)
    ask(engine, "note7")
    server.dimensions = 24
    stale = ask(engine, "note7")  # a process that knows the old ones
    assert len(stale) > 0
    assert "24 dimensions, not 16" in str(stale.degraded)
    told = engine.retain(ALICE, Retain("and another")).degraded
    assert "24 dimensions, not 16" in str(told)
    engine.close()
    engine = opened(0 if learned else 24, policy)
    found = ask(engine, "note7")
    assert len(found) > 0
    assert "run reindex" in str(found.degraded)
    engine.forget(ALICE, Forget(ids=(ids[0],)))
    retain(engine, "one of the new ones")
    assert len(ask(engine, "note9")) > 0
    engine.reindex(ALICE)
    assert ask(engine, "note7").degraded == ()
    assert ask(opened(policy=policy), "note7").degraded == ()


# -- an endpoint that is down --------------------------------------------------------------------


def test_the_library_says_at_remember_that_the_endpoint_is_down(
    opened: Opened, server: EmbeddingServer
) -> None:
    engine = opened()
    server.failures.append(Failure(status=503))
    receipt = Jay(engine, ALICE).retain("green tea")
    assert receipt.degraded[0].startswith(DOWN)
    assert Jay(engine, ALICE).retain("black tea").degraded == ()


def test_the_command_line_says_at_remember_that_the_endpoint_is_down(
    cli: CommandLine, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRUBJAY_EMBEDDER", "openai")
    monkeypatch.setenv("SCRUBJAY_OPENAI_URL", server.base_url)
    monkeypatch.setenv("SCRUBJAY_OPENAI_MODEL", "m")
    server.failures.append(Failure(status=400))
    done = cli.good("remember", "green tea")
    assert DOWN in done.err
    assert cli.good("remember", "black tea").err == ""
    assert "1 memories have no vector of this embedder" in cli.good("recall", "tea").err


def test_the_service_says_at_remember_that_the_endpoint_is_down(
    home: MemoryHome, opened: Opened, server: EmbeddingServer
) -> None:
    clock = home.clock
    assert isinstance(clock, FakeClock)
    with serving(opened(), clock) as running:
        key = running.key("acme/alice", grants=tuple(Grant))
        headers = {"Authorization": f"Bearer {key}"}
        server.failures.append(Failure(status=400))
        http = httpx2.Client(base_url=running.url, headers=headers, timeout=30, verify=False)
        told = [http.post("/v1/memories", json={"content": text}) for text in ("tea", "coffee")]
        http.close()
    assert [answer.status_code for answer in told] == [201, 201]
    assert told[0].json()["degraded"][0].startswith(DOWN)
    assert not told[1].json().get("degraded")
