"""From what came back to figures: per set and per category, each with its interval."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from scrubjay.domain.memory import Json
from scrubjay.surfaces.evaluation.estimates import Estimate, estimate, quantile
from scrubjay.surfaces.evaluation.metrics import Measure, measures, recall_curve
from scrubjay.surfaces.evaluation.trial import Answer, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The figures of a set or of one category in it, in percent, by name."""

    name: str
    questions: int
    figures: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What it cost; for information, since it is this machine's affair as much as ours."""

    turns: int
    retain_per_second: float
    recall_p50_ms: float
    recall_p95_ms: float
    first_recall_ms: float
    """The median of the first recalls after writing, which are not among the others."""
    peak_ram_mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReport:
    """Everything measured on one set."""

    name: str
    overall: Group
    categories: tuple[Group, ...]
    timing: Timing
    skipped: int
    empty: int
    degraded: int
    """Answers that were less than they could have been, for example by words alone."""
    reasons: tuple[str, ...]
    """Why they were, each reason once."""


def report(trial: Trial, *, top: int) -> SetReport:
    """The figures of a trial; those that need a deeper ranking than `top` are left out."""
    chosen = measures(top)
    categories = sorted({answer.question.category for answer in trial.answers})
    return SetReport(
        name=trial.name,
        overall=_group("overall", trial.answers, chosen),
        categories=tuple(
            _group(name, [a for a in trial.answers if a.question.category == name], chosen)
            for name in categories
        ),
        timing=_timing(trial),
        skipped=trial.skipped,
        empty=trial.empty,
        degraded=sum(bool(answer.degraded) for answer in trial.answers),
        reasons=tuple(dict.fromkeys(r for answer in trial.answers for r in answer.degraded)),
    )


def curve(trial: Trial, *, top: int) -> tuple[Estimate, ...]:
    """Recall at 1, 2, … `top`."""
    return tuple(_group(trial.name, trial.answers, recall_curve(top)).figures.values())


def mean_of_sets(reports: Sequence[SetReport]) -> dict[str, float]:
    """Each figure averaged over the sets, every set counting the same."""
    names = reports[0].overall.figures
    return {name: fmean(one.overall.figures[name].mean for one in reports) for name in names}


def as_json(reports: Sequence[SetReport], *, top: int) -> dict[str, Json]:
    """The figures as plain values; those under `overall` and `categories` are numbers alone."""
    return {
        "unit": "percent",
        "top": top,
        "interval": "95 %, percentile bootstrap over questions",
        "sets": {one.name: _set(one) for one in reports},
        "mean": {name: _rounded(mean) for name, mean in mean_of_sets(reports).items()},
    }


def run_lines(trials: Iterable[Trial]) -> bytes:
    """What was recalled for every question, as JSON lines, for looking closer or comparing runs."""
    lines = [
        json.dumps(_run_line(trial.name, answer), ensure_ascii=False)
        for trial in trials
        for answer in trial.answers
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def _group(name: str, answers: Sequence[Answer], chosen: Sequence[Measure]) -> Group:
    shares = {
        measure.name: [measure.judge(answer.ranked, answer.question.gold) for answer in answers]
        for measure in chosen
    }
    return Group(name=name, questions=len(answers), figures=estimate(shares))


def _timing(trial: Trial) -> Timing:
    first = sorted(1000 * answer.seconds for answer in trial.answers if answer.first)
    later = sorted(1000 * answer.seconds for answer in trial.answers if not answer.first)
    return Timing(
        turns=trial.turns,
        retain_per_second=trial.turns / trial.retain_seconds if trial.retain_seconds else 0.0,
        recall_p50_ms=quantile(later or first, 0.5),
        recall_p95_ms=quantile(later or first, 0.95),
        first_recall_ms=quantile(first, 0.5),
        peak_ram_mib=trial.peak_ram_mib,
    )


def _set(one: SetReport) -> dict[str, Json]:
    return {
        "overall": _means(one.overall),
        "categories": {group.name: _means(group) for group in one.categories},
        "intervals": {
            "overall": _intervals(one.overall),
            "categories": {group.name: _intervals(group) for group in one.categories},
        },
        "questions": {
            "overall": one.overall.questions,
            "categories": {group.name: group.questions for group in one.categories},
            "skipped": one.skipped,
            "degraded": one.degraded,
        },
        "timing": {
            "turns": one.timing.turns,
            "empty_turns": one.empty,
            "retain_per_second": _rounded(one.timing.retain_per_second),
            "recall_p50_ms": _rounded(one.timing.recall_p50_ms),
            "recall_p95_ms": _rounded(one.timing.recall_p95_ms),
            "first_recall_ms": _rounded(one.timing.first_recall_ms),
            "peak_ram_mib": _rounded(one.timing.peak_ram_mib),
        },
    }


def _means(group: Group) -> dict[str, Json]:
    return {name: _rounded(found.mean) for name, found in group.figures.items()}


def _intervals(group: Group) -> dict[str, Json]:
    return {
        name: [_rounded(found.low), _rounded(found.high)] for name, found in group.figures.items()
    }


def _run_line(name: str, answer: Answer) -> dict[str, Json]:
    question = answer.question
    return {
        "set": name,
        "question": question.id,
        "haystack": question.haystack,
        "category": question.category,
        "gold": [*sorted(question.gold)],
        "ranked": [*answer.ranked],
        "scores": [*answer.scores],
        "degraded": [*answer.degraded],
    }


def _rounded(value: float) -> float:
    return round(value, 2)
