"""A plugin of one tool, and a host that loads it."""

# ruff: noqa: ARG002 - it answers as it is told to, whatever it is asked

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from scrubjay.surfaces.carapace.host import Host
from scrubjay.surfaces.carapace.pipeline import Rules
from scrubjay.surfaces.carapace.wire import AgentSession, encode
from scrubjay.testing.clock import FakeClock

AGENT = AgentSession(id="s1", group="main")
WAIT = 10
"""How long a plugin that hangs does so, should nobody let it go: a failed test must end."""


class Oddity:
    """A plugin of one tool that answers as it is told to."""

    def __init__(
        self,
        name: str = "oddity",
        *,
        tool: str = "odd",
        hooks: tuple[str, ...] = (),
        **declared: Any,
    ) -> None:
        self.name = name
        self.reply: Any = {"ok": True, "result": "done"}
        self.released = threading.Event()
        self._tool = {"name": tool, "risk_level": "low", **declared}
        self._tool.setdefault("arguments_schema", {"type": "object"})
        self._hooks = list(hooks)

    def manifest(self) -> Mapping[str, Any]:
        return {"provides": {"hooks": self._hooks, "tools": [self._tool]}}

    def initialize(self, group: str) -> None: ...

    def invoke(self, tool: str, arguments: Any, *, session: str, group: str) -> Any:
        if isinstance(self.reply, BaseException):
            raise self.reply
        if self.reply == "hang":
            self.released.wait(WAIT)
        return self.reply

    def get_brief(self, group: str) -> Any:
        return self.reply

    def shutdown(self) -> None:
        self.released.set()


def host(*plugins: Any, **rules: Any) -> Host:
    """A host of these plugins."""
    return Host(plugins, FakeClock(), rules=Rules(**rules))


def answer(host: Host) -> Any:
    """What the one tool answers."""
    return answer_to(host, "odd")


def answer_to(host: Host, tool: str, **arguments: Any) -> Any:
    """What a tool answers: its result, or its error."""
    message: Any = {"topic": f"tool.invoke.{tool}", "correlation": "c", "arguments": arguments}
    return host.answer(encode(message).encode(), AGENT)["payload"]
