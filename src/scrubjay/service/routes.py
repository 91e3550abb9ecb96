"""From a request to a verb: one endpoint for each operation of the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from scrubjay import codec
from scrubjay.access import KEYS, Access
from scrubjay.model.errors import NotFound
from scrubjay.model.memory import Edition, Memory
from scrubjay.model.requests import Get
from scrubjay.model.results import Outcome, Page, Recalled, Retained
from scrubjay.model.scope import Scope
from scrubjay.model.text import key_name
from scrubjay.model.turns import Recorded
from scrubjay.service import bodies, replays
from scrubjay.service.problems import Problem
from scrubjay.service.replays import HEADER, Name
from scrubjay.service.rest import BELOW, OPERATIONS, Operation
from scrubjay.service.service import Service, check_granted
from scrubjay.service.tracing import Span
from scrubjay.verbs import perform

_COUNT: Final = "(0|[1-9][0-9]{0,17})"
_STRONG: Final = re.compile(rf'"{_COUNT}\.{_COUNT}"')


def etag(memory: Memory) -> str:
    """A strong tag: no two states of a memory have the same."""
    return f'"{memory.number}.{memory.version}"'


def unchanged(request: Request, memory: Memory) -> bool:
    """Whether the client says it has exactly this already."""
    given = request.headers.get("if-none-match")
    if request.method != "GET" or given is None:
        return False
    return given.strip() == "*" or memory.edition in _editions(given.replace("W/", ""))


def expected(request: Request) -> frozenset[Edition] | None:
    """The states the client's If-Match allows; None for whichever it is."""
    given = request.headers.get("if-match")
    if given is None:
        raise Problem(
            428,
            "precondition_required",
            "Say which version you have seen.",
            hint="Send its ETag as If-Match, or If-Match: * for whichever it is.",
        )
    return None if given.strip() == "*" else _editions(given)


def _editions(given: str) -> frozenset[Edition]:
    """The states of the strong tags in a list; what is no tag of ours means none."""
    found = (_STRONG.fullmatch(tag.strip()) for tag in given.split(","))
    return frozenset((int(tag[1]), int(tag[2])) for tag in found if tag)


VERSION: Final = "/v1"
PIECE: Final = 256 * 1024
_PLACES: Final = frozenset({"cursor", BELOW})


class Pieces(Response):
    """An answer that is sent in pieces, as the client takes them: between two others get a turn."""

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Send it."""
        if len(self.body) <= PIECE:
            await super().__call__(scope, receive, send)
            return
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        for at in range(0, len(self.body), PIECE):
            piece = bytes(self.body[at : at + PIECE])
            more = at + PIECE < len(self.body)
            await send({"type": "http.response.body", "body": piece, "more_body": more})


def as_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Pieces(
        msgspec.json.encode(content),
        status_code=status,
        media_type="application/json",
        headers=headers,
    )


def render(
    service: Service, operation: Operation, request: Request, scope: Scope, result: Any
) -> Response:
    """The answer of an operation, ready to be sent."""
    match result:
        case Recalled():
            blocks = [len(hit.memory.content.encode()) for hit in result]
            service.metrics.recalled(len(blocks), sum(blocks))
        case Memory():
            return _memory(request, operation, result)
        case Retained() | Recorded():
            return _written(service, operation, result)
        case Page():
            return _page(service, request, scope, result)
    content = codec.plain(result)
    return as_json(content if isinstance(content, dict) else {"data": content}, operation.status)


def _memory(request: Request, operation: Operation, memory: Memory) -> Response:
    headers = {"ETag": etag(memory)}
    if unchanged(request, memory):
        return Response(status_code=304, headers=headers)
    return as_json(codec.plain(memory), operation.status, headers)


def _written(service: Service, operation: Operation, receipt: Retained | Recorded) -> Response:
    service.metrics.add("memory_redacted_total", sum(receipt.redacted.values()))
    status = operation.status if receipt.outcome is Outcome.STORED else 200
    place = f"{VERSION}/memories/{receipt.id}" if isinstance(receipt, Retained) else None
    return as_json(codec.plain(receipt), status, {"Location": place} if place else None)


def _page(service: Service, request: Request, scope: Scope, page: Page) -> Response:
    headers, cursor = dict[str, str](), None
    if page.next is not None:
        cursor = service.signer.cursor(scope, page.next)
        kept = [pair for pair in request.query_params.multi_items() if pair[0] not in _PLACES]
        query = urlencode([*kept, ("cursor", cursor)])
        headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    content = {"data": codec.plain(page.memories), "next_cursor": cursor}
    return as_json(content, headers=headers)


_SHORT: Final = 2048
"""Bytes of a body that takes no time to read."""
_KEYED: Final = frozenset({"retain", "supersede"})
Values = dict[str, Any]


def routes(service: Service) -> list[Route]:
    """A route for every operation."""
    return [
        Route(
            VERSION + operation.path.replace("{session}", "{session:path}"),
            _Endpoint(service, operation).answer,
            methods=[operation.method],
            name=operation.name,
        )
        for operation in OPERATIONS
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One request, as far as it is known before its body is looked into."""

    request: Request
    reach: Access
    scope: Scope
    body: bytes = b""
    once: str | None = None
    """Its Idempotency-Key as the store is to know it."""


