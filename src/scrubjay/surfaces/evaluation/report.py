"""From what came back to figures: per set and per category, each with its interval."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from math import ceil, log2, sqrt
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scrubjay.model.compaction import TOLERATED, Compacted
from scrubjay.model.memory import Json
from scrubjay.model.results import INJECTED
from scrubjay.surfaces.evaluation.trial import RankedAnswer, Trial

RESAMPLES: Final = 2_000
SEED: Final = 20
_COVERED: Final = 0.95
_REASONS: Final = 3
THRESHOLDS: Final = (0.005, 0.01, INJECTED, 0.05, 0.1, 0.2)
"""Thresholds of relevance whose trade-off is reported."""
Judge: TypeAlias = Callable[[Sequence[str], frozenset[str]], float]

# -- figures --------------------------------------------------------------------------------------


class Measure(Struct, frozen=True, kw_only=True):
    """A metric by name, and the depth of ranking it needs."""

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
    gains = [1 / log2(rank + 1) for rank in range(1, k + 1)]
    gained = sum(gain for gain, id in zip(gains, ranked, strict=False) if id in gold)
    return gained / sum(gains[: len(gold)])


def reciprocal_rank(ranked: Sequence[str], gold: frozenset[str]) -> float:
    """1 over the rank of the first gold turn, 0 when none was recalled."""
    return next((1 / rank for rank, id in enumerate(ranked, start=1) if id in gold), 0.0)


def measures(top: int) -> tuple[Measure, ...]:
    """Every figure that the first `top` of a ranking can tell."""
    named = [(f"R@{k}", k, partial(recall_at, k)) for k in (5, 10, 20)]
    for name, judge in (("any", any_at), ("all", all_at), ("nDCG", ndcg_at)):
        named.append((f"{name}@10", 10, partial(judge, 10)))
    every = [Measure(name=name, depth=depth, judge=judge) for name, depth, judge in named]
    every.append(Measure(name="MRR", depth=1, judge=reciprocal_rank))
    return tuple(measure for measure in every if measure.depth <= top)


def recall_curve(top: int) -> tuple[Measure, ...]:
    """Recall at every depth down to `top`."""
    return tuple(
        Measure(name=f"R@{k}", depth=k, judge=partial(recall_at, k)) for k in range(1, top + 1)
    )


# -- means with an interval: how far they might be off, were other such questions asked -----------


class Estimate(Struct, frozen=True):
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
    for number in range(RESAMPLES):
        # A hash in counter mode is all the chance this needs; it is the same on every machine.
        raw = hashlib.shake_128(struct.pack("<QQ", seed, number)).digest(4 * count)
        drawn = [value % count for value in struct.unpack(f"<{count}I", raw)]
        pick = itemgetter(*drawn) if count > 1 else tuple
        for name, column in shares.items():
            means[name].append(sum(pick(column)) / count)
    tail = (1 - _COVERED) / 2
    estimates = {}
    for name, column in shares.items():
        ordered = sorted(means[name])
        ends = quantile(ordered, tail), quantile(ordered, 1 - tail)
        estimates[name] = Estimate(100 * (sum(column) / count), 100 * ends[0], 100 * ends[1])
    return estimates


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below or at which this share of sorted values lies, by nearest rank."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


# -- a set ----------------------------------------------------------------------------------------


class FigureGroup(Struct, frozen=True, kw_only=True):
    """The figures of a set or of one category in it, in percent, by name."""

    name: str
    questions: int
    figures: Mapping[str, Estimate]

    @classmethod
    def of(
        cls, name: str, answers: Sequence[RankedAnswer], chosen: Sequence[Measure]
    ) -> FigureGroup:
        """The chosen figures of some answers."""
        shares = {
            measure.name: [measure.judge(answer.ranked, answer.question.gold) for answer in answers]
            for measure in chosen
        }
        return cls(name=name, questions=len(answers), figures=estimate(shares))


class FoundNothing(Struct, frozen=True, kw_only=True):
    """Questions of one category that nothing answers, against those that something does."""

    name: str
    questions: int
    auroc: float
    """How often, in percent, an answered question's best relevance is above one of these."""
    silent: float
    """For how many, in percent, nothing is as relevant as what is injected unasked."""

    @classmethod
    def of(
        cls, name: str, unanswered: Sequence[RankedAnswer], answered: Sequence[RankedAnswer]
    ) -> FoundNothing:
        """The area under the curve; of two equal ones each counts half."""
        best = [max(answer.relevance, default=0.0) for answer in answered]
        foreign = [max(answer.relevance, default=0.0) for answer in unanswered]
        wins = sum((high > low) + (high == low) / 2 for high in best for low in foreign)
        auroc = 100 * wins / (len(best) * len(foreign))
        silent = 100 * fmean(one < INJECTED for one in foreign)
        return cls(name=name, questions=len(unanswered), auroc=auroc, silent=silent)


