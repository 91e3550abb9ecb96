"""The contract of the plane, over real sockets: what the proxy and the operator rely on."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.requests import Destroy, TurnsRequest
from scrubjay.surfaces.clawdapus.descriptor import PlaneOffer
from scrubjay.surfaces.clawdapus.names import scope_of
from scrubjay.surfaces.clawdapus.routes import BODY_BYTES
from tests.dialects.clawdapus.conftest import PATIENT, Serve
from tests.dialects.clawdapus.pod import (
    START,
    Claw,
    Json,
    Manifest,
    Proxy,
    entry,
    post,
    send,
    user,
)
from tests.support.engines import SqliteHome

ANALYST = scope_of("analyst", "desk")
QUESTION = "Which warehouse holds the blue paint?"
ANSWER = "The blue paint is in warehouse nine, by the river."


def said(proxy: Proxy, text: str = QUESTION, reply: str = ANSWER, **more) -> str:
    return proxy.turn([user(text)], lambda _: reply, **more)


def recalled(manifest: Manifest, text: str = "Where is the blue paint?") -> list[Json]:
    body = {"agent_id": manifest.agent, "pod": manifest.pod, "messages": [user(text)]}
    answer = post(manifest, "recall", body, seconds=5)
    assert answer.status == 200
    return list(json.loads(answer.body)["memories"])


def retain(manifest: Manifest, line: object, **more) -> int:
    body = {"agent_id": manifest.agent, "pod": manifest.pod, "metadata": {}, "entry": line, **more}
    return post(manifest, "retain", body, seconds=60).status


def forget(manifest: Manifest, *ids: str) -> int:
    body = {"agent_id": manifest.agent, "pod": manifest.pod, "entry_ids": list(ids)}
    return post(manifest, "forget", body, seconds=10).status


# -- dedupe, forget, replay -----------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["", "request_original"], ids=["as today", "as before"])
def test_retain_dedupes_forget_erases_and_a_replay_stays_suppressed(
    serve: Serve, sqlite_home: SqliteHome, missing: str
) -> None:
    """The sequence of upstream's reference test, with its old form of an entry as well."""
    engine = sqlite_home.engine()
    manifest = Manifest(serve(engine))
    line = entry([user(QUESTION)], ANSWER, START)
    line.pop(missing, None)
    assert [retain(manifest, line), retain(manifest, line)] == [202, 202]
    (block,) = recalled(manifest)
    assert "warehouse nine" in block["text"]
    assert len(engine.turns(ANALYST, TurnsRequest(10))) == 1
    assert forget(manifest, line["id"]) == 204
    assert recalled(manifest) == []
    assert retain(manifest, line) == 202
    assert recalled(manifest) == []
    engine.close()
    reloaded = Manifest(serve(sqlite_home.engine()))
    assert retain(reloaded, line) == 202
    assert recalled(reloaded) == []


def test_an_entry_never_seen_can_be_forgotten_and_then_never_enters(manifest: Manifest) -> None:
    line = entry([user(QUESTION)], ANSWER, START)
    assert [forget(manifest, line["id"]), forget(manifest, line["id"])] == [204, 204]
    assert retain(manifest, line) == 202
    assert recalled(manifest) == []


def test_the_same_entry_of_another_agent_or_pod_is_another_record(manifest: Manifest) -> None:
    line = entry([user(QUESTION)], ANSWER, START)
    others = [Manifest(manifest.url, agent="other"), Manifest(manifest.url, pod="elsewhere")]
    for one in (manifest, *others):
        retain(one, line)
    forget(manifest, line["id"])
    assert recalled(manifest) == []
    assert all(len(recalled(one)) == 1 for one in others)


def test_a_question_about_an_agent_nobody_knows_makes_no_scope(
    engine: Kernel, manifest: Manifest
) -> None:
    assert recalled(manifest) == []
    assert ANALYST not in engine.scopes()


# -- a turn of the proxy --------------------------------------------------------------------------


