"""A picture of cost against size: lines on two logarithmic axes, readable in light and dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 190, 44, 48
_COLORS: Final = ("#2f7ed8", "#d9541e", "#3a9d5d", "#8e5ec7", "#b08900")
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#333}.grid{stroke:#8885;stroke-width:.6}"
    ".title{font-size:15px;font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.paper{fill:#16181d}}.paper{fill:#fff}"
    "@media(prefers-color-scheme:dark){.paper{fill:#16181d}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """A logarithmic axis from whole decades to whole decades."""

    low: int
    high: int
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> _Axis:
        low = math.floor(math.log10(min(values)))
        high = max(low + 1, math.ceil(math.log10(max(values))))
        return cls(low=low, high=high, start=start, end=end)

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def loglog(title: str, x: str, y: str, series: Mapping[str, Mapping[int, float]]) -> str:
    """The SVG of some series, each a mapping from size to cost."""
    sizes = [float(size) for line in series.values() for size in line]
    costs = [cost for line in series.values() for cost in line.values()]
    across = _Axis.over(sizes, _LEFT, _WIDTH - _RIGHT)
    up = _Axis.over(costs, _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
        f'<text class="title" x="{_LEFT}" y="24">{escape(title)}</text>',
        *_grid(across, up),
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">'
        f"{escape(x)}</text>",
        f'<text x="{_LEFT}" y="{_TOP - 6}">{escape(y)}</text>',
    ]
    for number, (name, line) in enumerate(series.items()):
        parts += _line(name, line, across, up, _COLORS[number % len(_COLORS)])
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(title)}"><style>{_STYLE}</style>\n{body}\n</svg>\n'
    )


def _grid(across: _Axis, up: _Axis) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    lines = []
    for tick in across.ticks():
        at = across.at(tick)
        lines.append(f'<path class="grid" d="M{at:.1f} {_TOP}V{bottom}"/>')
        lines.append(
            f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:,.0f}</text>'
        )
    for tick in up.ticks():
        at = up.at(tick)
        lines.append(f'<path class="grid" d="M{_LEFT} {at:.1f}H{right}"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{tick:g}</text>')
    return lines


def _line(name: str, line: Mapping[int, float], across: _Axis, up: _Axis, color: str) -> list[str]:
    points = [(across.at(size), up.at(cost)) for size, cost in sorted(line.items())]
    path = "L".join(f"{px:.1f} {py:.1f}" for px, py in points)
    dots = [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{color}"/>' for px, py in points]
    px, py = points[-1]
    label = f'<text x="{px + 10:.1f}" y="{py + 4:.1f}" style="fill:{color}">{escape(name)}</text>'
    return [f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>', *dots, label]
