"""Telemetry: Prometheus metrics and OpenTelemetry spans. No scope, key or text is ever a label.

Metrics are written by hand, because importing `prometheus_client` takes 84 ms (this: 1 ms) and its
registries and collectors would take about as many lines as these. Spans have the GenAI names for
memory, and are there where the API of OpenTelemetry is installed.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import Struct

from scrubjay import __version__, codec
from scrubjay.model.memory import Memory
from scrubjay.model.results import Recalled, Retained
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.service.cursors import Signer
from scrubjay.service.rest import Operation

# -- metrics ---------------------------------------------------------------------------------------

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
    buckets: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.buckets = self.buckets or [0] * (len(self.bounds) + 1)

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


_BOUNDS: Final[Mapping[str, tuple[float, ...]]] = {
    "memory_recall_blocks": BLOCKS,
    "memory_recall_bytes": BYTES,
}
"""The buckets of the histograms that count no seconds."""


class _Told(Struct):
    """The metrics of one worker, or of several together."""

    depth: int
    age: float
    counters: list[tuple[_Series, int]]
    gauges: dict[str, int]
    histograms: list[tuple[_Series, float, list[int]]]

    def add(self, other: _Told) -> None:
        """Add those of another worker; a gauge of what all workers see counts once."""
        self.depth, self.age = self.depth + other.depth, max(self.age, other.age)
        self.gauges |= {
            name: max(value, self.gauges.get(name, 0)) for name, value in other.gauges.items()
        }
        summed = Counter(dict(self.counters))
        summed.update(dict(other.counters))
        self.counters = list(summed.items())
        found = {series: (total, buckets) for series, total, buckets in self.histograms}
        for series, total, buckets in other.histograms:
            known, counts = found.get(series, (0.0, [0] * len(buckets)))
            added = [one + two for one, two in zip(counts, buckets, strict=True)]
            found[series] = known + total, added
        self.histograms = [(series, *one) for series, one in found.items()]


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

    def dump(self, *, depth: int, age: float) -> bytes:
        """All of them, for another worker to `render` with its own."""
        with self._mutex:
            return msgspec.json.encode(self._told(depth, age))

    def _told(self, depth: int, age: float) -> _Told:
        return _Told(
            depth=depth,
            age=age,
            counters=list(self._counters.items()),
            gauges=dict(self._gauges),
            histograms=[(at, one.total, one.buckets) for at, one in self._histograms.items()],
        )

    def render(self, *, depth: int, age: float, others: Sequence[bytes] = ()) -> str:
        """All of them as text, together with those of other workers.

        `depth` calls wait for a thread, the first since `age` seconds.
        """
        lines: dict[str, list[str]] = {}
        with self._mutex:
            told = self._told(depth, age)
        for other in others:
            told.add(msgspec.json.decode(other, type=_Told))

        def tell(kind: str, series: _Series, value: object) -> None:
            name, labels = series
            lines.setdefault(f"# TYPE {name} {kind}", []).append(f"{name}{_braced(labels)} {value}")

        tell("gauge", ("scrubjay_build_info", f'version="{__version__}"'), 1)
        tell("gauge", ("memory_queue_depth", ""), told.depth)
        tell("gauge", ("memory_queue_age_seconds", ""), f"{told.age:.3f}")
        for name, number in sorted(told.gauges.items()):
            tell("gauge", (name, ""), number)
        for series, count in sorted(told.counters):
            tell("counter", series, count)
        for (name, labels), total, buckets in sorted(told.histograms):
            found = _Histogram(_BOUNDS.get(name, SECONDS), total, buckets)
            lines.setdefault(f"# TYPE {name} histogram", []).extend(found.lines(name, labels))
        return "".join(f"{line}\n" for kind, told in lines.items() for line in (kind, *told))


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


# -- spans -----------------------------------------------------------------------------------------

CONTENT_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Environment variable that allows content in spans."""
_SPAN_DURATION: Final = "gen_ai.client.operation.duration"
_PARENT: Final = ("traceparent", "tracestate")


