"""Counters in the text form of Prometheus. No scope, key or text is ever a label."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from scrubjay import __version__

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
BLOCKS: Final = (0, 1, 2, 4, 8, 16, 64, 256)
BYTES: Final = (0, 256, 1024, 4096, 16_384, 65_536, 262_144)
TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class _Histogram:
    """How often something was at most how much."""

    bounds: tuple[float, ...]
    total: float = 0.0
    buckets: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.buckets = [0] * (len(self.bounds) + 1)

    def note(self, value: float) -> None:
        self.total += value
        self.buckets[bisect_left(self.bounds, value)] += 1

    def lines(self, name: str, label: str = "") -> Iterator[str]:
        count, comma = 0, "," if label else ""
        for bound, number in zip((*self.bounds, "+Inf"), self.buckets, strict=True):
            count += number
            yield f'{name}_bucket{{{label}{comma}le="{bound}"}} {count}'
        labels = f"{{{label}}}" if label else ""
        yield f"{name}_sum{labels} {round(self.total, 6):g}"
        yield f"{name}_count{labels} {count}"


class Metrics:
    """What was done, how it ended and how long it took; safe for several threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._ended: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, _Histogram] = defaultdict(lambda: _Histogram(SECONDS))
        self._blocks = _Histogram(BLOCKS)
        self._bytes = _Histogram(BYTES)
        self._totals: Counter[tuple[str, str]] = Counter()
        self._shown: dict[str, int] = {}

    def ended(self, op: str, status: int, seconds: float) -> None:
        """Note one request."""
        with self._mutex:
            self._ended[op, status] += 1
            self._seconds[op].note(seconds)

    def recalled(self, blocks: int, size: int) -> None:
        """Note how many memories one recall gave, and how many bytes of text."""
        with self._mutex:
            self._blocks.note(blocks)
            self._bytes.note(size)

    def removed(self, count: int) -> None:
        """Note how much a policy took out: secrets of a turn, say."""
        self.add("memory_policy_removed_total", count)

    def add(self, name: str, number: int, **labels: str) -> None:
        """Raise a plain counter, such as how many secrets were taken out."""
        named = ",".join(f'{label}="{value}"' for label, value in labels.items())
        with self._mutex:
            self._totals[name, f"{{{named}}}" if named else ""] += number

    def show(self, name: str, number: int) -> None:
        """Set what goes up and down, such as how many turns wait."""
        with self._mutex:
            self._shown[name] = number

    def render(self, *, depth: int, age: float) -> str:
        """All of them as text; `depth` calls wait for a thread, the first since `age` seconds."""
        with self._mutex:
            return "\n".join(self._lines(depth, age)) + "\n"

    def _lines(self, depth: int, age: float) -> Iterator[str]:
        yield "# TYPE scrubjay_build_info gauge"
        yield f'scrubjay_build_info{{version="{__version__}"}} 1'
        yield "# TYPE memory_queue_depth gauge"
        yield f"memory_queue_depth {depth}"
        yield "# TYPE memory_queue_age_seconds gauge"
        yield f"memory_queue_age_seconds {age:.3f}"
        yield "# TYPE memory_operations_total counter"
        for (op, status), count in sorted(self._ended.items()):
            yield f'memory_operations_total{{op="{op}",status="{status}"}} {count}'
        yield "# TYPE memory_operation_duration_seconds histogram"
        for op, found in sorted(self._seconds.items()):
            yield from found.lines("memory_operation_duration_seconds", f'op="{op}"')
        for name, found in (
            ("memory_recall_blocks", self._blocks),
            ("memory_recall_bytes", self._bytes),
        ):
            yield f"# TYPE {name} histogram"
            yield from found.lines(name)
        for name, of_name in groupby(sorted(self._totals.items()), lambda one: one[0][0]):
            yield f"# TYPE {name} counter"
            for (_, labels), number in of_name:
                yield f"{name}{labels} {number}"
        for name, number in sorted(self._shown.items()):
            yield f"# TYPE {name} gauge"
            yield f"{name} {number}"
