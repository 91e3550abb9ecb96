"""Sessions: saved turn by turn, without system prompts, resumed from a request on, pruned."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from scrubjay import Busy, Jay, Scope
from scrubjay.model.conversations import APPEND_LIMIT
from scrubjay.model.memory import Json
from scrubjay.pydantic_ai import ScrubjayConversations
from scrubjay.surfaces.initrunner.sessions import (
    Sessions,
    new_id,
    sound,
    stored,
    trimmed,
    whole,
)
from tests.support.engines import MemoryHome


@pytest.fixture
def jay(home: MemoryHome) -> Jay:
    return Jay(home.engine(), Scope("agents", "assistant"))


@pytest.fixture
def sessions(jay: Jay) -> Sessions:
    return Sessions(jay, "assistant", most=2, resumed=4)


_MESSAGES: dict[str, ModelMessage] = {
    "prompt": ModelRequest(parts=[UserPromptPart("question")]),
    "answer": ModelResponse(parts=[TextPart("answer")]),
    "call": ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id="1")]),
    "calls": ModelResponse(
        parts=[
            TextPart("two"),
            ToolCallPart("look", {}, tool_call_id="1"),
            ToolCallPart("look", {}, tool_call_id="2"),
        ]
    ),
    "result": ModelRequest(parts=[ToolReturnPart("look", "seen", tool_call_id="1")]),
    "mixed": ModelRequest(
        parts=[ToolReturnPart("look", "seen", tool_call_id="2"), UserPromptPart("and then")]
    ),
    "native": ModelResponse(
        parts=[
            NativeToolCallPart("web_search", {}, tool_call_id="1"),
            NativeToolReturnPart("web_search", "page", tool_call_id="1"),
        ]
    ),
}


def halves(history: Sequence[ModelMessage]) -> set[str]:
    """The ids of calls without an answer, and of answers without a call."""
    found, asked = set[str](), set[str]()
    for one in history:
        if isinstance(one, ModelResponse):
            found |= asked
            asked = {call.tool_call_id for call in one.tool_calls}
        else:
            told = {part.tool_call_id for part in one.parts if isinstance(part, ToolReturnPart)}
            found |= told - asked
            asked -= told
    return found | asked


def turn(number: int, *, system: str | None = None) -> list[ModelMessage]:
    said = UserPromptPart(f"question {number}")
    parts: list[ModelRequestPart] = [SystemPromptPart(system), said] if system else [said]
    return [
        ModelRequest(parts=parts, instructions="Old role."),
        ModelResponse(parts=[TextPart(f"answer {number}")]),
    ]


def texts(messages: Sequence[ModelMessage]) -> list[str]:
    return [str(getattr(one.parts[0], "content", "")) for one in messages]


def test_an_id_is_twelve_hexadecimal_digits() -> None:
    first, second = new_id(), new_id()
    assert first != second
    assert len(first) == 12
    int(first, 16)


def test_the_last_messages_come_back_beginning_with_a_request(sessions: Sessions) -> None:
    for number in range(4):
        assert sessions.save("one", turn(number))
    assert texts(sessions.load("one")) == ["question 2", "answer 2", "question 3", "answer 3"]
    sessions.save("one", turn(4)[:1])  # a turn that was broken off
    assert texts(sessions.load("one")) == ["question 3", "answer 3", "question 4"]


def test_a_session_of_answers_alone_is_empty(sessions: Sessions) -> None:
    sessions.save("one", turn(0)[1:])
    assert sessions.load("one") == []
    assert sessions.load("none") == []


def test_system_prompts_are_not_kept(sessions: Sessions, jay: Jay) -> None:
    sessions.save(
        "one", [*turn(0, system="Secret role"), ModelRequest(parts=[SystemPromptPart("x")])]
    )
    (first, second) = sessions.load("one")
    assert isinstance(first, ModelRequest)
    assert first.instructions is None
    assert [part.part_kind for part in first.parts] == ["user-prompt"]
    assert isinstance(second, ModelResponse)
    assert "role" not in str(jay.conversation("one").to_dict()).lower().replace("'role'", "")


def test_a_kind_of_part_that_is_not_known_is_kept_and_left_out_of_a_run(
    sessions: Sessions, jay: Jay
) -> None:
    sessions.save("one", turn(0))
    unknown: Json = {"part_kind": "hologram", "content": "from the future"}
    known: Json = {"part_kind": "user-prompt", "content": "hi", "timestamp": "2026-01-01T00:00:00Z"}
    jay.append("one", [{"body": {"kind": "request", "parts": [unknown, known]}}])
    jay.append("one", [{"body": {"kind": "request", "parts": [unknown]}}])
    assert texts(sessions.load("one")) == ["question 0", "answer 0", "hi"]
    assert "hologram" in str(jay.conversation("one").to_dict())


@pytest.mark.parametrize(
    ("number", "most", "left"),
    [(4, 40, 8), (4, 4, 4), (4, 3, 2), (4, 1, 0), (0, 5, 0)],
)
def test_a_live_history_is_trimmed_to_begin_with_a_request(
    number: int, most: int, left: int
) -> None:
    history = [one for at in range(number) for one in turn(at)]
    found = trimmed(history, most)
    assert found == history[len(history) - left :]
    assert not found or isinstance(found[0], ModelRequest)


def test_the_list_has_title_time_and_count(sessions: Sessions) -> None:
    long = [ModelRequest(parts=[UserPromptPart("word " * 40)])]
    sessions.save("one", long)
    sessions.save("one", turn(1))
    sessions.save("two", turn(0)[1:])
    two, one = sessions.listed()
    assert (one.name, one.entries, one.title) == ("one", 3, ("word " * 40).strip()[:80])
    assert (two.name, two.title) == ("two", "Untitled")
    assert two.updated_at >= one.updated_at
    latest = sessions.latest()
    assert latest is not None
    assert latest.name == "two"


def test_pruning_keeps_the_newest_sessions_and_not_turns(sessions: Sessions) -> None:
    for name in ("one", "two", "three"):
        for number in range(5):
            sessions.save(name, turn(number))
    assert sessions.prune() == 1
    assert [one.name for one in sessions.listed()] == ["three", "two"]
    assert [one.entries for one in sessions.listed()] == [10, 10]


def test_a_resumed_session_shares_the_history_it_goes_on_with(sessions: Sessions, jay: Jay) -> None:
    sessions.save("one", turn(0))
    assert sessions.go_on("two", "one")
    sessions.save("two", turn(1))
    sessions.save("two", turn(2))
    assert texts(sessions.load("two"))[-4:] == ["question 1", "answer 1", "question 2", "answer 2"]
    assert next(one for one in sessions.listed() if one.name == "two").entries == 6
    assert texts(sessions.load("one")) == ["question 0", "answer 0"]
    jay.delete_conversation("one")
    assert len(sessions.load("two")) == 4  # what it shared is still there


def test_agents_on_one_scope_have_sessions_of_their_own(jay: Jay) -> None:
    mine, theirs = (Sessions(jay, name, most=1) for name in ("mine", "theirs"))
    mine.save("one", turn(0))
    theirs.save("two", turn(1))
    assert [one.name for one in mine.listed()] == ["one"]
    mine.clear()
    assert not mine.listed()
    assert [one.name for one in theirs.listed()] == ["two"]


def test_a_store_that_fails_raises_nothing(sessions: Sessions, jay: Jay) -> None:
    sessions.save("one", turn(0))
    jay.freeze("writes")
    assert sessions.save("one", turn(1)) is False
    jay.unfreeze()
    assert sessions.save("one", turn(1))


def calling(number: int) -> list[ModelMessage]:
    """A turn in which the model calls a tool this many times, one call after the other."""
    said: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("go")])]
    for place in range(number):
        said.append(ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id=str(place))]))
        said.append(ModelRequest(parts=[ToolReturnPart("look", "x", tool_call_id=str(place))]))
    return [*said, ModelResponse(parts=[TextPart("done")])]


def test_no_history_begins_with_the_result_of_a_call_that_is_cut_off(sessions: Sessions) -> None:
    history = [*calling(3), *turn(1)]
    assert texts(trimmed(history, 5)) == ["question 1", "answer 1"]
    sessions.save("one", history)
    assert texts(sessions.load("one")) == ["question 1", "answer 1"]


def test_a_long_chain_of_calls_is_kept_whole_where_nothing_else_could_begin(
    sessions: Sessions,
) -> None:
    history = [*turn(1), *calling(9)]
    assert trimmed(history, 5) == history[2:]
    sessions.save("one", history)
    assert len(sessions.load("one")) == len(history) - 2


@pytest.mark.parametrize("last", _MESSAGES)
def test_whatever_was_stored_an_agent_can_go_on_with_it(last: str) -> None:
    """A turn that was cut off by a kill, and what another program wrote."""
    agent = Agent(TestModel())
    for kinds in product(_MESSAGES, repeat=3):
        history = trimmed(sound([_MESSAGES[kind] for kind in (*kinds, last)]), 4)
        asyncio.run(agent.run("Go on", message_history=history))
        assert not halves(history)


def test_a_turn_that_was_cut_off_costs_its_unanswered_calls_alone(sessions: Sessions) -> None:
    """In the middle, too: the next turn was written behind it."""
    sessions.save("one", turn(0))
    cut = ModelResponse(parts=[TextPart("looking"), ToolCallPart("look", {}, tool_call_id="1")])
    sessions.save("one", [*turn(1)[:1], cut])
    assert texts(sessions.load("one")) == ["question 0", "answer 0", "question 1", "looking"]
    assert not halves(sessions.load("one"))
    sessions.save("one", turn(2))
    assert not halves(sessions.load("one"))


def test_a_session_that_another_process_goes_on_with_is_not_pruned(jay: Jay) -> None:
    mine, theirs = (Sessions(jay, "assistant", most=1) for _ in range(2))
    theirs.save("theirs", turn(0))
    mine.save("old", turn(0))
    mine.save("mine", turn(0))
    assert mine.prune() == 1
    assert {one.name for one in mine.listed()} == {"mine", "theirs"}
    theirs.save("theirs", turn(1))
    assert len(theirs.load("theirs")) == 4
    assert theirs.prune() == 1
    assert [one.name for one in theirs.listed()] == ["theirs"]


def test_a_session_whose_process_died_is_pruned_after_a_day(jay: Jay, home: MemoryHome) -> None:
    dead, mine = (Sessions(jay, "assistant", most=1) for _ in range(2))
    dead.save("dead", turn(0))
    home.clock.advance(days=1.1)
    mine.save("mine", turn(0))
    assert mine.prune() == 1
    assert [one.name for one in mine.listed()] == ["mine"]


class CutOff(Jay):
    """A handle whose second append of a process fails."""

    appended = 0

    def append(self, *given: Any, **fields: Any) -> Any:
        self.appended += 1
        if self.appended == 2:
            raise Busy("Another process holds the lock.")
        return super().append(*given, **fields)


def test_an_import_that_was_cut_off_is_brought_whole_the_next_time(
    home: MemoryHome, sessions: Sessions
) -> None:
    engine, scope = home.engine(), Scope("agents", "assistant")
    told = [body for body in map(stored, turn(0) * APPEND_LIMIT) if body is not None]
    when = datetime(2026, 2, 20, tzinfo=UTC)
    with pytest.raises(Busy):
        Sessions(CutOff(engine, scope), "assistant").restore("long", told, when, agent="assistant")
    assert [one.entries for one in sessions.listed()] == [APPEND_LIMIT]
    assert sessions.restore("long", told, when, agent="assistant")
    assert [one.entries for one in sessions.listed()] == [len(told)]
    assert not sessions.restore("long", told, when, agent="assistant")


def test_halves_of_an_emoji_are_joined_or_replaced(sessions: Sessions) -> None:
    history = [*turn(0)[:1], ModelResponse(parts=[TextPart("two \ud83d\ude00 one \ud83d.")])]
    assert texts(whole(history))[1] == "two 😀 one \ufffd."
    assert sessions.save("one", history)
    assert texts(sessions.load("one"))[1] == "two 😀 one \ufffd."
    assert whole(history[:1]) == history[:1]


def test_a_conversation_with_half_an_emoji_is_stored_and_loaded(jay: Jay) -> None:
    """A stream is cut anywhere: the halves of an emoji come in two pieces."""

    def respond(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart("two \ud83d\ude00 one \ud83d.")])

    async def talk() -> Conversation | None:
        store = ScrubjayConversations(jay)
        agent = Agent(FunctionModel(respond))
        begun = Conversation(conversation_id="chat-1")
        await store.save(await agent.run("go", conversation=begun))
        return await store.load("chat-1")

    found = asyncio.run(talk())
    assert found is not None
    assert texts(found.messages)[-1] == "two 😀 one \ufffd."
