"""The service: state shared by all endpoints, authentication, and limits of rate and size."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from starlette.requests import Request
from starlette.routing import BaseRoute

from scrubjay.access import Access, Key, Keys, everything
from scrubjay.bridge import Bridge, Limits
from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest, ScrubjayError
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.service.background import Background
from scrubjay.service.cursors import Signer
from scrubjay.service.issuer import (
    GRANT_PREFIX,
    PAUSE_SECONDS,
    TokenRefused,
    Trust,
    Unreachable,
)
from scrubjay.service.problems import Problem
from scrubjay.service.rates import Meter, Rates
from scrubjay.service.telemetry import Metrics, Spans
from scrubjay.service.workers import Crew

# -- limits ----------------------------------------------------------------------------------------

TOGETHER_BYTES: Final = 256 * 1024 * 1024
"""Size limit of the bodies of all requests in progress, together."""


class Room:
    """Memory limit of all request bodies together; used only on the event loop."""

    def __init__(self, most: int = TOGETHER_BYTES) -> None:
        self.left = most

    @contextmanager
    def share(self) -> Iterator[Callable[[bytes], None]]:
        """Reservations of one request, released when it is answered."""
        taken = 0

        def take(piece: bytes) -> None:
            nonlocal taken
            if len(piece) > self.left:
                raise Problem(
                    503,
                    "no_room",
                    "The size limit of all request bodies together is reached.",
                    headers={"Retry-After": "1", "Connection": "close"},
                )
            self.left -= len(piece)
            taken += len(piece)

        try:
            yield take
        finally:
            self.left += taken


# -- the service -----------------------------------------------------------------------------------

if TYPE_CHECKING:
    from scrubjay.service.tokens import Tokens

_SHARED_SECONDS: Final = 1.0
WARM_SCOPES: Final = 64
WARM_SECONDS: Final = 5.0
"""How many indexes are loaded before the service is ready, and how long it takes at most."""
SCOPE_HEADER: Final = "x-scrubjay-scope"
METADATA: Final = "/.well-known/oauth-protected-resource"
_NO_HOST: Final = re.compile(r"[^A-Za-z0-9.:\[\]-]")
_INVALID: Final = "invalid_token"
_MAKE_ONE: Final = "`scrubjay keys create` makes one."
_EXPIRED: Final = "The token has expired."
_NOT_ACCEPTED: Final = (
    "The token is not one the trusted issuer signed for this service, or not good at this time."
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a service."""

    no_auth: bool = False
    """Disable authentication; for loopback only."""
    trust: Trust | None = None
    """OpenID Connect issuer whose tokens are accepted, if any."""
    scope: Scope | None = None
    """Default scope of a request, without authentication."""
    hosts: frozenset[str] = frozenset()
    """Allowed Host names, beside those of loopback."""
    trace_content: bool = False
    """Whether spans may contain questions and answers."""
    rates: Rates = field(default_factory=Rates)
    limits: Limits = field(default_factory=Limits)
    crew: Crew | None = None
    """The workers of the service, if they are several processes."""
    worker: int = 0
    """The number of this one."""

    def __post_init__(self) -> None:
        if self.no_auth and self.trust is not None:
            raise InvalidRequest(
                "Without authentication no token is checked.", hint="Leave out --no-auth."
            )


class MountedPaths(Protocol):
    """Further paths in the same service, such as a dialect, mounted beside `/v1`.

    Its requests pass the same gate. It checks its own credentials and sizes.
    """

    def routes(self, service: Service) -> Sequence[BaseRoute]:
        """Its routes; they call the engine only through `service.bridge`."""

    def running(self, service: Service) -> AbstractAsyncContextManager[None]:
        """Lifespan context: entered at the start of the service, left before its end."""


