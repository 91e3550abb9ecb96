"""The messages of three model APIs say the same, whole or as a stream of events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.conversation.capture import capture
from scrubjay.conversation.messages import all_texts, answer_text, text_of, user_texts

PART = {"type": "output_text", "text": "Green tea."}
WHOLE: dict[str, dict[str, Any]] = {
    "chat": {"choices": [{"message": {"role": "assistant", "content": "Green tea."}}]},
    "responses": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [PART]},
        ]
    },
    "anthropic": {"content": [{"type": "thinking"}, {"type": "text", "text": "Green tea."}]},
}
STREAMED: dict[str, list[dict[str, Any]]] = {
    "chat": [
        {"choices": [{"index": 0, "delta": {"content": "Green "}}]},
        {"choices": [{"index": 1, "delta": {"content": "Another"}}]},
        {"choices": [{"index": 0, "delta": {"content": "tea."}}]},
    ],
    "responses": [
        {"type": "response.created", "response": {}},
        {"type": "response.output_text.delta", "delta": "Green "},
        {"type": "response.output_text.delta", "delta": "tea."},
        {"type": "response.completed", "response": WHOLE["responses"]},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Green "}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "tea."}},
    ],
}
ASKED: dict[str, dict[str, Any]] = {
    "chat": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello."},
            {"role": "tool", "content": "42"},
            {"role": "user", "content": [{"type": "text", "text": "Which tea?"}]},
        ]
    },
    "responses": {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Hello."},
            {"type": "function_call_output", "output": "42"},
            {"role": "user", "content": [{"type": "input_text", "text": "Which tea?"}]},
        ],
    },
    "anthropic": {
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": "Hello."},
            {"role": "user", "content": [{"type": "tool_result", "content": "42"}]},
            {"role": "user", "content": [{"type": "text", "text": "Which tea?"}]},
        ],
    },
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "messages",
                    "input",
                    "content",
                    "choices",
                    "delta",
                    "output",
                    "type",
                    "text",
                    "role",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("api", WHOLE)
def test_an_answer_is_read_whole_as_text_and_as_a_stream(api: str) -> None:
    stream = "".join(f"event: x\ndata: {json.dumps(one)}\n\n" for one in STREAMED[api])
    told = {answer_text(WHOLE[api]), answer_text(json.dumps(WHOLE[api])), answer_text(stream)}
    assert told == {"Green tea."}


@pytest.mark.parametrize("api", ASKED)
def test_what_users_said_is_told_from_instructions_and_results_of_tools(api: str) -> None:
    assert [one for one in user_texts(ASKED[api]) if one] == ["Hello.", "Which tea?"]
    assert next(one for one in all_texts(ASKED[api]) if one) == "Be brief."


def test_the_input_of_a_response_may_be_one_text() -> None:
    assert list(user_texts({"input": "Which tea?"})) == ["Which tea?"]


@pytest.mark.parametrize("api", ASKED)
def test_a_turn_is_captured_with_what_memory_had_put_in_beside_it(api: str) -> None:
    block = "--- BEGIN MEMORY (x) ---\nAlice prefers green tea in the morning.\n--- END MEMORY ---"
    sent_on = {"messages": [{"role": "system", "content": block}]}
    answer = "Alice prefers green tea in the morning. So I would take that one."
    said = capture(ASKED[api], answer, sent_on=sent_on)
    assert said == ("Which tea?", answer, "Alice prefers green tea in the morning.")


@given(body=ANYTHING)
def test_whatever_it_is_given_nothing_is_raised(body: object) -> None:
    answer_text(body)
    answer_text(json.dumps(body))
    answer_text(f"data: {json.dumps(body)}\n\n")
    capture(body, "", sent_on=body)


def test_a_part_whose_type_is_no_text_has_no_text() -> None:
    assert text_of([{"type": ["text"], "text": "no"}, {"text": "yes"}]) == "yes"