@pytest.mark.parametrize("anthropic", [False, True], ids=["openai", "anthropic"])
@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_what_was_said_is_put_before_the_model_in_a_later_turn(
    proxy: Proxy, anthropic: bool, stream: bool
) -> None:
    said(proxy, anthropic=anthropic, stream=stream)
    seen: list[Json] = []

    def model(messages: list[Json]) -> str:
        seen.extend(messages)
        return "In nine."

    proxy.turn(
        [user("Where did we put the blue paint?")], model, anthropic=anthropic, stream=stream
    )
    told = proxy.telemetry[2]
    assert (told["memory_status"], told["memory_blocks"]) == ("succeeded", 1)
    assert told["memory_bytes"] > 0
    assert "memory_removed" not in told
    assert "warehouse nine, by the river" in json.dumps(seen)


def test_a_turn_is_retained_under_its_agent_and_its_id(engine: Kernel, proxy: Proxy) -> None:
    said(proxy)
    (turn,) = engine.turns(ANALYST, TurnsRequest(10))
    assert turn.id == proxy.history[0]["id"]
    assert (turn.user, turn.assistant, turn.model) == (QUESTION, ANSWER, "gpt-test-1")
    assert turn.at == proxy.clock
    assert proxy.telemetry[-1]["memory_status"] == "succeeded"


def test_what_the_proxy_took_out_is_noted_with_the_turn(engine: Kernel, proxy: Proxy) -> None:
    said(proxy, "Use sk-live-abcdef123456 for that.", "I used sk-live-abcdef123456.")
    (turn,) = engine.turns(ANALYST, TurnsRequest(10))
    assert (
        turn.metadata
        == {"policy_removed": 3}
        == {"policy_removed": proxy.telemetry[-1]["memory_removed"]}
    )
    assert "abcdef" not in turn.user + turn.assistant


def test_a_replay_that_nobody_scrubbed_is_scrubbed_here_as_the_proxy_would_have(
    engine: Kernel, proxy: Proxy, claw: Claw
) -> None:
    secret = "Use sk-live-abcdef123456 and Bearer abcdefgh12345 for that."
    said(proxy, secret)
    live = engine.turns(ANALYST, TurnsRequest(1))[0]
    other = Claw(Manifest(claw.manifest.url, agent="replayed"))
    other.backfill(proxy.history)
    replayed = engine.turns(scope_of("replayed", "desk"), TurnsRequest(1))[0]
    assert replayed.user == live.user == "Use [redacted-secret] and Bearer [redacted] for that."


def test_our_own_blocks_and_an_answer_that_repeats_them_are_not_stored_again(
    engine: Kernel, proxy: Proxy
) -> None:
    said(proxy)
    said(proxy, "Where did we put the blue paint?", ANSWER)
    latest = engine.turns(ANALYST, TurnsRequest(1))[0]
    assert "BEGIN MEMORY" not in latest.user + latest.assistant
    assert latest.assistant == ""


def test_a_client_that_sends_our_blocks_back_tells_nothing_new(
    engine: Kernel, manifest: Manifest
) -> None:
    block = "--- BEGIN MEMORY (from m) ---\n[kind=fact]\nThe cat is Tom.\n--- END MEMORY ---"
    retain(manifest, entry([user(f"{block}\n\n{QUESTION}")], ANSWER, START))
    assert engine.turns(ANALYST, TurnsRequest(1))[0].user == QUESTION


def test_a_frozen_scope_fails_the_retain_and_not_the_turn(engine: Kernel, proxy: Proxy) -> None:
    engine.freeze(ANALYST)
    assert said(proxy) == ANSWER
    told = proxy.telemetry[-1]
    assert (told["memory_status"], told["status_code"]) == ("failed", 423)


def test_recall_answers_within_what_the_proxy_waits(
    engine: Kernel, proxy: Proxy, record_property
) -> None:
    """Warm, at two hundred turns; the limit is the proxy's own."""
    for number in range(200):
        said(proxy, f"What is in warehouse number {number}?", f"Paint of color {number}.")
    proxy.manifest.recall_seconds = 0.3
    proxy.telemetry.clear()
    proxy.recall([user("Which warehouse has color 77?")])
    assert proxy.telemetry[0]["memory_status"] == "succeeded"


