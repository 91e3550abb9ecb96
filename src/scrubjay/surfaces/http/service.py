"""The service: what all its doors share, and who asks."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

from starlette.requests import Request
from starlette.routing import BaseRoute

from scrubjay.domain.errors import Forbidden, InvalidRequest
from scrubjay.domain.scope import Scope
from scrubjay.engine import Engine
from scrubjay.ports import Clock
from scrubjay.surfaces import guarded
from scrubjay.surfaces.bridge import Bridge, Limits
from scrubjay.surfaces.http.bodies import Room
from scrubjay.surfaces.http.cursors import Signer
from scrubjay.surfaces.http.limits import Meter, Rates
from scrubjay.surfaces.http.metrics import Metrics
from scrubjay.surfaces.http.problems import Problem
from scrubjay.surfaces.http.replays import Replays
from scrubjay.surfaces.http.tracing import Spans
from scrubjay.surfaces.keys import Grant, Key, Keys, everything

SCOPE_HEADER: Final = "x-scrubjay-scope"
_STRIPES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a service is set up."""

    no_auth: bool = False
    """Whether everybody who reaches it may do everything; for loopback alone."""
    scope: Scope | None = None
    """The scope of a request that names none, where no key says which."""
    hosts: frozenset[str] = frozenset()
    """Names it answers to, beside those of loopback."""
    trace_content: bool = False
    """Whether spans may say what was asked and answered."""
    rates: Rates = field(default_factory=Rates)
    limits: Limits = field(default_factory=Limits)


class Plane(Protocol):
    """Another set of paths in the same service, such as a dialect: mounted beside `/v1`.

    Its requests pass the same gate. It answers for its own credentials and sizes.
    """

    def routes(self, service: Service) -> Sequence[BaseRoute]:
        """Its routes; the engine is reached over `service.bridge` alone."""

    def running(self, service: Service) -> AbstractAsyncContextManager[None]:
        """What it does while the service runs; entered at the start, left before the end."""


class Service:
    """One engine behind doors; everything here belongs to one event loop, but for the engine."""

    def __init__(self, engine: Engine, clock: Clock, options: Options | None = None) -> None:
        self.engine = engine
        self.clock = clock
        self.options = options or Options()
        self.keys = Keys(engine, clock)
        self.bridge = Bridge(self.options.limits, monotonic=clock.monotonic)
        self.metrics = Metrics()
        self.meter = Meter(self.options.rates, clock)
        self.replays = Replays(clock)
        self.room = Room()
        self.signer = Signer(self.keys.signing_secret())
        self.spans = Spans(self.signer, clock, content=self.options.trace_content)
        self._local = everything()
        self._open: set[Scope] = set()
        self._stripes = tuple(threading.Lock() for _ in range(_STRIPES))

    # -- who asks ----------------------------------------------------------------------

    async def holder(self, request: Request) -> Key:
        """The key of a request; a Problem if it has none that is good."""
        if self.options.no_auth:
            return self._local
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            raise _unauthorized("Send your key as Authorization: Bearer sj_…")
        key = self.keys.find(token.strip())
        if key is None or self.keys.stale:
            # A key that was just made is good at once; one that was just revoked, soon not.
            await self.bridge.read(self.keys.refresh)
            key = self.keys.find(token.strip())
        if key is None:
            raise _unauthorized("The key is not known here, expired, or was revoked.")
        return key

    def scope_of(self, request: Request, holder: Key) -> Scope:
        """The scope a request is about: from its header, or the only one its key is for."""
        named = request.headers.get(SCOPE_HEADER)
        scope = Scope.parse(named) if named else holder.only_scope or self._default()
        guarded.check_covered(holder, scope)
        return scope

    def _default(self) -> Scope:
        if self.options.no_auth and self.options.scope is not None:
            return self.options.scope
        raise InvalidRequest(
            "The request names no scope.", hint="Send it as X-Scrubjay-Scope: tenant/owner."
        )

    # -- scopes and memories -------------------------------------------------------------

    def ready(self, scope: Scope, *, create: bool) -> None:
        """Make sure that the scope is there: a mere question must not make one."""
        if scope not in self._open:
            self.engine.open(scope, create=create)
            self._open.add(scope)

    def leave(self, scope: Scope) -> None:
        """Look again, next time, whether the scope is there."""
        self._open.discard(scope)

    def alone(self, scope: Scope, public_id: str) -> threading.Lock:
        """A lock that keeps others from changing this memory between a look and a change."""
        return self._stripes[hash((scope, public_id)) % _STRIPES]


def _unauthorized(detail: str) -> Problem:
    return Problem(
        401,
        "unauthorized",
        detail,
        hint="`scrubjay keys create` makes one.",
        headers={"WWW-Authenticate": 'Bearer realm="scrubjay"'},
    )


def check_granted(holder: Key, grant: Grant | None) -> None:
    """Refuse what the key was not made for."""
    if grant is not None and grant not in holder.grants:
        raise Forbidden(f"This key has not the grant {grant}.", hint="Use a key that has it.")
