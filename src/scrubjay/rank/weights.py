"""The weights of the ranking, and how they were found.

tools/tune_weights.py fits them on development conversations it is given a folder of: a linear
score over the features of rank/features.py, softmax over all rows of a haystack, each set of
questions weighing the same, L2 penalty, no randomness. They were rounded to two digits and the
rounded ones are what was measured. The last group is set by hand: the development conversations
have no importance, trust or pins, so these may only break near-ties.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each feature adds to a row's score, before the score is brought to 0..1."""

    words: float = 1.0
    rare: float = 1.0
    coverage: float = 1.0
    meaning: float = 1.0

    previous: float = 0.0
    following: float = 0.0
    answers: float = 1.0
    session: float = 1.0
    nearby: float = 1.0

    speaker: float = 1.0
    subject: float = 0.5
    dated: float = 1.0
    later: float = -2.0
    age: float = -1.0
    when: float = 1.0
    count: float = 0.5
    name: float = 0.5

    short: float = -1.0
    long: float = -0.5
    question: float = -0.2

    instruction: float = 1.0
    instruction_now: float = 1.0
    preference_now: float = 1.0

    importance: float = 0.3
    distrust: float = -0.5
    pinned: float = 0.1

    def items(self) -> list[tuple[str, float]]:
        """Each feature's name and weight."""
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


WEIGHTS = Weights()
