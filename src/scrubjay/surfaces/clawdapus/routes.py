"""The plane as routes of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from importlib import import_module
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from scrubjay.bridge import Abandoned, TooLate
from scrubjay.model.errors import Busy
from scrubjay.service import bodies
from scrubjay.service.problems import Problem
from scrubjay.service.rest import OPERATIONS, Operation
from scrubjay.service.service import Service
from scrubjay.service.tracing import Span
from scrubjay.surfaces.clawdapus import descriptor, plane, telemetry
from scrubjay.surfaces.clawdapus.descriptor import Offer
from scrubjay.surfaces.clawdapus.plane import BODY_BYTES, Plane, Reply, refused
from scrubjay.surfaces.clawdapus.telemetry import Ended

HOLDER: Final = "plane"
"""Whom the rates are counted for: who has the token. No key has this id, being of eight."""
PATIENCE: Final = 1.0
"""How long a write waits for its turn under the rate limit: a replay stops at a refusal."""
_STEP: Final = 0.02
_DRAIN_SECONDS: Final = 10.0
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""All of them, because a wrong one is answered in the plane's own words."""
_PATHS: Final = {
    "recall": descriptor.RECALL,
    "retain": descriptor.RETAIN,
    "forget": descriptor.FORGET,
}
_OPERATIONS: Final[dict[str, Operation]] = {
    one.name: one for one in OPERATIONS if one.name in _PATHS
}


class ClawdapusPlane:
    """The memory plane, to be mounted in the service."""

    def __init__(self, offer: Offer | None = None) -> None:
        self._offer = offer or Offer()

    def routes(self, service: Service) -> Sequence[BaseRoute]:
        """Its paths; `/health` is the service's own."""
        found = Plane(service.engine, self._offer, ready=service.ready)

        async def describe(request: Request) -> Response:
            return _response(found.describe(request.method))

        return [
            *(
                _route(path, f"plane_{name}", _Endpoint(service, found, name).answer)
                for name, path in _PATHS.items()
            ),
            _route(descriptor.DESCRIPTOR, "plane_describe", describe),
        ]

    def running(self, service: Service) -> AbstractAsyncContextManager[None]:
        """Load what the first recall needs, which would cost most of the time it has."""
        return _ready(service)


@asynccontextmanager
async def _ready(service: Service) -> AsyncIterator[None]:
    await service.bridge.read(lambda: import_module("scrubjay.engine.search.recall"))
    yield


def _route(path: str, op: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    """A route under its name in log lines and counters, where health stays quiet."""

    async def named(request: Request) -> Response:
        request.scope["state"]["op"] = op
        return await endpoint(request)

    return Route(path, named, methods=_METHODS)


class _Failed(Exception):  # it is what happened
    """An operation ended with this reply; raised so that its span says so."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply
        self.code = str(reply.status)


class _Endpoint:
    """One operation, ready to be asked for."""

    def __init__(self, service: Service, found: Plane, name: str) -> None:
        self._service = service
        self._plane = found
        self._name = name
        self._operation = _OPERATIONS[name]

    async def answer(self, request: Request) -> Response:
        """Answer whatever comes; each operation is told of once in the log and the counters."""
        begun = self._service.clock.monotonic()
        try:
            reply = await self._traced(request)
        except _Failed as failed:
            reply = failed.reply
        seconds = self._service.clock.monotonic() - begun
        telemetry.emit(self._name, reply.account, status=reply.status, seconds=seconds)
        if reply.status == _GONE:
            raise Abandoned
        return _response(reply)

    async def _traced(self, request: Request) -> Reply:
        with self._service.spans.around(self._operation, None, request.headers) as span:
            request.scope["state"]["trace_id"] = span.trace_id
            reply = await self._reply(request)
            self._tell(span, reply)
            if reply.account.ended in (Ended.FAILED, Ended.TIMED_OUT):
                raise _Failed(reply)
            return reply

    async def _reply(self, request: Request) -> Reply:
        authorization = request.headers.get("authorization")
        refusal = self._plane.refusal(self._name, request.method, authorization)
        if refusal is not None:
            return refusal
        try:
            await self._take_turn()
            with self._service.room.share() as take:
                return await self._carry_out(request, take)
        except Problem as problem:
            if problem.status == 413:
                await _drain(request)
            return refused(problem.status, f"{problem.code}: {problem.detail}")
        except Busy as error:
            return refused(503, f"{error.code}: {error.message}")
        except TooLate:
            return plane.too_late()
        except Abandoned:
            return refused(_GONE, "")

    async def _take_turn(self) -> None:
        """Keep to the rate of the token: a write is put off for a while, a recall has no time."""
        waited = 0.0
        while True:
            try:
                self._service.meter.spend(HOLDER, self._operation)
                return
            except Problem:
                if not self._operation.writes or waited >= PATIENCE:
                    raise
            await asyncio.sleep(_STEP)
            waited += _STEP

    async def _carry_out(self, request: Request, take: bodies.See) -> Reply:
        raw = await bodies.receive(request, BODY_BYTES, take)
        body = plane.unpacked(raw, request.headers.get("content-encoding"))
        if isinstance(body, Reply):
            return body
        if body is not raw:
            take(body)
        bridge, work = self._service.bridge, lambda: self._plane.answer(self._name, body)
        if self._operation.writes:
            return await bridge.write(work)
        seconds = self._plane.offer.recall_seconds
        return await bridge.read(work, seconds=seconds, gone=lambda: bodies.disconnected(request))

    def _tell(self, span: Span, reply: Reply) -> None:
        account, metrics = reply.account, self._service.metrics
        if reply.scope is not None:
            span.name_store(self._service.signer.pseudonym(reply.scope))
        if account.blocks is not None and account.bytes is not None:
            span.answered(range(account.blocks))
            metrics.recalled(account.blocks, account.bytes)
        if self._name == "retain":
            metrics.removed(account.removed)


_HEADERS: Final = {
    408: {"Connection": "close"},
    413: {"Connection": "close"},
    429: {"Retry-After": "1"},
    503: {"Retry-After": "1"},
}
_GONE: Final = 499
"""The status of a request whose client has hung up: nobody reads it but the log."""


async def _drain(request: Request) -> None:
    """Let a client that sends somewhat too much get to its end, so that it hears why not."""
    left = 2 * BODY_BYTES if bodies.declared(request) <= 2 * BODY_BYTES else 0
    with suppress(ClientDisconnect, TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for piece in request.stream():
                left -= len(piece)
                if left < 0:
                    return


def _response(reply: Reply) -> Response:
    kind = reply.kind if reply.body else None
    return Response(reply.body, reply.status, media_type=kind, headers=_HEADERS.get(reply.status))