class Calibration(Struct, frozen=True, kw_only=True):
    """How far the relevance of hits is from the share of them that answer."""

    error: float
    """Expected calibration error over all hits, as a share; bins of a tenth."""
    first_error: float
    """The same over first hits."""
    kept: float
    """How much of the evidence found, in percent, is as relevant as what is injected unasked."""
    bins: tuple[tuple[float, float, int], ...]
    """Reliability table: mean relevance, share that answers, hits; for each tenth that has any."""
    trade_off: tuple[tuple[float, float, float | None], ...]
    """What each of THRESHOLDS keeps of the evidence found, and for how many of the questions that
    nothing answers it leaves nothing, in percent; None where there are no such questions."""

    @classmethod
    def of(
        cls, answers: Sequence[RankedAnswer], unanswered: Sequence[RankedAnswer] = ()
    ) -> Calibration:
        """The calibration of the hits of some answers, and the trade-off against the others."""
        hits = [
            [(p, id in one.question.gold) for id, p in zip(one.ranked, one.relevance, strict=True)]
            for one in answers
        ]
        every = [pair for some in hits for pair in some]
        bins = _bins(every)
        gold = [p for p, answers_it in every if answers_it]
        foreign = [max(answer.relevance, default=0.0) for answer in unanswered]

        def kept(threshold: float) -> float:
            return 100 * fmean(p >= threshold for p in gold) if gold else 0.0

        def silent(threshold: float) -> float | None:
            return 100 * fmean(p < threshold for p in foreign) if foreign else None

        return cls(
            error=_calibration_error(bins),
            first_error=_calibration_error(_bins([some[0] for some in hits if some])),
            kept=kept(INJECTED),
            bins=bins,
            trade_off=tuple((one, kept(one), silent(one)) for one in THRESHOLDS),
        )


def _bins(pairs: Sequence[tuple[float, bool]]) -> tuple[tuple[float, float, int], ...]:
    tenths: dict[int, list[tuple[float, bool]]] = {}
    for pair in pairs:
        tenths.setdefault(min(int(10 * pair[0]), 9), []).append(pair)
    return tuple(
        (fmean(p for p, _ in some), fmean(hit for _, hit in some), len(some))
        for _, some in sorted(tenths.items())
    )


def _calibration_error(bins: Sequence[tuple[float, float, int]]) -> float:
    count = sum(size for *_, size in bins)
    return sum(abs(mean - share) * size for mean, share, size in bins) / max(count, 1)


class Timing(Struct, frozen=True, kw_only=True):
    """Cost in time and memory; for information only, because it depends on the machine."""

    turns: int
    empty_turns: int
    retain_per_second: float
    recall_p50_ms: float
    recall_p95_ms: float
    first_recall_ms: float
    """The median of the first recalls after writing, which are not among the others."""
    peak_ram_mib: float


class SetReport(Struct, frozen=True, kw_only=True):
    """Everything measured on one set."""

    name: str
    overall: FigureGroup
    categories: tuple[FigureGroup, ...]
    nothing: tuple[FoundNothing, ...]
    calibration: Calibration
    timing: Timing
    degraded: int
    """Answers that were less than they could have been, for example by words alone."""
    reasons: tuple[str, ...]
    """Why they were, each reason once."""


