"""Whether the service lives, whether it is ready, which version it is, and its counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scrubjay import __version__
from scrubjay.domain.errors import Busy, SchemaTooNew, ScrubjayError
from scrubjay.surfaces.bridge import TooLate
from scrubjay.surfaces.http.answers import as_json
from scrubjay.surfaces.http.metrics import TYPE
from scrubjay.surfaces.http.service import Service
from scrubjay.surfaces.keys import KEYS

_CHECK_SECONDS: Final = 5.0
_EMBEDDER_SECONDS: Final = 30.0
"""For how long it is believed what was last found of the embedder."""
Check = dict[str, object]


def routes(service: Service) -> list[Route]:
    """All of them; only the counters need a key."""
    readiness = _Readiness(service)

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
        depth, age = service.bridge.queue()
        return Response(service.metrics.render(depth=depth, age=age), media_type=TYPE)

    named = {
        "/health": health,
        "/healthz": healthz,
        "/readyz": readyz,
        "/version": version,
        "/metrics": metrics,
    }
    return [Route(path, endpoint, methods=["GET"]) for path, endpoint in named.items()]


class _Readiness:
    """Looks whether everything works that a request may need."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._embedder: Check = {"ok": True}
        self._asked_at = float("-inf")

    async def answer(self) -> Response:
        """What was found, check by check; 503 if one is not well that nothing works without."""
        keys = await self._check(self._service.keys.refresh)
        store = await self._check(lambda: self._service.engine.head(KEYS))
        waiting, _ = self._service.bridge.queue()
        room = self._service.bridge.waiting < self._service.bridge.limits.waiting
        found: dict[str, Check] = {
            "store": store,
            "migrations": {"ok": store.get("code") != SchemaTooNew.code},
            "keys": keys,
            "queue": {"ok": room, "waiting": waiting},
        }
        well = all(check["ok"] for check in found.values())
        found["embedder"] = await self._vectors()
        status = "ready" if well else "not ready"
        return as_json({"status": status, "checks": found}, 200 if well else 503)

    async def _vectors(self) -> Check:
        """Whether the embedder answers. Without it recall goes by words alone: that is ready, too.

        It may be somebody else's service, so it is not asked every time.
        """
        now = self._service.clock.monotonic()
        if now - self._asked_at > _EMBEDDER_SECONDS:
            self._asked_at = now
            self._embedder = await self._check(self._service.engine.check_embedder)
        return self._embedder

    async def _check(self, check: Callable[[], object]) -> Check:
        try:
            await self._service.bridge.read(check, seconds=_CHECK_SECONDS)
        except (ScrubjayError, TooLate) as error:
            code = error.code if isinstance(error, ScrubjayError) else Busy.code
            return {"ok": False, "code": code}
        return {"ok": True}
