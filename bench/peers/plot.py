"""The picture: a line per entrant, a panel per figure, for light and dark pages alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from bench.peers.figures import Row

_LABELS, _PANEL, _GAP, _COUNT, _MARGIN = 212, 178, 34, 92, 24
_TOP, _LINE, _BOTTOM = 118, 34, 40
_NUMBERS = 44
"""Room to the right of a mark for its figure."""
_STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #3b434d; }
  .title { font-size: 18px; font-weight: 600; fill: #14181d; }
  .head { font-weight: 600; fill: #14181d; }
  .small { font-size: 11px; fill: #6a7480; }
  .ours { fill: #0b5cad; font-weight: 600; }
  .page { fill: #ffffff; }
  .grid { stroke: #e6eaee; }
  .stripe { fill: #f5f8fb; }
  .track { stroke: #b3bdc8; stroke-width: 3; stroke-linecap: round; }
  .bar, .dot { fill: #8a97a5; }
  .ring { fill: #ffffff; stroke: #8a97a5; stroke-width: 2; }
  .own .track { stroke: #8fc1f2; }
  .own .bar, .own .dot { fill: #0b6bcb; }
  .own .ring { stroke: #0b6bcb; }
  .end { text-anchor: end; }
  .middle { text-anchor: middle; }
"""
_DARK_STYLE = """
    text { fill: #b4bdc7; }
    .title, .head { fill: #f0f3f6; }
    .small { fill: #8d98a4; }
    .ours { fill: #74b8f7; }
    .page { fill: #12161b; }
    .grid { stroke: #272e36; }
    .stripe { fill: #181d24; }
    .track { stroke: #4a5561; }
    .bar, .dot { fill: #7d8a98; }
    .ring { fill: #12161b; stroke: #7d8a98; }
    .own .track { stroke: #2c5f93; }
    .own .bar, .own .dot { fill: #4fa3f2; }
    .own .ring { stroke: #4fa3f2; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Where a value is between 0 and 1, and which values are marked below."""

    low: float
    high: float
    ticks: tuple[float, ...]
    is_log: bool

    def share(self, value: float) -> float:
        """How far along the axis a value is."""
        if self.is_log:
            low, high = log10(self.low), log10(self.high)
            return (log10(max(value, self.low)) - low) / (high - low)
        return value / self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """One figure of every entrant, written beside its mark."""

    title: str
    hint: str
    value: Callable[[Row], float]
    start: Callable[[Row], float] | None = None
    """The other end of the mark; None for a bar from zero."""
    digits: int = 1


_PANELS = (
    _Panel(title="R@10", hint="% of the evidence · more is better", value=lambda r: r.recall.mean),
    _Panel(
        title="Write, ms",
        hint="first tenth (ring) to last (dot) · log",
        value=lambda r: r.write.last,
        start=lambda r: r.write.first,
        digits=2,
    ),
    _Panel(
        title="Search, ms",
        hint="median (dot) to p95 (ring) · log",
        value=lambda r: r.search.p50,
        start=lambda r: r.search.p95,
        digits=2,
    ),
    _Panel(title="Memory, MB", hint="beyond the harness", value=lambda r: r.ram_mb, digits=0),
)


