"""The features of the ranking: each an array over all rows, from 0 to about 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from scrubjay.engine.search.question import ParsedQuery
from scrubjay.engine.search.rank_columns import Columns, Floats, Mask


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


WORD_SHARE = 0.75
"""How much of the evidence that neighbors and sessions pass on comes from words, not meaning."""


def full_score(*, by_words: bool, weights: Weights = WEIGHTS) -> float:
    """The score of a row that holds all a question asks for, as well as any row does.

    `by_words`: where there are no vectors, so that meaning adds nothing.
    """
    ceiling = sum(weight for _, weight in weights.items() if weight > 0)
    words = weights.words + weights.coverage
    if by_words:
        return (words + WORD_SHARE * weights.session) / ceiling
    return (words + weights.meaning + weights.session) / ceiling


BROAD = 0.5
"""A date window that holds a larger share of all rows says nothing."""
DAY = 86400.0
OLD_DAYS = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """How well each row matches the query by itself."""

    words: Floats
    """BM25, 0 or more."""
    coverage: Floats
    """The share of the query's information the row holds, 0 to 1."""
    meaning: Floats | None = None
    """Cosine to the query with the scope's mean vector removed; None when there are no vectors."""


def compute(query: ParsedQuery, columns: Columns, evidence: Evidence) -> Mapping[str, Floats]:
    """All features by name; those that are 0 for every row are left out."""
    words = _to_one(evidence.words)
    meaning = np.zeros_like(words) if evidence.meaning is None else _spread(evidence.meaning)
    own = WORD_SHARE * words + (1 - WORD_SHARE) * meaning
    found = {
        "words": words,
        "coverage": evidence.coverage,
        "meaning": meaning,
    }
    found |= _surroundings(columns, own, evidence.coverage)
    found |= _aims(query, columns)
    found |= columns.manner
    found |= _age(query, columns)
    found |= _standing(query, columns)
    return found


def _surroundings(columns: Columns, own: Floats, coverage: Floats) -> dict[str, Floats]:
    """What the turns around a row and its session add."""
    held = _passed(coverage, columns)
    around = np.maximum(held[columns.previous], held[columns.following])
    passed = _passed(own, columns)[columns.previous]
    return {
        "answers": passed * columns.gate * columns.replies,
        "session": _best_of_session(columns, own),
        "nearby": np.maximum(around * columns.gate - coverage, 0),
    }


def _passed(values: Floats, columns: Columns) -> Floats:
    """What each row passes to its neighbors; the row at the end, that of no neighbor, nothing."""
    passed = np.zeros(len(values) + 1, np.float32)
    np.multiply(values, columns.gate, out=passed[:-1])
    return passed


def _best_of_session(columns: Columns, own: Floats) -> Floats:
    """For each row the best one of its session."""
    if not len(own):
        return own
    best: Floats = np.maximum.reduceat(own[columns.by_session], columns.session_starts)
    return best[columns.session_of]


def _aims(query: ParsedQuery, columns: Columns) -> dict[str, Floats]:
    """What the question is after: a speaker, a time."""
    found: dict[str, Mask] = {}
    if query.asked:
        found["speaker"] = _said_by(columns, query.asked)
    if query.windows:
        found["dated"] = _within(query, columns)
    if query.asked_at is not None and query.asked_at.timestamp() < columns.latest:
        found["later"] = columns.time > query.asked_at.timestamp()
    if query.when:
        found["when"] = columns.timed
    return {name: mask.astype(np.float32) for name, mask in found.items()}


def _said_by(columns: Columns, speakers: Iterable[int]) -> Mask:
    said = np.zeros(len(columns), np.bool_)
    for speaker in speakers:
        said |= columns.speaker == speaker
    return said


def _within(query: ParsedQuery, columns: Columns) -> Mask:
    inside = np.zeros(len(columns), np.bool_)
    for window in query.windows:
        first, last = window.start.timestamp(), window.end.timestamp()
        inside |= (columns.time >= first) & (columns.time < last)
    return inside if inside.mean() <= BROAD else np.zeros_like(inside)


