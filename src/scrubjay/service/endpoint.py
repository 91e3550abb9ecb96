"""The endpoint of every HTTP surface: authenticate → rate → body → span → bridge → error.

A surface subclasses `HttpEndpoint` for its credentials, limits and format. The gate turns
exceptions into problem+json, unless the surface has a format of its own.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from starlette.requests import ClientDisconnect, Request

from scrubjay.access import Key
from scrubjay.bridge import Abandoned
from scrubjay.engine.scope.quota import allowed
from scrubjay.model.scope import Scope
from scrubjay.service.problems import Problem
from scrubjay.service.rates import Spent
from scrubjay.service.rest import Operation
from scrubjay.service.service import Service
from scrubjay.service.telemetry import Span

Result = TypeVar("Result")
Take = Callable[[bytes], object]
"""Reserves memory for a piece of a body; a Problem if the limit of all bodies is reached."""
BODY_SECONDS: Final = 60.0
"""Timeout for a body to arrive."""
_STEP: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One authorized request: the holder of the key, the scope, and the body."""

    request: Request
    holder: Key
    scope: Scope | None
    """None if the request has no scope, or only the body names it."""
    body: bytes


class HttpEndpoint(ABC, Generic[Result]):
    """One operation at one path. `perform` runs on a thread, everything else on the event loop."""

    patience = 0.0
    """How many seconds a write waits for its rate limit before it is refused."""
    seconds: float | None = None
    """The deadline of a read; None for that of the bridge."""

    def __init__(self, service: Service, operation: Operation, *, name: str | None = None) -> None:
        self.service = service
        self.operation = operation
        self.name = name or operation.name
        """Its name in logs and metrics."""

    async def run(self, request: Request) -> Result:
        """Run one request through all steps; returns the result of `perform`."""

        async def disconnected() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        bridge, operation, state = self.service.bridge, self.operation, request.scope["state"]
        state["op"] = self.name
        holder = await self.authenticate(request)
        state["key"] = holder.id
        state["rate"] = await self._spend(holder)
        scope = self.authorize(request, holder)
        with self.service.room.share() as take:
            body = await self.receive(request, take)
            visit = Visit(request=request, holder=holder, scope=scope, body=body)
            with self.service.spans.around(operation, scope, request.headers) as span:
                state["trace_id"] = span.trace_id
                if operation.writes:
                    return await bridge.write(
                        lambda: self._within_quota(visit, span), heavy=operation.heavy
                    )
                if (done := self.at_once(visit, span)) is not None:
                    return done
                return await bridge.read(
                    lambda: self.perform(visit, span),
                    seconds=self.seconds,
                    gone=disconnected,
                    heavy=operation.heavy,
                )

    def _within_quota(self, visit: Visit, span: Span) -> Result:
        with allowed(visit.holder.quota):
            return self.perform(visit, span)

    async def _spend(self, holder: Key) -> Spent | None:
        """Take a token from the rate limit bucket; a write may wait for one, a read does not."""
        waited = 0.0
        while True:
            try:
                return await self.service.meter.spend(
                    holder.id, self.operation, self.service.bridge
                )
            except Problem:
                if not self.operation.writes or waited >= self.patience:
                    raise
            await asyncio.sleep(_STEP)
            waited += _STEP

    # -- what a surface says ---------------------------------------------------------------

    @abstractmethod
    async def authenticate(self, request: Request) -> Key:
        """Authenticate the caller; raises if the credentials are not valid."""

    def authorize(self, _request: Request, _holder: Key) -> Scope | None:
        """Authorize, and return the scope if it is known before the body; raises Forbidden."""
        return None

    @abstractmethod
    async def receive(self, request: Request, take: Take) -> bytes:
        """The body."""

    def at_once(self, _visit: Visit, _span: Span) -> Result | None:
        """The result of a short read, computed on the event loop; None to use a thread."""
        return None

    @abstractmethod
    def perform(self, visit: Visit, span: Span) -> Result:
        """Decode the body, perform the verb, encode its result; runs in a thread."""


# -- bodies ---------------------------------------------------------------------------------


def declared(request: Request) -> int:
    """Content-Length of the request; 0 if it is missing or malformed."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() and len(length) < 20 else 0


async def read_body(
    request: Request, most: int, take: Take, *, seconds: float = BODY_SECONDS
) -> bytes:
    """The body; a Problem as soon as it is too large, or if it does not arrive in time."""
    pieces, size = list[bytes](), 0
    if declared(request) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                size += len(piece)
                if size > most:
                    raise _too_large(most)
                take(piece)
                pieces.append(piece)
    except ClientDisconnect as error:
        raise Abandoned from error
    except TimeoutError as error:
        detail = "The body did not arrive in time."
        raise Problem(408, "too_slow", detail, headers={"Connection": "close"}) from error
    return b"".join(pieces)


def _too_large(most: int) -> Problem:
    detail = f"The body may have at most {most:,} bytes."
    return Problem(413, "too_large", detail, headers={"Connection": "close"})
