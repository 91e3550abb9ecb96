"""From a request to a verb: one endpoint for each operation of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scrubjay.domain.errors import NotFound
from scrubjay.domain.results import Outcome, Retained
from scrubjay.domain.text import key_name
from scrubjay.engine import Engine
from scrubjay.engine.quick import Short
from scrubjay.surfaces import wire
from scrubjay.surfaces.http import answers, bodies, preconditions, replays
from scrubjay.surfaces.http.answers import VERSION
from scrubjay.surfaces.http.problems import Problem
from scrubjay.surfaces.http.replays import HEADER, Name
from scrubjay.surfaces.http.service import Service, check_granted
from scrubjay.surfaces.http.tracing import Span
from scrubjay.surfaces.keys import KEYS
from scrubjay.surfaces.operations import BELOW, OPERATIONS, Call, Operation

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
    call: Call
    body: bytes = b""
    once: str | None = None
    """Its Idempotency-Key as the store is to know it."""


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
        state["rate"] = self._service.meter.spend(holder.id, operation)
        check_granted(holder, operation.grant)
        scope = self._service.scope_of(request, holder) if operation.scoped else KEYS
        call = Call(
            engine=self._service.engine, keys=self._service.keys, holder=holder, scope=scope
        )
        if operation.in_query:
            return await self._carry_out(_Asked(request=request, call=call))
        with self._service.room.share() as take:
            return await self._with_body(request, call, take)

    async def _with_body(self, request: Request, call: Call, take: bodies.See) -> Response:
        most, key = self._operation.most_bytes, request.headers.get(HEADER)
        if key is None or not self._operation.replayed:
            body = await bodies.read(request, most, take)
            return await self._carry_out(_Asked(request=request, call=call, body=body))
        path = request.url.path
        name = Name(holder=call.holder.id, scope=str(call.scope), path=path, key=key)
        hashed = self._service.signer.fingerprint()
        body = await bodies.read(request, most, take, hashed.update)
        once = self._service.signer.once(call.holder.id, path, key, hashed.digest())
        asked = _Asked(request=request, call=call, body=body, once=once)
        return await self._once(name, hashed.digest(), asked)

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
        with service.spans.around(operation, asked.call.scope, request.headers) as span:
            request.scope["state"]["trace_id"] = span.trace_id
            if operation.writes:
                return await service.bridge.write(
                    lambda: self._work(asked, span), heavy=operation.heavy
                )
            values = self._values(asked) if self._may_be_short(asked) else None
            short = None if values is None else self._short(asked.call, values)
            if short is not None:
                with short:
                    # It has the one verb of the engine that the operation asks for.
                    call = replace(asked.call, engine=cast(Engine, short))
                    return self._work(replace(asked, call=call), span, values)
            return await service.bridge.read(
                lambda: self._work(asked, span, values),
                gone=lambda: bodies.disconnected(request),
                heavy=operation.heavy,
            )

    def _may_be_short(self, asked: _Asked) -> bool:
        """Whether it is worth asking if this can be done right here, on the event loop."""
        is_known = self._service.is_ready(asked.call.scope)
        return self._operation.at_once is not None and is_known and len(asked.body) <= _SHORT

    def _short(self, call: Call, values: Values) -> Short | None:
        assert self._operation.at_once is not None
        return self._operation.at_once(call.engine, call.scope, values)

    # -- in the worker -------------------------------------------------------------------

    def _work(self, asked: _Asked, span: Span, values: Values | None = None) -> Response:
        """All that takes long: the body taken apart, the verb, and its answer put together."""
        operation, service, call = self._operation, self._service, asked.call
        values = self._values(asked) if values is None else values
        span.asked(values, once=asked.once)
        if operation.scoped and not operation.beyond:
            service.ready(call.scope, create=operation.creates)
        if operation.name == "destroy":
            service.leave(call.scope)
        result = operation.perform(call, values)
        if isinstance(result, Retained):
            _check_known(asked, result)
        span.answered(result)
        return answers.render(service, operation, asked.request, call, result)

    def _values(self, asked: _Asked) -> Values:
        operation, request = self._operation, asked.request
        if operation.in_query:
            given = self._form.model_validate(_query(request, self._wanted))
        else:
            given = self._form.model_validate_json(asked.body or b"{}")
        values = wire.chosen(given, self._wanted)
        values |= {name: request.path_params[name] for name in operation.path_names}
        if operation.paged:
            self._turn(asked.call, values)
        if asked.once is not None and operation.name in _KEYED and values.get("key") is None:
            values["key"] = asked.once
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


def _check_known(asked: _Asked, receipt: Retained) -> None:
    """Refuse what the store knows under this key as another request, and a create that was none."""
    if receipt.outcome is Outcome.STORED:
        return
    known = _key_of(asked.call, receipt) if asked.once is not None else None
    if known is not None and known == asked.once:
        return
    if known is not None and asked.once and key_name(known) == key_name(asked.once):
        raise replays.reused()
    if asked.request.headers.get("if-none-match", "").strip() == "*":
        raise Problem(412, "precondition_failed", "It is there already, or was forgotten once.")


def _key_of(call: Call, receipt: Retained) -> str | None:
    try:
        return call.engine.get(call.scope, receipt.id, actor=call.actor).key
    except NotFound:
        return None  # it was forgotten, or its time is over


def _query(request: Request, wanted: Mapping[str, tuple[Any, Any]]) -> Values:
    """The query as values; a parameter that may be repeated is a list."""
    found: Values = {}
    for name, value in request.query_params.multi_items():
        if name in wanted and wire.repeats(wanted[name][0]):
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found
