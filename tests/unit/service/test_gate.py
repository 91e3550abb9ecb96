"""The gate: whose requests come in, and what every answer carries."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable

import httpx2
import pytest

from scrubjay.service.server import JsonLines
from tests.serving import Running
from tests.unit.service.conftest import Caller
from tests.unit.service.test_routes import problem

Calling = Callable[..., Caller]


@pytest.fixture
def http(caller: Calling) -> httpx2.Client:
    return caller().http


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.nip.io"])
def test_a_host_that_is_not_ours_is_refused(http: httpx2.Client, host: str) -> None:
    """A name that an attacker's server resolves to this machine is still the attacker's name."""
    problem(http.get("/healthz", headers={"Host": host}), 403, "host_not_allowed")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8377", "127.0.0.1", "[::1]:80"])
def test_the_names_of_loopback_are_ours(http: httpx2.Client, host: str) -> None:
    assert http.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:3000", "http://[", ""]
)
def test_pages_of_another_origin_are_refused(http: httpx2.Client, origin: str) -> None:
    problem(http.get("/healthz", headers={"Origin": origin}), 403, "origin_not_allowed")


def test_a_page_of_our_own_is_let_in(http: httpx2.Client, service: Running) -> None:
    assert http.get("/healthz", headers={"Origin": service.url}).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/v1/memories"])
def test_every_answer_tells_browsers_to_keep_their_hands_off(
    http: httpx2.Client, path: str
) -> None:
    headers = http.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


def test_a_request_keeps_the_id_it_came_with_if_that_is_one(http: httpx2.Client) -> None:
    kept = http.get("/healthz", headers={"X-Request-Id": "abc-123"})
    assert kept.headers["x-request-id"] == "abc-123"
    made = http.get("/healthz", headers={"X-Request-Id": 'a"b\tc'})
    assert len(made.headers["x-request-id"]) == 36


def test_headers_that_are_too_large_are_refused(http: httpx2.Client) -> None:
    answer = http.get("/healthz", headers={"X-Large": "x" * 16_500})
    problem(answer, 431, "request_header_fields_too_large")


def test_paths_and_methods_that_are_not_there_are_problems(http: httpx2.Client) -> None:
    problem(http.get("/nowhere"), 404, "not_found")
    problem(http.get("/v1/memories/a/b/c"), 404, "not_found")
    refused = http.put("/v1/memories")
    problem(refused, 405, "method_not_allowed")
    assert "POST" in refused.headers["allow"]


def test_health_readiness_and_version_need_no_key(http: httpx2.Client) -> None:
    assert http.get("/healthz").json() == {"status": "ok"}
    assert http.get("/version").json()["name"] == "scrubjay"
    ready = http.get("/readyz").json()
    assert ready["status"] == "ready"
    assert set(ready["checks"]) == {
        "store",
        "migrations",
        "keys",
        "blobs",
        "queue",
        "embedder",
        "durability",
    }
    assert all(check["ok"] for check in ready["checks"].values())


def test_the_counters_need_a_key_and_name_nobody(caller: Calling, scope: str) -> None:
    problem(caller().http.get("/metrics"), 401, "unauthorized")
    alice = caller(scope)
    one = alice.retain("tea at dawn", session="s-1")
    alice.http.get("/nowhere/tea")
    text = alice.http.get("/metrics").text
    assert 'memory_operations_total{op="retain",status="201"}' in text
    assert 'memory_operation_duration_seconds_bucket{op="retain",le="+Inf"}' in text
    assert 'op="other",status="404"' in text
    assert "memory_queue_depth 0\n" in text
    assert "memory_queue_age_seconds 0.000\n" in text
    assert "scrubjay_build_info{" in text
    assert alice.token is not None
    for private in (scope, "owner", one, "tea", "s-1", alice.token.split("_")[1]):
        assert private not in text


def test_a_recall_is_counted_by_what_it_gave(caller: Calling, scope: str) -> None:
    def told(name: str) -> float:
        text = alice.http.get("/metrics").text
        return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])  # type: ignore[index]

    alice = caller(scope)
    alice.retain("four")
    names = [
        f"memory_recall_{what}_{sum_}" for what in ("blocks", "bytes") for sum_ in ("sum", "count")
    ]
    before = [told(name) for name in names]
    alice.http.post("/v1/recall", json={"query": "four"})
    assert [told(name) - was for name, was in zip(names, before, strict=True)] == [1, 1, 4, 1]


def test_a_log_line_says_what_was_done_and_nothing_that_was_said(
    alice: Caller, caplog: pytest.LogCaptureFixture, scope: str
) -> None:
    with caplog.at_level(logging.INFO, logger="scrubjay.service.endpoint"):
        one = alice.retain("tea at dawn", session="my session")
        alice.http.post("/v1/recall", json={"query": "what about dawn?"})
        alice.http.post("/v1/memories", json={"content": "dusk", "dawn-key": 1})
        alice.http.get("/healthz")  # is not logged, and answered after the lines before it
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    assert [(line["op"], line["status"]) for line in lines] == [
        ("retain", 201), ("recall", 200), ("retain", 422)
    ]  # fmt: skip
    assert all(line["event"] == "request" and line["request_id"] for line in lines)
    text = json.dumps(lines)
    for private in ("dawn", "dusk", "my session", scope, one, alice.token):
        assert str(private) not in text
