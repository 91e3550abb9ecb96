"""The change feed as server-sent events: in order, resumable, bounded, and only with a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scrubjay import Jay
from scrubjay.access import Grant
from scrubjay.engine import Kernel
from scrubjay.model.scope import Scope
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
    with httpx2.stream("GET", f"{running.url}/v1/follow", headers=sent, timeout=10) as answer:
        pieces = answer.iter_text()
        assert "tea" in next(pieces)
        running.keys.revoke(made.key.id)
        home.clock.advance(seconds=1)
        Jay(engine, SCOPE, shared=True).retain("coffee")
        assert "coffee" not in "".join(pieces)
