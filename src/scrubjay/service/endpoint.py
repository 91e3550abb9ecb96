"""The endpoint of every HTTP surface: authenticate → rate → body → span → bridge → error.

A surface subclasses `HttpEndpoint` for its credentials, its limits and its words. What is raised
on the way becomes problem+json at the gate, unless the surface says it in words of its own.
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
from scrubjay.model.scope import Scope
from scrubjay.service.limits import Spent
from scrubjay.service.problems import Problem
from scrubjay.service.rest import Operation
from scrubjay.service.service import Service
from scrubjay.service.tracing import Span

Result = TypeVar("Result")
Take = Callable[[bytes], object]
"""Takes a piece of a body of the room for all of them; a Problem if there is none left."""
BODY_SECONDS: Final = 60.0
"""How long a body may take to arrive."""
_STEP: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request that was let in: who asks, about whose memory, and its body."""

    request: Request
    holder: Key
    scope: Scope | None
    """None where no scope is asked about, or only the body names it."""
    body: bytes


class HttpEndpoint(ABC, Generic[Result]):
    """One operation at one path. `perform` runs on a thread, everything else on the event loop."""

    patience = 0.0
    """How many seconds a write waits for a token of its rate before it is refused."""
    seconds: float | None = None
    """The deadline of a read; None for that of the bridge."""

    def __init__(self, service: Service, operation: Operation, *, name: str | None = None) -> None:
        self.service = service
        self.operation = operation
        self.name = name or operation.name
        """Its name in log lines and counters."""

    async def run(self, request: Request) -> Result:
        """What `perform` gives for a request, or whatever refuses it."""

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
                        lambda: self.perform(visit, span), heavy=operation.heavy
                    )
                if (done := self.at_once(visit, span)) is not None:
                    return done
                return await bridge.read(
                    lambda: self.perform(visit, span),
                    seconds=self.seconds,
                    gone=disconnected,
                    heavy=operation.heavy,
                )

    async def _spend(self, holder: Key) -> Spent | None:
        """Take a token of the rate; a write may wait for one, a read has no time for it."""
        waited = 0.0
        while True:
            try:
                return self.service.meter.spend(holder.id, self.operation)
            except Problem:
                if not self.operation.writes or waited >= self.patience:
                    raise
            await asyncio.sleep(_STEP)
            waited += _STEP

    # -- what a surface says ---------------------------------------------------------------

    @abstractmethod
    async def authenticate(self, request: Request) -> Key:
        """Who asks; raises if nobody who may."""

    def authorize(self, _request: Request, _holder: Key) -> Scope | None:
        """The scope it is about, if that is known before the body; raises what is not granted."""
        return None

    @abstractmethod
    async def receive(self, request: Request, take: Take) -> bytes:
        """The body."""

    def at_once(self, _visit: Visit, _span: Span) -> Result | None:
        """The result of a read so short that no thread is worth its while; None for any other."""
        return None

    @abstractmethod
    def perform(self, visit: Visit, span: Span) -> Result:
        """All that takes long: decode the body, carry out the verb, encode its result."""


# -- bodies ---------------------------------------------------------------------------------


def declared(request: Request) -> int:
    """How long the body is said to be; 0 if nothing sound is said."""
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
