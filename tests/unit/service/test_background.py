"""Extraction in the background: nobody waits for it, and it ends when the service ends."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator

import httpx2
import pytest

from scrubjay.adapters.distillers.chat import ChatExtractor, ChatModel
from scrubjay.engine import Kernel, Policy
from scrubjay.model.requests import PauseExtraction, Recall, Retain
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.service.service import STOP_SECONDS, Background, Pauses
from scrubjay.service.telemetry import Metrics
from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane
from tests.serving import serving
from tests.support.engines import MemoryHome
from tests.support.loopback import Failure
from tests.support.model_server import TOKENS_IN, TOKENS_OUT, ModelServer, note, serve_model

ALICE, BOB = Scope("acme", "alice"), Scope("acme", "bob")
BOAT = "We take the boat to Naxos in June, all four of us."
QUICK = Pauses(first=0.01, longest=0.05, sweep=60)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with serve_model(note("The trip goes to Naxos.", about="trip")) as running:
        yield running


@pytest.fixture
def home(model: ModelServer) -> MemoryHome:
    home = MemoryHome()
    asked = ChatModel(base_url=model.openai_url, name="m", attempts=1)
    home.extractor = ChatExtractor(asked, clock=home.clock, sleep=lambda _: None)
    return home


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def background(home: MemoryHome, engine: Kernel, metrics: Metrics) -> Iterator[Background]:
    made = Background(engine, home.clock, metrics, QUICK)
    yield made
    made.stop()


def say(engine: Kernel, number: int = 1, user: str = BOAT, scope: Scope = ALICE) -> None:
    engine.record(scope, Record(id=f"turn-{number}", user=user, assistant="All right."))


def wait_for(reached: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until something holds, which it has to."""
    until = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.005)


def done(engine: Kernel, scope: Scope = ALICE) -> int:
    return engine.extraction(scope).done


def test_a_recorded_turn_is_read_without_being_asked_for(
    engine: Kernel, background: Background
) -> None:
    background.start()
    say(engine)
    wait_for(lambda: done(engine) == 1)
    assert engine.extraction(ALICE).memories == 1


def test_what_waited_in_any_scope_is_read_at_the_start(
    engine: Kernel, background: Background
) -> None:
    say(engine, scope=ALICE)
    say(engine, scope=BOB)
    background.start()
    wait_for(lambda: done(engine, ALICE) == done(engine, BOB) == 1)


def test_scopes_nobody_wakes_it_for_are_looked_at_though_others_always_do(
    home: MemoryHome, engine: Kernel, background: Background
) -> None:
    background.start()
    say(engine)
    wait_for(lambda: done(engine) == 1)
    elsewhere = home.engine()
    say(elsewhere, scope=BOB)
    home.clock.advance(seconds=601)
    say(engine, 2, "The second boat is called Thetis and lies in Paros.")
    wait_for(lambda: done(engine, BOB) == 1)
    elsewhere.close()


def test_a_long_backlog_is_read_to_its_end(engine: Kernel, background: Background) -> None:
    for number in range(20):
        say(engine, number, f"Planet number {number} has {number} moons and a ring.")
    background.start()
    wait_for(lambda: done(engine) == 20)


def test_a_model_that_is_down_is_left_alone_longer_each_time(
    engine: Kernel, background: Background, model: ModelServer
) -> None:
    model.down = True
    background.start()
    say(engine)
    wait_for(lambda: len(model.requests) >= 3)
    model.down = False
    wait_for(lambda: done(engine) == 1)
    assert engine.extraction(ALICE).failed == 0


def test_neither_retain_nor_recall_waits_for_the_model(
    engine: Kernel, background: Background, model: ModelServer
) -> None:
    thinking, go_on = threading.Event(), threading.Event()

    def think(_: object) -> None:
        thinking.set()
        go_on.wait(20)

    model.thinking = think
    background.start()
    say(engine)
    assert thinking.wait(60)
    engine.retain(ALICE, Retain(content="tea"))
    say(engine, 2, "I prefer tea.")
    assert engine.recall(ALICE, Recall(query="tea")).hits
    assert done(engine) == 0
    go_on.set()
    wait_for(lambda: done(engine) == 2)


