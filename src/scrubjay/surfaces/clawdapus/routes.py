"""The plane as routes of the service: each operation is an endpoint of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from scrubjay.access import PODS, Grant, Key
from scrubjay.bridge import Abandoned, TooLate
from scrubjay.service.endpoint import HttpEndpoint, Take, Visit, declared, read_body
from scrubjay.service.problems import Problem
from scrubjay.service.rest import BY_NAME
from scrubjay.service.service import Service
from scrubjay.service.telemetry import Span
from scrubjay.surfaces.clawdapus import descriptor, plane
from scrubjay.surfaces.clawdapus.descriptor import PlaneOffer
from scrubjay.surfaces.clawdapus.plane import BODY_BYTES, GONE, Plane, Reply

HOLDER: Final = Key(
    id="plane",  # whom the rates are counted for; no key has this id, being of eight characters
    name="plane",
    scopes=(PODS,),
    grants=(Grant.READ, Grant.WRITE, Grant.FORGET),
)
"""The key that the token of the pods stands for."""
PATIENCE: Final = 1.0
"""How long a write waits for the rate limit: a replay stops at a refusal."""
_SHORT: Final = 32 * 1024
"""Maximum body size of a recall that runs on the event loop."""
_DRAIN_SECONDS: Final = 10.0
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""All methods, because a wrong one is answered in the plane's format."""
_HEADERS: Final = {
    408: {"Connection": "close"},
    413: {"Connection": "close"},
    429: {"Retry-After": "1"},
    503: {"Retry-After": "1"},
}


class ClawdapusPlane:
    """The memory plane, to be mounted in the service."""

    def __init__(self, offer: PlaneOffer | None = None) -> None:
        self._offer = offer or PlaneOffer()

    def routes(self, service: Service) -> Sequence[BaseRoute]:
        """Its paths; `/health` is the service's own."""
        found = Plane(service.engine, self._offer, ready=service.ready)

        async def describe(request: Request) -> Response:
            request.scope["state"]["op"] = "plane_describe"
            if request.method not in ("GET", "HEAD"):
                return _response(plane.refusal(plane.PlaneRefused(405, "method not allowed")))
            return Response(descriptor.render(self._offer), media_type="application/json")

        named = {path: PlaneEndpoint(service, found, name).answer for name, path in _PATHS.items()}
        named[descriptor.DESCRIPTOR] = describe
        return [Route(path, endpoint, methods=_METHODS) for path, endpoint in named.items()]

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncIterator[None]:
        """Warm up: load what the first recall needs, before its deadline counts."""
        await service.bridge.read(lambda: import_module("scrubjay.engine.search.recall"))
        yield


_PATHS: Final = {
    "recall": descriptor.RECALL,
    "retain": descriptor.RETAIN,
    "forget": descriptor.FORGET,
}


class PlaneEndpoint(HttpEndpoint[Reply]):
    """One operation of the plane: the token of the pods, the proxy's JSON, refusals in a line."""

    patience = PATIENCE

    def __init__(self, service: Service, found: Plane, operation: str) -> None:
        super().__init__(service, BY_NAME[operation], name=f"plane_{operation}")
        self._plane = found
        self.seconds = found.offer.recall_seconds

    async def answer(self, request: Request) -> Response:
        """Answer a request; each operation is logged and counted once."""
        begun = self.service.clock.monotonic()
        request.scope["state"]["until"] = begun + self._plane.offer.recall_seconds
        try:
            reply = await self.run(request)
        except Exception as error:  # seam: refusals are answered, anything else is raised again
            reply = plane.refusal(error)
            if isinstance(error, Problem) and error.status == 413:
                await _drain(request)
        reply.log(self.operation.name, self.service.clock.monotonic() - begun)
        if reply.status == GONE:
            raise Abandoned
        return _response(reply)

    async def authenticate(self, request: Request) -> Key:
        """Check the token of the pods."""
        authorization = request.headers.get("authorization")
        self._plane.check(self.operation.name, request.method, authorization)
        return HOLDER

    async def receive(self, request: Request, take: Take) -> bytes:
        """The body, unpacked if it was packed."""
        raw = await read_body(request, BODY_BYTES, take)
        body = plane.unpacked(raw, request.headers.get("content-encoding"))
        if body is not raw:
            take(body)
        return body

    def at_once(self, visit: Visit, span: Span) -> Reply | None:
        """Answer a short recall on the event loop."""
        if self.operation.name != "recall" or len(visit.body) > _SHORT:
            return None
        reply = self._plane.at_once(visit.body, self._left(visit))
        return None if reply is None else self._counted(reply, span)

    def perform(self, visit: Visit, span: Span) -> Reply:
        """The operation, and what there is to count of it."""
        name = self.operation.name
        left = self._left(visit) if name == "recall" else None
        return self._counted(self._plane.perform(name, visit.body, left), span)

    def _left(self, visit: Visit) -> float:
        """How many seconds are left for a recall: those it waited for a thread count."""
        until: float = visit.request.scope["state"]["until"]
        left = until - self.service.clock.monotonic()
        if left <= 0:
            raise TooLate("The deadline passed while it waited.")
        return left

    def _counted(self, reply: Reply, span: Span) -> Reply:
        metrics = self.service.metrics
        if reply.scope is not None:
            span.name_store(self.service.signer.pseudonym(reply.scope))
        if reply.blocks is not None and reply.bytes is not None:
            span.answered(range(reply.blocks))
            metrics.recalled(reply.blocks, reply.bytes)
        if self.operation.name == "retain":
            metrics.add("memory_policy_removed_total", reply.removed)
        return reply


async def _drain(request: Request) -> None:
    """Read the rest of a body that is slightly too large, so that the client gets the answer."""
    left = 2 * BODY_BYTES if declared(request) <= 2 * BODY_BYTES else 0
    with suppress(ClientDisconnect, TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for piece in request.stream():
                left -= len(piece)
                if left < 0:
                    return


def _response(reply: Reply) -> Response:
    kind = reply.kind if reply.body else None
    return Response(reply.body, reply.status, media_type=kind, headers=_HEADERS.get(reply.status))
