"""The change feed as server-sent events: in order, resumable, bounded, and only with a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import pytest

from scrubjay import Jay
from scrubjay.access import Grant
from scrubjay.engine import Kernel
from scrubjay.model.scope import Scope
from scrubjay.service.routes import STREAMS, STREAMS_OF_KEY
from tests.serving import Running, serving
from tests.support.engines import SqliteHome

SCOPE = Scope("acme", "alice")


@pytest.fixture
def home(tmp_path: Path) -> SqliteHome:
    return SqliteHome(tmp_path / "home")


@pytest.fixture
def both(home: SqliteHome) -> Iterator[tuple[Kernel, Running]]:
    engine = home.engine()
    engine.open(SCOPE)
    with serving(engine, home.clock) as running:
        yield engine, running
    engine.close()


def events(running: Running, key: str, **headers: str) -> tuple[int, list[dict[str, Any]]]:
    """The events of a stream that ends after a second at most."""
    sent = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream", "Prefer": "wait=0"}
    answer = httpx2.get(f"{running.url}/v1/follow", headers=sent | headers, timeout=30)
    found = []
    for event in answer.text.split("\n\n")[:-1] if answer.is_success else []:
        found.append(dict(line.split(": ", 1) for line in event.splitlines()))
    return answer.status_code, found


def test_changes_come_in_order_and_are_resumed_after_the_last_one(
    both: tuple[Kernel, Running],
) -> None:
    engine, running = both
    jay, key = Jay(engine, SCOPE, shared=True), running.key(str(SCOPE))
    first = jay.retain("tea").id
    jay.retain("coffee")
    _, told = events(running, key, Prefer="wait=1")
    assert [json.loads(one["data"])["memory"]["content"] for one in told] == ["tea", "coffee"]
    jay.forget([first])
    _, later = events(running, key, Prefer="wait=1", **{"Last-Event-ID": told[-1]["id"]})
    assert [json.loads(one["data"])["memory"] for one in later] == [None]
    assert json.loads(later[0]["data"])["row"] == json.loads(told[0]["data"])["row"]


def test_a_stream_is_refused_without_the_grant_and_for_a_foreign_id(
    both: tuple[Kernel, Running],
) -> None:
    _, running = both
    assert events(running, "sj_none_none")[0] == 401
    writer = running.key(str(SCOPE), grants=(Grant.WRITE,))
    assert events(running, writer)[0] == 403
    reader = running.key(str(SCOPE))
    assert events(running, reader, **{"Last-Event-ID": "x"})[0] == 422
    missing = running.key("other/z")
    assert events(running, missing)[0] == 404


def test_a_stream_ends_when_its_key_is_revoked(
    both: tuple[Kernel, Running], home: SqliteHome
) -> None:
    """It would last twenty seconds, and reading gives up after ten."""
    engine, running = both
    Jay(engine, SCOPE, shared=True).retain("tea")
    made = running.keys.create(name="n", scopes=[str(SCOPE)], grants=[Grant.READ])
    sent = {"Authorization": f"Bearer {made.token}", "Accept": "text/event-stream"}
    with httpx2.stream("GET", f"{running.url}/v1/follow", headers=sent, timeout=60) as answer:
        pieces = answer.iter_text()
        assert "tea" in next(pieces)
        running.keys.revoke(made.key.id)
        home.clock.advance(seconds=1)
        Jay(engine, SCOPE, shared=True).retain("coffee")
        assert "coffee" not in "".join(pieces)


def opened(running: Running, key: str, streams: ExitStack) -> int:
    """The status of a stream that is held open until the end of the stack."""
    sent = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    answer = httpx2.stream("GET", f"{running.url}/v1/follow", headers=sent, timeout=30)
    return streams.enter_context(answer).status_code


def admitted_again(running: Running, key: str) -> bool:
    """Whether a stream is admitted within ten seconds: half of what the gone ones would last."""
    until = monotonic() + 10
    return any(events(running, key)[0] == 200 for _ in iter(lambda: monotonic() < until, False))


def test_a_key_leaves_streams_to_others_and_one_that_comes_and_goes_keeps_none(
    both: tuple[Kernel, Running],
) -> None:
    """A stream would hold its place for twenty seconds after its client was gone."""
    _, running = both
    greedy, other = running.key(str(SCOPE)), running.key(str(SCOPE))
    with ExitStack() as streams:
        found = [opened(running, greedy, streams) for _ in range(STREAMS_OF_KEY + 3)]
        assert found == [200] * STREAMS_OF_KEY + [503] * 3
        assert opened(running, other, streams) == 200
    assert admitted_again(running, greedy)


def test_all_keys_together_have_so_many_streams(both: tuple[Kernel, Running]) -> None:
    _, running = both
    with ExitStack() as streams:
        for _ in range(STREAMS // STREAMS_OF_KEY):
            key = running.key(str(SCOPE))
            for _ in range(STREAMS_OF_KEY):
                assert opened(running, key, streams) == 200
        late = running.key(str(SCOPE))
        assert opened(running, late, streams) == 503
    assert admitted_again(running, late)
