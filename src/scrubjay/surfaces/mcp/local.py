"""MCP over stdio: one client, one scope, and the engine of a home in the same process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
from mcp.server.mcpserver import Context
from msgspec.structs import replace

from scrubjay.access import Access, Grant, Keys, everything
from scrubjay.bridge import Bridge, TooLate
from scrubjay.engine import Kernel
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.surfaces.mcp.caller import AgentCaller, session_of
from scrubjay.surfaces.mcp.server import MemoryServer
from scrubjay.surfaces.mcp.tools import MemoryTool
from scrubjay.verbs import VERBS

T = TypeVar("T")
_GRANTS = (Grant.READ, Grant.WRITE, Grant.FORGET)


class LocalDoor:
    """A door to one scope of a home, for the agent at the other end of a pipe."""

    def __init__(self, engine: Kernel, clock: Clock, scope: Scope, *, read_only: bool) -> None:
        grants = (Grant.READ,) if read_only else _GRANTS
        holder = replace(everything(Actor.AGENT), scopes=(str(scope),), grants=grants)
        self._engine = engine
        self._access = Access(engine, Keys(engine, clock), holder)
        self._scope = scope
        self.bridge = Bridge(monotonic=clock.monotonic)

    def offers(self, tool: MemoryTool) -> bool:
        """Whether a tool is listed: read only, none that writes is."""
        return tool.grant in self._access.holder.grants

    async def run(
        self, verb: str, context: Context[Any, Any], work: Callable[[AgentCaller], T]
    ) -> T:
        """Run the work of a verb in a thread; a write that has begun is finished."""
        session = session_of(context.request_context.meta)
        caller = AgentCaller(self._access, self._scope, session, ready=self._engine.open)
        through = self.bridge.write if VERBS[verb].writes else self.bridge.read
        return await through(lambda: work(caller))

    def refusal(self, error: Exception) -> str | None:
        """An expected error as a sentence and a hint."""
        if isinstance(error, ScrubjayError):
            return f"{error.code}: {error.message} {error.hint}"
        return "too_late: The deadline passed." if isinstance(error, TooLate) else None


def serve(engine: Kernel, clock: Clock, scope: Scope, *, read_only: bool = False) -> None:
    """Serve over stdin and stdout until the client closes them."""

    async def answer() -> None:
        door = LocalDoor(engine, clock, scope, read_only=read_only)
        try:
            await MemoryServer(door).run_stdio_async()
        finally:
            await door.bridge.close()

    anyio.run(answer)
