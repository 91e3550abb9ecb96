"""The features of the ranking: each an array over all rows, from 0 to about 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from scrubjay.rank.columns import Columns, Floats, Mask
from scrubjay.rank.question import ParsedQuery

WORD_SHARE = 0.75
"""How much of the evidence that neighbors and sessions pass on comes from words, not meaning."""
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
