"""What the plane does not do on the way of a recall, and for how long, and how much, it does."""

from __future__ import annotations

import gzip
import http.client
import json
import logging
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.routing import Router
from starlette.testclient import TestClient

from scrubjay import bootstrap
from scrubjay.engine import Kernel
from scrubjay.service.service import Rates, Service
from scrubjay.surfaces.clawdapus.descriptor import PlaneOffer
from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane
from scrubjay.testing.embedder_contract import FakeEmbedder
from tests.dialects.clawdapus.conftest import OPEN, PATIENT, Serve
from tests.dialects.clawdapus.desk import SCOPE, Desk, line
from tests.dialects.clawdapus.pod import Json, Manifest, Proxy, post, send, user
from tests.support.engines import MemoryHome

PAINT = line(0, "Which warehouse holds the blue paint?", "Warehouse nine, by the river.")
SECRETS = (
    "sk-live-abcdef123456",
    "Bearer abcdefgh12345678",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
)


def recall(url: str, text: str = "Where is the blue paint?", **more: Any) -> tuple[int, bytes]:
    body = {"agent_id": "analyst", "pod": "desk", "messages": [user(text)], **more}
    answer = post(Manifest(url), "recall", body, seconds=30)
    return answer.status, answer.body


def retain(url: str, told: Json, **metadata: Any) -> int:
    body = {"agent_id": "analyst", "pod": "desk", "entry": told, "metadata": metadata}
    return post(Manifest(url), "retain", body, seconds=30).status


# -- nothing leaves the machine -------------------------------------------------------------------


def test_a_recall_asks_no_embedder_that_is_elsewhere() -> None:
    home = MemoryHome()
    home.embedder = remote = FakeEmbedder(home.clock, costly=True)
    desk = Desk(home.engine())
    desk.retain(PAINT)
    remote.texts.clear()
    assert "river" in desk.texts("Where is the blue paint?")
    assert remote.texts == []


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_in_a_question_is_gone_before_anything_is_searched(secret: str) -> None:
    home = MemoryHome()
    home.embedder = cheap = FakeEmbedder(home.clock, costly=False)
    desk = Desk(home.engine())
    desk.retain(PAINT)
    desk.recall(f"Is the blue paint behind {secret}?")
    assert "Is the blue paint behind" in "".join(cheap.texts)
    assert secret not in "".join(cheap.texts)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_turn_with_a_secret_is_known_when_the_conversation_still_holds_it(
    engine: Kernel, secret: str
) -> None:
    desk = Desk(engine)
    said = f"Open the paint store with {secret} for me."
    desk.retain(line(0, said, "The paint store is open."))
    assert desk.recall("And the paint?", user(said)) == []


# -- in time --------------------------------------------------------------------------------------


def test_a_recall_that_would_be_late_is_given_up_here_and_not_the_turn(
    serve: Serve, engine: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    """The service keeps its own limit, well before a proxy with more patience would give up."""
    proxy = Proxy(Manifest(serve(engine, PlaneOffer(recall_seconds=0.2)), recall_seconds=30.0))
    proxy.turn([user("Which warehouse holds the blue paint?")], lambda _: "Nine.")
    caplog.set_level(logging.INFO)
    begun = time.monotonic()
    with engine._indexed(SCOPE).lock:  # somebody makes the index anew
        assert proxy.turn([user("And the red paint?")], lambda _: "Ten.") == "Ten."
    assert time.monotonic() - begun < 10
    late = proxy.telemetry[2]
    assert (late["memory_status"], late["status_code"]) == ("failed", 503)
    told = [one for one in caplog.records if one.getMessage() == "memory_op"]
    assert (told[0].memory_op, told[0].memory_status) == ("recall", "timed_out")  # type: ignore[attr-defined]


def test_a_proxy_that_waits_less_than_the_service_gives_up_by_itself(
    serve: Serve, engine: Kernel
) -> None:
    proxy = Proxy(Manifest(serve(engine, PATIENT), recall_seconds=30.0))
    proxy.turn([user("Which warehouse holds the blue paint?")], lambda _: "Nine.")
    proxy.manifest.recall_seconds = 0.1
    with engine._indexed(SCOPE).lock:
        assert proxy.turn([user("And the red paint?")], lambda _: "Ten.") == "Ten."
    assert proxy.telemetry[2]["memory_status"] == "timed_out"


def test_a_recall_does_not_wait_for_who_destroys_or_restores_another_scope(
    serve: Serve, engine: Kernel
) -> None:
    url = serve(engine)
    assert retain(url, PAINT) == 202
    assert b"river" in recall(url)[1]
    with engine._mutex:  # held to its end by whoever destroys or restores
        assert b"river" in recall(url)[1]


# -- within limits --------------------------------------------------------------------------------


def test_who_asks_too_often_is_told_to_come_back(serve: Serve, engine: Kernel) -> None:
    url = serve(engine, PATIENT, replace(OPEN, rates=Rates(reads=0.001, burst_seconds=1)))
    answers = [recall(url) for _ in range(2)]
    assert [status for status, _ in answers] == [200, 429]
    assert send(url, "GET", "/health").status == 200


def test_a_replay_is_slowed_down_to_the_rate_and_not_broken_off(
    serve: Serve, engine: Kernel
) -> None:
    rates = Rates(writes=20, burst_seconds=0.05)
    url = serve(engine, PATIENT, replace(OPEN, rates=rates), bootstrap.clock())
    begun = time.monotonic()
    assert [retain(url, line(n, f"Count lot {n}.")) for n in range(8)] == [202] * 8
    assert time.monotonic() - begun > 0.25


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read(url: str) -> None:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
    connection.putrequest("POST", "/retain")
    connection.putheader("Content-Length", str(2**40))
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("Connection")) == (413, "close")
    connection.close()


