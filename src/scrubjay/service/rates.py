"""Rate limits: token buckets in the shared state, from which a process draws a second ahead.

A bucket is the same whichever worker or node is asked. A draw is a compare-and-set of one small
value; between two of them a token costs nothing. So a key has its burst and its rate in all
processes together, and one that ends takes at most a second's tokens with it.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import OrderedDict
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Final

from scrubjay.bridge import Bridge
from scrubjay.model.errors import ScrubjayError
from scrubjay.ports import Clock, Shared
from scrubjay.service.cursors import Signer
from scrubjay.service.problems import Problem
from scrubjay.service.rest import Operation

_VALUE: Final = struct.Struct("<dd")
_MOST_BUCKETS: Final = 16_384
"""Buckets of which a process holds tokens; those of one that it gives up are lost."""
_DRAW_TRIES: Final = 16
_log = logging.getLogger(__name__)


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