def report(trial: Trial, *, top: int) -> SetReport:
    """The figures of a trial; those that need a deeper ranking than `top` are left out."""
    chosen = measures(top)
    answered = [answer for answer in trial.answers if answer.question.gold]
    with_gold: dict[str, list[RankedAnswer]] = {}
    without: dict[str, list[RankedAnswer]] = {}
    for answer in trial.answers:
        groups = with_gold if answer.question.gold else without
        groups.setdefault(answer.question.category, []).append(answer)
    first = sorted(1000 * answer.seconds for answer in trial.answers if answer.first)
    later = sorted(1000 * answer.seconds for answer in trial.answers if not answer.first)
    return SetReport(
        name=trial.name,
        overall=FigureGroup.of("overall", answered, chosen),
        categories=tuple(
            FigureGroup.of(name, answers, chosen) for name, answers in sorted(with_gold.items())
        ),
        nothing=tuple(
            FoundNothing.of(name, answers, answered) for name, answers in sorted(without.items())
        ),
        calibration=Calibration.of(answered, [one for some in without.values() for one in some]),
        timing=Timing(
            turns=trial.turns,
            empty_turns=trial.empty,
            retain_per_second=trial.turns / trial.retain_seconds if trial.retain_seconds else 0.0,
            recall_p50_ms=quantile(later or first, 0.5),
            recall_p95_ms=quantile(later or first, 0.95),
            first_recall_ms=quantile(first, 0.5),
            peak_ram_mib=trial.peak_ram_mib,
        ),
        degraded=sum(bool(answer.degraded) for answer in trial.answers),
        reasons=tuple(dict.fromkeys(r for answer in trial.answers for r in answer.degraded)),
    )


def curve(trial: Trial, *, top: int) -> tuple[Estimate, ...]:
    """Recall at 1, 2, … `top`."""
    answered = [answer for answer in trial.answers if answer.question.gold]
    return tuple(FigureGroup.of("", answered, recall_curve(top)).figures.values())


def mean_of_sets(reports: Sequence[SetReport]) -> dict[str, float]:
    """Each figure averaged over the sets, every set counting the same."""
    names = reports[0].overall.figures
    return {name: fmean(one.overall.figures[name].mean for one in reports) for name in names}


# -- as JSON --------------------------------------------------------------------------------------


def as_json(reports: Sequence[SetReport], *, top: int) -> dict[str, Json]:
    """The figures as plain values; those under `overall` and `categories` are numbers alone."""

    def by_group(one: SetReport, of: Callable[[FigureGroup], Json]) -> dict[str, Json]:
        return {
            "overall": of(one.overall),
            "categories": {group.name: of(group) for group in one.categories},
        }

    def means(group: FigureGroup) -> Json:
        return {name: round(found.mean, 2) for name, found in group.figures.items()}

    def intervals(group: FigureGroup) -> Json:
        return {
            name: [round(found.low, 2), round(found.high, 2)]
            for name, found in group.figures.items()
        }

    sets: dict[str, Json] = {}
    for one in reports:
        counts = by_group(one, lambda group: group.questions)
        sets[one.name] = {
            **by_group(one, means),
            "intervals": by_group(one, intervals),
            "questions": {**counts, "degraded": one.degraded},
            "nothing": {
                group.name: {
                    "questions": group.questions,
                    "AUROC": round(group.auroc, 2),
                    "silent": round(group.silent, 2),
                }
                for group in one.nothing
            },
            "calibration": {
                "error": round(one.calibration.error, 4),
                "first_error": round(one.calibration.first_error, 4),
                "kept": round(one.calibration.kept, 2),
                "bins": [
                    [round(mean, 4), round(share, 4), size]
                    for mean, share, size in one.calibration.bins
                ],
                "trade_off": [
                    [threshold, round(kept, 2), None if silent is None else round(silent, 2)]
                    for threshold, kept, silent in one.calibration.trade_off
                ],
            },
            "timing": {name: round(value, 2) for name, value in asdict(one.timing).items()},
        }
    return {
        "unit": "percent",
        "top": top,
        "interval": "95 %, percentile bootstrap over questions",
        "sets": sets,
        "mean": {name: round(mean, 2) for name, mean in mean_of_sets(reports).items()},
    }


