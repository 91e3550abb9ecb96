"""MCP over HTTP: `/mcp` in the service, for its API keys and the tokens of its issuer.

The SDK takes the messages apart; each tool call then passes the endpoint of the service like a
request of `/v1`. The SDK and this surface's server are loaded by the first request: a service that
nobody asks by MCP pays nothing.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay.access import Key
from scrubjay.service.endpoint import HttpEndpoint, Take, Visit
from scrubjay.service.problems import of
from scrubjay.service.rest import BY_NAME
from scrubjay.service.routes import as_json
from scrubjay.service.service import METADATA, Service
from scrubjay.service.telemetry import Span
from scrubjay.surfaces.mcp.caller import ANSWER_SECONDS, AgentCaller, as_agent

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

    from scrubjay.surfaces.mcp.tools import MemoryTool
    from scrubjay.surfaces.mcp.transport import Transport

T = TypeVar("T")
PATH: Final = "/mcp"


class McpPaths:
    """`/mcp` and its metadata, to be mounted in the service."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._over = asyncio.Event()
        self._loaded: asyncio.Future[ASGIApp] | None = None
        self.transport: Transport | None = None
        """What answers messages, once it is loaded."""

    def routes(self, service: Service) -> Sequence[BaseRoute]:
        """The endpoint, and what RFC 9728 says about it."""

        async def metadata(request: Request) -> Response:
            return as_json(service.metadata(request, PATH))

        return [
            # Without GET: a stream on which nothing is ever sent would only delay the end.
            Route(PATH, _Messages(service, self), methods=["POST", "DELETE"]),
            Route(METADATA + PATH, metadata, methods=["GET"]),
        ]

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncIterator[None]:
        """Lifespan: the sessions of clients live in one task, from the first request to the end."""
        self._loaded = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(service, self._loaded))
        try:
            yield
        finally:
            self._over.set()
            self._asked.set()
            await task

    async def loaded(self) -> ASGIApp:
        """What answers messages; the first caller waits until it is loaded."""
        self._asked.set()
        assert self._loaded is not None
        return await asyncio.shield(self._loaded)

    async def _run(self, service: Service, ready: asyncio.Future[ASGIApp]) -> None:
        await self._asked.wait()
        if self._over.is_set():
            return
        try:
            # It stands on the SDK, whose import takes a second.
            http = await asyncio.to_thread(importlib.import_module, f"{__package__}.transport")
            self.transport = transport = http.Transport(service, ServiceDoor(service))
        except Exception as error:  # seam: each request is told, and the service goes on
            ready.set_exception(error)
            return
        async with transport.running():
            ready.set_result(transport)
            await self._over.wait()


class _Messages:
    """ASGI endpoint of the messages; their bodies share the room of all that are in progress."""

    def __init__(self, service: Service, paths: McpPaths) -> None:
        self._service = service
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let an authenticated request through to the SDK; Problem 401 for any other."""
        scope["state"] |= {"op": "mcp", "resource": PATH}
        holder = await self._service.holder(Request(scope))
        scope["state"]["key"] = holder.id
        answer = await self._paths.loaded()
        with self._service.room.share() as take:

            async def taken() -> Message:
                message = await receive()
                take(message.get("body", b""))
                return message

            # What stands open for ever would keep its part of the room from everybody.
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await answer(scope, taken, send)


class ServiceDoor:
    """A door to the scopes of a service: each call is authorized, limited and counted there."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def offers(self, _tool: MemoryTool) -> bool:
        """Whether a tool is listed; a key without the grant is refused when it calls one."""
        return True

    async def run(
        self, verb: str, context: Context[Any, Any], work: Callable[[AgentCaller], T]
    ) -> T:
        """Run the work of a verb through an endpoint of the service."""
        meta, http = context.request_context.meta, context.request_context.request
        assert http is not None
        return await ToolEndpoint(self._service, verb, meta, work).run(
            Request(http.scope, _silent)  # the SDK itself watches whether the client is there
        )

    def refusal(self, error: Exception) -> str | None:
        """A problem as a sentence and a hint."""
        problem = of(error)
        told = f"{problem.code}: {problem.detail} {problem.hint or ''}".rstrip()
        return None if problem.code == "internal" else told


async def _silent() -> Message:
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never


class ToolEndpoint(HttpEndpoint[T]):
    """One tool call as a request of the service, by the key that its message came with."""

    def __init__(
        self, service: Service, verb: str, meta: Any, work: Callable[[AgentCaller], T]
    ) -> None:
        super().__init__(service, BY_NAME[verb], name=f"mcp_{verb}")
        self._meta = meta
        self._run = work

    async def authenticate(self, request: Request) -> Key:
        """The key again, which may have been revoked meanwhile, as that of an agent."""
        return as_agent(await self.service.holder(request))

    def authorize(self, request: Request, holder: Key) -> Any:
        """The scope of the header, or of the key."""
        return self.service.scope_of(request, holder)

    async def receive(self, _request: Request, _take: Take) -> bytes:
        """Nothing: the SDK has read the message."""
        return b""

    def perform(self, visit: Visit, span: Span) -> T:
        """Perform the verb as an agent."""
        assert visit.scope is not None
        access = self.service.access(visit.holder)
        caller = AgentCaller(access, visit.scope, self._meta, ready=self.service.ready)
        span.asked({"session": caller.session})
        result = self._run(caller)
        span.answered(result)
        return result