def test_a_pause_holds_and_going_on_wakes_it(
    engine: Kernel, background: Background, model: ModelServer
) -> None:
    engine.pause_extraction(ALICE)
    background.start()
    say(engine, scope=ALICE)
    say(engine, scope=BOB)
    wait_for(lambda: done(engine, BOB) == 1)
    assert len(model.turns) == 1
    engine.pause_extraction(ALICE, PauseExtraction(paused=False))
    wait_for(lambda: done(engine, ALICE) == 1)


def test_a_frozen_scope_keeps_no_other_from_its_turn(
    engine: Kernel, background: Background
) -> None:
    say(engine, scope=ALICE)
    say(engine, scope=BOB)
    engine.freeze(ALICE)
    background.start()
    wait_for(lambda: done(engine, BOB) == 1)
    assert done(engine, ALICE) == 0


def test_it_ends_in_a_moment_while_the_model_thinks(
    engine: Kernel, background: Background, model: ModelServer
) -> None:
    thinking = threading.Event()

    def think(_: object) -> None:
        thinking.set()
        model.closing.wait(30)

    model.thinking = think
    background.start()
    say(engine)
    assert thinking.wait(60)
    begun = time.monotonic()
    background.stop()
    assert time.monotonic() - begun < STOP_SECONDS + 1
    model.closing.set()


def test_it_ends_at_once_when_it_has_nothing_to_do(background: Background) -> None:
    background.start()
    begun = time.monotonic()
    background.stop()
    assert time.monotonic() - begun < 1


def test_without_a_model_the_thread_keeps_the_schedule_of_the_root_key() -> None:
    home = MemoryHome()
    engine = home.engine(Policy(root_days=30))
    background = Background(engine, home.clock, Metrics(), QUICK)
    say(engine)
    home.clock.advance(days=30)
    background.start()
    wait_for(lambda: list(home.keyring.wrapper.generations()) == [2])
    background.stop()
    assert done(engine) == 0
    engine.close()


def test_counters_say_what_was_read_and_what_it_cost(
    engine: Kernel, background: Background, metrics: Metrics, model: ModelServer
) -> None:
    model.failures.append(Failure(body=b"{}"))
    background.start()
    say(engine)
    wait_for(lambda: "memory_extraction_turns_total 1" in metrics.render(depth=0, age=0))
    lines = metrics.render(depth=0, age=0).splitlines()
    assert f'memory_extraction_tokens_total{{direction="out"}} {1 + TOKENS_OUT}' in lines
    assert "memory_extraction_failures_total 1" in lines
    assert "memory_extraction_waiting 0" in lines
    assert lines.count("# TYPE memory_extraction_tokens_total counter") == 1
    spent = engine.extraction(ALICE).tokens_in
    assert f'memory_extraction_tokens_total{{direction="in"}} {spent}' in lines
    assert spent > TOKENS_IN


def test_nothing_of_a_turn_is_logged(
    engine: Kernel,
    background: Background,
    model: ModelServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    model.failures.extend([Failure(status=400, body=b"Naxos"), Failure(body=b"Naxos")])
    with caplog.at_level(logging.DEBUG, "scrubjay"):
        background.start()
        say(engine)
        wait_for(lambda: done(engine) == 1)
    assert caplog.records
    told = json.dumps([vars(record) for record in caplog.records], default=str)
    assert "Naxos" not in told + caplog.text


def test_a_turn_a_pod_reports_is_read_in_the_background(home: MemoryHome, engine: Kernel) -> None:
    entry = {
        "id": "hist1_1",
        "ts": "2026-04-03T14:32:01Z",
        "request_original": {"messages": [{"role": "user", "content": BOAT}]},
        "response": {"format": "json", "json": {"choices": [{"message": {"content": "Yes."}}]}},
    }
    with serving(engine, home.clock, planes=[ClawdapusPlane()]) as running:
        told = {"agent_id": "a", "entry": entry}
        assert httpx2.post(f"{running.url}/retain", json=told, verify=False).status_code == 202
        (scope,) = (scope for scope in engine.scopes() if scope.tenant != "system")
        wait_for(lambda: done(engine, scope) == 1)
