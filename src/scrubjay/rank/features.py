"""The features of the ranking: each an array over all rows, from 0 to about 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scrubjay.rank.columns import NONE, Codes, Columns, Floats, Mask
from scrubjay.rank.question import ParsedQuery

WORD_SHARE = 0.75
"""How much of the evidence that neighbors and sessions pass on comes from words, not meaning."""
BEST_OF_SESSION = 3
QUOTABLE = 250
"""Characters up to which a turn passes its whole score to its neighbors."""
SHORT = 120
LONG = 400
BROAD = 0.5
"""A date window that holds a larger share of all rows says nothing."""
STRONG = 25.0
"""About the BM25 of a row that holds two rare words."""
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
        "rare": np.minimum(evidence.words / np.float32(STRONG), 2),
        "coverage": evidence.coverage,
        "meaning": meaning,
    }
    found |= _surroundings(columns, own, evidence.coverage)
    found |= _aims(query, columns)
    found |= _shape(columns)
    found |= _age(query, columns)
    found |= _standing(query, columns, meaning)
    return found


def _surroundings(columns: Columns, own: Floats, coverage: Floats) -> dict[str, Floats]:
    gate = np.minimum(1, QUOTABLE / np.maximum(columns.length, 1)).astype(np.float32)
    before = _pass_on(own, gate, columns.previous)
    around = np.maximum(
        _pass_on(coverage, gate, columns.previous), _pass_on(coverage, gate, columns.following)
    )
    return {
        "previous": before,
        "following": _pass_on(own, gate, columns.following),
        "answers": before * _replies(columns),
        "session": _best_of_session(columns, own),
        "nearby": np.maximum(around - coverage, 0),
    }


def _pass_on(own: Floats, gate: Floats, neighbor: Codes) -> Floats:
    """A neighbor's score, less of it the longer the turns: long replies would drown short ones."""
    passed = (own * gate)[neighbor] * gate
    passed[neighbor == NONE] = 0
    return passed


def _replies(columns: Columns) -> Mask:
    """Rows that answer somebody else's question."""
    before = columns.previous
    other = columns.speaker[before] != columns.speaker
    replies: Mask = (before != NONE) & columns.asks[before] & other
    return replies


def _best_of_session(columns: Columns, own: Floats) -> Floats:
    """The mean of the session's best rows, for each of its rows."""
    starts = columns.session_starts
    sizes = np.diff(np.append(starts, len(own)))
    left = own[columns.by_session]
    total = np.zeros(len(starts), np.float32)
    for _ in range(BEST_OF_SESSION):
        best = np.maximum.reduceat(left, starts)
        total += np.maximum(best, 0)
        left[left == np.repeat(best, sizes)] = -1
    shared = np.empty_like(own)
    shared[columns.by_session] = np.repeat(total / BEST_OF_SESSION, sizes)
    return shared


def _aims(query: ParsedQuery, columns: Columns) -> dict[str, Floats]:
    """What the question is after: a speaker, a time, a number, a name."""
    found: dict[str, Mask] = {}
    if query.asked:
        found["speaker"] = np.isin(columns.speaker, list(query.asked))
    if len(query.named) > 1:
        found["subject"] = columns.speaker == query.named[0]
    if query.windows:
        found["dated"] = _within(query, columns)
    if query.asked_at is not None:
        found["later"] = columns.time > query.asked_at.timestamp()
    if query.when:
        found["when"] = columns.timed
    if query.count:
        found["count"] = columns.counts
    if query.name:
        found["name"] = columns.names
    return {name: mask.astype(np.float32) for name, mask in found.items()}


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
    days = np.maximum(query.asked_at.timestamp() - columns.time, 0) / DAY
    age = np.minimum(np.log1p(np.nan_to_num(days)) / np.log1p(OLD_DAYS), 1)
    return {"age": age.astype(np.float32)}


def _shape(columns: Columns) -> dict[str, Floats]:
    """Very short turns and very long ones seldom hold the answer; questions neither."""
    size = np.log(np.maximum(columns.length, 5)).astype(np.float32)
    return {
        "short": np.maximum(np.float32(np.log(SHORT)) - size, 0),
        "long": np.maximum(size - np.float32(np.log(LONG)), 0),
        "question": columns.asks.astype(np.float32),
        "importance": columns.importance - np.float32(0.5),
        "distrust": 1 - columns.trust,
        "pinned": columns.pinned.astype(np.float32),
    }


def _standing(query: ParsedQuery, columns: Columns, meaning: Floats) -> dict[str, Floats]:
    """Standing instructions and wishes: they count where help is asked, similar or not."""
    people = ~np.isin(columns.speaker, list(query.assistants))
    instructs = (columns.instructs & people).astype(np.float32)
    found = {"instruction": instructs * meaning}
    if query.advice:
        found["instruction_now"] = instructs
        found["preference_now"] = (columns.prefers & people).astype(np.float32)
    return found


def _to_one(values: Floats) -> Floats:
    top = float(values.max(initial=0))
    return values / np.float32(top) if top > 0 else values


def _spread(values: Floats) -> Floats:
    if not len(values):
        return values
    low, high = float(values.min()), float(values.max())
    return (values - np.float32(low)) / np.float32(high - low) if high > low else values * 0
