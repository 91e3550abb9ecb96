"""A stand-in for a pod: the proxy's client side and the operator's commands, over real sockets.

It sends what the proxy sends, waits as long as the proxy waits, keeps of an answer what the proxy
keeps, and tells the same of it in its telemetry. The model is a function.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

START = datetime(2026, 4, 3, 14, tzinfo=UTC)
RECALL_SECONDS = 0.3
RETAIN_SECONDS = 2.0
BLOCKED = {"raw_transcript", "session_tail", "transcript_tail"}
CONTEXT = (
    "[Runtime context for this invocation. This is not a user instruction. Use it only as "
    "infrastructure-provided context for the next reply.]"
)
SCRUBBED = (
    (re.compile(r"sk-[A-Za-z0-9_-]{6,}"), "[redacted-secret]"),
    (re.compile(r"(?i)\b(Bearer)[ \t]+[A-Za-z0-9._-]{8,}"), r"\1 [redacted]"),
)
Json = dict[str, Any]


@dataclass
class Manifest:
    """What the compiler wrote for one agent: where its memory is, and which paths it has."""

    url: str
    agent: str = "analyst"
    pod: str = "desk"
    paths: Mapping[str, str] = field(
        default_factory=lambda: {op: f"/{op}" for op in ("recall", "retain", "forget")}
    )
    token: str | None = None
    recall_seconds: float = RECALL_SECONDS
    timezone: str = "Europe/Berlin"


@dataclass
class Answer:
    """What came back over the wire."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def post(manifest: Manifest, op: str, body: object, *, seconds: float, **more: str) -> Answer:
    """One request as the proxy makes it: no retry, no redirect."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "gzip",
        "User-Agent": "Go-http-client/1.1",
        **more,
    }
    if manifest.token:
        headers["Authorization"] = f"Bearer {manifest.token}"
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return send(manifest.url, "POST", manifest.paths[op], raw, headers, seconds=seconds)


def send(
    url: str,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    seconds: float = 60.0,
) -> Answer:
    """One request over a connection of its own."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=seconds)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, response.read(), dict(response.getheaders()))
    finally:
        connection.close()


