"""A snapshot of an index: what a question is ranked by, while the index itself moves on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scrubjay.engine.search import postings
from scrubjay.engine.search.analysis import Wanted
from scrubjay.engine.search.columns import Columns
from scrubjay.engine.search.postings import Match, Terms
from scrubjay.engine.search.vectors import Vectors

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Dense = tuple[Vectors, Mask | None]
"""Vectors, and which of them count; None where all do."""


class Snapshot:
    """Every row of a scope that counted at one moment; never changes, so any thread may use it."""

    def __init__(
        self,
        *,
        columns: Columns,
        terms: Terms,
        vectors: Sequence[Dense],
        squares: Sequence[Floats],
        mean: Floats,
    ) -> None:
        self.columns = columns
        self._terms = terms
        self._vectors = vectors
        self._squares = squares
        self._mean = mean
        """What the vectors of all rows have in common."""
        self._nearness: Floats | None = None
        """One over each vector's distance from the mean; 0 for a row that has none."""

    def match(self, wanted: Sequence[Wanted]) -> Match:
        """How well every row answers the wanted terms."""
        return postings.match(self._terms, wanted)

    def cosine(self, vector: Floats) -> Floats:
        """The cosine of every row with a vector, both seen from the mean."""
        mean = self._mean
        turned = vector - mean
        length = float(np.sqrt(turned @ turned))
        if not length or not vector.any():
            return np.zeros(len(self.columns), np.float32)
        turned /= np.float32(length)
        dots, nearness = self._measured(turned)
        return (dots - np.float32(mean @ turned)) * nearness

    def _measured(self, turned: Floats) -> tuple[Floats, Floats]:
        """The dot product of every row with the vector, and how near each row is to the mean.

        Turning bytes into floats is most of the work of a product, so the first question measures
        the distances as well, at hardly any cost.
        """
        if (near := self._nearness) is None:
            both = _dense(self._vectors, np.stack([turned, self._mean], axis=1))
            near = self._nearness = self._near(both[:, 1])
            return both[:, 0], near
        return _dense(self._vectors, turned), near

    def _near(self, means: Floats) -> Floats:
        pairs = zip(self._squares, self._vectors, strict=True)
        own = _joined([_counting(one, alive) for one, (_, alive) in pairs])
        spread = own - 2 * means + np.float32(self._mean @ self._mean)
        distance = np.sqrt(np.maximum(spread, 0))
        found: Floats = np.zeros_like(distance)
        np.divide(1, distance, out=found, where=(own > 0) & (distance > 0))
        return found


def _dense(parts: Sequence[Dense], query: Floats) -> Floats:
    """The products of every vector that counts with the query, or with each of its columns."""
    if not parts:
        return np.empty((0, *query.shape[1:]), np.float32)
    return _joined([_counting(held.dot(query), alive) for held, alive in parts])


def _counting(values: Floats, alive: Mask | None) -> Floats:
    return values if alive is None else values[alive]


def _joined(pieces: Sequence[Floats]) -> Floats:
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if pieces else np.empty(0, np.float32)
