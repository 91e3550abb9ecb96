"""The ranking: weighted features, summed; every part of a score can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay.rank.columns import Columns, Floats, Mask
from scrubjay.rank.features import Evidence, compute
from scrubjay.rank.question import ParsedQuery
from scrubjay.rank.weights import WEIGHTS, Weights


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
