"""From a request to a verb and back: one endpoint for each operation of the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scrubjay.domain.memory import Memory
from scrubjay.domain.results import Outcome, Page, Recalled, Retained
from scrubjay.domain.turns import Recorded
from scrubjay.surfaces import wire
from scrubjay.surfaces.http import bodies, preconditions
from scrubjay.surfaces.http.replays import HEADER, Name
from scrubjay.surfaces.http.service import Service, check_granted
from scrubjay.surfaces.keys import KEYS
from scrubjay.surfaces.operations import BELOW, OPERATIONS, Call, Operation

VERSION: Final = "/v1"
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


class _Endpoint:
    """One operation, ready to be asked for."""

    def __init__(self, service: Service, operation: Operation) -> None:
        self._service = service
        self._operation = operation
        self._wanted = operation.loose
        self._form: type[BaseModel] = wire.form(operation.name, self._wanted)

    async def answer(self, request: Request) -> Response:
        """Check who asks, for what, then do it."""
        operation, state = self._operation, request.scope["state"]
        state["op"] = operation.name
        holder = await self._service.holder(request)
        state["key"] = holder.id
        self._service.meter.spend(holder.id, operation)
        check_granted(holder, operation.grant)
        scope = self._service.scope_of(request, holder) if operation.scoped else KEYS
        call = Call(
            engine=self._service.engine, keys=self._service.keys, holder=holder, scope=scope
        )
        body = b"" if operation.in_query else await bodies.read(request, operation.most_bytes)
        name = self._replay_name(request, call)
        if name is None:
            return await self._carry_out(request, call, body)
        return await self._once(name, body, lambda: self._carry_out(request, call, body))

    def _replay_name(self, request: Request, call: Call) -> Name | None:
        key = request.headers.get(HEADER)
        if key is None or not self._operation.replayed:
            return None
        return (call.holder.id, str(call.scope), request.url.path, key)

    async def _once(
        self, name: Name, body: bytes, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        replays = self._service.replays
        if (known := replays.begin(name, body)) is not None:
            return known
        answer = None
        try:
            answer = await work()
        finally:
            replays.end(name, answer)
        return answer

    async def _carry_out(self, request: Request, call: Call, body: bytes) -> Response:
        values = self._values(request, call, body)
        operation, bridge = self._operation, self._service.bridge
        work = self._work(call, values)
        pseudonym = self._service.signer.pseudonym(call.scope) if operation.span else ""
        with self._service.spans.around(operation, pseudonym) as span:
            request.scope["state"]["trace_id"] = span.trace_id
            if operation.writes:
                result = await bridge.write(work)
            else:
                result = await bridge.read(work, gone=lambda: bodies.disconnected(request))
            span.count(result)
        return self._render(request, call, result)

    # -- in ------------------------------------------------------------------------------

    def _values(self, request: Request, call: Call, body: bytes) -> Values:
        operation = self._operation
        if operation.in_query:
            given = self._form.model_validate(_query(request, self._wanted))
        else:
            given = self._form.model_validate_json(body or b"{}")
        values = wire.chosen(given, self._wanted)
        values |= {name: request.path_params[name] for name in operation.path_names}
        if operation.paged:
            self._turn(call, values)
        key = request.headers.get(HEADER)
        if key is not None and operation.name in _KEYED and values.get("key") is None:
            values["key"] = key
        if operation.conditional:
            values["expected"] = preconditions.expected(request)
        return values

    def _turn(self, call: Call, values: Values) -> None:
        """Put the place a page begins at where the verb expects it."""
        cursor, below = values.pop("cursor", None), values.pop(BELOW, None)
        if cursor is not None:
            values["cursor"] = self._service.signer.place(call.scope, cursor)
        elif below is not None:
            values["cursor"] = below

    def _work(self, call: Call, values: Values) -> Callable[[], Any]:
        operation, service = self._operation, self._service

        def work() -> Any:
            if operation.scoped and not operation.beyond:
                service.ready(call.scope, create=operation.creates)
            if operation.name == "destroy":
                service.leave(call.scope)
            return operation.perform(call, values)

        return work

    # -- out -----------------------------------------------------------------------------

    def _render(self, request: Request, call: Call, result: Any) -> Response:
        headers: dict[str, str] = {}
        status = self._operation.status
        if isinstance(result, Memory):
            headers["ETag"] = preconditions.etag(result)
            if preconditions.unchanged(request, result):
                return Response(status_code=304, headers=headers)
        if isinstance(result, Retained | Recorded):
            self._service.metrics.add("memory_redacted_total", sum(result.redacted.values()))
            status = status if result.outcome is Outcome.STORED else 200
        if isinstance(result, Retained):
            headers["Location"] = f"{VERSION}/memories/{result.id}"
        if isinstance(result, Recalled):
            self._service.metrics.add("memory_recall_hits_total", len(result))
        if isinstance(result, Page):
            content = self._page(request, call, result, headers)
        else:
            content = wire.plain(result)
        return as_json(content if isinstance(content, dict) else {"data": content}, status, headers)

    def _page(
        self, request: Request, call: Call, page: Page, headers: dict[str, str]
    ) -> dict[str, Any]:
        cursor = None
        if page.next is not None:
            cursor = self._service.signer.cursor(call.scope, page.next)
            kept = [pair for pair in request.query_params.multi_items() if pair[0] not in _PLACES]
            query = urlencode([*kept, ("cursor", cursor)])
            headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
        return {"data": wire.plain(page.memories), "next_cursor": cursor}


_PLACES: Final = frozenset({"cursor", BELOW})


def _query(request: Request, wanted: Mapping[str, tuple[Any, Any]]) -> Values:
    """The query as values; a parameter that may be repeated is a list."""
    found: Values = {}
    for name, value in request.query_params.multi_items():
        if name in wanted and wire.repeats(wanted[name][0]):
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found


def as_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(
        to_json(content),
        status_code=status,
        media_type="application/json",
        headers=headers,
    )
