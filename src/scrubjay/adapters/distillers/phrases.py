"""What a sentence says that is worth keeping, by the patterns of every language.

They are written for sentences whose spaces are single, whose apostrophes are straight and which
have no mark at the end; letter case does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from scrubjay.adapters.distillers.tongues import TONGUES
from scrubjay.domain.memory import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """One way to say something, what kind of memory it makes, and what it is about."""

    kind: Kind
    pattern: re.Pattern[str]
    slot: str | None
    """What it is about where the pattern has no group for it."""
    things: re.Pattern[str]
    points: re.Pattern[str]
    passes: re.Pattern[str]

    def is_passing(self, match: re.Match[str]) -> bool:
        """Whether it says something only for now: of what is at hand, or by pointing at it."""
        groups = match.groupdict()
        slot, value = groups.get("slot") or "", groups.get("value") or ""
        about_now = self.things.fullmatch(slot) or self.passes.search(value)
        return bool(about_now or self.points.match(value))


@dataclass(frozen=True, slots=True)
class Correction:
    """One way to begin a correction, and how what follows must begin to tell something."""

    pattern: re.Pattern[str]
    tells: re.Pattern[str]


@cache
def phrases() -> tuple[Phrase, ...]:
    """All ways to say something that are known, the most telling first."""
    return tuple(
        Phrase(
            kind=kind,
            pattern=_compiled(pattern),
            slot=slot,
            things=_compiled(tongue.things),
            points=_compiled(tongue.points),
            passes=_compiled(tongue.passes),
        )
        for kind in (Kind.PREFERENCE, Kind.INSTRUCTION, Kind.FACT)
        for tongue in TONGUES
        for pattern, slot in getattr(tongue, f"{kind.value}s")
    )


@cache
def corrections() -> tuple[Correction, ...]:
    """How a correction begins; what it corrects to is the group `rest`."""
    return tuple(
        Correction(_compiled(pattern), _compiled(tongue.tells))
        for tongue in TONGUES
        for pattern in tongue.corrections
    )


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def found_in(sentence: str) -> Iterator[tuple[Phrase, re.Match[str]]]:
    """The ways in which a sentence says something worth keeping."""
    for phrase in phrases():
        match = phrase.pattern.fullmatch(sentence)
        if match and not phrase.is_passing(match):
            yield phrase, match
