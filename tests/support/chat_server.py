"""A language model on this machine that speaks OpenAI's protocol: answers, tool calls, streams.

In Anthropic's, it answers with texts. It says what a test tells it to say, and keeps what it was
asked; it embeds, too.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support import loopback
from tests.support.embedding_server import EmbeddingServer
from tests.support.loopback import Failure

Asked = dict[str, Any]
TOKENS_IN, TOKENS_OUT = 120, 30
"""What every answer says it cost."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model calls."""

    name: str
    arguments: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class ChatServer:
    """What the model was asked, and what it answers."""

    port: int = 0
    says: Callable[[Asked], str | Call] = lambda _: "Noted."
    """The answer to a request: a text, or a tool call."""
    requests: list[Asked] = field(default_factory=list)
    embeddings: EmbeddingServer = field(default_factory=EmbeddingServer)
    failures: list[Failure] = field(default_factory=list)
    """Answers that go wrong, before the next good one."""
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/v1"

    def told(self, number: int = -1) -> str:
        """Everything that stood in one request, as text."""
        return json.dumps(self.requests[number]["messages"], ensure_ascii=False)

    def answer(self, asked: Asked) -> bytes:
        """The answer in the form that was asked for."""
        self.requests.append(asked)
        said = self.says(asked)
        if asked.get("stream"):
            return _streamed(said)
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if isinstance(said, str):
            message["content"] = said
        else:
            message["tool_calls"] = [_call(said, len(self.requests))]
        choice = {"index": 0, "message": message, "finish_reason": _reason(said)}
        return json.dumps({**_HEAD, "object": "chat.completion", "choices": [choice]}).encode()

    def message(self, asked: Asked) -> bytes:
        """The answer in Anthropic's form, a text."""
        self.requests.append(asked)
        content = [{"type": "text", "text": self.says(asked)}]
        usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT}
        told = {"id": "msg-1", "type": "message", "role": "assistant", "model": "m"}
        return json.dumps({**told, "content": content, "usage": usage}).encode()


def results(asked: Asked) -> list[str]:
    """What the tools have answered since the user spoke last."""
    found: list[str] = []
    for message in asked["messages"]:
        if message["role"] == "user":
            found = []
        elif message["role"] == "tool":
            found.append(message["content"])
    return found


def said(asked: Asked) -> str:
    """What the user said last."""
    users = [message for message in asked["messages"] if message["role"] == "user"]
    return str(users[-1]["content"])


_USAGE = {
    "prompt_tokens": TOKENS_IN,
    "completion_tokens": TOKENS_OUT,
    "total_tokens": TOKENS_IN + TOKENS_OUT,
}
_HEAD: dict[str, Any] = {"id": "chat-1", "created": 1_790_000_000, "model": "m", "usage": _USAGE}


def _call(said: Call, number: int) -> dict[str, Any]:
    function = {"name": said.name, "arguments": json.dumps(said.arguments)}
    return {"id": f"call-{number}", "type": "function", "function": function}


def _reason(said: str | Call) -> str:
    return "stop" if isinstance(said, str) else "tool_calls"


def _streamed(said: str | Call) -> bytes:
    """The same as events, a text in two pieces."""
    if isinstance(said, str):
        half = len(said) // 2
        deltas: list[dict[str, Any]] = [{"content": said[:half]}, {"content": said[half:]}]
    else:
        deltas = [{"tool_calls": [{"index": 0, **_call(said, 1)}]}]
    events = [
        {**_HEAD, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
        for delta in ({"role": "assistant"}, *deltas)
    ]
    last = {"index": 0, "delta": {}, "finish_reason": _reason(said)}
    events.append({**_HEAD, "object": "chat.completion.chunk", "choices": [last]})
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


@contextmanager
def serve_chat() -> Iterator[ChatServer]:
    """A running model; it is gone when the block ends."""
    state = ChatServer()

    class Handler(_Handler):
        server_state = state

    with loopback.running(Handler, state.closing) as state.port:
        yield state


class _Handler(loopback.Handler):
    server_state: ChatServer

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        state = self.server_state
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            state.embeddings.requests.append(asked)
            state.embeddings.keys.append(self.headers["Authorization"])
            given = asked["input"]
            texts = [given] if isinstance(given, str) else given
            self.answer(_as("application/json"), state.embeddings.answer(texts))
            return
        failure = state.failures.pop(0) if state.failures else None
        if failure is not None:
            if failure.delay:
                state.closing.wait(failure.delay)
            self.answer(failure, failure.body or b"{}")
            return
        if self.path.endswith("/v1/messages"):
            self.answer(_as("application/json"), state.message(asked))
            return
        kind = "text/event-stream" if asked.get("stream") else "application/json"
        self.answer(_as(kind), state.answer(asked))


def _as(kind: str) -> Failure:
    return Failure(headers=(("Content-Type", kind),))