def draw(rows: Sequence[Row], *, title: str) -> str:
    """An SVG of all rows, in their order."""
    width = _MARGIN * 2 + _LABELS + len(_PANELS) * (_PANEL + _GAP) + _COUNT
    height = _TOP + _LINE * len(rows) + _BOTTOM
    parts = [
        *_head(width, height, title),
        *_names(rows, width),
        *(
            part
            for number, panel in enumerate(_PANELS)
            for part in _draw_panel(panel, rows, _MARGIN + _LABELS + number * (_PANEL + _GAP))
        ),
        *_draw_copies(rows, width - _MARGIN - _COUNT / 2),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _head(width: float, height: float, title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{escape(title)}">'
    )
    yield f"<style>{_STYLE}  @media (prefers-color-scheme: dark) {{{_DARK_STYLE}  }}\n</style>"
    yield f'<rect class="page" width="{width}" height="{height}" rx="10"/>'
    yield f'<text class="title" x="{_MARGIN}" y="40">{escape(title)}</text>'


def _names(rows: Sequence[Row], width: float) -> Iterator[str]:
    for number, row in enumerate(rows):
        if number % 2 == 0:
            yield (
                f'<rect class="stripe" x="{_MARGIN / 2}" y="{_TOP + number * _LINE}" '
                f'width="{width - _MARGIN}" height="{_LINE}" rx="6"/>'
            )
        kind = ' class="ours"' if _is_ours(row) else ""
        yield f'<text{kind} x="{_MARGIN}" y="{_y(number) + 4.5}">{escape(row.entrant.name)}</text>'


def _draw_panel(panel: _Panel, rows: Sequence[Row], left: float) -> Iterator[str]:
    scale = _scale(panel, rows)
    bottom = _TOP + _LINE * len(rows)
    yield f'<text class="head" x="{left}" y="{_TOP - 34}">{panel.title}</text>'
    yield f'<text class="small" x="{left}" y="{_TOP - 16}">{panel.hint}</text>'
    for tick in scale.ticks:
        x = _x(scale, tick, left)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
        yield f'<text class="small middle" x="{x:.1f}" y="{bottom + 18}">{tick:g}</text>'
    for number, row in enumerate(rows):
        own = ' class="own"' if _is_ours(row) else ""
        marks = "".join(_marks(panel, row, scale, left, _y(number)))
        yield f"<g{own}>{marks}</g>"


def _marks(panel: _Panel, row: Row, scale: _Scale, left: float, y: float) -> Iterator[str]:
    value = panel.value(row)
    x = _x(scale, value, left)
    right = x
    if panel.start is None:
        yield (
            f'<rect class="bar" x="{left}" y="{y - 7}" width="{max(x - left, 1):.1f}" '
            'height="14" rx="3"/>'
        )
    else:
        begun = _x(scale, panel.start(row), left)
        right = max(x, begun)
        yield f'<line class="track" x1="{begun:.1f}" x2="{x:.1f}" y1="{y}" y2="{y}"/>'
        yield f'<circle class="dot" cx="{x:.1f}" cy="{y}" r="5.5"/>'
        yield f'<circle class="ring" cx="{begun:.1f}" cy="{y}" r="4"/>'
    kind = ' class="ours"' if _is_ours(row) else ""
    yield f'<text{kind} x="{right + 10:.1f}" y="{y + 4.5}">{_short(value, panel.digits)}</text>'


def _draw_copies(rows: Sequence[Row], middle: float) -> Iterator[str]:
    for text, kind, up in (("Copies left", "head", 34), ("of 5 deleted texts", "small", 16)):
        yield f'<text class="{kind} middle" x="{middle}" y="{_TOP - up}">{text}</text>'
    for number, row in enumerate(rows):
        kind = "ours middle" if _is_ours(row) else "middle"
        count = "-" if row.remains is None else f"{row.remains.ended:,}"
        yield f'<text class="{kind}" x="{middle}" y="{_y(number) + 4.5}">{count}</text>'


def _scale(panel: _Panel, rows: Sequence[Row]) -> _Scale:
    ends = [panel.value(row) for row in rows]
    if panel.start is None:
        high = _round_up(max(ends))
        return _Scale(low=0, high=high, ticks=(0, high / 2, high), is_log=False)
    values = [max(value, 1e-4) for value in [*ends, *map(panel.start, rows)]]
    first, last = floor(log10(min(values))), ceil(log10(max(values)))
    last = max(last, first + 1)
    ticks = tuple(10.0**power for power in range(first, last + 1))
    return _Scale(low=ticks[0], high=ticks[-1], ticks=ticks, is_log=True)


def _round_up(value: float) -> float:
    """The next number of one digit times 1, 2, 4 or 10: ends an axis well, halves well."""
    power = 10.0 ** floor(log10(max(value, 1e-9)))
    return next(factor * power for factor in (1, 2, 4, 6, 8, 10) if factor * power >= value)


def _x(scale: _Scale, value: float, left: float) -> float:
    return left + scale.share(value) * (_PANEL - _NUMBERS)


def _y(number: int) -> float:
    return _TOP + (number + 0.5) * _LINE


def _short(value: float, digits: int) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.{min(digits, 1 if value >= 10 else 9)}f}"


def _is_ours(row: Row) -> bool:
    return row.entrant.environment is None
