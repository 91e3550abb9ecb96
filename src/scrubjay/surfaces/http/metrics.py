"""Counters in the text form of Prometheus. No scope, key or text is ever a label."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import groupby
from typing import Final

from scrubjay import __version__

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What was done, how it ended and how long it took; safe for several threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._ended: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._totals: Counter[tuple[str, str]] = Counter()
        self._shown: dict[str, int] = {}
        self._observed: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])

    def ended(self, op: str, status: int, seconds: float) -> None:
        """Note one request."""
        with self._mutex:
            self._ended[op, status] += 1
            self._seconds[op] += seconds  # type: ignore[assignment]  # a sum, not a count
            self._buckets[op][bisect_left(BOUNDS, seconds)] += 1

    def add(self, name: str, number: int, **labels: str) -> None:
        """Raise a plain counter, such as how many secrets were taken out."""
        named = ",".join(f'{label}="{value}"' for label, value in labels.items())
        with self._mutex:
            self._totals[name, f"{{{named}}}" if named else ""] += number

    def show(self, name: str, number: int) -> None:
        """Set what goes up and down, such as how many turns wait."""
        with self._mutex:
            self._shown[name] = number

    def observe(self, name: str, number: int) -> None:
        """Note one of many numbers of a kind, such as the bytes of an answer: sum and count."""
        with self._mutex:
            self._observed[name][0] += 1
            self._observed[name][1] += number

    def render(self, waiting: int) -> str:
        """All of them as text."""
        with self._mutex:
            lines = [
                "# TYPE scrubjay_build_info gauge",
                f'scrubjay_build_info{{version="{__version__}"}} 1',
                "# TYPE memory_queue_depth gauge",
                f"memory_queue_depth {waiting}",
                "# TYPE memory_operations_total counter",
                *(
                    f'memory_operations_total{{op="{op}",status="{status}"}} {count}'
                    for (op, status), count in sorted(self._ended.items())
                ),
                "# TYPE memory_operation_duration_seconds histogram",
                *(line for op in sorted(self._buckets) for line in self._histogram(op)),
            ]
            for name, of_name in groupby(sorted(self._totals.items()), lambda one: one[0][0]):
                lines.append(f"# TYPE {name} counter")
                lines += [f"{name}{labels} {number}" for (_, labels), number in of_name]
            for name, number in sorted(self._shown.items()):
                lines += [f"# TYPE {name} gauge", f"{name} {number}"]
            for name, (count, total) in sorted(self._observed.items()):
                lines += [f"# TYPE {name} summary", f"{name}_sum {total}", f"{name}_count {count}"]
        return "\n".join(lines) + "\n"

    def _histogram(self, op: str) -> list[str]:
        name = "memory_operation_duration_seconds"
        lines, count = [], 0
        for bound, number in zip((*BOUNDS, "+Inf"), self._buckets[op], strict=True):
            count += number
            lines.append(f'{name}_bucket{{op="{op}",le="{bound}"}} {count}')
        seconds = self._seconds[op]
        return [
            *lines,
            f'{name}_sum{{op="{op}"}} {seconds:.6f}',
            f'{name}_count{{op="{op}"}} {count}',
        ]
