"""Line charts as SVG, for light and dark pages: recall against depth, cost against size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from math import sqrt
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from scrubjay.model.compaction import TOLERATED, Compacted
from scrubjay.surfaces.evaluation.report import Calibration, Estimate

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