def test_a_destroyed_scope_is_not_made_again_by_a_replay(
    engine: Kernel, proxy: Proxy, claw: Claw
) -> None:
    said(proxy)
    engine.destroy(ANALYST, Destroy(confirm="pod.desk/analyst"))
    with pytest.raises(RuntimeError, match="retain returned status 410: destroyed"):
        claw.backfill(proxy.history)


# -- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "body", "says"),
    [
        ("recall", b"{", "decode recall request: it is not JSON"),
        ("recall", b"[]", "decode recall request: it is not a JSON object"),
        ("recall", b"{}", "agent_id is required"),
        ("recall", b'{"agent_id": " "}', "agent_id is required"),
        ("retain", b'{"entry": {"id": "a"}}', "agent_id is required"),
        ("retain", b'{"agent_id": "a"}', "entry.id is required"),
        ("retain", b'{"agent_id": "a", "entry": {}}', "entry.id is required"),
        ("forget", b'{"agent_id": "a"}', "entry_ids is required"),
        ("forget", b'{"agent_id": "a", "entry_ids": []}', "entry_ids is required"),
        ("forget", b'{"entry_ids": ["a"]}', "agent_id is required"),
    ],
)
def test_what_is_missing_is_named(manifest: Manifest, op: str, body: bytes, says: str) -> None:
    answer = post(manifest, op, body, seconds=5)
    assert (answer.status, answer.body.decode()) == (400, f"{says}\n")


@pytest.mark.parametrize("path", ["/recall", "/retain", "/forget"])
def test_another_method_is_not_allowed(url: str, path: str) -> None:
    answer = send(url, "GET", path)
    assert (answer.status, answer.body) == (405, b"method not allowed\n")


def test_retain_and_forget_answer_with_nothing_in_them(manifest: Manifest) -> None:
    body = {"agent_id": "a", "entry": entry([user(QUESTION)], ANSWER, START)}
    assert post(manifest, "retain", body, seconds=5).body == b""
    body = {"agent_id": "a", "entry_ids": ["x"]}
    assert post(manifest, "forget", body, seconds=5).body == b""


def test_health_is_an_empty_answer(url: str) -> None:
    answer = send(url, "GET", "/health")
    assert (answer.status, answer.body) == (200, b"")


def test_each_path_has_its_name_in_the_counters_and_health_the_quiet_one(
    manifest: Manifest,
) -> None:
    send(manifest.url, "GET", "/health")
    send(manifest.url, "GET", "/.claw-describe.json")
    for op in ("recall", "retain", "forget"):
        post(manifest, op, {}, seconds=5)
    counted = send(manifest.url, "GET", "/metrics").body.decode()
    named = set(re.findall(r'memory_operations_total{op="(\w+)"', counted))
    assert named == {
        *("healthz", "plane_describe", "plane_recall", "plane_retain", "plane_forget"),
    }


def test_a_body_may_be_packed(manifest: Manifest, engine: Kernel) -> None:
    body = {"agent_id": "a", "entry": entry([user(QUESTION)], ANSWER, START)}
    packed = gzip.compress(json.dumps(body).encode())
    answer = post(manifest, "retain", packed, seconds=5, **{"Content-Encoding": "gzip"})
    assert answer.status == 202
    assert len(engine.turns(scope_of("a"), TurnsRequest(10))) == 1


@pytest.mark.parametrize("packed", [b"no gzip", gzip.compress(b"{}")[:-4]], ids=["none", "cut"])
def test_a_damaged_packed_body_is_refused(manifest: Manifest, packed: bytes) -> None:
    answer = post(manifest, "retain", packed, seconds=5, **{"Content-Encoding": "gzip"})
    assert answer.status == 400