class Spans:
    """Opens a span for each operation that has a GenAI name; no-op otherwise."""

    def __init__(self, signer: Signer, clock: Clock, *, content: bool = False) -> None:
        self._signer = signer
        self._clock = clock
        self._content = content
        self._trace: Any = None
        try:
            from opentelemetry import metrics, trace
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError:
            return
        self._trace = trace
        self._extract: Callable[..., Any] = TraceContextTextMapPropagator().extract
        self._tracer = trace.get_tracer("scrubjay", __version__)
        self._duration = metrics.get_meter("scrubjay", __version__).create_histogram(
            _SPAN_DURATION, unit="s", description="How long an operation on the memory took."
        )

    @contextmanager
    def around(
        self, operation: Operation, scope: Scope | None, headers: Mapping[str, str]
    ) -> Iterator[Span]:
        """The span of one operation, in the trace that the request belongs to, if any.

        The scope is None if only the body of the request names it.
        """
        parent = {name: headers[name] for name in _PARENT if name in headers}
        # Without the API, or where neither the request nor this process has anybody who records.
        is_idle = self._trace is None or (
            not parent
            and isinstance(self._trace.get_tracer_provider(), self._trace.ProxyTracerProvider)
        )
        if operation.span is None or is_idle:
            yield Span()
            return
        begun, failed = self._clock.monotonic(), None
        with self._tracer.start_as_current_span(
            operation.span,
            context=self._extract(parent) if parent else None,
            attributes={"gen_ai.operation.name": operation.span},
            # Of an exception neither the text nor the trace is kept, which may quote.
            record_exception=False,
            set_status_on_exception=False,
        ) as opened:
            span = Span(opened, operation.span, content=self._content)
            if scope is not None:
                span.name_store(self._signer.pseudonym(scope))
            try:
                yield span
            except Exception as error:  # seam: it is named in the span and raised again
                failed = getattr(error, "code", type(error).__name__)
                opened.set_attribute("error.type", failed)
                opened.set_status(self._trace.StatusCode.ERROR)
                raise
            finally:
                about = {"gen_ai.operation.name": span.name}
                about |= {"error.type": failed} if failed else {}
                self._duration.record(self._clock.monotonic() - begun, about)


class Span:
    """One span, or a no-op."""

    def __init__(self, opened: Any = None, name: str = "", *, content: bool = False) -> None:
        self._opened = opened
        self._recording = opened is not None and opened.is_recording()
        self._content = content
        self.name = name

    @property
    def trace_id(self) -> str | None:
        """Trace id, if the span is recorded."""
        context = self._opened.get_span_context() if self._opened is not None else None
        return f"{context.trace_id:032x}" if context is not None and context.is_valid else None

    def name_store(self, pseudonym: str) -> None:
        """Set the store id, if it is known only now."""
        if self._recording:
            self._note("memory.store.id", pseudonym)

    def asked(self, values: Mapping[str, Any], *, once: str | None = None) -> None:
        """Set attributes of the request; `once` is a key that the service derived."""
        if not self._recording:
            return
        if self.name == "create_memory" and values.get("key") not in (None, once):
            self.name = "upsert_memory"
            self._opened.update_name(self.name)
            self._note("operation.name", self.name)
        self._note("conversation.id", values.get("session"))
        self._note("memory.record.id", values.get("id"))
        if self._content:
            self._note("memory.query.text", values.get("query"))

    def answered(self, result: object) -> None:
        """Set attributes of the answer: memory ids, or their number."""
        if not self._recording:
            return
        if isinstance(result, Retained | Memory):
            self._note("memory.record.id", result.id)
        if hasattr(result, "__len__"):
            self._note("memory.record.count", len(result))
        if self._content and isinstance(result, Recalled):
            told = codec.to_json([hit.memory for hit in result])
            self._note("memory.records", told.decode())

    def _note(self, name: str, value: str | int | None) -> None:
        if value is not None:
            self._opened.set_attribute(f"gen_ai.{name}", value)
