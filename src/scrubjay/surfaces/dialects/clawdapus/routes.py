"""The plane as routes of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from scrubjay.surfaces.bridge import Abandoned
from scrubjay.surfaces.dialects.clawdapus import descriptor, plane
from scrubjay.surfaces.dialects.clawdapus.descriptor import Offer
from scrubjay.surfaces.dialects.clawdapus.plane import Plane, Reply
from scrubjay.surfaces.http.service import Service

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""All of them, because a wrong one is answered in the plane's own words."""
_PATHS: Final = {
    "recall": descriptor.RECALL,
    "retain": descriptor.RETAIN,
    "forget": descriptor.FORGET,
}


class ClawdapusPlane:
    """The memory plane, to be mounted in the service."""

    def __init__(self, offer: Offer | None = None) -> None:
        self._offer = offer or Offer()

    def routes(self, service: Service) -> Sequence[BaseRoute]:
        """Its five paths."""
        found = Plane(service.engine, self._offer)
        return [
            *(
                _route(path, f"plane_{name}", _operation(found, name, service))
                for name, path in _PATHS.items()
            ),
            _route(descriptor.HEALTH, "healthz", _plain(found.health)),
            _route(descriptor.DESCRIPTOR, "plane_describe", _plain(found.describe)),
        ]

    def running(self, service: Service) -> AbstractAsyncContextManager[None]:
        """Load what the first recall needs, which would cost most of the time it has."""
        return _ready(service)


@asynccontextmanager
async def _ready(service: Service) -> AsyncIterator[None]:
    await service.bridge.read(lambda: import_module("scrubjay.engine.recall"))
    yield


def _route(path: str, op: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    """A route under its name in log lines and counters, where health stays quiet."""

    async def named(request: Request) -> Response:
        request.scope["state"]["op"] = op
        return await endpoint(request)

    return Route(path, named, methods=_METHODS)


def _operation(
    found: Plane, operation: str, service: Service
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        refusal = found.refusal(operation, request.method, request.headers.get("authorization"))
        if refusal is not None:
            return _response(refusal)
        raw = await _body(request)
        if isinstance(raw, Reply):
            return _response(raw)
        run = service.bridge.read if operation == "recall" else service.bridge.write
        return _response(await run(lambda: found.answer(operation, raw)))

    return endpoint


async def _body(request: Request) -> bytes | Reply:
    """The body, whatever it says it is, or why it is not read."""
    pieces, size = list[bytes](), 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > plane.BODY_BYTES:
                return plane.too_large()
            pieces.append(piece)
    except ClientDisconnect as error:
        raise Abandoned from error
    return plane.unpacked(b"".join(pieces), request.headers.get("content-encoding"))


def _plain(reply: Callable[[str], Reply]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return _response(reply(request.method))

    return endpoint


def _response(reply: Reply) -> Response:
    kind = reply.kind if reply.body else None
    return Response(reply.body, reply.status, media_type=kind)
