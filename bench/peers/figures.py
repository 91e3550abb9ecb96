"""From what was seen in a trial to the figures of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

from bench.peers.material import Question
from bench.peers.roster import Entrant
from bench.peers.trial import LIMIT, Result
from scrubjay.surfaces.evaluation.report import Estimate, all_at, estimate, quantile, recall_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Milliseconds: the usual, the mean, the slow, and the first and last tenth's usual."""

    p50: float
    mean: float
    p95: float
    slowest: float
    first: float
    last: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Times:
        """The figures of these times, in the order they were taken."""
        tenth = max(1, len(seconds) // 10)
        return cls(
            p50=1000 * median(seconds),
            mean=1000 * mean(seconds),
            p95=1000 * quantile(sorted(seconds), 0.95),
            slowest=1000 * max(seconds),
            first=1000 * median(seconds[:tenth]),
            last=1000 * median(seconds[-tenth:]),
        )

    @property
    def growth(self) -> float:
        """How many times as long the last tenth takes as the first."""
        return self.last / self.first if self.first else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """Copies of the canaries on disk: when written, after the delete, after the process ended."""

    written: int
    deleted: int
    ended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """All figures of one entrant."""

    entrant: Entrant
    version: str
    recall: Estimate
    complete: Estimate
    write: Times
    write_cpu: Times
    search: Times
    search_cpu: float
    delete_ms: float
    ram_mb: float
    remains: Remains | None
    """None where nothing is on disk by design."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """An entrant that could not be measured, and why."""

    entrant: Entrant
    reason: str


def row(entrant: Entrant, result: Result, questions: Sequence[Question], *, ended: int) -> Row:
    """The figures of one trial; `ended` are the copies found after its process was gone."""
    pairs = [(result.ranked[question.id], frozenset(question.gold)) for question in questions]
    shares = estimate(
        {
            "recall": [recall_at(LIMIT, ranked, gold) for ranked, gold in pairs],
            "all": [all_at(LIMIT, ranked, gold) for ranked, gold in pairs],
        }
    )
    remains = Remains(written=result.copies_written, deleted=result.copies_deleted, ended=ended)
    return Row(
        entrant=entrant,
        version=result.version,
        recall=shares["recall"],
        complete=shares["all"],
        write=Times.of(result.writes),
        write_cpu=Times.of(result.writes_cpu),
        search=Times.of(result.searches),
        search_cpu=1000 * result.searches_cpu,
        delete_ms=1000 * median(result.deletes),
        ram_mb=result.ram / 1e6,
        remains=remains if entrant.on_disk else None,
    )
