"""Means with an interval: how far they might be off, were other questions asked of this kind."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from operator import itemgetter

RESAMPLES = 2_000
SEED = 20
_COVERED = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


def estimate(shares: Mapping[str, Sequence[float]], *, seed: int = SEED) -> dict[str, Estimate]:
    """Percentile-bootstrap the mean of each column, in percent; row i of all is one question.

    All columns see the same resamples, and a seed gives the same ones everywhere.
    """
    count = len(next(iter(shares.values()), ()))
    means: dict[str, list[float]] = {name: [] for name in shares}
    for pick in _resamples(count, seed):
        for name, column in shares.items():
            means[name].append(sum(pick(column)) / count)
    return {name: _percent(sum(shares[name]) / count, sorted(means[name])) for name in shares}


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below or at which this share of sorted values lies, by nearest rank."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def _percent(mean: float, ordered: Sequence[float]) -> Estimate:
    tail = (1 - _COVERED) / 2
    low, high = quantile(ordered, tail), quantile(ordered, 1 - tail)
    return Estimate(100 * mean, 100 * low, 100 * high)


def _resamples(count: int, seed: int) -> Iterator[Callable[[Sequence[float]], tuple[float, ...]]]:
    # A hash in counter mode is all the chance this needs, and it cannot differ between machines.
    for number in range(RESAMPLES):
        raw = hashlib.shake_128(struct.pack("<QQ", seed, number)).digest(4 * count)
        drawn = [value % count for value in struct.unpack(f"<{count}I", raw)]
        yield itemgetter(*drawn) if count > 1 else tuple
