"""The pipeline: six stages there, three back, and an envelope the agent cannot write to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrubjay.surfaces.carapace import pipeline as stages
from scrubjay.surfaces.carapace.pipeline import Rules
from scrubjay.surfaces.carapace.wire import RETRIABLE, AgentSession, Code, encode
from tests.dialects.carapace.oddity import Oddity, answer, host
from tests.dialects.carapace.scene import Stage, home_without_vectors

ENVELOPE = ["id", "version", "type", "topic", "source", "correlation", "timestamp", "group"]
TOPIC = "tool.invoke.memory_search"


# -- construct ------------------------------------------------------------------------------------


def test_a_reply_is_an_envelope_of_the_core(stage: Stage) -> None:
    reply = stage.send(TOPIC, {})
    assert list(reply) == [*ENVELOPE, "payload"]
    assert (reply["version"], reply["type"], reply["source"]) == (1, "response", "core")
    assert (reply["topic"], reply["correlation"], reply["group"]) == (TOPIC, "c-1", "main")
    assert reply["payload"] == {"result": {"results": []}, "error": None}


def test_identity_in_the_message_is_ignored(stage: Stage) -> None:
    forged = {"id": "x", "version": 9, "type": "response", "source": "root", "group": "other"}
    reply = stage.send("tool.invoke.memory_store", {"type": "fact", "content": "x"}, **forged)
    entry = reply["payload"]["result"]
    assert (entry["session_id"], entry["group"]) == ("s1", "main")
    assert stage.as_session("s1", "other").found() == []


@pytest.mark.parametrize("group", ["", "-x", "_x", "a.b", "a b", "a/b", "..", "x" * 129, "é"])
def test_a_group_is_checked_before_anything_else(stage: Stage, group: str) -> None:
    stage.session = AgentSession(id="s1", group=group)
    error = stage.send("nonsense", {"even": "this"})["payload"]["error"]
    assert (error["code"], error["stage"], error["field"]) == ("VALIDATION_FAILED", 1, "group")


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"topic": NaN}', "not JSON"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "must have topic"),
        (b'{"topic": 1, "correlation": "c", "arguments": {}}', "must have topic"),
        (b'{"topic": "t", "arguments": {}}', "must have correlation"),
        (b'{"topic": "t", "correlation": "c"}', "must have arguments"),
        (b'{"topic": "t", "correlation": "c", "arguments": []}', "must have arguments"),
    ],
)
def test_what_is_no_message_gets_a_reply_that_says_why(stage: Stage, raw: bytes, says: str) -> None:
    error: Any = stage.host.answer(raw, stage.session)["payload"]
    assert error["error"]["code"] == "VALIDATION_FAILED"
    assert says in error["error"]["message"]


def test_a_message_of_a_mebibyte_is_read_and_one_byte_more_is_not(stage: Stage) -> None:
    head = b'{"topic":"tool.invoke.memory_brief","correlation":"c-9","arguments":{},"x":"'
    whole = head + b"y" * (1024 * 1024 - len(head) - 2) + b'"}'
    fits: Any = stage.host.answer(whole, stage.session)
    assert fits["payload"]["error"] is None
    longer: Any = stage.host.answer(whole + b" ", stage.session)
    assert "1,048,577 bytes" in longer["payload"]["error"]["message"]
    assert longer["correlation"] == "c-9"


# -- topic and payload ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "topic", ["", "memory_store", "tool.invoke.", "tool.memory", "response.end"]
)
def test_a_malformed_topic_says_how_it_is_written(stage: Stage, topic: str) -> None:
    error = stage.send(topic, {})["payload"]["error"]
    assert (error["code"], error["stage"], error["retriable"]) == ("UNKNOWN_TOOL", 2, False)
    assert error["message"].startswith(f'Malformed topic: "{topic}"')
    assert "tool.invoke.<name>" in error["message"]


def test_an_unknown_tool_is_named_beside_those_there_are(stage: Stage) -> None:
    error = stage.send("tool.invoke.memory_dream", {})["payload"]["error"]
    assert error["code"] == "UNKNOWN_TOOL"
    assert error["message"].startswith('Unknown tool: "memory_dream"')
    assert "memory_search" in error["message"]


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "says"),
    [
        ("memory_store", {}, None, '/: must have the field "type"'),
        ("memory_store", {"type": "x", "content": "y"}, "type", "/type: must be one of preference"),
        ("memory_store", {"type": "fact", "content": 1}, "content", "/content: must be text"),
        ("memory_store", {"type": "fact", "content": None}, "content", "/content: must be text"),
        ("memory_store", {"type": "fact", "content": "y", "tags": "a"}, "tags", "must be a list"),
        ("memory_store", {"type": "fact", "content": "y", "tags": [1]}, "tags/0", "must be text"),
        (
            "memory_store",
            {"type": "fact", "content": "y", "supersedes": None},
            "supersedes",
            "leave it out",
        ),
        ("memory_search", {"limit": "5"}, "limit", "must be a whole number"),
        ("memory_search", {"limit": True}, "limit", "must be a whole number"),
        ("memory_search", {"limit": 101}, "limit", "must be at most 100"),
        ("memory_search", {"include_superseded": 1}, "include_superseded", "true or false"),
        ("memory_search", {"type": "note"}, "type", "must be one of"),
        ("memory_search", {"sql": "x"}, None, 'must not have the field "sql"'),
        ("memory_brief", {"group": "other"}, None, 'must not have the field "group"'),
        ("memory_delete", {}, None, 'must have the field "id"'),
        ("memory_delete", {"id": ["a"]}, "id", "must be text"),
    ],
)
def test_arguments_are_checked_strictly_and_the_message_says_what_to_do(
    stage: Stage, tool: str, arguments: Any, field: str | None, says: str
) -> None:
    error = stage.send(f"tool.invoke.{tool}", arguments)["payload"]["error"]
    assert (error["code"], error["stage"]) == ("VALIDATION_FAILED", 3)
    assert error["message"].startswith("Argument validation failed: ")
    assert says in error["message"]
    assert error.get("field") == field


def test_every_fault_is_told_at_once(stage: Stage) -> None:
    error = stage.fail("memory_store", type="x", tags=[1], extra=1)
    for says in ('"content"', "/type:", "/tags/0:", '"extra"'):
        assert says in error["message"]


# -- authorize and confirm ------------------------------------------------------------------------


def test_a_group_that_may_not_use_a_tool_is_told_so() -> None:
    rules = Rules(groups={"memory_delete": frozenset({"admin"})})
    stage = Stage(home_without_vectors(), rules=rules)
    error = stage.fail("memory_delete", id="mem-1")
    assert (error["code"], error["stage"], error["retriable"]) == ("UNAUTHORIZED", 4, False)
    assert (
        stage.as_session("s1", "admin").fail("memory_delete", id="mem-1")["code"] != error["code"]
    )
    stage.store("other tools are for all")


def test_a_session_that_calls_too_fast_is_told_when_to_go_on() -> None:
    stage = Stage(home_without_vectors(), rules=Rules(calls_per_minute=3))
    for _ in range(3):
        stage.search()
    error = stage.fail("memory_search")
    assert (error["code"], error["stage"], error["retriable"]) == ("RATE_LIMITED", 4, True)
    assert 1 <= error["retry_after"] <= 20
    stage.as_session("s2").search()
    stage.home.clock.advance(seconds=20)
    stage.search()
    assert stage.fail("memory_search")["code"] == "RATE_LIMITED"


def test_what_is_refused_earlier_costs_no_call() -> None:
    stage = Stage(home_without_vectors(), rules=Rules(calls_per_minute=1))
    for _ in range(5):
        stage.fail("memory_search", limit="x")
    stage.search()


def test_the_silent_make_room_for_new_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_MOST_SESSIONS", 3)
    stage = Stage(home_without_vectors(), rules=Rules(calls_per_minute=1))
    for number in range(10):
        stage.as_session(f"s{number}").search()
    assert len(stage.host.pipeline._paces) == 3


def test_low_risk_passes_and_anything_else_needs_a_person() -> None:
    assert answer(host(Oddity(risk_level="low")))["result"] == "done"
    error = answer(host(Oddity(risk_level="high")))["error"]
    assert (error["code"], error["stage"]) == ("CONFIRMATION_DENIED", 5)
    assert answer(host(Oddity(risk_level="unheard of")))["error"]["code"] == "CONFIRMATION_DENIED"


def test_a_person_may_agree_decline_or_not_answer() -> None:
    def silent(*_: Any) -> bool:
        raise TimeoutError

    plugin = Oddity(risk_level="high")
    assert answer(host(plugin, confirm=lambda *_: True))["result"] == "done"
    assert answer(host(plugin, confirm=lambda *_: False))["error"]["code"] == "CONFIRMATION_DENIED"
    error = answer(host(plugin, confirm=silent))["error"]
    assert (error["code"], error["retriable"]) == ("CONFIRMATION_TIMEOUT", True)


@pytest.mark.parametrize(
    ("code", "retriable"),
    [
        ("UNKNOWN_TOOL", False),
        ("VALIDATION_FAILED", False),
        ("UNAUTHORIZED", False),
        ("RATE_LIMITED", True),
        ("CONFIRMATION_TIMEOUT", True),
        ("CONFIRMATION_DENIED", False),
        ("PLUGIN_TIMEOUT", True),
        ("PLUGIN_UNAVAILABLE", True),
        ("PLUGIN_ERROR", False),
        ("HANDLER_ERROR", False),
    ],
)
def test_every_code_says_whether_to_try_again(code: str, *, retriable: bool) -> None:
    assert (Code(code) in RETRIABLE) is retriable


def test_a_reply_is_one_line_of_valid_unicode(stage: Stage) -> None:
    error = stage.send("x\u2028\x85\n\ud800", {})
    line = encode(error)
    assert len(line.splitlines()) == 1
    assert json.loads(line.encode()) == error
