"""The endpoint of every HTTP surface: authenticate → rate → body → span → bridge → error.

A surface subclasses `HttpEndpoint` for its credentials, limits and format. The gate turns
exceptions into problem+json, unless the surface has a format of its own. It is ASGI middleware
that every request passes: it checks Host and Origin against DNS rebinding and foreign web pages,
and adds the request id and security headers to every answer.
"""

from __future__ import annotations

import asyncio
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from scrubjay.access import Key
from scrubjay.bridge import Abandoned
from scrubjay.engine.scope.quota import allowed
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.service import problems
from scrubjay.service.problems import Problem
from scrubjay.service.rest import Operation
from scrubjay.service.service import Service, Spent
from scrubjay.service.telemetry import Metrics, Span

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


# -- the gate --------------------------------------------------------------------------------------

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
HEADER_BYTES: Final = 16 * 1024
QUIET: Final = frozenset({"healthz", "readyz", "metrics"})
_SANE_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MANNERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_HSTS: Final = (b"strict-transport-security", b"max-age=31536000")
_log = logging.getLogger(__name__)


class Gate:
    """ASGI middleware: checks headers, adds headers, logs, and turns errors into problem+json."""

    def __init__(
        self, app: ASGIApp, *, hosts: Iterable[str], clock: Clock, metrics: Metrics
    ) -> None:
        self.app = app
        self.hosts = LOOPBACK | {host.lower() for host in hosts}
        self.clock = clock
        self.metrics = metrics

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await _Passage(self, scope, receive, send).run()
        else:
            await send({"type": "websocket.close", "code": 1008})


class _Passage:
    """One request on its way through the gate."""

    def __init__(self, gate: Gate, scope: Connection, receive: Receive, send: Send) -> None:
        self._gate = gate
        self._scope = scope
        self._receive = receive
        self._send = send
        self._headers = dict(scope["headers"])
        self._state: dict[str, Any] = scope.setdefault("state", {})
        given = self._headers.get(b"x-request-id", b"").decode("latin-1")
        self._state["request_id"] = given if _SANE_ID.fullmatch(given) else gate.clock.new_id()
        self._state.setdefault("op", "other")
        self._status = 0

    async def run(self) -> None:
        """Handle the request; there is always an answer and a log line."""
        begun = self._gate.clock.monotonic()
        try:
            self._check()
            # A router that is part of an application raises what it refuses.
            self._scope["app"] = self._gate.app
            await self._gate.app(self._scope, self._receive, self._forward)
        except Abandoned:
            self._status = 499
        except HTTPException as error:
            await self._answer(problems.of_status(error.status_code, error.headers))
        except Exception as error:  # seam: the last one that can turn a mistake into an answer
            await self._answer(problems.of(error))
        finally:
            seconds, op = self._gate.clock.monotonic() - begun, self._state["op"]
            self._gate.metrics.ended(op, self._status, seconds)
            if op not in QUIET and _log.isEnabledFor(logging.INFO):
                _log.info("request", extra={**self._facts(), "ms": round(seconds * 1000, 2)})

    def _check(self) -> None:
        """Refuse headers that are too large or ambiguous, a foreign Host, another's Origin."""
        size = sum(len(name) + len(value) for name, value in self._scope["headers"])
        if size > HEADER_BYTES:
            raise problems.of_status(431)
        if {b"content-length", b"transfer-encoding"} <= self._headers.keys():
            # Two servers in a row may disagree where such a request ends and the next begins.
            raise Problem(
                400,
                "malformed",
                "A request has a Content-Length or a Transfer-Encoding, not both.",
                headers={"Connection": "close"},
            )
        if sum(name == b"host" for name, _ in self._scope["headers"]) > 1:
            raise Problem(
                400, "malformed", "A request has one Host.", headers={"Connection": "close"}
            )
        host = self._headers.get(b"host", b"").decode("latin-1").lower()
        # An address of IPv6 has colons of its own; it stands in brackets.
        name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
        if name not in self._gate.hosts:
            raise Problem(
                403,
                "host_not_allowed",
                "The service does not answer to this Host.",
                hint="Start it with --allow-host to add a name.",
            )
        origin = self._headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower().partition("://")[2] != host:
            raise Problem(
                403, "origin_not_allowed", "Requests from web pages of other origins are refused."
            )

    async def _answer(self, problem: Problem) -> None:
        if problem.code == "internal":
            _log.exception("request.failed", extra=self._facts())
        elif problem.status >= 500:
            told = self._facts() | {"code": problem.code} | problem.logged
            _log.warning("request.refused", extra=told)
        if self._status:
            raise RuntimeError("an answer was cut off by an error")  # the server hangs up
        body = msgspec.json.encode(problem.document(self._state["request_id"]))
        answer = Response(body, problem.status, problem.headers, problems.TYPE)
        await answer(self._scope, self._receive, self._forward)

    async def _forward(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            wanted = [*_MANNERS, (b"x-request-id", self._state["request_id"].encode())]
            if (rate := self._state.get("rate")) is not None:
                wanted += ((n.lower().encode(), v.encode()) for n, v in rate.headers().items())
            if self._scope.get("scheme") == "https":
                wanted.append(_HSTS)
            given = list(message.get("headers", ()))
            known = {name for name, _ in given}
            message["headers"] = given + [pair for pair in wanted if pair[0] not in known]
        await self._send(message)

    def _facts(self) -> dict[str, Any]:
        facts = {name: self._state.get(name) for name in ("request_id", "trace_id", "op", "key")}
        return {**{name: one for name, one in facts.items() if one}, "status": self._status}
