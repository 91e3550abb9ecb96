"""The plane: recall, retain and forget in the format of the proxy of a pod, and its HTTP routes."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import threading
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from typing import Any, Final, Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from scrubjay.access import PODS, Grant, Key
from scrubjay.bridge import Abandoned, TooLate
from scrubjay.conversation.injection import Block, Mixer, fitted
from scrubjay.engine import Kernel
from scrubjay.model.errors import Forbidden, NotFound, ScrubjayError
from scrubjay.model.origin import Actor
from scrubjay.model.requests import AGENT, Caller, Forget, Recall
from scrubjay.model.results import Outcome
from scrubjay.model.scope import Scope
from scrubjay.service import problems
from scrubjay.service.endpoint import HttpEndpoint, Take, Visit, declared, read_body
from scrubjay.service.problems import Problem
from scrubjay.service.rest import BY_NAME
from scrubjay.service.service import Service
from scrubjay.service.telemetry import Span
from scrubjay.surfaces.clawdapus import descriptor, entries
from scrubjay.surfaces.clawdapus.descriptor import PlaneOffer
from scrubjay.surfaces.clawdapus.entries import EntryRefused

# -- the plane ------------------------------------------------------------------------------------


BODY_BYTES: Final = 8 * 1024 * 1024
"""Maximum size of a body: the longest line of a history."""
WARM_EVERY: Final = 128
"""Number of retains after which the index of a scope is updated in advance."""
GONE: Final = 499
"""Status in the log of a request whose client has disconnected."""
BLOCKS: Final = 8
"""The most blocks a proxy keeps."""
TEXT_BYTES: Final = 8_192
"""The most bytes of text a proxy keeps."""
ANSWER_BYTES: Final = 16_384
"""Size of an answer over which a proxy discards it whole."""
_WORDS: Final = {
    "episode": "episode_summary",
    "feeling": "affect_marker",
    "recent": "recent_turn",
    "routine": "noise_counter",
}
"""The pod's names of kinds of blocks; other kinds keep ours."""
_STATUS: Final = {422: 400, 507: 503}
"""Status codes that the proxy of a pod expects in place of ours."""
_log = logging.getLogger(__name__)


class Ended(StrEnum):
    """Outcome of an operation."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    """It is not offered here, or there was nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: status, body, and the numbers for log and metrics."""

    status: int = 200
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    scope: Scope | None = None
    """The scope of the request, if known."""
    ended: Ended = Ended.SUCCEEDED
    blocks: int | None = None
    """Number of blocks of a recall."""
    bytes: int | None = None
    """Bytes of their text."""
    removed: int = 0
    """Removed secrets of a retain, erased rows of a forget."""

    def log(self, operation: str, seconds: float) -> None:
        """Log the event `memory_op`, in the format of the proxy: numbers, never content."""
        facts: dict[str, Any] = {
            "type": "memory_op",
            "memory_service": "scrubjay",
            "memory_op": operation,
            "memory_status": self.ended.value,
            "intervention": None,
        }
        if self.blocks is not None:
            facts |= {"memory_blocks": self.blocks, "memory_bytes": self.bytes}
        latency = 0 if self.ended is Ended.SKIPPED else round(seconds * 1000)
        more = {
            "memory_removed": self.removed,
            "latency_ms": latency,
            "status_code": self.status,
        }
        facts |= {name: number for name, number in more.items() if number}
        _log.info("memory_op", extra=facts)


class PlaneRefused(Exception):
    """A request refused before its body is read: a status and a line of text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = str(status)


def refusal(error: Exception) -> Reply:
    """The answer to an error, as a line of text; raises unexpected errors."""
    status, ended = 400, Ended.FAILED
    match error:
        case EntryRefused():
            text = str(error)
        case PlaneRefused():
            status, text = error.status, str(error)
            ended = Ended.SKIPPED if status == 404 else Ended.FAILED
        case TooLate():
            status, text, ended = 503, "recall took too long", Ended.TIMED_OUT
        case Abandoned():
            status, text = GONE, ""
        case problems.Problem() | ScrubjayError():
            problem = problems.of(error)
            status = _STATUS.get(problem.status, problem.status)
            text = f"{problem.code}: {problem.detail}"
        case _:
            raise error
    return Reply(status=status, body=f"{text}\n".encode(), ended=ended)


class ScopeReady(Protocol):
    """Opens a scope; NotFound if it is missing and not to be created."""

    def __call__(self, scope: Scope, *, create: bool) -> None:
        """Look, or make it."""


