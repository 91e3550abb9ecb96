"""The keys of an issuer, remembered: asked for again when they are old or one is unknown.

Whoever sends tokens with made-up key ids makes the service ask no more often than once in ten
seconds. While the issuer is down, the keys it had go on working for four hours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from scrubjay.ports import Clock
from scrubjay.surfaces.oidc.publisher import VerifyingKey
from scrubjay.surfaces.oidc.refusals import PAUSE_SECONDS, Unreachable

FRESH_SECONDS: Final = 300.0
"""How long a key that the issuer has withdrawn may go on being accepted."""
KEPT_SECONDS: Final = 4 * 3600.0
"""How long keys are good for while the issuer does not answer."""
_log = logging.getLogger(__name__)

Publish = Callable[[], Awaitable[Mapping[str, VerifyingKey]]]


class KeySet:
    """What is known of an issuer's keys; used by the event loop alone."""

    def __init__(self, publish: Publish, clock: Clock) -> None:
        self._publish = publish
        self._clock = clock
        self._known: Mapping[str, VerifyingKey] = {}
        self._fetched_at = self._asked_at = float("-inf")
        self._failing = False
        self._asking: asyncio.Task[None] | None = None

    async def find(self, kid: str) -> VerifyingKey | None:
        """The key of this id, None if the issuer has none; Unreachable if nobody can tell."""
        now = self._clock.monotonic()
        asking = self._ask(kid, now)
        # Who has a known key does not wait for an issuer that was down a moment ago.
        if asking is not None and not (self._failing and kid in self._known):
            await asyncio.shield(asking)
        if now - self._fetched_at > KEPT_SECONDS:
            raise Unreachable("its keys are not known")
        found = self._known.get(kid)
        if found is None and self._failing:
            raise Unreachable("whether it has a new key cannot be told")
        return found

    async def close(self) -> None:
        """Leave off asking."""
        if self._asking is not None:
            self._asking.cancel()
            with suppress(asyncio.CancelledError):
                await self._asking

    def _ask(self, kid: str, now: float) -> asyncio.Task[None] | None:
        """The attempt this key has to wait for, if any."""
        if kid in self._known and now - self._fetched_at <= FRESH_SECONDS:
            return None
        if self._asking is not None and not self._asking.done():
            return self._asking
        if now - self._asked_at < PAUSE_SECONDS:
            return None
        self._asked_at = now
        self._asking = asyncio.get_running_loop().create_task(self._refresh(now))
        return self._asking

    async def _refresh(self, now: float) -> None:
        try:
            self._known = await self._publish()
        except Unreachable as error:
            self._failing = True
            _log.warning("oidc.unreachable", extra={"why": str(error)})
        else:
            self._failing = False
            self._fetched_at = now
            _log.info("oidc.keys", extra={"keys": len(self._known)})