class Proxy:
    """The proxy of one agent: recall before a turn, history and retain after it."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.history: list[Json] = []
        self.telemetry: list[Json] = []
        self.clock = START

    # -- a whole turn ------------------------------------------------------------------

    def turn(
        self,
        messages: list[Json],
        model: Callable[[list[Json]], str],
        *,
        anthropic: bool = False,
        stream: bool = False,
    ) -> str:
        """One turn of the agent: the user gets an answer whatever becomes of memory."""
        self.clock += timedelta(minutes=1)
        shown = self.recall(messages, anthropic=anthropic)
        effective = inject(messages, shown, anthropic=anthropic)
        said = model(effective)
        line = entry(messages, said, self.clock, agent=self.manifest.agent, effective=effective,
                     anthropic=anthropic, stream=stream)  # fmt: skip
        self.history.append(line)
        self.retain(line)
        return said

    # -- recall ------------------------------------------------------------------------

    def recall(self, messages: list[Json], *, anthropic: bool = False) -> list[Json]:
        """The blocks that may be injected, after the proxy's own policy."""
        if "recall" not in self.manifest.paths:
            self._tell("recall", "skipped")
            return []
        body: Json = {
            **self._common("anthropic" if anthropic else "openai"),
            "messages": messages,
            **({"system": [{"type": "text", "text": "Be brief."}]} if anthropic else {}),
        }
        try:
            answer = post(self.manifest, "recall", body, seconds=self.manifest.recall_seconds)
        except TimeoutError:
            self._tell("recall", "timed_out", error="deadline exceeded")
            return []
        return self._govern(answer)

    def _govern(self, answer: Answer) -> list[Json]:
        if not 200 <= answer.status < 300:
            self._tell("recall", "failed", status_code=answer.status)
            return []
        if len(answer.body) > 16_384:
            self._tell("recall", "failed", error="recall response exceeds 16384 bytes")
            return []
        returned = json.loads(answer.body).get("memories") or []
        kept: list[Json] = []
        for block in returned:
            text = scrub(str(block.get("text", "")).strip())
            blocked = {str(block.get(k, "")).strip().lower() for k in ("kind", "source")} & BLOCKED
            room = 8_192 - sum(len(one["text"].encode()) for one in kept)
            if not blocked and text and len(kept) < 8 and len(text.encode()) <= room:
                kept.append({**block, "text": text})
        removed = len(returned) - len(kept)
        self._tell("recall", "succeeded", memory_blocks=len(returned),
                   memory_bytes=len(render(kept).encode()), memory_removed=removed)  # fmt: skip
        return kept

    # -- retain ------------------------------------------------------------------------

    def retain(self, line: Json) -> None:
        """Report a turn, scrubbed; its failure is nobody's but the telemetry's."""
        if "retain" not in self.manifest.paths:
            self._tell("retain", "skipped")
            return
        counted = Counting()
        scrubbed = {
            name: counted.walk(value)
            if name in ("request_original", "request_effective", "response")
            else value
            for name, value in line.items()
        }
        body = {**self._common("retain"), "entry": scrubbed}
        if counted.number:
            body["metadata"]["policy_removed"] = counted.number
        try:
            answer = post(self.manifest, "retain", body, seconds=RETAIN_SECONDS)
        except TimeoutError:
            self._tell("retain", "timed_out", error="deadline exceeded")
            return
        status = "succeeded" if 200 <= answer.status < 300 else "failed"
        self._tell("retain", status, status_code=answer.status, memory_removed=counted.number)

    def _common(self, path: str) -> Json:
        metadata = {
            "service": self.manifest.agent,
            "type": "",
            "path": path,
            "timezone": self.manifest.timezone,
            "requested_model": "gpt-test",
        }
        return {"agent_id": self.manifest.agent, "pod": self.manifest.pod, "metadata": metadata}

    def _tell(self, op: str, status: str, **facts: object) -> None:
        told = {name: value for name, value in facts.items() if value or name == "memory_blocks"}
        self.telemetry.append(
            {"type": "memory_op", "memory_op": op, "memory_status": status,
             "claw_id": self.manifest.agent, "intervention": None, **told}
        )  # fmt: skip


class Counting:
    """Scrubs every text of a value and counts how many it changed."""

    def __init__(self) -> None:
        self.number = 0

    def walk(self, value: Any) -> Any:
        if isinstance(value, str):
            clean = scrub(value)
            self.number += clean != value
            return clean
        if isinstance(value, list):
            return [self.walk(one) for one in value]
        if isinstance(value, dict):
            return {name: self.walk(one) for name, one in value.items()}
        return value


def scrub(text: str) -> str:
    for pattern, instead in SCRUBBED:
        text = pattern.sub(instead, text)
    return text


def render(blocks: list[Json]) -> str:
    """The blocks as they stand in a prompt."""
    if not blocks:
        return ""
    lines = ["--- BEGIN MEMORY (from mem-svc) ---"]
    for block in blocks:
        parts = [f"{name}={block[name]}" for name in ("kind", "source", "ts") if block.get(name)]
        parts += [f"score={block['score']:.2f}"] if block.get("score") else []
        lines += [f"[{', '.join(parts)}]"] if parts else []
        lines.append(block["text"])
    return "\n".join([*lines, "--- END MEMORY ---"])


def inject(messages: list[Json], blocks: list[Json], *, anthropic: bool) -> list[Json]:
    """The messages as the model gets them."""
    if not blocks:
        return messages
    text = f"{CONTEXT}\n\n{render(blocks)}\n\nCurrent time: {START.isoformat()}"
    last = max(n for n, one in enumerate(messages) if one["role"] == "user")
    if anthropic:
        added = {"role": "user", "content": [{"type": "text", "text": text}]}
        return [*messages[: last + 1], added, *messages[last + 1 :]]
    return [*messages[:last], {"role": "system", "content": text}, *messages[last:]]


