"""The weights of the ranking, and how they were found.

tools/tune_weights.py fits them on development conversations it is given a folder of: a linear
score over the features of rank/features.py, softmax over the 200 best rows of a rough order and
the rows that hold the answer, each set of questions weighing the same, L2 penalty 0.001, no
randomness. Rounded to two digits; the rounded ones are what was measured.

A feature is here because leaving it out cost something: on average over the sets, or on one of
them beyond its paired-bootstrap interval, fitted on all sets or on all but the one measured.

Set by hand, not fitted: `importance`, `distrust` and `pinned`, which no development conversation
has, so they may only break near-ties; `later` and `age`, because only one set says when a question
was asked, and a fit on it alone would let recency rule (it asked for -2.5 and -2.5). At -0.5 `age`
gives that set half of what it could, and takes nothing from the others when their questions are
asked the day after.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each feature adds to a row's score, before the score is brought to 0..1."""

    words: float = 2.06
    """BM25, as a share of the best row."""
    coverage: float = 2.06
    """The share of the question's information the row holds."""
    meaning: float = 3.18
    """Cosine of the vectors, spread over 0..1."""
    answers: float = 1.69
    """Evidence of the turn before when it is somebody else's question."""
    session: float = 2.42
    """The evidence of the session's best row."""
    nearby: float = 2.49
    """Coverage by a neighboring turn beyond the row's own."""
    speaker: float = 2.5
    """Said by whom the question is about."""
    dated: float = 2.35
    """Within the time the question names."""
    when: float = 1.43
    """Names a time, and the question asks when."""
    short: float = -0.91
    """By the logarithm below 120 characters."""
    question: float = -0.33
    """Is a question itself."""
    instruction: float = 2.15
    """A standing instruction, and help is asked for now."""
    preference: float = 1.57
    """A stated preference, and help is asked for now."""
    later: float = -2.0
    """Said after the question was asked."""
    age: float = -0.5
    """How long before the question it was said, by the logarithm; a year is 1."""
    importance: float = 0.3
    """Above or below the usual 0.5."""
    distrust: float = -0.5
    """How far the origin is from the most trusted one."""
    pinned: float = 0.1

    def items(self) -> list[tuple[str, float]]:
        """Each feature's name and weight."""
        return [(name, getattr(self, name)) for name in _NAMES]


_NAMES: Final = tuple(field.name for field in fields(Weights))
WEIGHTS = Weights()
