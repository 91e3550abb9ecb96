"""The plane without a socket: for tests of what it tells, rather than of how it is reached."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from scrubjay.engine import Kernel
from scrubjay.surfaces.clawdapus.descriptor import PlaneOffer
from scrubjay.surfaces.clawdapus.names import scope_of
from scrubjay.surfaces.clawdapus.routes import Plane
from tests.dialects.clawdapus.pod import BLOCKED, START, Json, entry, user

AGENT = "analyst"
SCOPE = scope_of(AGENT, "desk")


def line(minute: int, said: str, reply: str = "All right, I see.", **more: Any) -> Json:
    """A line of the history, so many minutes after the start."""
    return entry([user(said)], reply, START + timedelta(minutes=minute), agent=AGENT, **more)


class Desk:
    """One agent's plane; every answer is held against the limits of the proxy."""

    def __init__(self, engine: Kernel) -> None:
        self.engine = engine
        self._plane = Plane(engine, PlaneOffer(recall_seconds=30))

    def retain(self, *lines: Json) -> None:
        for one in lines:
            body = {"agent_id": AGENT, "pod": "desk", "entry": one, "metadata": {}}
            assert self._send("retain", body)[0] == 202

    def forget(self, *lines: Json) -> None:
        body = {"agent_id": AGENT, "pod": "desk", "entry_ids": [one["id"] for one in lines]}
        assert self._send("forget", body)[0] == 204

    def recall(self, query: str = "", *before: Json, **metadata: Any) -> list[Json]:
        body: Json = {"agent_id": AGENT, "pod": "desk", "metadata": metadata}
        body["messages"] = [*before, *([user(query)] if query else [])]
        status, raw = self._send("recall", body)
        assert status == 200
        return within_the_limits(raw)

    def texts(self, query: str = "", *, kind: str | None = None) -> str:
        found = self.recall(query)
        return "\n".join(one["text"] for one in found if kind in (None, one["kind"]))

    def _send(self, operation: str, body: Json) -> tuple[int, bytes]:
        reply = self._plane.answer(operation, json.dumps(body).encode())
        return reply.status, reply.body


def within_the_limits(raw: bytes) -> list[Json]:
    """The blocks of an answer of which the proxy would drop nothing."""
    blocks = json.loads(raw)["memories"]
    assert len(raw) <= 16_384
    assert len(blocks) <= 8
    assert sum(len(one["text"].encode()) for one in blocks) <= 8_192
    assert all(one["text"].strip() and "\n" not in one["text"] for one in blocks)
    assert (
        not {str(one.get(name)).lower() for one in blocks for name in ("kind", "source")} & BLOCKED
    )
    return list(blocks)
