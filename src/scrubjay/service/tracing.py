"""OpenTelemetry spans under the GenAI names for memory, where its API is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from scrubjay import __version__, codec
from scrubjay.model.memory import Memory
from scrubjay.model.results import Recalled, Retained
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.service.cursors import Signer
from scrubjay.service.rest import Operation

CONTENT_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Environment variable that allows content in spans."""
_DURATION: Final = "gen_ai.client.operation.duration"
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
            _DURATION, unit="s", description="How long an operation on the memory took."
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
