"""REST endpoints: one for each operation of the table."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as Asgi

from scrubjay import codec
from scrubjay.access import KEYS, Access, Key
from scrubjay.files import Spool
from scrubjay.model.batches import RetainedMany
from scrubjay.model.errors import Forbidden, InvalidRequest, NotFound, ScrubjayError
from scrubjay.model.memory import Edition, Memory
from scrubjay.model.overview import Changes
from scrubjay.model.pages import Page, cursor_at, place
from scrubjay.model.requests import Get
from scrubjay.model.results import Exported, Outcome, Recalled, Retained
from scrubjay.model.scope import Scope
from scrubjay.model.text import NAME_CHARS, key_name, refusal
from scrubjay.model.turns import Recorded
from scrubjay.service.endpoint import HttpEndpoint, Take, Visit, read_body
from scrubjay.service.problems import Problem, of_field
from scrubjay.service.rest import MEMORIES, OPERATIONS, Operation
from scrubjay.service.service import Service
from scrubjay.service.telemetry import Span
from scrubjay.verbs import perform

_REPEATED: Final = frozenset({Outcome.KNOWN, Outcome.FORGOTTEN})
_COUNT: Final = "(0|[1-9][0-9]{0,17})"
_STRONG: Final = re.compile(rf'"{_COUNT}\.{_COUNT}"')


def etag(memory: Memory) -> str:
    """Strong ETag: it names one edition of a memory."""
    return '"{}.{}"'.format(*memory.edition)


def unchanged(request: Request, memory: Memory) -> bool:
    """Whether If-None-Match of a GET names the present edition."""
    given = request.headers.get("if-none-match")
    if request.method != "GET" or given is None:
        return False
    return given.strip() == "*" or memory.edition in _editions(given.replace("W/", ""))


def expected(request: Request) -> frozenset[Edition] | None:
    """The editions that If-Match allows; None for any."""
    given = request.headers.get("if-match")
    if given is None:
        raise Problem(
            428,
            "precondition_required",
            "The header If-Match is required.",
            hint="Send the ETag that you have read, or If-Match: * for any edition.",
        )
    return None if given.strip() == "*" else _editions(given)


def _editions(given: str) -> frozenset[Edition]:
    """The editions of the ETags in a list; unknown tags are ignored."""
    found = (_STRONG.fullmatch(tag.strip()) for tag in given.split(","))
    return frozenset((int(tag[1]), int(tag[2])) for tag in found if tag)


VERSION: Final = "/v1"
PIECE: Final = 256 * 1024


class Pieces(Response):
    """A response sent in pieces, so that other requests run in between."""

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
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


def render(service: Service, operation: Operation, request: Request, result: Any) -> Response:
    """The answer of an operation, ready to be sent."""
    match result:
        case Recalled():
            blocks = [len(hit.memory.content.encode()) for hit in result]
            service.metrics.recalled(len(blocks), sum(blocks))
        case Memory():
            return _memory(request, operation, result)
        case Retained() | Recorded():
            return _written(service, operation, result)
        case RetainedMany():
            taken = (one.retained.redacted for one in result if one.retained is not None)
            service.metrics.add(
                "memory_redacted_total", sum(sum(found.values()) for found in taken)
            )
        case Page() if operation.linked:
            return _page(request, result)
    return as_json(codec.answer(result), operation.status)


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


def _page(request: Request, page: Page[Any]) -> Response:
    headers = dict[str, str]()
    if page.next_cursor is not None:
        kept = [pair for pair in request.query_params.multi_items() if pair[0] != "cursor"]
        query = urlencode([*kept, ("cursor", page.next_cursor)])
        headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    return as_json(codec.plain(page), headers=headers)


class Spooled(Response):
    """A file, such as an export, sent from a spool as the client takes it.

    What opens a sealed one is known to the caller and not in the answer.
    """

    def __init__(self, spool: Spool, name: str, **headers: str) -> None:
        told = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Length": str(spool.size),
        }
        kind = "application/json" if name.endswith(".json") else "application/octet-stream"
        super().__init__(headers=told | headers, media_type=kind)
        self._spool = spool

    async def __call__(self, _scope: Asgi, _receive: Receive, send: Send) -> None:
        """Send it."""
        with closing(self._spool):
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            for piece in self._spool:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


EVENTS: Final = "text/event-stream"
STREAM_SECONDS: Final = 20.0
"""How long a stream of events lasts at most; `Prefer: wait=5` asks for less."""
STREAMS: Final = 64
"""How many streams there are at most; a further one is refused."""
STREAMS_OF_KEY: Final = 16
"""How many of them one key may have, so that it leaves some to others."""
_POLL: Final = 0.25
_WAIT: Final = re.compile(r"\bwait=([0-9]{1,3})\b")
_SHORT: Final = 2048
"""Maximum body size of a request that runs on the event loop."""
HEADER: Final = "idempotency-key"
Values = dict[str, Any]


async def read_json(request: Request, most: int, take: Take) -> bytes:
    """The body of a request that is JSON; Problem 415 if it is something else."""
    body = await read_body(request, most, take)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json":
        raise Problem(415, "unsupported_media_type", "Send the body as application/json.")
    return body


def values_of(
    visit: Visit, form: type[msgspec.Struct], wanted: codec.Wanted, *, in_query: bool
) -> Values:
    """The fields of a request, from its body or its query; a Problem names the one at fault."""
    try:
        if in_query:
            given = msgspec.convert(_query(visit.request, wanted), form, strict=False)
        else:
            given = msgspec.json.decode(visit.body or b"{}", type=form)
        return codec.chosen(given, wanted)
    except msgspec.ValidationError as error:
        raise of_field(error, refusal(form, error)) from error
    except RecursionError as error:
        raise Problem(400, "malformed", "The body is nested too deep.") from error
    except UnicodeDecodeError as error:
        raise Problem(400, "malformed", "The body is not UTF-8.") from error


def routes(service: Service) -> list[Route]:
    """A route for every operation."""
    return [
        Route(
            VERSION + operation.path.replace("{session}", "{session:path}"),
            RestEndpoint(service, operation).run,
            methods=[operation.method],
            name=operation.name,
        )
        for operation in OPERATIONS
    ]


class RestEndpoint(HttpEndpoint[Response]):
    """One operation of the table under `/v1`: keys or tokens, JSON in, JSON out."""

    def __init__(self, service: Service, operation: Operation) -> None:
        super().__init__(service, operation)
        self._wanted = operation.loose
        self._form = codec.form(operation.name, self._wanted)
        self.streams = Counter[str]()
        """How many streams of events are open, by the ids of their keys."""

    async def authenticate(self, request: Request) -> Key:
        """Authenticate by API key or by a token of the issuer."""
        return await self.service.holder(request)

    def authorize(self, request: Request, holder: Key) -> Scope | None:
        """Check the grant; the scope is that of the header or of the key."""
        grant = self.operation.grant
        if grant is not None and grant not in holder.granted():
            raise Forbidden(f"This key lacks the grant {grant}.", hint="Use a key that has it.")
        if not self.operation.verb.scoped:
            return KEYS
        scope = self.service.scope_of(request, holder)
        self.service.access(holder).check_covered(scope, grant)
        return scope

    async def receive(self, request: Request, take: Take) -> bytes:
        """The body, if it is JSON; a query has none."""
        if self.operation.in_query:
            return b""
        return await read_json(request, self.operation.most_bytes, take)

    def at_once(self, visit: Visit, span: Span) -> Response | None:
        """Answer a short recall of an open scope on the event loop."""
        service, scope = self.service, visit.scope
        if self.operation.name != "recall" or scope is None or len(visit.body) > _SHORT:
            return None
        if not service.is_ready(scope):
            return None
        values = self._values(visit)
        short = service.access(visit.holder).at_once(scope, values)
        if short is None:
            return None
        with short:
            reach = Access(short, service.keys, visit.holder)
            return self._work(visit, span, reach, values)

    def perform(self, visit: Visit, span: Span) -> Response:
        """Decode the body, perform the verb, encode the answer."""
        if self.operation.name == "follow" and EVENTS in visit.request.headers.get("accept", ""):
            self.service.ready(visit.scope or KEYS, create=False)
            return EventStream(self, visit, self._values(visit))
        return self._work(visit, span, self.service.access(visit.holder), self._values(visit))

    def _work(self, visit: Visit, span: Span, reach: Access, values: Values) -> Response:
        operation, service, scope = self.operation, self.service, visit.scope or KEYS
        verb = operation.verb
        once = self._once(visit)
        if once is not None and values.get("key") is None:
            values["key"] = once
        span.asked(values, once=once)
        if verb.scoped and not verb.beyond:
            service.ready(scope, create=verb.creates)
        if operation.name == "destroy":
            service.leave(scope)
        service.check_one_process(operation.name)
        if operation.name == "export" and values.get("sealed") and not values.get("passphrase"):
            raise InvalidRequest(
                "A sealed export needs a passphrase.", hint="The answer is a file without its key."
            )
        beside: dict[str, Any] = {}
        if operation.conditional:
            beside["expected"] = expected(visit.request)
        if operation.gives is Exported:
            beside["deliver"] = (spool := Spool(service.clock.random)).fill
        result = perform(reach, verb, scope, values, **beside)
        if (following := getattr(result, "next_cursor", None)) is not None:
            signed = service.signer.cursor(scope, verb.name, following)
            result = replace(result, next_cursor=signed)
        if isinstance(result, Retained) and result.outcome in _REPEATED:
            _check_known(visit, reach, result, once)
        span.answered(result)
        if operation.gives is Exported:
            name = f"scrubjay-export.{'bundle' if values.get('sealed') else 'json'}"
            return Spooled(spool, name, **{MEMORIES: str(result.memories)})
        return render(service, operation, visit.request, result)

    def _once(self, visit: Visit) -> str | None:
        """The memory's key from the Idempotency-Key and a digest of the body."""
        key = visit.request.headers.get(HEADER)
        if key is None or not self.operation.keyed:
            return None
        if not 1 <= len(key) <= NAME_CHARS:
            raise Problem(400, "malformed", f"An Idempotency-Key has 1 to {NAME_CHARS} characters.")
        path = visit.request.url.path
        return self.service.signer.once(visit.holder.id, path, key, visit.body)

    def _values(self, visit: Visit) -> Values:
        operation, request = self.operation, visit.request
        values = values_of(visit, self._form, self._wanted, in_query=operation.in_query)
        values |= {name: request.path_params[name] for name in operation.path_names}
        last = request.headers.get("last-event-id") if operation.name == "follow" else None
        if last is not None:
            values["cursor"] = last.strip()
        if (cursor := values.get("cursor")) is not None:
            place = self.service.signer.place(visit.scope or KEYS, operation.name, cursor)
            values["cursor"] = place
        return values