class _Endpoint:
    """One operation, ready to be asked for."""

    def __init__(self, service: Service, operation: Operation) -> None:
        self._service = service
        self._operation = operation
        self._wanted = operation.loose
        self._form = codec.form(operation.name, self._wanted)

    async def answer(self, request: Request) -> Response:
        """Check who asks, for what, then do it."""
        operation, state = self._operation, request.scope["state"]
        state["op"] = operation.name
        holder = await self._service.holder(request)
        state["key"] = holder.id
        state["rate"] = self._service.meter.spend(holder.id, operation)
        check_granted(holder, operation.grant)
        scope = self._service.scope_of(request, holder) if operation.verb.scoped else KEYS
        asked = _Asked(request=request, reach=self._service.access(holder), scope=scope)
        if operation.in_query:
            return await self._carry_out(asked)
        with self._service.room.share() as take:
            return await self._with_body(asked, take)

    async def _with_body(self, asked: _Asked, take: bodies.See) -> Response:
        request, holder = asked.request, asked.reach.holder.id
        most, key = self._operation.most_bytes, request.headers.get(HEADER)
        if key is None or not self._operation.replayed:
            body = await bodies.read(request, most, take)
            return await self._carry_out(replace(asked, body=body))
        path = request.url.path
        name = Name(holder=holder, scope=str(asked.scope), path=path, key=key)
        hashed = self._service.signer.fingerprint()
        body = await bodies.read(request, most, take, hashed.update)
        once = self._service.signer.once(holder, path, key, hashed.digest())
        return await self._once(name, hashed.digest(), replace(asked, body=body, once=once))

    async def _once(self, name: Name, fingerprint: bytes, asked: _Asked) -> Response:
        kept = self._service.replays
        if (known := kept.begin(name, fingerprint)) is not None:
            return known
        answer = None
        try:
            answer = await self._carry_out(asked)
        finally:
            kept.end(name, answer)
        return answer

    async def _carry_out(self, asked: _Asked) -> Response:
        operation, service, request = self._operation, self._service, asked.request
        with service.spans.around(operation, asked.scope, request.headers) as span:
            request.scope["state"]["trace_id"] = span.trace_id
            if operation.writes:
                return await service.bridge.write(
                    lambda: self._work(asked, span), heavy=operation.heavy
                )
            values = self._values(asked) if self._may_be_short(asked) else None
            short = None if values is None else asked.reach.at_once(asked.scope, values)
            if short is not None:
                with short:
                    reach = Access(short, service.keys, asked.reach.holder)
                    return self._work(replace(asked, reach=reach), span, values)
            return await service.bridge.read(
                lambda: self._work(asked, span, values),
                gone=lambda: bodies.disconnected(request),
                heavy=operation.heavy,
            )

    def _may_be_short(self, asked: _Asked) -> bool:
        """Whether it is worth asking if this can be done right here, on the event loop."""
        is_recall = self._operation.name == "recall"
        return is_recall and self._service.is_ready(asked.scope) and len(asked.body) <= _SHORT

    # -- in the worker -------------------------------------------------------------------

    def _work(self, asked: _Asked, span: Span, values: Values | None = None) -> Response:
        """All that takes long: the body taken apart, the verb, and its answer put together."""
        operation, service, scope = self._operation, self._service, asked.scope
        verb = operation.verb
        values = self._values(asked) if values is None else values
        span.asked(values, once=asked.once)
        if verb.scoped and not verb.beyond:
            service.ready(scope, create=verb.creates)
        if operation.name == "destroy":
            service.leave(scope)
        beside = {"expected": expected(asked.request)} if operation.conditional else {}
        result = perform(asked.reach, verb, scope, values, **beside)
        if isinstance(result, Retained):
            _check_known(asked, result)
        span.answered(result)
        return render(service, operation, asked.request, scope, result)

    def _values(self, asked: _Asked) -> Values:
        operation, request = self._operation, asked.request
        if operation.in_query:
            found = _query(request, self._wanted)
            given = msgspec.convert(found, self._form, strict=False)
        else:
            try:
                given = msgspec.json.decode(asked.body or b"{}", type=self._form)
            except RecursionError as error:
                raise Problem(400, "malformed", "The body is nested too deep.") from error
        values = codec.chosen(given, self._wanted)
        values |= {name: request.path_params[name] for name in operation.path_names}
        if operation.paged:
            self._turn(asked.scope, values)
        if asked.once is not None and operation.name in _KEYED and values.get("key") is None:
            values["key"] = asked.once
        return values

    def _turn(self, scope: Scope, values: Values) -> None:
        """Put the place a page begins at where the verb expects it."""
        cursor, below = values.pop("cursor", None), values.pop(BELOW, None)
        if cursor is not None:
            values["cursor"] = self._service.signer.place(scope, cursor)
        elif below is not None:
            values["cursor"] = below


def _check_known(asked: _Asked, receipt: Retained) -> None:
    """Refuse what the store knows under this key as another request, and a create that was none."""
    if receipt.outcome is Outcome.STORED:
        return
    known = _key_of(asked, receipt) if asked.once is not None else None
    if known is not None and known == asked.once:
        return
    if known is not None and asked.once and key_name(known) == key_name(asked.once):
        raise replays.reused()
    if asked.request.headers.get("if-none-match", "").strip() == "*":
        raise Problem(412, "precondition_failed", "It is there already, or was forgotten once.")


def _key_of(asked: _Asked, receipt: Retained) -> str | None:
    try:
        memory: Memory = asked.reach.get(asked.scope, Get(receipt.id), asked.reach.caller)
        return memory.key
    except NotFound:
        return None  # it was forgotten, or its time is over


def _query(request: Request, wanted: Mapping[str, tuple[Any, Any]]) -> Values:
    """The query as values; a parameter that may be repeated is a list."""
    found: Values = {}
    for name, value in request.query_params.multi_items():
        if name in wanted and codec.repeats(wanted[name][0]):
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found
