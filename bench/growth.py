"""Whether a retain costs the same in a large scope as in a small one."""

from __future__ import annotations

from statistics import median
from typing import Final

from bench.measure import Comparison, Figure, alternate
from bench.report import Line, Section
from bench.writers import contest

MOST: Final = 1.25
_THREADS: Final = 8
_EACH: Final = 125
_BATCH: Final = _THREADS * _EACH


def run(*, quick: bool) -> Section:
    """Grow a scope and a bare table in step, and compare bucket by bucket."""
    bucket, buckets = (1000, 5) if quick else (5000, 10)
    section = Section(f"Cost of a retain from 0 to {bucket * buckets:,}")
    section.notes.append(
        f"Through {_THREADS} threads (lone retains would mostly wait for the disk), in batches of "
        f"{_BATCH:,} in turns with a bare table that grows in step by group commit. *Growth* is "
        "the median of the last two buckets over that of the first two."
    )
    found = _grow(bucket, buckets)
    for number, one in enumerate(found):
        name = f"{number * bucket:,} - {(number + 1) * bucket:,}"
        section.compare(f"CPU, {name}", one.cpu)
        section.compare(f"clock, {name}", one.wall)
    section.lines.append(_growth("CPU", [one.cpu for one in found]))
    section.lines.append(_growth("clock", [one.wall for one in found]))
    return section


def _grow(bucket: int, buckets: int) -> list[Comparison]:
    rounds = bucket // _BATCH
    with contest(threads=_THREADS, each=_EACH) as both:
        return [alternate(rounds, both.ours, both.floor) for _ in range(buckets)]


def _growth(name: str, figures: list[Figure]) -> Line:
    """How much the cost grew from the first buckets to the last, on both sides."""
    ours = _last_to_first([figure.ours.median for figure in figures])
    floor = _last_to_first([figure.floor.median for figure in figures])
    return Line(
        what=f"growth of {name}, last to first",
        figure=f"{ours:.2f}x",
        floor=f"{floor:.2f}x",
        ratio=f"{ours / floor:.2f}x",
        target=f"≤ {MOST:g}x its floor's",
        reached=ours <= MOST * floor,
    )


def _last_to_first(medians: list[float]) -> float:
    return median(medians[-2:]) / median(medians[:2])
