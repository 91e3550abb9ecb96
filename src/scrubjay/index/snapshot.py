"""A snapshot of an index: what a question is ranked by, while the index itself moves on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrubjay.index import postings
from scrubjay.index.analysis import Wanted
from scrubjay.index.columns import Columns
from scrubjay.index.postings import Match, Terms
from scrubjay.index.vectors import Vectors

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Dense = tuple[Vectors, Mask | None]
"""Vectors, and which of them count; None where all do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Every row of a scope that counted at one moment; never changes, so any thread may use it."""

    columns: Columns
    terms: Terms
    vectors: tuple[Dense, ...]
    mean: Floats
    """What the vectors of all rows have in common."""
    nearness: Floats
    """One over each vector's distance from the mean; 0 for a row that has none."""

    def match(self, wanted: Sequence[Wanted]) -> Match:
        """How well every row answers the wanted terms."""
        return postings.match(self.terms, wanted)

    def cosine(self, vector: Floats) -> Floats:
        """The cosine of every row with a vector, both seen from the mean."""
        turned = vector - self.mean
        length = float(np.sqrt(turned @ turned))
        if not length or not vector.any():
            return np.zeros(len(self.columns), np.float32)
        turned /= np.float32(length)
        dots = dense(self.vectors, turned)
        dots -= np.float32(self.mean @ turned)
        dots *= self.nearness
        return dots


def dense(parts: Sequence[Dense], query: Floats) -> Floats:
    """The dot product of every vector that counts with the query."""
    scores = [_counting(held.dot(query), alive) for held, alive in parts]
    if len(scores) == 1:
        return scores[0]
    return np.concatenate(scores) if scores else np.empty(0, np.float32)


def nearness(parts: Sequence[Dense], squares: Sequence[Floats], mean: Floats) -> Floats:
    """One over how far each vector is from the mean, given its squared length."""
    if not parts:
        return np.empty(0, np.float32)
    pairs = zip(squares, parts, strict=True)
    own = np.concatenate([_counting(one, alive) for one, (_, alive) in pairs])
    spread = own - 2 * dense(parts, mean) + np.float32(mean @ mean)
    distance = np.sqrt(np.maximum(spread, 0))
    found: Floats = np.zeros_like(distance)
    np.divide(1, distance, out=found, where=(own > 0) & (distance > 0))
    return found


def _counting(values: Floats, alive: Mask | None) -> Floats:
    return values if alive is None else values[alive]
