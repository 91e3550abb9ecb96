"""The report: one table per benchmark, one line per figure, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.measure import Figure, Spread

_HEAD = "| what | figure | floor or peer | ratio | target | reached |\n|---|---|---|---|---|---|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure, what it is compared with, and whether it is as wanted."""

    what: str
    figure: str
    floor: str = "-"
    ratio: str = "-"
    target: str = "-"
    reached: bool | None = None

    def __str__(self) -> str:
        reached = {True: "yes", False: "**no**", None: "-"}[self.reached]
        cells = (self.what, self.figure, self.floor, self.ratio, self.target, reached)
        return f"| {' | '.join(cells)} |"


@dataclass(slots=True)
class Section:
    """One benchmark's lines, and how they were taken."""

    title: str
    reason: str = ""
    """Why a target may be missed; said only where one is."""
    notes: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def compare(
        self, what: str, figure: Figure, *, unit: str = "µs", most: float | None = None
    ) -> None:
        """Add a time beside its floor; `most` is the ratio it is to stay under."""
        self.lines.append(
            Line(
                what=what,
                figure=duration(figure.ours, unit),
                floor=duration(figure.floor, unit),
                ratio=spread(figure.ratio),
                target="-" if most is None else f"≤ {most:g}x",
                reached=None if most is None else figure.ratio.median <= most,
            )
        )

    def count(
        self, what: str, ours: float, floor: float, *, unit: str = "", most: float | None = None
    ) -> None:
        """Add a count beside its floor."""
        self.lines.append(
            Line(
                what=what,
                figure=f"{ours:,.0f}{unit}",
                floor=f"{floor:,.0f}{unit}",
                ratio=f"{ours / floor:.2f}x",
                target="-" if most is None else f"≤ {most:g}x",
                reached=None if most is None else ours <= most * floor,
            )
        )

    def __str__(self) -> str:
        is_missed = any(line.reached is False for line in self.lines)
        reasons = [f"Not reached: {self.reason}"] if is_missed and self.reason else []
        notes = "\n\n".join([*self.notes, *reasons])
        lines = "\n".join(map(str, self.lines))
        return f"## {self.title}\n\n{notes}\n\n{_HEAD}\n{lines}\n"


def duration(times: Spread, unit: str) -> str:
    """A median time with its quartiles, in µs, ms or s."""
    factor = {"µs": 1e6, "ms": 1e3, "s": 1.0}[unit]
    digits = 0 if times.median * factor >= 100 else 1 if times.median * factor >= 10 else 2
    middle, low, high = (f"{t * factor:,.{digits}f}" for t in (times.median, times.low, times.high))
    return f"{middle} {unit}" if low == high else f"{middle} {unit} ({low} - {high})"


def spread(ratios: Spread) -> str:
    """A median ratio with its quartiles."""
    if ratios.low == ratios.high:
        return f"{ratios.median:.2f}x"
    return f"{ratios.median:.2f}x ({ratios.low:.2f} - {ratios.high:.2f})"


def render(preamble: Sequence[str], sections: Sequence[Section]) -> str:
    """The whole report."""
    missed = [
        f"- {section.title}: {line.what}: {line.figure}, {line.ratio} of {line.floor}; "
        f"wanted {line.target}"
        for section in sections
        for line in section.lines
        if line.reached is False
    ]
    wanted = sum(line.reached is not None for section in sections for line in section.lines)
    summary = f"{wanted - len(missed)} of {wanted} targets reached."
    if missed:
        summary += " Not reached:\n\n" + "\n".join(missed)
    parts = ["# Measurements", *preamble, summary, _targets(sections), *map(str, sections)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _targets(sections: Sequence[Section]) -> str:
    """Every figure that has a target, in one table."""
    found = [
        f"| {section.title}: {line.what} | {line.figure} | {line.ratio} | {line.target} | "
        f"{'yes' if line.reached else '**no**'} |"
        for section in sections
        for line in section.lines
        if line.reached is not None
    ]
    head = "| what | figure | ratio | target | reached |\n|---|---|---|---|---|"
    return "\n".join(("## What was to be reached", "", head, *found))
