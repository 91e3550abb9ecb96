"""MCP over stdio: one client, one scope, and the engine of a home in the same process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Self, TypeVar

import anyio
import mcp_types as wire
from mcp.server.mcpserver import Context
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import ContextSendStream
from mcp.shared.message import SessionMessage
from msgspec.structs import replace
from pydantic import ValidationError

from scrubjay.access import Access, Grant, Keys, everything
from scrubjay.bridge import Bridge, TooLate
from scrubjay.engine import Kernel
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.surfaces.mcp.caller import AgentCaller
from scrubjay.surfaces.mcp.server import MemoryServer
from scrubjay.surfaces.mcp.tools import MemoryTool
from scrubjay.verbs import VERBS

T = TypeVar("T")
DRAIN_SECONDS: Final = 30.0
"""Timeout of the answers to what was asked before stdin ended."""


class LocalDoor:
    """A door to one scope of a home, for the agent at the other end of a pipe."""

    def __init__(self, engine: Kernel, clock: Clock, scope: Scope, *, read_only: bool) -> None:
        grants = (Grant.READ,) if read_only else (Grant.READ, Grant.WRITE, Grant.FORGET)
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
        meta = context.request_context.meta
        caller = AgentCaller(self._access, self._scope, meta, ready=self._engine.open)
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
            await _run(MemoryServer(door))
        except* BrokenPipeError:  # the client is gone, and nobody reads
            pass
        finally:
            await door.bridge.close()

    anyio.run(answer)


class _Answers(ContextSendStream[SessionMessage]):
    """The stream of answers, which knows what is still to be answered."""

    def __init__(self, stream: ContextSendStream[SessionMessage]) -> None:
        super().__init__(stream._inner)
        self.asked = set[object]()
        self.asking = set[object]()
        self._changed = anyio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def send(self, item: SessionMessage) -> None:
        """Send one, and note it."""
        await super().send(item)
        _note(item.message, self.asking, self.asked)
        self._changed.set()

    async def settled(self) -> None:
        """Wait until every request is answered but those that wait for the client themselves."""
        while len(self.asked) > len(self.asking):
            self._changed = anyio.Event()
            await self._changed.wait()


def _note(message: wire.JSONRPCMessage, asked: set[object], answered: set[object]) -> None:
    """Note what one side says: a request, which it may cancel, or an answer to the other's."""
    match message:
        case wire.JSONRPCRequest(id=name):
            asked.add(name)
        case wire.JSONRPCResponse(id=name) | wire.JSONRPCError(id=name):
            answered.discard(name)
        case wire.JSONRPCNotification(params={"requestId": name}):
            asked.discard(name)


async def _run(server: MemoryServer) -> None:
    """Serve until stdin ends and what was asked before is answered.

    A line that is no message is answered, too, which the SDK leaves out.
    """
    inner = server._lowlevel_server  # as its own `run_stdio_async`, which takes no streams
    async with stdio_server() as (lines, written), anyio.create_task_group() as tasks:
        send, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        answers = _Answers(written)

        async def sort() -> None:
            async with send:
                async for line in lines:
                    if isinstance(line, SessionMessage):
                        _note(line.message, answers.asked, answers.asking)
                        await send.send(line)
                    elif (refused := refusal_of(line)) is not None:
                        await answers.send(SessionMessage(refused))
                with anyio.move_on_after(DRAIN_SECONDS):
                    await answers.settled()

        tasks.start_soon(sort)
        await inner.run(messages, answers, inner.create_initialization_options())
        tasks.cancel_scope.cancel()


def refusal_of(error: Exception) -> wire.JSONRPCError | None:
    """The answer to a line that is no message, under its id if that can be read.

    None if it asks for no answer.
    """
    given = [one["input"] for one in error.errors()] if isinstance(error, ValidationError) else []
    read = next((one for one in map(_object, given) if one is not None), None)
    asked = None if read is None else read.get("id")
    if read is not None and (asked is None or "method" not in read):
        return None  # a notification, or an answer
    if isinstance(asked, bool) or not isinstance(asked, int | str) or not str(asked).isprintable():
        asked = None
    told = "The line is no message of JSON-RPC, or holds half a character."
    refused = wire.ErrorData(code=wire.PARSE_ERROR, message=told)
    return wire.JSONRPCError(jsonrpc="2.0", id=asked, error=refused)


def _object(given: object) -> dict[str, object] | None:
    """The message that an error is about, or its line; None for a part of it."""
    try:
        read = json.loads(given) if isinstance(given, str | bytes) else given
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) and "jsonrpc" in read else None
