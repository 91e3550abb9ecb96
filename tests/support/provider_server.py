"""Models on this machine that speak the protocols of OpenAI's Responses, Anthropic and Google.

Each says what a test tells it to say: a text, or the call of a tool, whole or as a stream.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support import loopback
from tests.support.chat_server import Call
from tests.support.loopback import Failure

Asked = dict[str, Any]
Said = str | Call


@dataclass(slots=True, kw_only=True)
class ProviderServer:
    """What the models were asked, in their own protocols, and what they answer."""

    port: int = 0
    says: Callable[[list[str]], Said] = lambda _: "Noted."
    """The answer to the results of the tools that were called so far."""
    requests: list[Asked] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serve_providers() -> Iterator[ProviderServer]:
    """A running server of all three; it is gone when the block ends."""
    state = ProviderServer()

    class Handler(_Handler):
        server_state = state

    with loopback.running(Handler, state.closing) as state.port:
        yield state


class _Handler(loopback.Handler):
    server_state: ProviderServer

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        state = self.server_state
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        state.requests.append(asked)
        names = ("Authorization", "x-api-key", "x-goog-api-key")
        state.keys.append(next((self.headers[one] for one in names if self.headers[one]), None))
        if self.path.endswith("/responses"):
            said = state.says(_outputs(asked["input"], "output"))
            whole, events = _response(said), [*_response_events(said)]
            stream = asked.get("stream")
        elif "/messages" in self.path:
            blocks = [one for message in asked["messages"] for one in _list(message["content"])]
            said = state.says(_outputs(blocks, "content"))
            whole, events = _message(said), [*_message_events(said)]
            stream = asked.get("stream")
        else:
            parts = [part for content in asked["contents"] for part in content["parts"]]
            found = [
                one["functionResponse"]["response"] for one in parts if "functionResponse" in one
            ]
            said = state.says([json.dumps(one, ensure_ascii=False) for one in found])
            whole = _generated(said)
            events, stream = [whole], "streamGenerateContent" in self.path
        if stream:
            named = [f"event: {one['type']}\n" if "type" in one else "" for one in events]
            lines = [
                f"{name}data: {json.dumps(one)}\n\n"
                for name, one in zip(named, events, strict=True)
            ]
            self.answer(_as("text/event-stream"), "".join(lines).encode())
        else:
            self.answer(_as("application/json"), json.dumps(whole).encode())


def _as(kind: str) -> Failure:
    return Failure(headers=(("Content-Type", kind),))


def _list(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _outputs(parts: list[Any], name: str) -> list[str]:
    kinds = ("function_call_output", "tool_result")
    return [json.dumps(one[name], ensure_ascii=False) for one in parts if one.get("type") in kinds]


# -- OpenAI's Responses ----------------------------------------------------------------------------


def _item(said: Said) -> Asked:
    if isinstance(said, str):
        part = {"type": "output_text", "text": said, "annotations": []}
        return {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    arguments = json.dumps(said.arguments)
    return {
        "type": "function_call",
        "id": "f1",
        "call_id": "c1",
        "name": said.name,
        "arguments": arguments,
    }


def _response(said: Said | None) -> Asked:
    usage = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}
    details = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "r1",
        "object": "response",
        "created_at": 1_790_000_000,
        "model": "m",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "in_progress" if said is None else "completed",
        "output": [] if said is None else [_item(said)],
        "usage": None if said is None else usage | details,
    }


def _response_events(said: Said) -> Iterator[Asked]:
    item, place = _item(said), {"output_index": 0, "item_id": _item(said)["id"]}
    begun = {**item, "content": []} if isinstance(said, str) else {**item, "arguments": ""}
    events: list[Asked] = [
        {"type": "response.created", "response": _response(None)},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
    ]
    if isinstance(said, str):
        about = {**place, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        events.append({"type": "response.content_part.added", **about, "part": part})
        for piece in (said[:2], said[2:]):
            events.append(
                {"type": "response.output_text.delta", **about, "delta": piece, "logprobs": []}
            )
    else:
        delta = {
            "type": "response.function_call_arguments.delta",
            **place,
            "delta": item["arguments"],
        }
        events.append(delta)
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": "response.completed", "response": _response(said)})
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


# -- Anthropic -------------------------------------------------------------------------------------


def _message(said: Said | None) -> Asked:
    block: Asked = {"type": "text", "text": said}
    if isinstance(said, Call):
        block = {"type": "tool_use", "id": "t1", "name": said.name, "input": said.arguments}
    return {
        "id": "msg1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_sequence": None,
        "content": [] if said is None else [block],
        "stop_reason": None
        if said is None
        else "end_turn"
        if isinstance(said, str)
        else "tool_use",
        "usage": {"input_tokens": 12, "output_tokens": 3},
    }


def _message_events(said: Said) -> Iterator[Asked]:
    block, whole = _message(said)["content"][0], _message(said)
    empty = {**block, "text": ""} if isinstance(said, str) else {**block, "input": {}}
    delta: Asked = {"type": "text_delta", "text": said}
    if isinstance(said, Call):
        delta = {"type": "input_json_delta", "partial_json": json.dumps(said.arguments)}
    yield {"type": "message_start", "message": _message(None)}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 3}}
    yield {"type": "message_stop"}


# -- Google ----------------------------------------------------------------------------------------


def _generated(said: Said) -> Asked:
    part: Asked = {"text": said}
    if isinstance(said, Call):
        part = {"functionCall": {"name": said.name, "args": said.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": "m",
        "responseId": "g1",
    }
