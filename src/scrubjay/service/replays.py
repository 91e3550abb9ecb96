"""Idempotency keys: a repeated POST gets the first answer again.

Answers are kept in the memory of the process for a day. A retain or a supersede survives a restart
as well: a name made of who asked, where and under which key goes to the store with the memory,
which refuses to write it twice, and with it a fingerprint of what was asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from scrubjay.model.text import NAME_CHARS
from scrubjay.ports import Clock
from scrubjay.service.problems import Problem

HEADER: Final = "idempotency-key"
KEPT_SECONDS: Final = 24 * 3600.0
EACH: Final = 1_000
"""How many answers are kept for one principal,"""
ALL: Final = 10_000
"""and for all of them."""
_LARGEST: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """Under which name an answer is kept: whose, and for what."""

    holder: str
    scope: str
    path: str
    key: str

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= NAME_CHARS:
            raise Problem(400, "malformed", f"An Idempotency-Key has 1 to {NAME_CHARS} characters.")


@dataclass(slots=True)
class _Entry:
    fingerprint: bytes
    at: float
    answer: Response | None = None


class Replays:
    """What was answered under which name; used by the event loop alone.

    Each principal has a list of its own: nobody's requests push out what another is waiting for.
    """

    def __init__(self, clock: Clock, *, each: int = EACH, most: int = ALL) -> None:
        self._clock = clock
        self._each = each
        self._most = most
        self._count = 0
        self._kept: dict[str, OrderedDict[Name, _Entry]] = {}

    def begin(self, name: Name, fingerprint: bytes) -> Response | None:
        """The answer given before, or None if this is the first time."""
        self._drop_old()
        own = self._kept.get(name.holder, OrderedDict())
        known = own.get(name)
        if known is None:
            self._make_room(own)
            entry = _Entry(fingerprint, self._clock.monotonic())
            self._kept.setdefault(name.holder, own)[name] = entry
            self._count += 1
            return None
        if known.fingerprint != fingerprint:
            raise reused()
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
        own = self._kept[name.holder]
        if answer is None or len(answer.body) > _LARGEST:
            self._drop(own, name)
        else:
            own[name].answer = answer

    def _make_room(self, own: OrderedDict[Name, _Entry]) -> None:
        """Drop the oldest answer of this principal or, if all are too many, of the greediest."""
        if len(own) >= self._each:
            self._drop_settled(own)
        elif self._count >= self._most:
            self._drop_settled(max(self._kept.values(), key=len))

    def _drop_settled(self, kept: OrderedDict[Name, _Entry]) -> None:
        settled = (name for name, entry in kept.items() if entry.answer is not None)
        oldest = next(settled, None)
        if oldest is None:
            raise Problem(
                503,
                "too_many_in_progress",
                "Too many requests with an Idempotency-Key are not answered yet.",
                headers={"Retry-After": "1"},
            )
        self._drop(kept, oldest)

    def _drop_old(self) -> None:
        """Drop what is too old, of everybody: who does not come again would keep it for good."""
        now = self._clock.monotonic()
        for own in list(self._kept.values()):
            while own:
                name, entry = next(iter(own.items()))
                if entry.answer is None or now - entry.at < KEPT_SECONDS:
                    break
                self._drop(own, name)

    def _drop(self, kept: OrderedDict[Name, _Entry], name: Name) -> None:
        if kept.pop(name, None) is not None:
            self._count -= 1
        if not kept:
            self._kept.pop(name.holder, None)


def reused() -> Problem:
    """What is said of another request under the same key."""
    return Problem(422, "idempotency_key_reused", "This Idempotency-Key came with another request.")
