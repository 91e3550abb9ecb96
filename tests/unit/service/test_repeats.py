"""Repeats: what comes twice under one Idempotency-Key is done once, and nobody else's is lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from scrubjay.model.scope import Scope
from scrubjay.service.rest import OPERATIONS
from scrubjay.service.service import UNLIMITED, Options
from tests.serving import serving
from tests.support.engines import MemoryHome
from tests.unit.service.conftest import Caller
from tests.unit.service.test_routes import problem

Calling = Callable[..., Caller]


def test_a_repeated_retain_is_known_and_names_the_first(alice: Caller) -> None:
    how: dict[str, Any] = {"json": {"content": "once"}, "headers": {"Idempotency-Key": "i-1"}}
    first, again = (alice.http.post("/v1/memories", **how) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() | {"outcome": "known"} == again.json()
    assert len(alice.http.get("/v1/memories").json()["data"]) == 1


def test_of_many_who_repeat_a_retain_at_once_one_writes_it(alice: Caller) -> None:
    how: dict[str, Any] = {"json": {"content": "once"}, "headers": {"Idempotency-Key": "i-1"}}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: alice.http.post("/v1/memories", **how), range(8)))
    assert sorted(one.json()["outcome"] for one in answers) == ["known"] * 7 + ["stored"]
    assert len({one.json()["id"] for one in answers}) == 1


@pytest.mark.parametrize("key", ["", "k" * 513])
def test_a_key_that_names_nothing_is_refused(alice: Caller, key: str) -> None:
    headers = {"Idempotency-Key": key}
    answer = alice.http.post("/v1/memories", json={"content": "tea"}, headers=headers)
    problem(answer, 400, "malformed")


def test_the_verbs_a_repeat_would_change_something_for_are_keyed_or_never_repeated() -> None:
    writing = {one.name for one in OPERATIONS if one.writes and not one.idempotent}
    keyed = {one.name for one in OPERATIONS if one.keyed}
    assert keyed == {"retain", "supersede"}
    once = {"reject", "backup", "rotate", "extract", "work", "compact", "create_key"}
    named = {"append", "branch", "rewind", "delete_conversation", "put", "move", "remove"}
    """They have ids of their own, or an expected revision."""
    locks = {"hold", "unlock"}
    """Held again, a scope has another recovery key; unlocked again, it takes in nothing twice."""
    batch = {"retain_many"}  # its items have keys of their own
    assert writing - keyed == once | named | locks | batch


def test_a_key_with_another_body_is_refused(alice: Caller) -> None:
    headers = {"Idempotency-Key": "i-1"}
    alice.http.post("/v1/memories", json={"content": "one"}, headers=headers)
    other = alice.http.post("/v1/memories", json={"content": "two"}, headers=headers)
    problem(other, 422, "idempotency_key_reused")


def test_a_refused_request_may_be_tried_again_under_its_key(alice: Caller) -> None:
    headers = {"Idempotency-Key": "i-1"}
    refused = alice.http.post("/v1/memories", json={"content": " "}, headers=headers)
    problem(refused, 422, "invalid_request")
    good = alice.http.post("/v1/memories", json={"content": "tea"}, headers=headers)
    assert good.status_code == 201


def test_a_key_is_not_repeated_for_who_asks_again(alice: Caller, scope: str) -> None:
    """The answer that makes a key is shown once; a repeat makes another key."""
    how: dict[str, Any] = {
        "json": {"name": "n", "scopes": [scope]},
        "headers": {"Idempotency-Key": "i-1"},
    }
    first, again = (alice.http.post("/v1/keys", **how).json()["token"] for _ in range(2))
    assert first != again


def test_two_holders_may_use_the_same_key_for_different_texts(caller: Calling, scope: str) -> None:
    headers = {"Idempotency-Key": "1"}
    for text in ("one", "two"):
        answer = caller(scope).http.post("/v1/memories", json={"content": text}, headers=headers)
        assert (answer.status_code, answer.json()["outcome"]) == (201, "stored")
    told = caller(scope).http.get("/v1/memories").json()["data"]
    assert {memory["content"] for memory in told} == {"one", "two"}


def test_a_key_names_a_request_to_one_path_only(alice: Caller) -> None:
    headers = {"Idempotency-Key": "1"}
    made = alice.http.post("/v1/memories", json={"content": "one"}, headers=headers).json()["id"]
    path = f"/v1/memories/{made}/supersede"
    replaced = alice.http.post(path, json={"content": "two"}, headers=headers)
    assert (replaced.status_code, replaced.json()["outcome"]) == (201, "stored")


def test_a_caller_who_names_a_key_in_the_body_is_known_by_it(alice: Caller) -> None:
    body = {"content": "one", "key": "my own"}
    first = alice.http.post("/v1/memories", json=body, headers={"Idempotency-Key": "a"}).json()
    again = alice.http.post("/v1/memories", json=body, headers={"Idempotency-Key": "b"}).json()
    assert (again["outcome"], again["id"]) == ("known", first["id"])


# -- after a restart -----------------------------------------------------------------------------


@pytest.fixture
def restarting(home: MemoryHome) -> Callable[..., httpx2.Response]:
    """How to ask a service that was started just for this."""

    def ask(path: str, body: dict[str, Any], key: str) -> httpx2.Response:
        engine = home.engine()
        options = Options(no_auth=True, scope=Scope("local", "me"), rates=UNLIMITED)
        with serving(engine, home.clock, options) as running:
            headers = {"Idempotency-Key": key}
            answer = httpx2.post(f"{running.url}{path}", json=body, headers=headers, verify=False)
        engine.close()
        return answer

    return ask


Restarting = Callable[..., httpx2.Response]


def test_a_retain_is_known_by_its_key_after_a_restart(restarting: Restarting) -> None:
    first = restarting("/v1/memories", {"content": "one"}, "1").json()
    again = restarting("/v1/memories", {"content": "one"}, "1")
    assert (again.status_code, again.json()["outcome"]) == (200, "known")
    assert again.json()["id"] == first["id"]


def test_a_key_with_another_body_is_refused_after_a_restart_as_well(
    restarting: Restarting,
) -> None:
    made = restarting("/v1/memories", {"content": "one"}, "1").json()["id"]
    problem(restarting("/v1/memories", {"content": "two"}, "1"), 422, "idempotency_key_reused")
    path = f"/v1/memories/{made}/supersede"
    assert restarting(path, {"content": "three"}, "2").json()["outcome"] == "stored"
    assert restarting(path, {"content": "three"}, "2").json()["outcome"] == "known"
    problem(restarting(path, {"content": "four"}, "2"), 422, "idempotency_key_reused")
