"""The ASGI application: REST, mounted surfaces, health, readiness and metrics behind one gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from scrubjay import __version__
from scrubjay.access import KEYS
from scrubjay.bridge import TooLate
from scrubjay.engine import Kernel
from scrubjay.model.errors import Busy, SchemaTooNew, ScrubjayError, StoreError
from scrubjay.ports import Clock
from scrubjay.service import openapi, routes
from scrubjay.service.endpoint import Gate
from scrubjay.service.routes import as_json
from scrubjay.service.service import METADATA, MountedPaths, Options, Service
from scrubjay.service.telemetry import TYPE

_CHECK_SECONDS: Final = 5.0
_OPTIONAL_SECONDS: Final = 30.0
"""Cache lifetime of the checks of what a service can do without."""
Check = dict[str, object]


def app(
    engine: Kernel,
    clock: Clock,
    options: Options | None = None,
    *,
    planes: Sequence[MountedPaths] = (),
) -> Gate:
    """The service as an ASGI application; the caller closes the engine."""
    service = Service(engine, clock, options)
    mounted = [route for plane in planes for route in plane.routes(service)]
    router = Router(
        [*own_routes(service), *routes.routes(service), *mounted],
        redirect_slashes=False,
        lifespan=lambda _: _running(service, planes),
    )
    return Gate(router, hosts=service.options.hosts, clock=clock, metrics=service.metrics)


@asynccontextmanager
async def _running(service: Service, planes: Sequence[MountedPaths]) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        stack.push_async_callback(service.bridge.close)
        stack.push_async_callback(asyncio.to_thread, service.background.stop)
        service.background.start()
        if service.tokens is not None:
            stack.push_async_callback(service.tokens.keys.close)
        for plane in planes:
            await stack.enter_async_context(plane.running(service))
        # The first recall of a scope loads its index, which may take longer than a prompt waits.
        await service.bridge.read(service.warm_up)
        sharing = asyncio.create_task(service.share_metrics())
        stack.callback(sharing.cancel)
        yield


def own_routes(service: Service) -> list[Route]:
    """Health, readiness, version, counters, documents; only the counters need a key."""
    readiness, document = _Readiness(service), openapi.render()

    async def health(request: Request) -> Response:
        request.scope["state"]["op"] = "healthz"
        return Response()  # an alias, as the proxies of pods expect it

    async def healthz(request: Request) -> Response:
        request.scope["state"]["op"] = "healthz"
        return as_json({"status": "ok"})

    async def version(_request: Request) -> Response:
        return as_json({"name": "scrubjay", "version": __version__})

    async def readyz(request: Request) -> Response:
        request.scope["state"]["op"] = "readyz"
        return await readiness.answer()

    async def metrics(request: Request) -> Response:
        request.scope["state"]["op"] = "metrics"
        await service.holder(request)
        return Response(service.tell_metrics(), media_type=TYPE)

    async def described(_request: Request) -> Response:
        return Response(document, media_type="application/json")

    named = {
        "/health": health,
        "/healthz": healthz,
        "/readyz": readyz,
        "/version": version,
        "/metrics": metrics,
        "/openapi.json": described,
    }
    if service.options.trust is not None:

        async def metadata(request: Request) -> Response:
            return as_json(service.metadata(request))

        named[METADATA] = metadata
    return [Route(path, endpoint, methods=["GET"]) for path, endpoint in named.items()]


class _Readiness:
    """Readiness check of everything that a request may need."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._optional: dict[str, Check] = {"blobs": {"ok": True}, "embedder": {"ok": True}}
        self._asked_at = float("-inf")

    async def answer(self) -> Response:
        """The result of every check; 503 if a required one fails."""
        keys = await self._check(self._refresh_keys)
        store = await self._check(lambda: self._service.engine.head(KEYS))
        bridge = self._service.bridge
        found: dict[str, Check] = {
            "store": store,
            "migrations": {"ok": store.get("code") != SchemaTooNew.code},
            "keys": keys,
            "queue": {"ok": not bridge.full, "waiting": bridge.queue()[0]},
        }
        well = all(check["ok"] for check in found.values())
        # Without its bucket a service goes on from the rows, and without vectors recall goes by
        # words alone: both are ready, or a balancer would take every node away at once. They may
        # be somebody else's services, and slow to fail, so they are not asked every time.
        now = self._service.clock.monotonic()
        if now - self._asked_at > _OPTIONAL_SECONDS:
            self._asked_at = now
            engine = self._service.engine
            asked = {"blobs": engine.check_blobs, "embedder": engine.check_embedder}
            self._optional = {name: await self._check(check) for name, check in asked.items()}
        found |= self._optional
        found["durability"] = await self._check(self._refuse_warnings)
        status = "ready" if well else "not ready"
        return as_json({"status": status, "checks": found}, 200 if well else 503)

    def _refresh_keys(self) -> None:
        self._service.keys.refresh()
        self._service.engine.check_keys()  # what is open needs them no more, until an erasure does

    def _refuse_warnings(self) -> None:
        if warnings := self._service.engine.store_warnings():
            raise StoreError(" ".join(warnings))

    async def _check(self, check: Callable[[], object]) -> Check:
        try:
            await self._service.bridge.read(check, seconds=_CHECK_SECONDS)
        except (ScrubjayError, TooLate) as error:
            if type(error) is StoreError:
                return {"ok": False, "code": error.code, "message": error.message}
            code = error.code if isinstance(error, ScrubjayError) else Busy.code
            return {"ok": False, "code": code}
        return {"ok": True}