class EventStream(Response):
    """The change feed as server-sent events, for a bounded time; Last-Event-ID resumes it.

    The key is checked again before each look, so that a revoked one sees no further change. It ends
    with its connection, so that one who comes and goes takes no place from others.
    """

    def __init__(self, endpoint: RestEndpoint, visit: Visit, values: Values) -> None:
        super().__init__(media_type=EVENTS, headers={"Cache-Control": "no-store"})
        self._endpoint = endpoint
        self._visit = visit
        self._values = values

    async def __call__(self, _scope: Asgi, receive: Receive, send: Send) -> None:
        """Send the changes as they come."""
        streams, key = self._endpoint.streams, self._visit.holder.id
        if streams[key] >= STREAMS_OF_KEY or streams.total() >= STREAMS:
            most = f"A key has {STREAMS_OF_KEY} streams at most, and all together {STREAMS}."
            raise Problem(503, "busy", most)
        streams[key] += 1
        gone = asyncio.create_task(_gone(receive))
        wait = _WAIT.search(self._visit.request.headers.get("prefer", ""))
        seconds = min(float(wait[1]) if wait else STREAM_SECONDS, STREAM_SECONDS)
        headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            async with asyncio.timeout(seconds):
                while not gone.done():
                    told = await self._look()
                    if body := b"".join(self._events(told)):
                        await send({"type": "http.response.body", "body": body, "more_body": True})
                    self._values["cursor"] = told.next_cursor
                    if not told.changes:
                        await asyncio.wait({gone}, timeout=_POLL)
        except (TimeoutError, ScrubjayError, Problem):
            pass  # the client asks again, and is then told what is wrong
        finally:
            gone.cancel()
            streams[key] -= 1
            if not streams[key]:
                del streams[key]
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _look(self) -> Changes:
        endpoint, request = self._endpoint, self._visit.request
        holder = await endpoint.authenticate(request)
        scope = endpoint.authorize(request, holder) or KEYS
        service, verb = endpoint.service, endpoint.operation.verb
        told: Changes = await service.bridge.read(
            lambda: perform(service.access(holder), verb, scope, self._values)
        )
        return told

    def _events(self, told: Changes) -> Iterator[bytes]:
        if told.anew:
            yield b"event: reset\ndata: {}\n\n"
        signer, scope = self._endpoint.service.signer, self._visit.scope or KEYS
        _, complete = place(told.next_cursor, 2)
        for one in told.changes:
            id = signer.cursor(scope, "follow", cursor_at(one.seq, complete))
            data = codec.to_json(one)
            yield b"id: %s\nevent: change\ndata: %s\n\n" % (id.encode(), data)


async def _gone(receive: Receive) -> None:
    """Wait until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _check_known(visit: Visit, reach: Access, receipt: Retained, once: str | None) -> None:
    """Refuse a reused Idempotency-Key, and a failed If-None-Match: *."""
    if once is not None:
        try:
            known = reach.get(visit.scope, Get(receipt.id), reach.caller).key
        except NotFound:
            known = None  # it was forgotten, or its time is over
        if known == once:
            return
        if known is not None and key_name(known) == key_name(once):
            detail = "This Idempotency-Key was used with another request."
            raise Problem(422, "idempotency_key_reused", detail)
    if visit.request.headers.get("if-none-match", "").strip() == "*":
        raise Problem(412, "precondition_failed", "The id or key exists already, or was forgotten.")


def _query(request: Request, wanted: Mapping[str, tuple[Any, Any]]) -> Values:
    """Query string as values: a repeatable parameter is a list, an object is written as JSON."""
    found: Values = {}
    for name, value in request.query_params.multi_items():
        if name in wanted and codec.repeats(wanted[name][0]):
            found.setdefault(name, []).append(value)
        elif name in wanted and codec.is_object(wanted[name][0]):
            found[name] = msgspec.Raw(value)
        else:
            found[name] = value
    return found