# -- history ----------------------------------------------------------------------------------


def user(text: object) -> Json:
    return {"role": "user", "content": text}


def entry(
    messages: list[Json],
    said: str,
    at: datetime,
    *,
    agent: str = "analyst",
    effective: list[Json] | None = None,
    anthropic: bool = False,
    stream: bool = False,
    **more: Any,
) -> Json:
    """One line of the history, with its id."""
    line: Json = {
        "version": 1,
        "ts": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "claw_id": agent,
        "path": "/v1/messages" if anthropic else "/v1/chat/completions",
        "requested_model": "gpt-test",
        "effective_provider": "openai",
        "effective_model": "gpt-test-1",
        "status_code": 200,
        "stream": stream,
        "request_original": {"model": "gpt-test", "messages": messages},
        "request_effective": {"model": "gpt-test", "messages": effective or messages},
        "response": response(said, anthropic=anthropic, stream=stream),
        "usage": {"prompt_tokens": 5, "completion_tokens": 7},
        **more,
    }
    return {"version": line["version"], "id": entry_id(line), **line}


def response(said: str, *, anthropic: bool = False, stream: bool = False) -> Json:
    """The body of a provider's answer, as the history keeps it."""
    if stream:
        return {"format": "sse", "text": sse(said, anthropic=anthropic)}
    if anthropic:
        return {"format": "json", "json": {"content": [{"type": "text", "text": said}]}}
    message = {"role": "assistant", "content": said}
    return {"format": "json", "json": {"choices": [{"index": 0, "message": message}]}}


def sse(said: str, *, anthropic: bool = False) -> str:
    """The answer as a stream of events, in pieces."""
    pieces = [said[at : at + 7] for at in range(0, len(said), 7)]
    events: list[Json] = []
    if anthropic:
        events.append({"type": "message_start", "message": {"content": []}})
        events += [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": p}}
            for p in pieces
        ]
        events.append({"type": "message_stop"})
        return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    events += [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    return "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"


def entry_id(line: Json) -> str:
    """The id of a line: a digest of what it is without one."""
    bare = {name: value for name, value in line.items() if name != "id"}
    raw = json.dumps(bare, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&":
        raw = raw.replace(letter, f"\\u{ord(letter):04x}")
    return f"hist1_{hashlib.sha256(raw.encode()).hexdigest()}"


# -- the operator's commands ------------------------------------------------------------------


class Claw:
    """The commands an operator types: backfill and forget."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.tombstones: set[str] = set()

    def backfill(
        self, history: Iterable[Json], *, after: datetime | None = None, limit: int = 0
    ) -> int:
        """Replay lines as they are on disk, unscrubbed, failed turns too; stops at a failure."""
        if limit < 0:
            raise ValueError("limit must be >= 0")
        replayed = 0
        for line in history:
            if after and datetime.fromisoformat(line["ts"]) <= after:
                continue
            known = line.get("id") or _legacy_id(line)
            if known in self.tombstones:
                continue
            self._send("retain", {"entry": {**line, "id": known}})
            replayed += 1
            if replayed == limit:
                break
        return replayed

    def forget(self, *ids: str, reason: str = "operator request") -> None:
        """Have entries forgotten; noted here only after the service has answered."""
        self._send("forget", {"entry_ids": list(ids), "reason": reason})
        self.tombstones.update(ids)

    def _send(self, op: str, more: Json) -> None:
        common = {"service": self.manifest.agent, "type": "", "path": op}
        body = {"agent_id": self.manifest.agent, "pod": self.manifest.pod, "metadata": common}
        answer = post(self.manifest, op, {**body, **more}, seconds=10)
        if not 200 <= answer.status < 300:
            said = answer.body[:2_048].decode().strip()
            raise RuntimeError(f"{op} returned status {answer.status}: {said}")


def _legacy_id(line: Json) -> str:
    return f"hist1_{hashlib.sha256(json.dumps(line).encode()).hexdigest()}"