def run_lines(trials: Iterable[Trial]) -> bytes:
    """The hits of every question as JSON lines, for inspection or the comparison of runs."""
    lines = [
        {
            "set": trial.name,
            "question": answer.question.id,
            "haystack": answer.question.haystack,
            "category": answer.question.category,
            "gold": sorted(answer.question.gold),
            "ranked": answer.ranked,
            "scores": answer.scores,
            "relevance": answer.relevance,
            "degraded": answer.degraded,
        }
        for trial in trials
        for answer in trial.answers
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


# -- as tables ------------------------------------------------------------------------------------


def show(console: Console, reports: Sequence[SetReport]) -> None:
    """Every set with its categories, then all sets side by side; in percent."""
    for one in reports:
        table = _table(one.name, one.overall.figures)
        table.add_row(*_row(one.overall), style="bold", end_section=True)
        for group in one.categories:
            table.add_row(*_row(group))
        console.print(table)
        console.print(_reliability(one.calibration))
        console.print(_trade_off(one.calibration))
        for note in _notes(one):
            console.print(Text(note, style="dim"))
        console.print()
    if len(reports) > 1:
        table = _table("all sets", reports[0].overall.figures)
        for one in reports:
            table.add_row(Text(one.name), *_row(one.overall)[1:], end_section=one is reports[-1])
        means = (Text(f"{mean:.1f}") for mean in mean_of_sets(reports).values())
        table.add_row(Text("mean of sets"), Text(""), *means, style="bold")
        console.print(table)


def _table(title: str, names: Iterable[str], *, first: str = "") -> Table:
    bold = Text(title, style="bold")
    table = Table(title=bold, title_justify="left", box=None, pad_edge=False, header_style="dim")
    table.add_column(first, overflow="fold")
    for name in names if first else ("asked", *names):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _reliability(found: Calibration) -> Table:
    """Mean relevance of the hits of each tenth, against the share of them that answers."""
    table = _table("", [f"{low / 10:.1f}" for low in range(10)], first="relevance from")
    tenths = {min(int(10 * mean), 9): (mean, share, size) for mean, share, size in found.bins}
    for name, column in (("mean, %", 0), ("answers, %", 1), ("hits", 2)):
        cells = (
            "" if at not in tenths else _cell(tenths[at][column], percent=column < 2)
            for at in range(10)
        )
        table.add_row(name, *cells)
    return table


def _trade_off(found: Calibration) -> Table:
    """What each threshold keeps and silences."""
    table = _table("", [f"{one:g}" for one, _, _ in found.trade_off], first="threshold")
    table.add_row("evidence kept, %", *(f"{kept:.1f}" for _, kept, _ in found.trade_off))
    if any(silent is not None for *_, silent in found.trade_off):
        silenced = (f"{silent or 0:.1f}" for *_, silent in found.trade_off)
        table.add_row("foreign questions silent, %", *silenced)
    return table


def _cell(value: float, *, percent: bool) -> str:
    return f"{100 * value:.1f}" if percent else f"{value:,.0f}"


def _row(group: FigureGroup) -> list[Text]:
    cells = [Text(group.name), Text(f"{group.questions:,}")]
    for found in group.figures.values():
        interval = f"{found.low:.0f}–{found.high:.0f}"  # noqa: RUF001  # a range takes a dash of this width
        cells.append(Text(f"{found.mean:.1f}\n").append(interval, style="not bold dim"))
    return cells


def _notes(one: SetReport) -> Iterator[str]:
    cost = one.timing
    retained = f"{cost.turns:,} turns retained, {cost.retain_per_second:,.0f} a second"
    yield f"{retained}; peak RAM {cost.peak_ram_mib:,.0f} MiB"
    usual = f"{cost.recall_p50_ms:.1f} ms (p50), {cost.recall_p95_ms:.1f} ms (p95)"
    yield f"recall {usual}, {cost.first_recall_ms:,.0f} ms the first time"
    for group in one.nothing:
        asked = f"{group.questions:,} questions nothing answers ({group.name})"
        told = f"told from the others with AUROC {group.auroc:.1f}"
        yield f"{asked}: {told}, {group.silent:.1f} % get nothing unasked"
    found = one.calibration
    error = (
        f"calibration error of relevance {found.error:.3f}, of first hits {found.first_error:.3f}"
    )
    yield f"{error}; {found.kept:.1f} % of the evidence found is kept when injected unasked"
    if cost.empty_turns:
        yield f"{cost.empty_turns:,} turns without text were not retained"
    if one.degraded:
        yield f"{one.degraded:,} answers were degraded, so these figures could be better:"
        yield from (f"  {reason}" for reason in one.reasons[:_REASONS])


# -- plots -----------------------------------------------------------------------------------------

_WIDTH, _HEIGHT = 820, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 190, 76, 60
_LINE_HEIGHT: Final = 17
_NAME_CHARS: Final = 18
_MARKED: Final = (1, 5, 10, 20, 50, 100)
_STEPS: Final = (1, 5, 10, 20, 50, 100, 200, 500, 1_000)
_COLORS: Final = 6
"""Number of line colors in plot.css; further lines are dashed."""


class ChartPoint(Struct, frozen=True):
    """A point of a line, the ends of its interval, and what a mark on it tells."""

    x: float
    y: float
    low: float
    high: float
    note: str = ""


class _Axis(Struct, frozen=True):
    """Ticks, and where values from the first to the last one are on the page."""

    ticks: Sequence[float]
    start: float
    end: float
    scale: Callable[[float], float]

    def at(self, value: float) -> float:
        low, high = self.scale(self.ticks[0]), self.scale(self.ticks[-1])
        share = (self.scale(value) - low) / (high - low) if high > low else 0.5
        return self.start + (self.end - self.start) * share


def draw(curves: Mapping[str, Sequence[Estimate]]) -> str:
    """Every set's recall at 1, 2, … k, in percent; all curves go to the same depth."""
    top = max(map(len, curves.values()))
    step = next(step for step in _STEPS if top <= 8 * step)
    lines = []
    for name, curve in curves.items():
        points = [
            ChartPoint(k, found.mean, found.low, found.high)
            for k, found in enumerate(curve, start=1)
        ]
        for k in {*_MARKED, top} & set(range(1, top + 1)):
            found = curve[k - 1]
            note = f"{name}, R@{k}: {found.mean:.1f} ({found.low:.1f} to {found.high:.1f})"
            points[k - 1] = replace(points[k - 1], note=note)
        lines.append((f"{_shortened(name)} {curve[-1].mean:.1f}", points))
    about = (
        "Share of the turns that hold the answer among the first k, in percent, with 95 % intervals"
    )
    return chart(
        "How much of the evidence is recalled",
        about,
        x_label="memories recalled (k)",
        x_ticks=sorted({1, top, *range(step, top - step // 2, step)}),
        y_ticks=range(0, 101, 20),
        lines=lines,
    )


def draw_calibration(found: Mapping[str, Calibration]) -> str:
    """Reliability diagram: the share of hits that answer, against their mean relevance."""
    ideal = [ChartPoint(x, x, x, x) for x in (0, 100)]
    lines: list[tuple[str, Sequence[ChartPoint]]] = [("as it should be", ideal)]
    for name, one in found.items():
        points = []
        for mean, share, size in one.bins:
            low, high = wilson(share, size)
            note = f"{name}: relevance {mean:.2f}, {100 * share:.1f} % of {size:,} hits answer"
            points.append(ChartPoint(100 * mean, 100 * share, 100 * low, 100 * high, note))
        if points:
            lines.append((_shortened(name), points))
    about = "Share of the hits that answer by their relevance, in percent, with 95 % intervals"
    ticks = range(0, 101, 20)
    return chart(
        "How far relevance can be trusted",
        about,
        x_label="mean relevance of the hits, in percent",
        x_ticks=ticks,
        y_ticks=ticks,
        lines=lines,
    )


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of so many."""
    z = 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    around = z * sqrt(share * (1 - share) / count + z * z / (4 * count**2)) / (1 + z * z / count)
    return max(middle - around, 0.0), min(middle + around, 1.0)


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_CHARS else name[: _NAME_CHARS - 1] + "…"


def draw_compaction(found: Compacted) -> str:
    """What a compaction gains and costs: recall against the tokens that are left, by attempt."""
    most = max(found.tokens_before, 1)
    points = [
        _exact(100 * one.tokens / most, one.recall, f"{one.tokens:,} tokens: {one.recall:.1f} %")
        for one in sorted(found.trials, key=lambda one: one.tokens)
    ]
    whole = [_exact(x, found.recall_before) for x in (0, 100)]
    floor = [_exact(x, found.recall_before - TOLERATED) for x in (0, 100)]
    return chart(
        "What compaction gains and costs",
        f"Percent of {found.questions:,} questions that are answered, against the tokens left",
        x_label="percent of the tokens left",
        x_ticks=range(0, 101, 20),
        y_ticks=range(0, 101, 20),
        lines=[("before", whole), ("tolerated", floor), ("after", points)],
    )


def _exact(x: float, y: float, note: str = "") -> ChartPoint:
    return ChartPoint(x, y, y, y, note)


def chart(
    title: str,
    about: str,
    *,
    x_label: str,
    x_ticks: Sequence[float],
    y_ticks: Sequence[float],
    lines: Sequence[tuple[str, Sequence[ChartPoint]]],
    scale: Callable[[float], float] = float,
) -> str:
    """The SVG of labeled lines, each with the band of its intervals; both axes have the scale."""
    across = _Axis(x_ticks, _LEFT, _WIDTH - _RIGHT, scale)
    up = _Axis(y_ticks, _HEIGHT - _BOTTOM, _TOP, scale)
    style = Path(__file__).with_name("plot.css").read_text("utf-8")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{escape(title)}. {escape(about)}">',
        f"<style>\n{style}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{_HEIGHT}" rx="10"/>',
        f'<text class="title" x="{_LEFT}" y="34">{escape(title)}</text>',
        f'<text x="{_LEFT}" y="55">{escape(about)}</text>',
        *_grid(across, up, x_label),
    ]
    for number, (_, line) in enumerate(lines):
        parts += _line(across, up, number, line)
    parts += [*_labels(up, lines), "</svg>"]
    return "\n".join(parts) + "\n"


def _grid(across: _Axis, up: _Axis, x_label: str) -> Iterator[str]:
    for tick in up.ticks:
        kind, y = "base" if tick == up.ticks[0] else "grid", up.at(tick)
        yield (
            f'<line class="{kind}" x1="{across.start}" x2="{across.end}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        yield f'<text class="end" x="{across.start - 10}" y="{y + 4:.1f}">{tick:g}</text>'
    for tick in across.ticks:
        x, y = across.at(tick), up.start
        yield f'<line class="base" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 5}"/>'
        yield f'<text class="middle" x="{x:.1f}" y="{y + 21}">{tick:g}</text>'
    middle = (across.start + across.end) / 2
    yield f'<text class="middle" x="{middle}" y="{_HEIGHT - 14}">{escape(x_label)}</text>'


def _line(across: _Axis, up: _Axis, number: int, line: Sequence[ChartPoint]) -> Iterator[str]:
    def at(point: ChartPoint, height: float) -> str:
        return f"{across.at(point.x):.1f},{up.at(height):.1f}"

    tone = f"s{number % _COLORS}"
    dashes = ' stroke-dasharray="7 5"' if number >= _COLORS else ""
    upper = [at(point, point.high) for point in line]
    lower = [at(point, point.low) for point in reversed(line)]
    middle = " ".join(at(point, point.y) for point in line)
    yield f'<polygon class="band {tone}" points="{" ".join(upper + lower)}"/>'
    yield f'<polyline class="line {tone}"{dashes} points="{middle}"/>'
    for point in line:
        if point.note:
            yield (
                f'<circle class="dot {tone}" cx="{across.at(point.x):.1f}" '
                f'cy="{up.at(point.y):.1f}" r="4"><title>{escape(point.note)}</title></circle>'
            )


def _labels(up: _Axis, lines: Sequence[tuple[str, Sequence[ChartPoint]]]) -> Iterator[str]:
    """Each line's name at its end, moved apart where two ends are close."""
    ends = sorted((up.at(line[-1].y), number) for number, (_, line) in enumerate(lines))
    room = up.start - _LINE_HEIGHT * (len(ends) - 1)
    y = 0.0
    for place, (end, number) in enumerate(ends):
        y = min(max(end + 4, y + _LINE_HEIGHT), room + _LINE_HEIGHT * place)
        yield (
            f'<text class="name s{number % _COLORS}" x="{_WIDTH - _RIGHT + 14}" y="{y:.1f}">'
            f"{escape(lines[number][0])}</text>"
        )
