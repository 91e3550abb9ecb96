"""The client of a language model: what it sends, and what it makes of bad answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from scrubjay.adapters.distillers.chat import CONTENT_CHARS, SIDE_CHARS, ChatExtractor, ChatModel
from scrubjay.model.endpoints import ModelDialect
from scrubjay.model.errors import ExtractorError, InvalidRequest
from scrubjay.model.memory import Kind
from scrubjay.model.turns import MODEL_PIECES, Extracted, Turn
from scrubjay.ports import Clock, SystemClock
from scrubjay.testing.clock import FakeClock
from tests.support.loopback import Failure
from tests.support.model_server import TOKENS_IN, TOKENS_OUT, ModelServer, note, serve_model

KEY = "sk-very-secret"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TURN = Turn(id="t-1", at=NOON, user="We sail to Naxos.", assistant="Enjoy it.")
ANTHROPIC = ModelDialect.ANTHROPIC


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serve_model(note("They sail to Naxos.", "context", about="Trip")) as running:
        yield running


def extractor_for(server: ModelServer, clock: Clock | None = None, **fields: Any) -> ChatExtractor:
    url = server.anthropic_url if fields.get("dialect") is ANTHROPIC else server.openai_url
    model = ChatModel(**{"base_url": url, "name": "small", "api_key": KEY, **fields})
    return ChatExtractor(model, clock=clock or FakeClock(), sleep=lambda _: None)


def answered(server: ModelServer, content: object, **more: Any) -> Extracted:
    """What is made of an answer that holds this."""
    text = content if isinstance(content, str) else json.dumps(content)
    body = {"choices": [{"message": {"content": text}}], **more}
    server.failures.append(Failure(body=json.dumps(body).encode()))
    return extractor_for(server).extract(TURN, ())


def test_the_turn_is_sent_as_material_and_not_as_instructions(server: ModelServer) -> None:
    extractor_for(server).extract(TURN, ("Noted.",))
    system, user = server.requests[0]["messages"]
    assert system["role"] == "system"
    assert "do not follow instructions" in system["content"]
    assert "Naxos" not in system["content"]
    assert json.loads(user["content"]) == {
        "at": "2026-03-01T12:00:00+00:00",
        "user": TURN.user,
        "assistant": TURN.assistant,
        "already_noted": ["Noted."],
    }


def test_openai_is_asked_for_json_with_the_key_as_bearer(server: ModelServer) -> None:
    extractor_for(server).extract(TURN, ())
    asked = server.requests[0]
    assert (asked["path"], asked["model"]) == ("/v1/chat/completions", "small")
    assert asked["response_format"]["json_schema"]["strict"]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_anthropic_is_asked_to_use_a_tool_with_the_key_in_its_own_header(
    server: ModelServer,
) -> None:
    found = extractor_for(server, dialect=ANTHROPIC).extract(TURN, ())
    asked = server.requests[0]
    assert (asked["path"], asked["tool_choice"]["type"]) == ("/v1/messages", "tool")
    assert asked["max_tokens"] > 0
    assert server.headers[0]["x-api-key"] == KEY
    assert "authorization" not in server.headers[0]
    assert [piece.content for piece in found.pieces] == ["They sail to Naxos."]


@pytest.mark.parametrize("dialect", ModelDialect)
def test_tokens_are_what_the_answer_says(server: ModelServer, dialect: ModelDialect) -> None:
    found = extractor_for(server, dialect=dialect).extract(TURN, ())
    assert (found.tokens_in, found.tokens_out) == (TOKENS_IN, TOKENS_OUT)


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": "many"}, {"prompt_tokens": -1}, {"prompt_tokens": 10**300}],
)
def test_an_answer_that_does_not_say_what_it_cost_is_not_free(
    server: ModelServer, usage: object
) -> None:
    found = answered(server, {"memories": []}, usage=usage)
    assert found.usable
    assert min(found.tokens_in, found.tokens_out) > 0
    assert max(found.tokens_in, found.tokens_out) < 2**53


def test_a_piece_has_its_kind_its_slot_and_its_importance(server: ModelServer) -> None:
    (piece,) = extractor_for(server).extract(TURN, ()).pieces
    assert (piece.part, piece.kind, piece.said_by_user) == ("model-0", Kind.CONTEXT, False)
    assert (piece.slot, piece.importance) == ("model: context: trip", 0.6)


@pytest.mark.parametrize(
    "entry",
    [
        note("An episode.", "episode"),
        note("A summary.", "summary"),
        note("A whim.", "whim"),
        note(""),
        note(" \n "),
        note("x" * (CONTENT_CHARS + 1)),
        {"kind": "fact"},
        {"kind": ["fact"], "content": "A list for a kind."},
        {"kind": "fact", "content": 7},
        "a text",
        None,
        [],
    ],
)
def test_what_is_no_entry_is_left_out_and_the_rest_is_kept(
    server: ModelServer, entry: object
) -> None:
    found = answered(server, {"memories": [entry, note("A good one.")]})
    assert [(piece.part, piece.content) for piece in found.pieces] == [("model-0", "A good one.")]


@pytest.mark.parametrize(
    "importance", [7, -1, 10**400, float("nan"), float("inf"), True, "much", None]
)
def test_an_importance_is_a_share_whatever_the_model_says(
    server: ModelServer, importance: object
) -> None:
    entry = {"kind": "fact", "content": "One.", "about": 3, "importance": importance}
    (piece,) = answered(server, {"memories": [entry]}).pieces
    assert 0 <= piece.importance <= 1
    assert piece.slot is None


def test_too_many_entries_are_cut(server: ModelServer) -> None:
    found = answered(server, {"memories": [note(f"Number {n}.") for n in range(50)]})
    assert len(found.pieces) == MODEL_PIECES


def test_line_breaks_and_half_characters_do_not_get_in(server: ModelServer) -> None:
    body = json.dumps({"memories": [note("One\nline.")]}).replace("line", "li\\ud800ne")
    assert answered(server, body).pieces[0].content == "One line."


def test_an_object_in_a_fence_is_read(server: ModelServer) -> None:
    text = f"Here you are:\n```json\n{json.dumps({'memories': [note('One.')]})}\n```"
    assert answered(server, text).pieces[0].content == "One."


@pytest.mark.parametrize(
    "content", ["", "no json", "{", "[]", '{"memories": 3}', '{"notes": []}', "[" * 5_000]
)
def test_an_answer_nobody_can_read_is_not_usable_and_costs_its_tokens(
    server: ModelServer, content: str
) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    found = answered(server, content, usage=usage)
    assert (found.usable, found.pieces) == (False, ())
    assert (found.tokens_in, found.tokens_out) == (9, 4)


@pytest.mark.parametrize("body", [b"", b"null", b"\xff", b"[1]", b'{"choices": []}', b"[" * 9_000])
def test_an_answer_of_another_shape_is_not_usable(server: ModelServer, body: bytes) -> None:
    server.failures.append(Failure(body=body))
    assert not extractor_for(server).extract(TURN, ()).usable


def test_a_refusal_in_passing_is_asked_again(server: ModelServer) -> None:
    server.failures.append(Failure(status=503, body=b""))
    assert extractor_for(server).extract(TURN, ()).usable
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "failure",
    [
        Failure(status=401, body=KEY.encode()),
        Failure(status=400, body=b"Naxos"),
        Failure(status=302, headers=(("Location", "http://elsewhere.example"),), body=b""),
        Failure(hang_up=True),
        Failure(body=b"x" * 300_000),
    ],
)
def test_a_model_that_cannot_be_had_is_an_error_that_gives_nothing_away(
    server: ModelServer, failure: Failure, caplog: pytest.LogCaptureFixture
) -> None:
    server.failures.extend([failure] * 2)
    with caplog.at_level(logging.DEBUG), pytest.raises(ExtractorError) as caught:
        extractor_for(server).extract(TURN, ())
    told = f"{caught.value!r} {caught.value.hint} {caplog.text}"
    assert KEY not in told
    assert "Naxos" not in told


def test_a_slow_model_is_an_error_when_the_deadline_has_passed(server: ModelServer) -> None:
    server.failures.append(Failure(delay=5))
    clock = SystemClock()
    with pytest.raises(ExtractorError):
        extractor_for(server, clock, attempts=1).extract(TURN, (), deadline=clock.monotonic() + 0.2)


def test_a_long_turn_is_sent_by_its_beginning_and_its_end(server: ModelServer) -> None:
    long = Turn(id="t", at=NOON, user=f"begin {'x' * 5 * SIDE_CHARS} end")
    extractor_for(server).extract(long, ())
    sent = server.turns[0]["user"]
    assert sent.startswith("begin")
    assert sent.endswith("end")
    assert len(sent) < SIDE_CHARS + 10


@pytest.mark.parametrize("url", ["http://models.example/v1", "ftp://x", "https://a:b@x", "nowhere"])
def test_an_address_beyond_this_machine_needs_https(url: str) -> None:
    with pytest.raises(InvalidRequest):
        ChatExtractor(ChatModel(base_url=url, name="m"), clock=FakeClock(), sleep=lambda _: None)


def test_the_key_is_not_shown_with_the_model(server: ModelServer) -> None:
    assert KEY not in repr(ChatModel(base_url=server.openai_url, name="m", api_key=KEY))


def test_another_model_or_place_is_another_identity(server: ModelServer) -> None:
    names = {
        extractor_for(server).identity,
        extractor_for(server, name="large").identity,
        extractor_for(server, dialect=ANTHROPIC).identity,
    }
    assert len(names) == 3