def _age(query: ParsedQuery, columns: Columns) -> dict[str, Floats]:
    """How long ago a row was said when the question is asked: a day 0.1, a month 0.6, a year 1."""
    if query.asked_at is None:
        return {}
    days = ((query.asked_at.timestamp() - columns.time) / DAY).astype(np.float32)
    # A float's `log` is vectorized where `log1p` is not; below a day both say next to nothing.
    age = np.log(np.fmax(days, 0) + np.float32(1)) / np.float32(np.log1p(OLD_DAYS))
    return {"age": np.minimum(age, 1)}


def _standing(query: ParsedQuery, columns: Columns) -> dict[str, Floats]:
    """Standing instructions and wishes: they count where help is asked, similar or not."""
    if not query.advice:
        return {}
    people = ~_said_by(columns, query.assistants)
    return {
        "instruction": (columns.instructs & people).astype(np.float32),
        "preference": (columns.prefers & people).astype(np.float32),
    }


def _to_one(values: Floats) -> Floats:
    top = float(values.max(initial=0))
    return values / np.float32(top) if top > 0 else values


def _spread(values: Floats) -> Floats:
    if not len(values):
        return values
    low, high = float(values.min()), float(values.max())
    return (values - np.float32(low)) / np.float32(high - low) if high > low else values * 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One row of the answer: its score from 0 to 1 and the named parts that sum to it."""

    row: int
    score: float
    parts: Mapping[str, float]


def rank(
    query: ParsedQuery,
    columns: Columns,
    evidence: Evidence,
    *,
    limit: int,
    allowed: Mask | None = None,
    weights: Weights = WEIGHTS,
) -> list[Ranked]:
    """The best rows among those allowed, best first; equal ones in the order of their rows."""
    features = compute(query, columns, evidence)
    sums = total(features, weights, len(columns))
    if allowed is not None:
        sums = np.where(allowed, sums, -np.inf)
    rows = [row for row in _best(sums, limit) if sums[row] > -np.inf]
    parts = _parts(rows, features, weights)
    # Summed anew in double precision, so that what is shown adds up and never rises.
    order = sorted(rows, key=lambda row: (-sum(parts[row].values()), row))
    return [_bounded(row, parts[row]) for row in order]


def total(features: Mapping[str, Floats], weights: Weights, rows: int) -> Floats:
    """The weighted sum of the features for every row."""
    sums = np.zeros(rows, np.float32)
    for name, weight in weights.items():
        if name in features and weight:
            sums += np.float32(weight) * features[name]
    return sums


def _best(sums: Floats, limit: int) -> list[int]:
    if limit < len(sums):
        # Ties at the edge are settled by row, so that the answer never depends on the partition.
        edge = np.partition(sums, len(sums) - limit)[len(sums) - limit]
        candidates = np.flatnonzero(sums >= edge)
    else:
        candidates = np.arange(len(sums))
    order = np.argsort(-sums[candidates], kind="stable")[:limit]
    return [int(row) for row in candidates[order]]


def _parts(
    rows: Sequence[int], features: Mapping[str, Floats], weights: Weights
) -> dict[int, dict[str, float]]:
    """The parts of each row's score, but for those that add nothing."""
    ceiling = sum(weight for _, weight in weights.items() if weight > 0)
    found: dict[int, dict[str, float]] = {row: {} for row in rows}
    for name, weight in weights.items():
        if name not in features:
            continue
        share = weight / ceiling
        for row, value in zip(rows, features[name][rows].tolist(), strict=True):
            if part := share * value:
                found[row][name] = part
    return found


def _bounded(row: int, parts: dict[str, float]) -> Ranked:
    """A score from 0 to 1; what had to be cut off is a part of its own."""
    score = sum(parts.values())
    bounded = min(max(score, 0.0), 1.0)
    if bounded != score:
        parts = parts | {"bound": bounded - score}
    return Ranked(row=row, score=bounded, parts=parts)
