"""Cost against size on two logarithmic axes, by the plotter of `scrubjay eval --plot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

from scrubjay.surfaces.evaluation.report import ChartPoint, chart


def loglog(title: str, x: str, y: str, series: Mapping[str, Mapping[int, float]]) -> str:
    """Costs against sizes on two logarithmic axes, from whole decades to whole decades."""

    def decades(values: Sequence[float]) -> list[float]:
        low = floor(log10(min(values)))
        high = max(low + 1, ceil(log10(max(values))))
        return [10.0**power for power in range(low, high + 1)]

    lines = [
        (
            name,
            [
                ChartPoint(size, cost, cost, cost, f"{name}, {size:,}: {cost:g} {y}")
                for size, cost in sorted(line.items())
            ],
        )
        for name, line in series.items()
    ]
    points = [point for _, line in lines for point in line]
    return chart(
        title,
        y,
        x_label=x,
        x_ticks=decades([point.x for point in points]),
        y_ticks=decades([point.y for point in points]),
        lines=lines,
        scale=log10,
    )
