"""Measuring on a noisy machine: small alternating batches, paired, and medians with their spread.

The two sides of a comparison take turns, so that what else the machine does falls on both. Batches
are small, for that; a *block* of them is large enough to hold its share of the rare and expensive
(checkpoints), and a ratio is taken block by block.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter, process_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a batch took, in seconds, and how many operations it had."""

    wall: float
    cpu: float
    count: int


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of these values."""
        if len(values) < 2:
            return cls(values[0], values[0], values[0])
        low, _, high = quantiles(values, n=4, method="inclusive")
        return cls(median(values), low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One side beside the other, and the ratio of the two."""

    ours: Spread
    floor: Spread
    ratio: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The batches of two sides, taken in turns."""

    ours: Sequence[Cost]
    floor: Sequence[Cost]
    block: int = 1
    """How many batches are taken together before a ratio is formed."""

    @property
    def cpu(self) -> Figure:
        """User and system time of the process per operation."""
        return self._figure(lambda cost: cost.cpu)

    @property
    def wall(self) -> Figure:
        """Time on the clock per operation."""
        return self._figure(lambda cost: cost.wall)

    def _figure(self, part: Callable[[Cost], float]) -> Figure:
        ours = _blocks(self.ours, self.block, part)
        floor = _blocks(self.floor, self.block, part)
        ratios = [one / other for one, other in zip(ours, floor, strict=True)]
        return Figure(ours=Spread.of(ours), floor=Spread.of(floor), ratio=Spread.of(ratios))


def _blocks(costs: Sequence[Cost], block: int, part: Callable[[Cost], float]) -> list[float]:
    """The time per operation of each block."""
    taken = [costs[at : at + block] for at in range(0, len(costs), block)]
    return [sum(map(part, some)) / sum(cost.count for cost in some) for some in taken]


def timed(work: Callable[[], object], count: int = 1) -> Cost:
    """What `work` takes, which is `count` operations."""
    cpu, wall = process_time(), perf_counter()
    work()
    return Cost(wall=perf_counter() - wall, cpu=process_time() - cpu, count=count)


def alternate(
    rounds: int, ours: Callable[[], Cost], floor: Callable[[], Cost], *, block: int = 1
) -> Comparison:
    """Let two sides take turns, each beginning every other round."""
    costs: tuple[list[Cost], list[Cost]] = ([], [])
    for turn in range(rounds):
        sides = ((ours, costs[0]), (floor, costs[1]))
        for side, taken in sides if turn % 2 == 0 else sides[::-1]:
            taken.append(side())
    return Comparison(ours=costs[0], floor=costs[1], block=block)


def timed_together(threads: int, each: int, work: Callable[[int, int], object]) -> Cost:
    """What `threads` threads take for `work(thread, turn)` in `each` turns, begun at once."""
    gate = threading.Barrier(threads + 1)
    failures: list[BaseException] = []

    def run(thread: int) -> None:
        gate.wait()
        try:
            for turn in range(each):
                work(thread, turn)
        except BaseException as error:  # seam: it is raised again in the thread that measures
            failures.append(error)

    workers = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()

    def together() -> None:
        gate.wait()
        for worker in workers:
            worker.join()

    cost = timed(together, threads * each)
    if failures:
        raise failures[0]
    return cost
