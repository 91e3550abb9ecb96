"""Limits: a token bucket for each key, and the bytes of all bodies together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Final

from scrubjay.ports import Clock
from scrubjay.service.problems import Problem
from scrubjay.service.rest import Operation

_BUCKETS: Final = 10_000
TOGETHER_BYTES: Final = 256 * 1024 * 1024
"""Size limit of the bodies of all requests in progress, together."""


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


class Meter:
    """Token buckets of all keys; used only on the event loop."""

    def __init__(self, rates: Rates, clock: Clock) -> None:
        self._rates = rates
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def spend(self, key_id: str, operation: Operation) -> Spent | None:
        """Take a token; returns what is left, None without a limit. Problem 429 if it is empty."""
        name = "heavy" if operation.heavy else "writes" if operation.writes else "reads"
        rate: float = getattr(self._rates, name)
        if not rate:
            return None
        full = max(1.0, rate * self._rates.burst_seconds)
        now = self._clock.monotonic()
        left, at = self._buckets.pop((key_id, name), (full, now))
        left = min(full, left + (now - at) * rate)
        allowed = left >= 1
        self._buckets[key_id, name] = (left - 1 if allowed else left, now)
        if len(self._buckets) > _BUCKETS:
            self._buckets.popitem(last=False)
        spent = Spent(name=name, left=int(left - allowed), full=int(full), rate=rate)
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
