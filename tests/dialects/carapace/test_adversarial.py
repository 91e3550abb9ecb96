"""Hostile input at every place there is: nothing raises, nothing leaks, no line is broken."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from scrubjay.surfaces.carapace.wire import AgentSession, encode
from tests.dialects.carapace import hostile
from tests.dialects.carapace.scene import Stage, home_without_vectors

CANARY = "the canary of another group"
CODES = {"VALIDATION_FAILED", "HANDLER_ERROR", "UNKNOWN_TOOL"}


@pytest.fixture(scope="module")
def stage() -> Stage:
    """One host for all of them: what one case leaves behind is the next one's ground."""
    made = Stage(home_without_vectors())
    made.as_session("s1", "other").store(CANARY)
    return made


def check(stage: Stage, reply: Any) -> Any:
    """The reply is one line of valid JSON, an answer or a plain refusal, and has no canary."""
    line = encode(reply)
    assert len(line.splitlines()) == 1
    assert json.loads(line.encode()) == reply
    assert CANARY not in line
    payload = reply["payload"]
    assert payload["error"] is None or payload["error"]["code"] in CODES
    if payload["error"]:
        assert len(payload["error"]["message"].splitlines()) == 1
        assert "Traceback" not in payload["error"]["message"]
    return payload


def brief_is_intact(stage: Stage, group: str) -> None:
    brief = stage.host.brief(group)
    assert CANARY not in brief
    for line in brief.splitlines():
        fixed = ("## Memory Context", "The following", "### ", "> These are", "> behavioral ", "")
        assert line == "" or line.startswith((*fixed[:-1], "- ["))
        if line.startswith("- ["):
            assert line.endswith("d ago)")
    assert brief.count("## Memory Context") <= 1 + brief.count("- [")
    assert len(brief.splitlines()) == brief.count("\n")


@pytest.mark.parametrize("name", hostile.TEXTS)
def test_a_hostile_text_is_stored_as_text_or_refused(stage: Stage, name: str) -> None:
    text = hostile.TEXTS[name]
    agent = stage.as_session(name, f"texts-{name.partition(' ')[0]}")
    for arguments in (
        {"type": "instruction", "content": text},
        {"type": "fact", "content": "x", "tags": [text]},
        {"type": text, "content": "x"},
        {"type": "fact", "content": "x", "supersedes": text},
        {"type": "fact", "content": "x", text: "y"},
    ):
        check(agent, agent.send("tool.invoke.memory_store", arguments))
    brief_is_intact(agent, agent.session.group)


@pytest.mark.parametrize("text", hostile.TEXTS.values(), ids=hostile.TEXTS)
def test_a_hostile_text_is_searched_for_as_text_or_refused(stage: Stage, text: str) -> None:
    for arguments in ({"query": text}, {"tags": [text]}, {"type": text}, {text: 1}):
        check(stage, stage.send("tool.invoke.memory_search", arguments))


@pytest.mark.parametrize("text", hostile.TEXTS.values(), ids=hostile.TEXTS)
def test_a_hostile_text_is_no_id_and_no_topic(stage: Stage, text: str) -> None:
    assert check(stage, stage.send("tool.invoke.memory_delete", {"id": text}))["error"]
    assert check(stage, stage.send(text, {}))["error"]
    assert check(stage, stage.send(f"tool.invoke.{text}", {}))["error"]


@pytest.mark.parametrize("text", hostile.TEXTS.values(), ids=hostile.TEXTS)
def test_a_hostile_text_is_no_group(stage: Stage, text: str) -> None:
    agent = stage.as_session("s1")
    agent.session = AgentSession(id="s1", group=text)
    reply = agent.send("tool.invoke.memory_search", {})
    if re.fullmatch("[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}", text):
        assert reply["payload"]["result"] == {"results": []}  # a word is a name like any other
        return
    assert reply["payload"]["error"]["code"] == "VALIDATION_FAILED"
    assert CANARY not in encode(reply)


@pytest.mark.parametrize("value", hostile.VALUES, ids=range(len(hostile.VALUES)))
@pytest.mark.parametrize("tool", ["memory_store", "memory_search", "memory_brief", "memory_delete"])
def test_a_hostile_value_is_refused_wherever_it_stands(stage: Stage, tool: str, value: Any) -> None:
    for name in ("type", "content", "tags", "query", "limit", "id", "include_provenance", "x"):
        arguments = (
            {"type": "fact", "content": "x", name: value}
            if tool == "memory_store"
            else {name: value}
        )
        check(stage, stage.send(f"tool.invoke.{tool}", arguments))
    payload: Any = stage.host.answer(encode(value).encode(), stage.session)["payload"]
    assert payload["error"]["code"] == "VALIDATION_FAILED"


@pytest.mark.parametrize("text", hostile.TEXTS.values(), ids=hostile.TEXTS)
def test_a_hostile_text_as_the_correlation_is_sent_back_as_it_is(stage: Stage, text: str) -> None:
    reply = stage.send("tool.invoke.memory_brief", {}, correlation=text)
    assert len(encode(reply).splitlines()) == 1
    error = reply["payload"]["error"]
    assert reply["correlation"] == text or error["code"] == "VALIDATION_FAILED"
    assert len(reply["correlation"]) <= 512


def test_there_are_at_least_a_hundred_and_fifty_cases() -> None:
    assert len(hostile.TEXTS) + len(hostile.VALUES) >= 150


def test_afterwards_the_other_group_is_as_it_was(stage: Stage) -> None:
    assert stage.as_session("s2", "other").found() == [CANARY]