def test_a_body_over_the_limit_is_refused_and_one_just_below_is_taken(
    manifest: Manifest, engine: Kernel
) -> None:
    line = entry([user("x" * (BODY_BYTES - 4_000))], ANSWER, START)
    line["request_effective"] = {}
    assert retain(manifest, line) == 202
    assert len(engine.turns(ANALYST, TurnsRequest(1))[0].user) == BODY_BYTES - 4_000
    bomb = gzip.compress(b" " * (BODY_BYTES + 1))
    for body, more in ((b" " * (BODY_BYTES + 1), {}), (bomb, {"Content-Encoding": "gzip"})):
        assert post(manifest, "retain", body, seconds=10, **more).status == 413


# -- tolerance ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"version": 99},
        {"surprise": {"deep": [1]}},
        {"request_original": None},
        {"request_original": {"messages": "none"}},
        {"request_original": {"messages": [7, {"role": "user"}, {"role": "user", "content": 7}]}},
        {"request_effective": None},
        {"response": None},
        {"response": {"format": "json", "json": {"choices": [{}]}}},
        {"response": {"format": "sse", "text": "data: {broken\n\ndata: [1]\n\n"}},
        {"ts": "yesterday"},
        {"ts": None},
        {"tool_trace": [{"round": 1, "tool_calls": [{"name": "x"}]}]},
        {"effective_model": "m" * 2_000},
        {"status_code": None},
    ],
    ids=str,
)
def test_nothing_odd_in_an_entry_breaks_retain(manifest: Manifest, change: Json) -> None:
    assert retain(manifest, {**entry([user(QUESTION)], ANSWER, START), **change}) == 202


def test_a_turn_that_failed_is_acknowledged_and_never_remembered(
    manifest: Manifest, engine: Kernel
) -> None:
    failed = entry([user(QUESTION)], "boom", START, status="error")
    refused = entry([user(QUESTION)], "boom", START + timedelta(1)) | {"status_code": 502}
    assert [retain(manifest, failed), retain(manifest, refused)] == [202, 202]
    assert recalled(manifest) == []


def test_a_turn_without_text_is_acknowledged_and_never_remembered(
    manifest: Manifest, engine: Kernel
) -> None:
    assert (
        retain(manifest, entry([user([{"type": "image_url", "image_url": {}}])], "", START)) == 202
    )
    assert recalled(manifest) == []


def test_only_what_the_user_said_last_counts_and_not_what_a_tool_said(
    manifest: Manifest, engine: Kernel
) -> None:
    messages = [
        {"role": "system", "content": "You are an analyst."},
        user("An old question."),
        {"role": "assistant", "content": "An old answer."},
        user([{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {}}]),
        {"role": "assistant", "content": None, "tool_calls": [{}]},
        {"role": "tool", "content": "rows: 7"},
        user([{"type": "tool_result", "content": "rows: 8"}]),
    ]
    retain(manifest, entry(messages, ANSWER, START))
    assert engine.turns(ANALYST, TurnsRequest(1))[0].user == QUESTION


@pytest.mark.parametrize("agent", ["a b", "ä", "../x", "x--y", "A" * 300, "a/b", "🐙"])
def test_any_agent_has_a_memory_of_its_own(manifest: Manifest, agent: str) -> None:
    mine = Manifest(manifest.url, agent=agent)
    retain(mine, entry([user(QUESTION)], ANSWER, START))
    assert len(recalled(mine)) == 1
    assert recalled(Manifest(manifest.url, agent=f"{agent}2")) == []


@pytest.mark.parametrize("strange", ["has spaces", "slash/es", "ü" * 300, "x--abc"])
def test_any_id_of_an_entry_is_kept_apart_and_can_be_forgotten(
    manifest: Manifest, strange: str
) -> None:
    retain(manifest, {**entry([user(QUESTION)], ANSWER, START), "id": strange})
    assert len(recalled(manifest)) == 1
    assert forget(manifest, strange) == 204
    assert recalled(manifest) == []


# -- credentials and modes ------------------------------------------------------------------------


def test_with_a_token_nobody_else_is_let_in(serve: Serve, engine: Kernel) -> None:
    url = serve(engine, replace(PATIENT, token="secret-token"))
    for token, status in ((None, 401), ("wrong", 401), ("secret-token", 200)):
        answer = post(Manifest(url, token=token), "recall", {"agent_id": "a"}, seconds=5)
        assert answer.status == status
    assert send(url, "GET", "/health").status == 200