class Service:
    """One engine behind HTTP; all but the engine belongs to one event loop."""

    def __init__(self, engine: Kernel, clock: Clock, options: Options | None = None) -> None:
        self.engine = engine
        self.clock = clock
        self.options = options or Options()
        self.keys = Keys(engine, clock)
        self.bridge = Bridge(self.options.limits, monotonic=clock.monotonic)
        self.metrics = Metrics()
        self.background = Background(engine, clock, self.metrics)
        crew = self.options.crew
        self.room = Room(TOGETHER_BYTES // (crew.workers if crew else 1))
        self.signer = Signer(self.keys.signing_secret())
        self.meter = Meter(self.options.rates, clock, engine.shared, self.signer)
        self.spans = Spans(self.signer, clock, content=self.options.trace_content)
        self.tokens: Tokens | None = None
        if self.options.trust is not None:  # else its libraries are not even loaded
            from scrubjay.service.tokens import Tokens

            self.tokens = Tokens(self.options.trust, clock, self.signer.pseudonym)
        self._local = everything()
        self._open: set[Scope] = set()

    def tell_metrics(self) -> str:
        """The metrics of all workers, those of others as of the last second."""
        crew, depth, age = self.options.crew, *self.bridge.queue()
        told = [] if crew is None else crew.boards.others(self.options.worker)
        return self.metrics.render(depth=depth, age=age, others=told)

    async def share_metrics(self) -> None:
        """Write the metrics on the board of this worker, each second, for as long as it serves."""
        crew = self.options.crew
        while crew is not None:
            depth, age = self.bridge.queue()
            crew.boards.write(self.options.worker, self.metrics.dump(depth=depth, age=age))
            await asyncio.sleep(_SHARED_SECONDS)

    # -- who asks ----------------------------------------------------------------------

    async def holder(self, request: Request) -> Key:
        """Authenticate a request; Problem 401 without a valid key or token."""
        if self.options.no_auth:
            return self._local
        kind, _, rest = request.headers.get("authorization", "").partition(" ")
        token = rest.strip()
        if kind.lower() != "bearer" or not token:
            detail = "Send your key as Authorization: Bearer sj_…"
            raise self._unauthorized(request, detail, hint=_MAKE_ONE)
        if self.tokens is not None and "." in token:  # a key has no dots
            return await self._signed_in(request, self.tokens, token)
        key = self.keys.find(token)
        if key is None or self.keys.stale:
            # A key that was just made is good at once; one that was just revoked, soon not.
            await self.bridge.read(self.keys.refresh)
            key = self.keys.find(token)
        if key is None:
            detail = "The key is not known here, expired, or was revoked."
            raise self._unauthorized(request, detail, hint=_MAKE_ONE, error=_INVALID)
        if not self.keys.noted(key):
            await self.bridge.read(lambda: self.keys.note_use(key))
        return key

    async def _signed_in(self, request: Request, tokens: Tokens, token: str) -> Key:
        """Authenticate a token. Only the log says which check failed."""
        try:
            return await tokens.holder(token)
        except TokenRefused as refused:
            facts = {"request_id": request.scope["state"]["request_id"], "why": str(refused)}
            _log.info("token.refused", extra=facts)
            detail = _EXPIRED if refused.expired else _NOT_ACCEPTED
            hint = "Get a new one from its issuer."
            raise self._unauthorized(request, detail, hint=hint, error=_INVALID) from refused
        except Unreachable as error:
            again = {"Retry-After": f"{PAUSE_SECONDS:.0f}"}
            detail = "The issuer of the token cannot be asked at the moment."
            raise Problem(503, "issuer_unreachable", detail, headers=again) from error

    def _unauthorized(
        self, request: Request, detail: str, *, hint: str, error: str | None = None
    ) -> Problem:
        """Problem 401 with WWW-Authenticate; `error` if there were credentials."""
        told = {"realm": "scrubjay"} | ({"error": error} if error else {})
        place = request.scope["state"].get("resource")
        if self.options.trust is not None or place:
            told["resource_metadata"] = f"{self.resource(request)}{METADATA}{place or ''}"
        words = ", ".join(f'{name}="{value}"' for name, value in told.items())
        headers = {"WWW-Authenticate": f"Bearer {words}"}
        return Problem(401, "unauthorized", detail, hint=hint, headers=headers)

    def resource(self, request: Request) -> str:
        """Public URL of this service: as configured, or from the request."""
        trust = self.options.trust
        if trust is not None and trust.resource:
            return trust.resource
        # The gate knows the name; what follows it may still be anything.
        return f"{request.url.scheme}://{_NO_HOST.sub('', request.headers['host'])}"

    def metadata(self, request: Request, place: str = "") -> dict[str, object]:
        """Metadata of this service, or of one of its paths, as a protected resource (RFC 9728)."""
        trust = self.options.trust
        return {
            "resource": self.resource(request) + place,
            "resource_name": "scrubjay",
            "authorization_servers": [trust.issuer] if trust else [],
            "scopes_supported": [
                f"{GRANT_PREFIX}{grant}" for grant in (trust.grants if trust else ())
            ],
            "bearer_methods_supported": ["header"],
        }

    def scope_of(self, request: Request, holder: Key) -> Scope:
        """Scope of a request: from its header, or the only one of its key."""
        named = request.headers.get(SCOPE_HEADER)
        scope = Scope.parse(named) if named else holder.only_scope
        if scope is None and self.options.no_auth:
            scope = self.options.scope
        if scope is None:
            raise InvalidRequest(
                "The request names no scope.", hint="Send it as X-Scrubjay-Scope: tenant/owner."
            )
        self.access(holder).check_covered(scope)
        return scope

    def access(self, holder: Key) -> Access:
        """The engine as the holder of a key may use it."""
        return Access(self.engine, self.keys, holder)

    # -- scopes and memories -------------------------------------------------------------

    def ready(self, scope: Scope, *, create: bool) -> None:
        """Open the scope; only writes create one."""
        if scope not in self._open:
            self.engine.open(scope, create=create)
            self._open.add(scope)

    def warm_up(self) -> None:
        """Load the indexes of the scopes there are, as far as the time for it goes."""
        until = self.clock.monotonic() + WARM_SECONDS
        with suppress(ScrubjayError):
            for scope in self.engine.scopes()[:WARM_SCOPES]:
                if self.clock.monotonic() >= until:
                    break
                with suppress(ScrubjayError):  # frozen or damaged: told to whoever recalls
                    self.engine.warm_up(scope)

    def is_ready(self, scope: Scope) -> bool:
        """Whether the scope is known to exist."""
        return scope in self._open

    def leave(self, scope: Scope) -> None:
        """Forget that the scope exists, so that the next request checks again."""
        self._open.discard(scope)
