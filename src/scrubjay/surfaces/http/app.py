"""The application: the gate, the table's routes, health, the document, and other planes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from scrubjay.engine import Engine
from scrubjay.ports import Clock
from scrubjay.surfaces.http import discovery, health, openapi, routes
from scrubjay.surfaces.http.gate import Gate
from scrubjay.surfaces.http.service import Options, Plane, Service


def app(
    engine: Engine, clock: Clock, options: Options | None = None, *, planes: Sequence[Plane] = ()
) -> Gate:
    """The service on an engine as an ASGI application; the engine is its caller's to close."""
    service = Service(engine, clock, options)
    mounted = [route for plane in planes for route in plane.routes(service)]
    known = discovery.routes(service.options.trust)
    router = Router(
        [*health.routes(service), *routes.routes(service), _document(), *known, *mounted],
        redirect_slashes=False,
        lifespan=lambda _: _running(service, planes),
    )
    hosts, metrics = service.options.hosts, service.metrics
    return Gate(_Named(router), hosts=hosts, clock=clock, metrics=metrics)


class _Named:
    """The router, told that it is part of an application: then it raises what it refuses."""

    def __init__(self, router: ASGIApp) -> None:
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""
        scope["app"] = self
        await self._router(scope, receive, send)


def _document() -> Route:
    made = openapi.render()

    async def document(_request: Request) -> Response:
        return Response(made, media_type="application/json")

    return Route("/openapi.json", document, methods=["GET"])


@asynccontextmanager
async def _running(service: Service, planes: Sequence[Plane]) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        stack.push_async_callback(service.bridge.close)
        stack.push_async_callback(asyncio.to_thread, service.background.stop)
        service.background.start()
        if service.tokens is not None:
            stack.push_async_callback(service.tokens.keys.close)
        for plane in planes:
            await stack.enter_async_context(plane.running(service))
        yield