@pytest.mark.parametrize("packed", [False, True])
def test_bodies_take_of_the_room_the_service_has_for_all_of_them(
    engine: Kernel, packed: bool
) -> None:
    service = Service(engine, engine._ports.clock, OPEN)
    body = json.dumps({"agent_id": "analyst", "entry": PAINT}).encode()
    sent = gzip.compress(body) if packed else body
    headers = {"Content-Encoding": "gzip"} if packed else {}
    with TestClient(Router(ClawdapusPlane(PATIENT).routes(service))) as client:
        for left, status in ((len(body) - 1, 503), (len(body) + len(sent), 202)):
            service.room.left = left
            assert client.post("/retain", content=sent, headers=headers).status_code == status
            assert service.room.left == left


# -- what is told of it ---------------------------------------------------------------------------


def events(caplog: pytest.LogCaptureFixture) -> list[Json]:
    """What was logged of operations, with the fields the proxy's own events have."""
    names = ("type", "latency_ms", "status_code", "intervention", "memory_service", "memory_op",
             "memory_status", "memory_blocks", "memory_bytes", "memory_removed")  # fmt: skip
    return [
        {name: getattr(one, name) for name in names if hasattr(one, name)}
        for one in caplog.records
        if one.getMessage() == "memory_op"
    ]


def test_every_operation_is_told_of_once_in_numbers_alone(
    serve: Serve, engine: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    url = serve(engine)
    secret = line(1, "Paint the sk-live-abcdef123456 door for Zanzibar.")
    retain(url, secret, policy_removed=2)
    retain(url, secret, policy_removed=2)
    retain(url, line(2, "boom", status="error"))
    recall(url, "Which door is painted?")
    post(Manifest(url), "recall", b"{", seconds=5)
    body = {"agent_id": "analyst", "pod": "desk", "entry_ids": [secret["id"]], "reason": "Zanzibar"}
    post(Manifest(url), "forget", body, seconds=30)
    told = events(caplog)
    assert [(one["memory_op"], one["memory_status"]) for one in told] == [
        ("retain", "succeeded"), ("retain", "succeeded"), ("retain", "skipped"),
        ("recall", "succeeded"), ("recall", "failed"), ("forget", "succeeded"),
    ]  # fmt: skip
    assert [one.get("memory_removed") for one in told] == [3, None, None, None, None, 2]
    assert told[3]["memory_blocks"] == 1
    assert told[3]["memory_bytes"] > 20
    assert all(one["intervention"] is None and one["type"] == "memory_op" for one in told)
    assert "latency_ms" not in told[2]
    logged = "\n".join(str({**vars(one), "pathname": ""}) for one in caplog.records)
    assert not [word for word in ("Zanzibar", "door", "analyst", "desk") if word in logged]


def test_what_is_not_offered_is_skipped(
    serve: Serve, engine: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    """Both ends: a proxy without the path does not ask, and a service without it says so."""
    caplog.set_level(logging.INFO)
    url = serve(engine, replace(PATIENT, retain=False))
    proxy = Proxy(Manifest(url, paths={"recall": "/recall"}))
    assert proxy.turn([user("Hello there")], lambda _: "Hi.") == "Hi."
    assert [one["memory_status"] for one in proxy.telemetry] == ["succeeded", "skipped"]
    assert retain(url, PAINT) == 404
    assert [one["memory_status"] for one in events(caplog)] == ["succeeded", "skipped"]


def test_the_counters_have_the_operations_of_the_plane(serve: Serve, engine: Kernel) -> None:
    url = serve(engine)
    retain(url, line(1, "Paint the sk-live-abcdef123456 door."), policy_removed=2)
    recall(url, "Which door is painted?")
    for _ in range(3):
        send(url, "GET", "/health")
    counters = dict(
        one.rsplit(" ", 1)
        for one in send(url, "GET", "/metrics").body.decode().splitlines()
        if not one.startswith("#")
    )
    assert counters['memory_operations_total{op="plane_retain",status="202"}'] == "1"
    assert counters['memory_operations_total{op="plane_recall",status="200"}'] == "1"
    assert counters['memory_operations_total{op="healthz",status="200"}'] == "3"
    assert counters["memory_policy_removed_total"] == "3"
    assert counters["memory_recall_blocks_sum"] == counters["memory_recall_blocks_count"] == "1"
    assert int(counters["memory_recall_bytes_sum"]) > 20


def test_a_probe_of_health_leaves_no_line_in_the_log(
    serve: Serve, engine: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    url = serve(engine)
    assert (send(url, "GET", "/health").status, send(url, "HEAD", "/health").status) == (200, 200)
    assert [one.getMessage() for one in caplog.records if one.name.startswith("scrubjay")] == []


def test_an_answer_says_what_went_wrong_in_a_line_of_text(url: str) -> None:
    answer = send(url, "POST", "/recall", json.dumps({"agent_id": 7}).encode())
    assert (answer.status, answer.body) == (400, b"agent_id is required\n")
