"""A small language model on this machine: speaks both dialects, and fails as it is told to.

It answers what a test told it to, so that the real client code runs against a real socket.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support import loopback
from tests.support.loopback import Failure

Note = dict[str, Any]
TOKENS_IN, TOKENS_OUT = 120, 30
"""What every answer says it cost."""


def note(content: str, kind: str = "fact", about: str = "", importance: float = 0.6) -> Note:
    """One entry of an answer."""
    return {"kind": kind, "content": content, "about": about, "importance": importance}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    name: str
    arguments: dict[str, Any]
    more: dict[str, Any] = field(default_factory=dict)
    """Further fields of the item in the dialect of OpenAI, such as a namespace or a type."""


@dataclass(slots=True, kw_only=True)
class ModelServer:
    """What the model was asked, what it answers, and which failures come before that."""

    port: int = 0
    notes: list[Note] = field(default_factory=list)
    """What it finds in every turn,"""
    found: dict[str, list[Note]] = field(default_factory=dict)
    """unless the turn holds one of these words: then what stands beside it."""
    failures: deque[Failure] = field(default_factory=deque)
    down: bool = False
    """Whether it refuses everything with 503."""
    thinking: Callable[[dict[str, Any]], object] | None = None
    """Called with a turn between its question and its answer."""
    turns: list[dict[str, Any]] = field(default_factory=list)
    batches: list[list[str]] = field(default_factory=list)
    """The texts it was given together: episodes, or sources of a text."""
    says: Callable[[list[str]], str] = lambda texts: "fact: " + " ".join(texts)
    """What it writes about them."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    acts: Callable[[dict[str, Any]], Call | str] | None = None
    """What it says to a coding agent, or which tool it calls, for each request; streamed."""
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def openai_url(self) -> str:
        """Where it speaks the dialect of OpenAI."""
        return f"{self.anthropic_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """Where it speaks the dialect of Anthropic."""
        return f"http://127.0.0.1:{self.port}"

    def _of_many(self, path: str, material: list[dict[str, Any]]) -> dict[str, Any]:
        texts = [one["text"] for one in material]
        self.batches.append(texts)
        text = self.says(texts)
        return _anthropic(text) if path == "/v1/messages" else _openai(text)

    def answer(self, path: str, asked: dict[str, Any]) -> bytes:
        """The answer to a question, in the dialect of the path."""
        turn = json.loads(asked["messages"][-1]["content"])
        if isinstance(turn, list):
            return json.dumps(self._of_many(path, turn)).encode()
        self.turns.append(turn)
        if self.thinking is not None:
            self.thinking(turn)
        said = f"{turn['user']}\n{turn['assistant']}"
        notes = next((notes for word, notes in self.found.items() if word in said), self.notes)
        told = {"memories": notes}
        return json.dumps(_anthropic(told) if path == "/v1/messages" else _openai(told)).encode()


# -- streams of coding agents ----------------------------------------------------------------------


def _events(*events: dict[str, Any]) -> bytes:
    told = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
    return "".join(told).encode()


def stream_messages(act: Call | str, number: int) -> bytes:
    """The events of one answer in the dialect of Anthropic."""
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": act}
    if isinstance(act, Call):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": act.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(act.arguments)}
    reason = "tool_use" if isinstance(act, Call) else "end_turn"
    usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT}
    message: dict[str, Any] = {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "test",
        "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    return _events(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    )


def stream_responses(act: Call | str, number: int) -> bytes:
    """The events of one answer in the dialect of OpenAI's Responses."""
    item: dict[str, Any] = {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": act, "annotations": []}],
    }  # fmt: skip
    if isinstance(act, Call):
        item = {
            "id": f"fc_{number}", "type": "function_call", "call_id": f"call_{number}",
            "status": "completed", "name": act.name,
            "arguments": json.dumps(act.arguments), **act.more,
        }  # fmt: skip
    usage = {
        "input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT, "total_tokens": 150,
        "input_tokens_details": None, "output_tokens_details": None,
    }  # fmt: skip
    response = {"id": f"resp_{number}", "object": "response", "status": "completed", "usage": usage}
    return _events(
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "output": [item]}},
    )


_STREAM: Final = Failure(headers=(("Content-Type", "text/event-stream"),))


def _openai(told: dict[str, Any] | str) -> dict[str, Any]:
    content = told if isinstance(told, str) else json.dumps(told)
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT}
    return {"object": "chat.completion", "choices": [{"message": message}], "usage": usage}


def _anthropic(told: dict[str, Any] | str) -> dict[str, Any]:
    used = {"type": "tool_use", "name": "note_memories", "input": told}
    if isinstance(told, str):
        used = {"type": "text", "text": told}
    usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT}
    return {"type": "message", "content": [used], "stop_reason": "tool_use", "usage": usage}


@contextmanager
def serve_model(*notes: Note) -> Iterator[ModelServer]:
    """A running model that finds these notes; it is gone when the block ends."""
    state = ModelServer(notes=list(notes))

    class Handler(_Handler):
        server_state = state

    with loopback.running(Handler, state.closing) as state.port:
        yield state


class _Handler(loopback.Handler):
    server_state: ModelServer

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        self.answer(Failure(), b'{"data": [], "models": []}')

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        state = self.server_state
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        state.requests.append({"path": self.path, **asked})
        state.headers.append({name.lower(): value for name, value in self.headers.items()})
        if state.acts is not None:
            stream = stream_responses if "responses" in self.path else stream_messages
            self.answer(_STREAM, stream(state.acts(asked), len(state.requests)))
            return
        failure = state.failures.popleft() if state.failures else Failure()
        if state.down:
            failure = Failure(status=503, body=b"{}")
        if failure.delay:
            state.closing.wait(failure.delay)
        if not failure.hang_up:
            body = state.answer(self.path, asked) if failure.body is None else failure.body
            self.answer(failure, body)
