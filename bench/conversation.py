"""Invented conversations of any length: words as rare and as common as in real ones."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final

from scrubjay.engine.search.analysis import stop_words
from scrubjay.model.memory import Kind, Memory, Provenance

_VOCABULARY: Final = 30_000
_SPEAKERS: Final = ("Ann", "Bob", "Chloe", "user", "assistant")
_START: Final = datetime(2024, 1, 1, tzinfo=UTC)
_TURNS: Final = 25
"""Turns in a session."""


class Conversation:
    """Memories and questions from one seed; a longer one begins like a shorter one."""

    def __init__(self, seed: int = 7) -> None:
        self._chance = random.Random(seed)
        self._words = _vocabulary(random.Random(seed))
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(len(self._words))))

    def memories(self, count: int) -> list[Memory]:
        """As many turns, in sessions of 25, an hour apart."""
        return [self._memory(number) for number in range(1, count + 1)]

    def question(self) -> str:
        """A question of three to six rarer words."""
        words = self._chance.sample(self._words[200:8000], self._chance.randint(3, 6))
        return f"When did {self._chance.choice(_SPEAKERS[:3])} {' '.join(words)}?"

    def _memory(self, number: int) -> Memory:
        chance = self._chance
        length = min(200, max(4, round(chance.lognormvariate(3.0, 0.7))))
        words = chance.choices(self._words, cum_weights=self._weights, k=length)
        said = _START + timedelta(hours=number)
        return Memory(
            id=f"mem-{chance.getrandbits(128):032x}",
            kind=Kind.EPISODE,
            content=f"{' '.join(words).capitalize()}.",
            recorded_at=said,
            provenance=Provenance(session=f"session {number // _TURNS}", said_at=said),
            speaker=chance.choice(_SPEAKERS),
            position=number % _TURNS,
            number=number,
        )


def _vocabulary(chance: random.Random) -> list[str]:
    """English stop words first, as they are the most frequent, then invented words."""
    onsets, vowels = ("b", "d", "f", "g", "k", "l", "m", "n", "r", "s", "t", "st", "pl"), "aeiou"
    invented: dict[str, None] = {}
    while len(invented) < _VOCABULARY:
        syllables = chance.choice((2, 2, 3, 4))
        invented[
            "".join(chance.choice(onsets) + chance.choice(vowels) for _ in range(syllables))
        ] = None
    return [*sorted(stop_words("english")), *invented]
