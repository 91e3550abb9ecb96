"""From what came back to figures: per set and per category, each with its interval."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log2
from statistics import fmean
from typing import TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scrubjay.model.memory import Json
from scrubjay.surfaces.evaluation.estimates import Estimate, estimate, quantile
from scrubjay.surfaces.evaluation.trial import Answer, Trial

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


_REASONS = 3


def show(console: Console, reports: Sequence[SetReport]) -> None:
    """Every set with its categories, then all sets side by side; in percent."""
    for one in reports:
        console.print(_set_table(one))
        for note in _notes(one):
            console.print(Text(note, style="dim"))
        console.print()
    if len(reports) > 1:
        console.print(_summary(reports))


def _set_table(one: SetReport) -> Table:
    table = _table(Text(one.name, style="bold"), list(one.overall.figures))
    table.add_row(*_row(one.overall), style="bold", end_section=True)
    for group in one.categories:
        table.add_row(*_row(group))
    return table


def _summary(reports: Sequence[SetReport]) -> Table:
    table = _table(Text("all sets", style="bold"), list(reports[0].overall.figures))
    for one in reports:
        table.add_row(Text(one.name), *_row(one.overall)[1:], end_section=one is reports[-1])
    means = (Text(f"{mean:.1f}") for mean in mean_of_sets(reports).values())
    table.add_row(Text("mean of sets"), Text(""), *means, style="bold")
    return table


def _table(title: Text, names: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="dim")
    table.add_column("", overflow="fold")
    for name in ("asked", *names):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _row(group: Group) -> list[Text]:
    figures = [_cell(found) for found in group.figures.values()]
    return [Text(group.name), Text(f"{group.questions:,}"), *figures]


def _cell(found: Estimate) -> Text:
    interval = f"{found.low:.0f}–{found.high:.0f}"  # noqa: RUF001  # a range takes a dash of this width
    return Text(f"{found.mean:.1f}\n").append(interval, style="not bold dim")


def _notes(one: SetReport) -> Iterator[str]:
    cost = one.timing
    retained = f"{cost.turns:,} turns retained, {cost.retain_per_second:,.0f} a second"
    yield f"{retained}; peak RAM {cost.peak_ram_mib:,.0f} MiB"
    usual = f"{cost.recall_p50_ms:.1f} ms (p50), {cost.recall_p95_ms:.1f} ms (p95)"
    yield f"recall {usual}, {cost.first_recall_ms:,.0f} ms the first time"
    if one.skipped:
        yield f"{one.skipped:,} questions without gold turns were skipped"
    if one.empty:
        yield f"{one.empty:,} turns without text were not retained"
    if one.degraded:
        yield f"{one.degraded:,} answers were degraded, so these figures could be better:"
        yield from (f"  {reason}" for reason in one.reasons[:_REASONS])