class Plane:
    """All operations of the plane on one engine; thread-safe."""

    def __init__(
        self, engine: Kernel, offer: PlaneOffer | None = None, *, ready: ScopeReady | None = None
    ) -> None:
        self._engine = engine
        self.offer = offer or PlaneOffer()
        self._ready = ready or engine.open
        self._mutex = threading.Lock()
        self._since: Counter[Scope] = Counter()

    def check(self, operation: str, method: str, authorization: str | None) -> None:
        """Refuse an operation that is not offered, a wrong method, or a wrong token."""
        if operation not in self.offer.paths:
            raise PlaneRefused(404, "not found")
        if method != "POST":
            raise PlaneRefused(405, "method not allowed")
        if self.offer.token is None:
            return
        kind, _, given = (authorization or "").partition(" ")
        wanted = self.offer.token.encode()
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), wanted)
        if kind.lower() != "bearer" or not same:
            raise PlaneRefused(401, "unauthorized")

    def at_once(self, raw: bytes, seconds: float) -> Reply | None:
        """Answer a recall on the event loop; None if it would take long or wait for a lock."""
        question = entries.asked(self._decoded("recall", raw))
        short = self._engine.at_once(question.scope)
        if short is None:
            return None
        with short:
            found = Mixer(self._engine, question, seconds, short).blocks(BLOCKS)
        return replace(render(found), scope=question.scope)

    def answer(self, operation: str, raw: bytes) -> Reply:
        """Answer an operation; errors become answers, too."""
        try:
            return self.perform(operation, raw)
        except (EntryRefused, ScrubjayError) as error:
            return refusal(error)

    def perform(self, operation: str, raw: bytes, seconds: float | None = None) -> Reply:
        """Answer an operation; raises its errors. A recall has what is left of its `seconds`."""
        body = self._decoded(operation, raw)
        if operation == "recall":
            return self.recall(body, self.offer.recall_seconds if seconds is None else seconds)
        return self.retain(body) if operation == "retain" else self.forget(body)

    def _decoded(self, operation: str, raw: bytes) -> entries.Fields:
        body = entries.decode(raw, operation)
        pod = body.get("pod")
        named = pod if isinstance(pod, str) else ""
        if self.offer.pods is not None and named not in self.offer.pods:
            raise Forbidden("This pod is not served here.")  # the token opens no other one
        return body

    def recall(self, body: entries.Fields, seconds: float) -> Reply:
        """Blocks for the prompt; none for an unknown agent."""
        question, blocks = entries.asked(body), list[Block]()
        with suppress(NotFound):
            self._ready(question.scope, create=False)
            blocks = Mixer(self._engine, question, seconds, None).blocks(BLOCKS)
        return replace(render(blocks), scope=question.scope)

    def retain(self, body: entries.Fields) -> Reply:
        """Record the turn of a history entry, once."""
        told = entries.told(body)
        if told.record is None or told.record.silent:  # such as an image alone
            return Reply(status=202, scope=told.scope, ended=Ended.SKIPPED)
        done = self._engine.record(told.scope, told.record)
        if done.outcome is not Outcome.STORED:
            return Reply(status=202, scope=told.scope)
        # The index follows a long replay, so that the first recall after it is in time.
        with self._mutex:
            self._since[told.scope] += 1
            is_due = self._since[told.scope] % WARM_EVERY == 0
        if is_due:
            # The turn is durable: what goes wrong here will be told to whoever recalls.
            with suppress(ScrubjayError):
                anything = Recall("anything", limit=1)
                self._engine.recall(told.scope, anything, AGENT, local=True)
        removed = told.removed + sum(done.redacted.values())
        return Reply(status=202, scope=told.scope, removed=removed)

    def forget(self, body: entries.Fields) -> Reply:
        """Erase entries and what was derived from them, also before they were seen."""
        scope, ids = entries.dropped(body)
        request, caller = Forget(ids, unseen=True), Caller(actor=Actor.OPERATOR)
        receipt = self._engine.forget(scope, request, caller, turns_only=True)
        return Reply(status=204, scope=scope, removed=receipt.erased)


def render(blocks: Sequence[Block]) -> Reply:
    """The answer with these blocks, within the limits of the proxy."""
    kept = fitted(blocks, most=BLOCKS, most_bytes=TEXT_BYTES)
    while True:
        told = [_fields(block) for block in kept]
        body = json.dumps({"memories": told}, ensure_ascii=False, separators=(",", ":")).encode()
        if len(body) <= ANSWER_BYTES:
            break
        kept.pop()
    return Reply(
        body=body,
        kind="application/json",
        blocks=len(kept),
        bytes=sum(len(block.text.encode()) for block in kept),
        removed=len(blocks) - len(kept),
    )


def _fields(block: Block) -> dict[str, Any]:
    """The block as the proxy reads it; what is empty is left out."""
    kind = _WORDS.get(block.kind, block.kind)
    source = "scrubjay" if block.origin is None else f"scrubjay/{block.origin}"
    found: dict[str, Any] = {"text": block.text, "kind": kind, "source": source}
    if block.score:
        found["score"] = round(block.score, 4)
    if block.at:  # in the zone it is told in
        found["ts"] = block.at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return found


def unpacked(raw: bytes, encoding: str | None) -> bytes:
    """Decompress a body."""
    if (encoding or "identity").strip().lower() != "gzip":
        return raw
    reader = zlib.decompressobj(wbits=31)
    try:
        body = reader.decompress(raw, BODY_BYTES + 1)
    except zlib.error as error:
        raise PlaneRefused(400, "decode request: it is not gzip") from error
    if len(body) > BODY_BYTES:
        raise PlaneRefused(413, f"request body exceeds {BODY_BYTES} bytes")
    if not reader.eof:
        raise PlaneRefused(400, "decode request: it is cut short")
    return body


# -- its HTTP routes ------------------------------------------------------------------------------


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
                return _response(refusal(PlaneRefused(405, "method not allowed")))
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
            reply = refusal(error)
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
        body = unpacked(raw, request.headers.get("content-encoding"))
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
