"""How good one ranking is, given which turns hold the answer.

`ranked` has ids best first, each once; `gold` is never empty. Every figure is a share from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log2
from typing import TypeAlias

Judge: TypeAlias = Callable[[Sequence[str], frozenset[str]], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A named figure, and how deep a ranking must go for it to mean what it says."""

    name: str
    depth: int
    judge: Judge


def recall_at(k: int, ranked: Sequence[str], gold: frozenset[str]) -> float:
    """The share of the gold turns that are among the first k."""
    return len(gold.intersection(ranked[:k])) / len(gold)


def any_at(k: int, ranked: Sequence[str], gold: frozenset[str]) -> float:
    """1 when at least one gold turn is among the first k."""
    return float(not gold.isdisjoint(ranked[:k]))


def all_at(k: int, ranked: Sequence[str], gold: frozenset[str]) -> float:
    """1 when every gold turn is among the first k; with more than k of them it cannot be."""
    return float(gold.issubset(ranked[:k]))


def ndcg_at(k: int, ranked: Sequence[str], gold: frozenset[str]) -> float:
    """The discounted gain of the first k over the best k possible; a gold turn gains 1."""
    gained = sum(_discount(rank) for rank, id in enumerate(ranked[:k], start=1) if id in gold)
    return gained / sum(_discount(rank) for rank in range(1, min(k, len(gold)) + 1))


def reciprocal_rank(ranked: Sequence[str], gold: frozenset[str]) -> float:
    """1 over the rank of the first gold turn, 0 when none was recalled."""
    return next((1 / rank for rank, id in enumerate(ranked, start=1) if id in gold), 0.0)


def measures(top: int) -> tuple[Measure, ...]:
    """Every figure that the first `top` of a ranking can tell."""
    return tuple(measure for measure in _all() if measure.depth <= top)


def recall_curve(top: int) -> tuple[Measure, ...]:
    """Recall at every depth down to `top`."""
    return tuple(
        Measure(name=f"R@{k}", depth=k, judge=partial(recall_at, k)) for k in range(1, top + 1)
    )


def _all() -> Iterator[Measure]:
    for k in (5, 10, 20):
        yield Measure(name=f"R@{k}", depth=k, judge=partial(recall_at, k))
    for name, judge in (("any", any_at), ("all", all_at), ("nDCG", ndcg_at)):
        yield Measure(name=f"{name}@10", depth=10, judge=partial(judge, 10))
    yield Measure(name="MRR", depth=1, judge=reciprocal_rank)


def _discount(rank: int) -> float:
    return 1 / log2(rank + 1)
