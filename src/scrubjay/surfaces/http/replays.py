"""Idempotency keys: a repeated POST gets the first answer again.

Answers are kept in the memory of the process for a day. A retain or a supersede survives a restart
as well: its key goes to the store with the memory, which refuses to write it twice.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from scrubjay.domain.text import NAME_CHARS
from scrubjay.ports import Clock
from scrubjay.surfaces.http.problems import Problem

HEADER: Final = "idempotency-key"
KEPT_SECONDS: Final = 24 * 3600.0
_MOST: Final = 10_000
_LARGEST: Final = 64 * 1024

Name = tuple[str, ...]


@dataclass(slots=True)
class _Entry:
    fingerprint: bytes
    at: float
    answer: Response | None = None


class Replays:
    """What was answered under which key; used by the event loop alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: OrderedDict[Name, _Entry] = OrderedDict()

    def begin(self, name: Name, body: bytes) -> Response | None:
        """The answer given before, or None if this is the first time."""
        if not 1 <= len(name[-1]) <= NAME_CHARS:
            raise Problem(400, "malformed", f"An Idempotency-Key has 1 to {NAME_CHARS} characters.")
        fingerprint = hashlib.sha256(body).digest()
        self._drop_old()
        known = self._entries.get(name)
        if known is None:
            self._entries[name] = _Entry(fingerprint, self._clock.monotonic())
            return None
        if known.fingerprint != fingerprint:
            raise Problem(
                422, "idempotency_key_reused", "This Idempotency-Key came with another request."
            )
        if known.answer is None:
            raise Problem(
                409,
                "in_progress",
                "The first request with this Idempotency-Key is not answered yet.",
                headers={"Retry-After": "1"},
            )
        return known.answer

    def end(self, name: Name, answer: Response | None) -> None:
        """Keep the answer, or with None let the next one try again."""
        if answer is None or len(answer.body) > _LARGEST:
            self._entries.pop(name, None)
        elif name in self._entries:
            self._entries[name].answer = answer

    def _drop_old(self) -> None:
        now = self._clock.monotonic()
        while self._entries:
            oldest = next(iter(self._entries.values()))
            if now - oldest.at < KEPT_SECONDS and len(self._entries) < _MOST:
                return
            self._entries.popitem(last=False)
