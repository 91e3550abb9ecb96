"""The picture: recall against depth, a line per set with its interval, for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from scrubjay.surfaces.evaluation.estimates import Estimate

Curve = Sequence[Estimate]
"""Recall in percent at 1, 2, 3, …"""

_WIDTH, _HEIGHT = 820, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 190, 76, 60
_LINE_HEIGHT = 17
_NAME_CHARS = 18
_MARKED = (1, 5, 10, 20, 50, 100)
# Told apart by most color-blind readers, in a tone for light and one for dark pages.
_COLORS = (
    ("#0a67b8", "#62b0f5"),
    ("#c2500a", "#f59a52"),
    ("#0b7f5f", "#4fcaa2"),
    ("#9c3587", "#e48bd0"),
    ("#8a6a00", "#e0bd4a"),
    ("#56606b", "#aab4bf"),
)
_STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #3b434d; }
  .title { font-size: 17px; font-weight: 600; fill: #14181d; }
  .page { fill: #ffffff; }
  .grid { stroke: #e4e8ec; }
  .base { stroke: #98a2ad; }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; stroke-linecap: round; }
  .band { stroke: none; fill-opacity: 0.13; }
  .dot { stroke: #ffffff; stroke-width: 1.5; }
  .name { font-weight: 600; }
  .middle { text-anchor: middle; }
  .end { text-anchor: end; }
"""
_DARK_STYLE = """
    text { fill: #b4bdc7; }
    .title { fill: #f0f3f6; }
    .page { fill: #12161b; }
    .grid { stroke: #272e36; }
    .base { stroke: #6b7682; }
    .band { fill-opacity: 0.2; }
    .dot { stroke: #12161b; }
"""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a depth and a percentage are on the page."""

    top: int

    def x(self, k: int) -> float:
        span = _WIDTH - _LEFT - _RIGHT
        return _LEFT + span * ((k - 1) / (self.top - 1) if self.top > 1 else 0.5)

    def y(self, percent: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * percent / 100

    def at(self, k: int, percent: float) -> str:
        return f"{self.x(k):.1f},{self.y(percent):.1f}"


def draw(curves: Mapping[str, Curve]) -> str:
    """An SVG of every set's recall at 1, 2, … k; all curves go to the same depth."""
    frame = _Frame(max(map(len, curves.values())))
    named = list(curves.items())
    parts = [
        *_head(frame),
        *_axes(frame),
        *(band for number, (_, curve) in enumerate(named) for band in _band(frame, number, curve)),
        *(
            part
            for number, (name, curve) in enumerate(named)
            for part in _line(frame, number, name, curve)
        ),
        *_labels(frame, named),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _head(frame: _Frame) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="Recall at 1 to {frame.top} for each data set, in percent">'
    )
    light = "".join(_tones([color for color, _ in _COLORS]))
    dark = "".join(_tones([color for _, color in _COLORS]))
    at_night = f"@media (prefers-color-scheme: dark) {{{_DARK_STYLE}{dark}}}"
    yield f"<style>{_STYLE}{light}{at_night}</style>"
    yield f'<rect class="page" width="{_WIDTH}" height="{_HEIGHT}" rx="10"/>'
    yield f'<text class="title" x="{_LEFT}" y="34">How much of the evidence is recalled</text>'
    yield (
        f'<text x="{_LEFT}" y="55">Share of the turns that hold the answer among the first k, '
        "in percent, with 95 % intervals</text>"
    )


def _tones(colors: Sequence[str]) -> Iterator[str]:
    """Rules without variables, which simple viewers do not know."""
    for number, color in enumerate(colors):
        yield f"  .line.s{number} {{ stroke: {color}; }}\n"
        yield f"  .band.s{number}, .dot.s{number}, .name.s{number} {{ fill: {color}; }}\n"


def _axes(frame: _Frame) -> Iterator[str]:
    left, right = _LEFT, _WIDTH - _RIGHT
    for percent in range(0, 101, 20):
        y = frame.y(percent)
        kind = "base" if percent == 0 else "grid"
        yield f'<line class="{kind}" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="end" x="{left - 10}" y="{y + 4:.1f}">{percent}</text>'
    for k in _ticks(frame.top):
        x, y = frame.x(k), frame.y(0)
        yield f'<line class="base" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 5}"/>'
        yield f'<text class="middle" x="{x:.1f}" y="{y + 21}">{k}</text>'
    middle = (left + right) / 2
    yield f'<text class="middle" x="{middle}" y="{_HEIGHT - 14}">memories recalled (k)</text>'


def _ticks(top: int) -> list[int]:
    step = next(step for step in (1, 5, 10, 20, 50, 100, 200, 500, 1_000) if top <= 8 * step)
    return sorted({1, top, *range(step, top - step // 2, step)})


def _band(frame: _Frame, number: int, curve: Curve) -> Iterator[str]:
    upper = [frame.at(k, found.high) for k, found in enumerate(curve, start=1)]
    lower = [frame.at(k, found.low) for k, found in enumerate(curve, start=1)]
    yield f'<polygon class="band {_tone(number)}" points="{" ".join(upper + lower[::-1])}"/>'


def _line(frame: _Frame, number: int, name: str, curve: Curve) -> Iterator[str]:
    points = " ".join(frame.at(k, found.mean) for k, found in enumerate(curve, start=1))
    dashes = ' stroke-dasharray="7 5"' if number >= len(_COLORS) else ""
    yield f'<polyline class="line {_tone(number)}"{dashes} points="{points}"/>'
    for k in sorted({*_MARKED, len(curve)}):
        if k <= len(curve):
            found = curve[k - 1]
            told = f"{name}, R@{k}: {found.mean:.1f} ({found.low:.1f} to {found.high:.1f})"
            yield (
                f'<circle class="dot {_tone(number)}" cx="{frame.x(k):.1f}" '
                f'cy="{frame.y(found.mean):.1f}" r="4"><title>{escape(told)}</title></circle>'
            )


def _labels(frame: _Frame, named: Sequence[tuple[str, Curve]]) -> Iterator[str]:
    """Each line's name at its end, moved apart where two ends are close."""
    ends = sorted((frame.y(curve[-1].mean), number) for number, (_, curve) in enumerate(named))
    room = frame.y(0) - _LINE_HEIGHT * (len(ends) - 1)
    y = 0.0
    for place, (end, number) in enumerate(ends):
        y = min(max(end + 4, y + _LINE_HEIGHT), room + _LINE_HEIGHT * place)
        name, curve = named[number]
        short = name if len(name) <= _NAME_CHARS else name[: _NAME_CHARS - 1] + "…"
        yield (
            f'<text class="name {_tone(number)}" x="{_WIDTH - _RIGHT + 14}" y="{y:.1f}">'
            f"{escape(short)} {curve[-1].mean:.1f}</text>"
        )


def _tone(number: int) -> str:
    return f"s{number % len(_COLORS)}"
