"""The service: state shared by all endpoints, authentication, and limits of rate and size."""

from __future__ import annotations

import asyncio
import logging
import re
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from math import ceil, inf
from typing import TYPE_CHECKING, Final, Protocol

from starlette.requests import Request
from starlette.routing import BaseRoute

from scrubjay.access import Access, Key, Keys, everything
from scrubjay.bridge import Bridge, Limits
from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest, ScrubjayError
from scrubjay.model.jobs import JobKind, Work
from scrubjay.model.results import Stopped
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock, Shared
from scrubjay.service.cursors import Signer
from scrubjay.service.issuer import (
    GRANT_PREFIX,
    PAUSE_SECONDS,
    TokenRefused,
    Trust,
    Unreachable,
)
from scrubjay.service.problems import Problem
from scrubjay.service.rest import Operation
from scrubjay.service.telemetry import Metrics, Spans
from scrubjay.service.workers import Crew

if TYPE_CHECKING:
    from scrubjay.service.tokens import Tokens

# -- background work ------------------------------------------------------------------------------


STOP_SECONDS: Final = 2.0
"""How long shutdown waits for a running model request; then it is abandoned."""
_SLICE: Final = Work(limit=8, seconds=5.0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Retry and polling intervals."""

    first: float = 1.0
    """Exponential backoff after the first failure of the model; doubled each time."""
    longest: float = 300.0
    """Maximum of the backoff."""
    sweep: float = 600.0
    """Interval between two rounds of upkeep and checks of all scopes."""


class Background:
    """Background thread; round-robin over the scopes, a few turns of each."""

    def __init__(
        self, engine: Kernel, clock: Clock, metrics: Metrics, pauses: Pauses | None = None
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._metrics = metrics
        self._pauses = pauses or Pauses()
        self._pending: dict[Scope | None, None] = {}
        self._left: dict[Scope, int] = {}
        self._failures = 0
        self._next_sweep = 0.0
        self._wakes = threading.Condition()
        self._ending = threading.Event()
        # A daemon: a model that does not answer must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="extraction", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        if self._engine.extracts:
            self._engine.listen(self.wake)
        self._thread.start()

    def wake(self, scope: Scope) -> None:
        """Queue a scope that has a waiting turn; does not block."""
        with self._wakes:
            self._pending[scope] = None
            self._wakes.notify()

    def stop(self) -> None:
        """Stop within seconds; waiting turns stay in the store for the next start."""
        self._engine.listen(None)
        self._ending.set()
        with self._wakes:
            self._wakes.notify()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        self._sweep()
        while not self._ending.is_set():
            with self._wakes:
                if not self._pending and not self._ending.is_set():
                    self._wakes.wait(self._pauses.sweep)
                scope = next(iter(self._pending), None)
                self._pending.pop(scope, None)
            if self._ending.is_set():
                return
            if scope is not None:
                self._work(scope)
            # Also where some scopes always have something: the others must not wait for ever.
            if scope is None or self._clock.monotonic() >= self._next_sweep:
                self._sweep()

    def _sweep(self) -> None:
        self._next_sweep = self._clock.monotonic() + self._pauses.sweep
        try:
            self._engine.upkeep()
            scopes = self._engine.scopes() if self._engine.extracts else ()
        except ScrubjayError as error:
            _log.warning("background.no_round", extra={"code": error.code})
            return
        with self._wakes:
            self._pending.update(dict.fromkeys(scopes))

    def _work(self, scope: Scope) -> None:
        """Do a few jobs; exponential backoff while the model is unavailable."""
        add = self._metrics.add
        try:
            done = self._engine.work(scope, _SLICE)
        except ScrubjayError as error:
            # Frozen, destroyed, or a store that is busy or full: the turns wait in the store.
            _log.warning("extraction.left_waiting", extra={"code": error.code})
            return
        except Exception:  # seam: whatever goes wrong with one scope, the others have their turn
            _log.exception("extraction.failed")
            add("memory_extraction_failures_total", 1)
            return
        add("memory_extraction_tokens_total", done.tokens_in, direction="in")
        add("memory_extraction_tokens_total", done.tokens_out, direction="out")
        add("memory_extraction_turns_total", done.done.get(JobKind.EXTRACTION, 0))
        add("memory_extraction_memories_total", done.memories)
        add("memory_extraction_failures_total", done.failed)
        self._left[scope] = done.left
        self._metrics.show("memory_extraction_waiting", sum(self._left.values()))
        if done.left and done.stopped in (None, Stopped.UNAVAILABLE):
            self.wake(scope)
        if done.done:
            self._failures = 0
        if done.stopped is Stopped.UNAVAILABLE:
            self._failures += 1
            pause = self._pauses.first * 2 ** min(self._failures - 1, 30)
            self._ending.wait(min(pause, self._pauses.longest))


# -- limits ----------------------------------------------------------------------------------------

# A bucket is in the shared state, the same whichever worker or node is asked; a process draws a
# second's tokens ahead. A draw is a compare-and-set of one small value; between two of them a token
# costs nothing. So a key has its burst and its rate in all processes together, and one that ends
# takes at most a second's tokens with it.
_VALUE: Final = struct.Struct("<dd")
_MOST_BUCKETS: Final = 16_384
"""Buckets of which a process holds tokens; those of one that it gives up are lost."""
_DRAW_TRIES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rate limits of one key: requests a second, and bursts; 0 for no limit."""

    reads: float = 200.0
    writes: float = 100.0
    heavy: float = 0.5
    """Operations on a whole scope, such as export, verify, rotate."""
    burst_seconds: float = 10.0


UNLIMITED: Final = Rates(reads=0, writes=0, heavy=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Remaining tokens of a bucket."""

    name: str
    left: int
    full: int
    rate: float

    def headers(self) -> dict[str, str]:
        """RateLimit headers, as in draft-ietf-httpapi-ratelimit-headers of the IETF."""
        filled = ceil((self.full - self.left) / self.rate)
        return {
            "RateLimit-Policy": f'"{self.name}";q={self.full};w={ceil(self.full / self.rate)}',
            "RateLimit": f'"{self.name}";r={self.left};t={filled}',
        }


@dataclass(slots=True)
class Bucket:
    """A bucket as one process knows it: tokens it drew, and what it saw of the others."""

    full: float
    rate: float
    drawn: float = 0.0
    """Tokens that were drawn and not spent."""
    others: float = 0.0
    """Tokens that were left in the shared state at the last draw."""
    since: float = -inf
    """The time of that draw."""
    drawing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def left(self, now: float) -> float:
        """Tokens left at most: others may have drawn since."""
        filled = self.others + max(now - self.since, 0.0) * self.rate
        return min(self.full, self.drawn + filled)


class Meter:
    """Token buckets of all keys, the same in all processes of an installation."""

    def __init__(self, rates: Rates, clock: Clock, shared: Shared, signer: Signer) -> None:
        self._rates = rates
        self._clock = clock
        self._shared = shared
        self._signer = signer
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    async def spend(self, key_id: str, operation: Operation, bridge: Bridge) -> Spent | None:
        """Take a token; returns what is left, None without a limit. Problem 429 if it is empty."""
        name = "heavy" if operation.heavy else "writes" if operation.writes else "reads"
        rate: float = getattr(self._rates, name)
        if not rate:
            return None
        bucket, now = self._bucket(f"{name} {key_id}", rate), self._clock.now().timestamp()
        if bucket.drawn < 1 and bucket.left(now) >= 1:
            async with bucket.drawing:
                if bucket.drawn < 1:  # whoever held the lock may have drawn for this one, too
                    await bridge.read(lambda: self._draw(f"{name} {key_id}", bucket, now))
        allowed = bucket.drawn >= 1
        bucket.drawn -= allowed
        left = bucket.left(now)
        spent = Spent(name=name, left=int(left), full=int(bucket.full), rate=rate)
        if not allowed:
            seconds = str(max(1, ceil((1 - left) / rate)))
            raise Problem(
                429,
                "rate_limited",
                f"Rate limit: this key may send {rate:g} {name} a second.",
                hint=f"Retry in {seconds} s.",
                headers={"Retry-After": seconds, **spent.headers()},
            )
        return spent

    def _bucket(self, name: str, rate: float) -> Bucket:
        found = self._buckets.get(name)
        if found is None:
            full = max(1.0, rate * self._rates.burst_seconds)
            found = self._buckets[name] = Bucket(full, rate, others=full)
        self._buckets.move_to_end(name)
        while len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return found

    def _draw(self, name: str, bucket: Bucket, now: float) -> None:
        """Draw a second's tokens from the shared state, one at least, or what there is."""
        kept, wanted = self._signer.shared("rate", name), max(1.0, bucket.rate)
        try:
            for _ in range(_DRAW_TRIES):
                held = self._shared.get(kept, now)
                left, since = (bucket.full, now) if held is None else _VALUE.unpack(held)
                left = min(bucket.full, left + max(now - since, 0.0) * bucket.rate)
                drawn = min(wanted, left) if left >= 1 else 0.0
                # After a clock was set back, filling begins now rather than at a time to come.
                changed = drawn > 0 or since > now
                new = _VALUE.pack(left - drawn, now)
                until = now + bucket.full / bucket.rate
                if not changed or self._shared.exchange(kept, held, new, now=now, until=until):
                    break
            else:
                drawn = 0.0  # others draw all the time: there is none for this request
        except ScrubjayError as error:
            # A limit is no reason to refuse what a store that is full or busy can still do.
            _log.warning("rates.not_shared", extra={"code": error.code})
            left, drawn = bucket.others + wanted, wanted
        bucket.drawn += drawn
        bucket.others, bucket.since = left - drawn, now


TOGETHER_BYTES: Final = 256 * 1024 * 1024
"""Size limit of the bodies of all requests in progress, together."""


class BodyBudget:
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
        self.room = BodyBudget(TOGETHER_BYTES // (crew.workers if crew else 1))
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

    def check_one_process(self, verb: str) -> None:
        """InvalidRequest for a verb whose effect is in one process, if there are several."""
        crew = self.options.crew
        if crew is not None and crew.workers > 1 and verb in {"hold", "unlock", "lock"}:
            raise InvalidRequest(
                f"This service has {crew.workers} worker processes; a key is held by one.",
                hint="Start it with --workers 1, or use the command line or the library.",
            )

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
        """Load rules, and the indexes of the scopes there are, as far as the time for it goes."""
        until = self.clock.monotonic() + WARM_SECONDS
        self.engine.warm_up_distiller()
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
