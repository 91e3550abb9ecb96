"""Turns over HTTP: who says what, how often, and how much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrubjay.model.origin import Actor, Origin
from tests.unit.service.conftest import Caller
from tests.unit.service.test_routes import problem

Calling = Callable[..., Caller]
TURN = {"id": "turn-1", "user": "I prefer green tea.", "assistant": "Noted.", "session": "s"}


def test_a_turn_makes_its_scope_and_is_created_once(alice: Caller) -> None:
    first, again = (alice.http.post("/v1/turns", json=TURN) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert (first.json()["outcome"], again.json()["outcome"]) == ("stored", "known")
    assert (first.json()["state"], len(first.json()["memories"])) == ("kept", 2)
    (turn,) = alice.http.get("/v1/turns", params={"session": "s"}).json()["data"]
    assert {name: turn[name] for name in TURN} == TURN


def test_looking_at_turns_makes_no_scope(alice: Caller) -> None:
    for path in ("turns", "timeline", "sessions"):
        problem(alice.http.get(f"/v1/{path}"), 404, "not_found")


def test_a_turn_over_http_needs_an_id(alice: Caller) -> None:
    answer = alice.http.post("/v1/turns", json={"user": "tea"})
    assert problem(answer, 422, "invalid_request")["errors"][0]["pointer"] == "#/id"


def test_who_records_and_how_trusted_is_the_keys_to_say(
    service: Any, caller: Calling, scope: str
) -> None:
    made = service.keys.create(name="w", scopes=[scope], origin=Origin.WEB, actor=Actor.AGENT)
    headers, http = {"Authorization": f"Bearer {made.token}"}, caller().http
    claimed = {**TURN, "origin": "user"}
    problem(http.post("/v1/turns", json=claimed, headers=headers), 403, "forbidden")
    named = {**TURN, "actor": "user"}
    problem(http.post("/v1/turns", json=named, headers=headers), 422, "invalid_request")
    assert http.post("/v1/turns", json=TURN, headers=headers).status_code == 201
    (turn,) = http.get("/v1/turns", headers=headers).json()["data"]
    assert (turn["origin"], turn["actor"]) == ("web", "agent")


def test_a_turn_may_say_more_than_a_memory(alice: Caller) -> None:
    mebibyte = 1024 * 1024
    long = {**TURN, "assistant": "é" * mebibyte}
    assert alice.http.post("/v1/turns", json=long).status_code == 201
    assert alice.http.get("/v1/turns").json()["data"][0]["assistant"] == long["assistant"]
    longer = {**TURN, "assistant": "a" * 8 * mebibyte}
    problem(alice.http.post("/v1/turns", json=longer), 413, "too_large")


def test_a_secret_taken_out_of_a_turn_is_counted(alice: Caller) -> None:
    secret, before = "ghp_0123456789abcdefghijABCDEFGHIJ012345", _redacted(alice)
    answer = alice.http.post("/v1/turns", json={**TURN, "user": f"my token is {secret}"})
    assert sum(answer.json()["redacted"].values()) == 1
    assert _redacted(alice) == before + 1


def _redacted(caller: Caller) -> float:
    lines = caller.http.get("/metrics").text.splitlines()
    values = [line.split()[-1] for line in lines if line.startswith("memory_redacted_total ")]
    return sum(map(float, values))


def test_a_session_of_any_name_is_listed(alice: Caller) -> None:
    alice.http.post("/v1/turns", json={**TURN, "session": "visit 1/2"})
    alice.http.post("/v1/sessions/visit%201%2F2/taint", json={})
    (session,) = alice.http.get("/v1/sessions").json()["data"]
    assert (session["name"], session["turns"], session["tainted"]) == ("visit 1/2", 1, "web")