def test_recall_alone_and_retain_alone_are_offered_as_such(serve: Serve, engine: Kernel) -> None:
    reading, writing = (
        serve(engine, replace(PATIENT, retain=False)),
        serve(engine, replace(PATIENT, recall=False)),
    )
    line = entry([user(QUESTION)], ANSWER, START)
    assert retain(Manifest(reading), line) == 404
    assert retain(Manifest(writing), line) == 202
    assert len(recalled(Manifest(reading))) == 1
    assert post(Manifest(writing), "recall", {"agent_id": "a"}, seconds=5).status == 404


@pytest.mark.parametrize(
    ("offer", "memory", "auth"),
    [
        (PlaneOffer(), {"recall", "retain", "forget"}, {"type": "none"}),
        (PlaneOffer(retain=False), {"recall"}, {"type": "none"}),
        (PlaneOffer(recall=False, token="t", variable="MEM"), {"retain", "forget"},
         {"type": "bearer", "env": "MEM"}),
    ],
)  # fmt: skip
def test_the_descriptor_says_what_is_offered_and_never_the_token(
    serve: Serve, engine: Kernel, offer: PlaneOffer, memory: set[str], auth: Json
) -> None:
    answer = send(serve(engine, offer), "GET", "/.claw-describe.json")
    told = json.loads(answer.body)
    assert (told["version"], set(told["memory"]), told["auth"]) == (2, memory, auth)
    assert all(one["path"].startswith("/") for one in told["memory"].values())


def test_a_service_that_offers_neither_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        PlaneOffer(recall=False, retain=False)


# -- backfill -------------------------------------------------------------------------------------


def test_a_backfill_gives_what_the_live_turns_gave(proxy: Proxy, claw: Claw) -> None:
    for number in range(6):
        said(proxy, f"What is in warehouse number {number}?", f"Paint of color {number}.")
    other = Claw(Manifest(claw.manifest.url, agent="replayed"))
    assert other.backfill(reversed(proxy.history)) == 6
    question = "Which warehouse has color 3?"
    assert recalled(other.manifest, question) == recalled(claw.manifest, question)


def test_a_backfill_after_the_live_turns_changes_nothing(
    engine: Kernel, proxy: Proxy, claw: Claw
) -> None:
    said(proxy)
    said(proxy, "What about the red paint?", "There is no red paint at all.")
    before = engine.head(ANALYST)
    claw.backfill(proxy.history)
    assert engine.head(ANALYST).turn == before.turn


def test_a_backfill_may_begin_after_a_time_and_end_after_a_number(
    engine: Kernel, proxy: Proxy, claw: Claw
) -> None:
    for number in range(5):
        said(proxy, f"What is in warehouse number {number}?", f"Paint of color {number}.")
    other = Claw(Manifest(claw.manifest.url, agent="replayed"))
    after = START + timedelta(minutes=2)
    assert other.backfill(proxy.history, after=after, limit=2) == 2
    assert [t.id for t in engine.turns(scope_of("replayed", "desk"), TurnsRequest(10))] == [
        proxy.history[3]["id"],
        proxy.history[2]["id"],
    ]


def test_a_backfill_of_a_line_without_id_gets_one_and_is_known_the_next_time(
    engine: Kernel, manifest: Manifest, claw: Claw
) -> None:
    line = entry([user(QUESTION)], ANSWER, START)
    del line["id"]
    claw.backfill([line, line])
    assert len(engine.turns(ANALYST, TurnsRequest(10))) == 1


def test_a_backfill_never_brings_back_what_was_forgotten(proxy: Proxy, claw: Claw) -> None:
    said(proxy)
    claw.forget(proxy.history[0]["id"])
    fresh = Claw(claw.manifest)  # an operator whose own tombstones are lost
    assert fresh.backfill(proxy.history) == 1
    assert recalled(claw.manifest) == []
