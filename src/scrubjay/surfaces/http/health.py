"""Whether the service lives, whether it is ready, which version it is, and its counters."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scrubjay import __version__
from scrubjay.domain.errors import Busy, ScrubjayError
from scrubjay.surfaces.bridge import TooLate
from scrubjay.surfaces.http.metrics import TYPE
from scrubjay.surfaces.http.routes import as_json
from scrubjay.surfaces.http.service import Service
from scrubjay.surfaces.keys import KEYS

_CHECK_SECONDS = 5.0


def routes(service: Service) -> list[Route]:
    """All of them; only the counters need a key."""

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
        return await _ready(service)

    async def metrics(request: Request) -> Response:
        request.scope["state"]["op"] = "metrics"
        await service.holder(request)
        return Response(service.metrics.render(service.bridge.waiting), media_type=TYPE)

    named = {
        "/health": health,
        "/healthz": healthz,
        "/readyz": readyz,
        "/version": version,
        "/metrics": metrics,
    }
    return [Route(path, endpoint, methods=["GET"]) for path, endpoint in named.items()]


async def _ready(service: Service) -> Response:
    checks: dict[str, Callable[[], object]] = {
        "store": lambda: service.engine.head(KEYS),
        "keys": service.keys.refresh,
    }
    found = {name: await _check(service, check) for name, check in checks.items()}
    room = service.bridge.waiting < service.bridge.limits.waiting
    found["queue"] = {"ok": room, "waiting": service.bridge.waiting}
    well = all(check["ok"] for check in found.values())
    status = "ready" if well else "not ready"
    return as_json({"status": status, "checks": found}, 200 if well else 503)


async def _check(service: Service, check: Callable[[], object]) -> dict[str, object]:
    try:
        await service.bridge.read(check, seconds=_CHECK_SECONDS)
    except (ScrubjayError, TooLate) as error:
        return {"ok": False, "code": error.code if isinstance(error, ScrubjayError) else Busy.code}
    return {"ok": True}
