"""Metrics in the text form of Prometheus. No scope, key or text is ever a label.

Written by hand, because importing `prometheus_client` takes 84 ms (this: 1 ms) and its registries
and collectors would take about as many lines as these.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from scrubjay import __version__

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
BLOCKS: Final = (0, 1, 2, 4, 8, 16, 64, 256)
BYTES: Final = (0, 256, 1024, 4096, 16_384, 65_536, 262_144)
TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_DURATION: Final = "memory_operation_duration_seconds"
_Series = tuple[str, str]
"""The name of a metric, and its labels as they are written."""


@dataclass(slots=True)
class _Histogram:
    """Histogram with cumulative buckets."""

    bounds: tuple[float, ...]
    total: float = 0.0
    buckets: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.buckets = [0] * (len(self.bounds) + 1)

    def note(self, value: float) -> None:
        self.total += value
        self.buckets[bisect_left(self.bounds, value)] += 1

    def lines(self, name: str, label: str) -> Iterator[str]:
        count, comma = 0, "," if label else ""
        for bound, number in zip((*self.bounds, "+Inf"), self.buckets, strict=True):
            count += number
            yield f'{name}_bucket{{{label}{comma}le="{bound}"}} {count}'
        yield f"{name}_sum{_braced(label)} {round(self.total, 6):g}"
        yield f"{name}_count{_braced(label)} {count}"


class Metrics:
    """Counters, gauges and histograms of the service; thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._counters: Counter[_Series] = Counter()
        self._gauges: dict[str, int] = {}
        self._histograms: dict[_Series, _Histogram] = {}
        self._blocks = self._histograms["memory_recall_blocks", ""] = _Histogram(BLOCKS)
        self._bytes = self._histograms["memory_recall_bytes", ""] = _Histogram(BYTES)

    def ended(self, op: str, status: int, seconds: float) -> None:
        """Count one request, with its duration."""
        with self._mutex:
            self._counters["memory_operations_total", f'op="{op}",status="{status}"'] += 1
            series = (_DURATION, f'op="{op}"')
            self._histograms.setdefault(series, _Histogram(SECONDS)).note(seconds)

    def recalled(self, blocks: int, size: int) -> None:
        """Count the memories and bytes of one recall."""
        with self._mutex:
            self._blocks.note(blocks)
            self._bytes.note(size)

    def add(self, name: str, number: int, **labels: str) -> None:
        """Increment a counter, such as removed secrets."""
        named = ",".join(f'{label}="{value}"' for label, value in labels.items())
        with self._mutex:
            self._counters[name, named] += number

    def show(self, name: str, number: int) -> None:
        """Set a gauge, such as waiting turns."""
        with self._mutex:
            self._gauges[name] = number

    def render(self, *, depth: int, age: float) -> str:
        """All of them as text; `depth` calls wait for a thread, the first since `age` seconds."""
        lines: dict[str, list[str]] = {}

        def tell(kind: str, series: _Series, value: object) -> None:
            name, labels = series
            told = lines.setdefault(f"# TYPE {name} {kind}", [])
            told.append(f"{name}{_braced(labels)} {value}")

        with self._mutex:
            tell("gauge", ("scrubjay_build_info", f'version="{__version__}"'), 1)
            tell("gauge", ("memory_queue_depth", ""), depth)
            tell("gauge", ("memory_queue_age_seconds", ""), f"{age:.3f}")
            for name, number in sorted(self._gauges.items()):
                tell("gauge", (name, ""), number)
            for series, count in sorted(self._counters.items()):
                tell("counter", series, count)
            for (name, labels), found in sorted(self._histograms.items(), key=lambda one: one[0]):
                lines.setdefault(f"# TYPE {name} histogram", []).extend(found.lines(name, labels))
        return "".join(f"{line}\n" for kind, told in lines.items() for line in (kind, *told))


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""
