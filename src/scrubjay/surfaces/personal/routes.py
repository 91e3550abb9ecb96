"""Personal memory over HTTP, under `/v1/personal`: for the API keys and tokens of the service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any, Final

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from scrubjay import codec
from scrubjay.access import Key
from scrubjay.bootstrap import Courier
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.scope import Scope
from scrubjay.service.endpoint import HttpEndpoint, Take, Visit
from scrubjay.service.outbox import Outbox, outbox_of
from scrubjay.service.rest import BY_NAME
from scrubjay.service.routes import VERSION, Spooled, as_json, read_json, values_of
from scrubjay.service.service import SCOPE_HEADER, Service
from scrubjay.service.telemetry import Span
from scrubjay.surfaces.personal.exports import Exports, Reach
from scrubjay.surfaces.personal.memory import Personal
from scrubjay.surfaces.personal.operations import OPERATIONS, PersonalOperation
from scrubjay.surfaces.personal.register import Register

_log = logging.getLogger(__name__)
EXPORT_LINKS: Final = b"personal-export"
"""What the key that signs links is for."""
_OUTBOX_SECONDS: Final = 10.0
"""How often it is looked for what recipients are to be told."""
PATH: Final = f"{VERSION}/personal"
_ROUNDS: Final = 60
"""Rounds of the worker between two looks for requests that are due."""


class PersonalPaths:
    """The paths of personal memory, to be mounted in the service."""

    def __init__(
        self,
        *,
        seconds: float = 1.0,
        reach: Reach = lambda _: None,
        couriers: Mapping[str, Courier] | None = None,
    ) -> None:
        self._seconds = seconds
        self._reach = reach
        self._couriers = couriers or {}

    def routes(self, service: Service) -> Sequence[BaseRoute]:
        """A route for each operation, and one for the files of exports."""

        async def file(request: Request) -> Response:
            return await self._file(service, request)

        outbox = self._outbox(service)
        made = [Route(f"{PATH}/exports/{{id}}/file", file, methods=["GET"])]
        for operation in OPERATIONS:
            method, path = operation.http
            endpoint = PersonalEndpoint(service, operation, outbox)
            made.append(Route(PATH + path, endpoint.run, methods=[method]))
        return made

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncIterator[None]:
        """Lifespan: one worker of the service makes the exports that wait."""
        task = asyncio.create_task(self._work(service))
        try:
            yield
        finally:
            task.cancel()

    def _exports(self, service: Service) -> Exports:
        secret = service.signer.key(EXPORT_LINKS)
        return Exports(service.engine, service.clock, secret, reach=self._reach)

    def _outbox(self, service: Service) -> Outbox:
        return outbox_of(service.engine, service.clock, self._couriers)

    async def _work(self, service: Service) -> None:
        exports, outbox, again = self._exports(service), self._outbox(service), 0.0
        rounds = count()
        while service.options.worker == 0:
            try:
                await service.bridge.write(exports.work, heavy=True)
                if next(rounds) % _ROUNDS == 0:  # it reads the requests of everybody
                    await service.bridge.read(lambda: _tell_due(service))
                if outbox.recipients and service.clock.monotonic() >= again:
                    waiting = await service.bridge.write(outbox.send, heavy=True)
                    service.metrics.show("personal_notices_waiting", waiting)
                    again = service.clock.monotonic() + _OUTBOX_SECONDS
            except Exception:  # seam: what goes wrong with one job must not end all later ones
                _log.exception("personal.work_failed")
            await asyncio.sleep(self._seconds)

    async def _file(self, service: Service, request: Request) -> Response:
        """The sealed file behind a signed link, which is all that is asked for."""
        request.scope["state"]["op"] = "personal_file"
        asked = (request.query_params.get(name, "") for name in ("until", "signature"))
        take = partial(self._exports(service).take, request.path_params["id"], *asked)
        return Spooled(await service.bridge.write(take), "memory.age")


class PersonalEndpoint(HttpEndpoint[Response]):
    """One operation: keys or tokens, JSON in, JSON out."""

    def __init__(self, service: Service, operation: PersonalOperation, outbox: Outbox) -> None:
        super().__init__(service, BY_NAME[operation.verb], name=f"personal_{operation.name}")
        self.told = operation
        self.outbox = outbox
        wanted, path = codec.wanted(operation.request), operation.http[1]
        self._wanted = {name: one for name, one in wanted.items() if f"{{{name}}}" not in path}
        self._form = codec.form(f"Personal{operation.name.title()}", self._wanted)
        self._in_query = operation.http[0] == "GET"

    async def authenticate(self, request: Request) -> Key:
        """Authenticate by API key or by a token of the issuer."""
        return await self.service.holder(request)

    def authorize(self, request: Request, holder: Key) -> Scope | None:
        """The scope of the header or of the key; None if the body has to name it."""
        if request.headers.get(SCOPE_HEADER) or holder.only_scope is not None:
            return self.service.scope_of(request, holder)
        return None

    async def receive(self, request: Request, take: Take) -> bytes:
        """The body, if it is JSON; a query has none."""
        return b"" if self._in_query else await read_json(request, self.operation.most_bytes, take)

    def perform(self, visit: Visit, span: Span) -> Response:
        """Decode the body, perform the operation, encode its answer."""
        values = values_of(visit, self._form, self._wanted, in_query=self._in_query)
        scope = visit.scope or _named(values)
        access = self.service.access(visit.holder)
        access.check_covered(scope)
        if (cursor := values.get("cursor")) is not None:
            values["cursor"] = self.service.signer.place(scope, self.name, cursor)
        values |= visit.request.path_params
        asked: Any = codec.request(self.told.request, values)
        service = self.service
        whose = Personal(
            service.engine,
            access,
            scope,
            service.clock,
            ready=service.ready,
            link_secret=service.signer.key(EXPORT_LINKS),
            outbox=self.outbox,
        )
        whose.check_owner(asked)
        service.check_one_process(self.told.name)
        span.asked({})
        return self.answer(scope, self.told.method(whose, asked))

    def answer(self, scope: Scope, result: Any) -> Response:
        """The answer in JSON; a cursor in it is signed."""
        if getattr(result, "destroyed", False):
            self.service.leave(scope)
        if (following := getattr(result, "next_cursor", None)) is not None:
            signed = self.service.signer.cursor(scope, self.name, following)
            result = replace(result, next_cursor=signed)
        return as_json(codec.answer(result), self.told.status)


def _tell_due(service: Service) -> None:
    """The alarm: requests that are late, or nearly, as a gauge and in the log."""
    late = list(Register(service.engine, service.clock).alarms())
    service.metrics.show("personal_requests_due", len(late))
    for one in late:
        facts = {"request": one.id, "right": one.right.value, "due_at": one.due_at.isoformat()}
        _log.warning("personal.request_due", extra=facts)


def _named(values: dict[str, Any]) -> Scope:
    """The scope that a body names; InvalidRequest if it names none."""
    org, user = values.get("org_id"), values.get("user_id")
    if not org or not user:
        raise InvalidRequest(
            "The request names no scope.",
            hint="Send X-Scrubjay-Scope: tenant/owner, or org_id and user_id in the body.",
        )
    return Scope(org, user)
