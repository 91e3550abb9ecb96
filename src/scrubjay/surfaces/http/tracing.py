"""OpenTelemetry spans under the GenAI names for memory, where its API is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scrubjay import __version__
from scrubjay.surfaces.operations import Operation


class Spans:
    """Opens a span for each operation that has a name in the conventions; else does nothing."""

    def __init__(self) -> None:
        self._tracer: Any = None
        try:
            from opentelemetry import trace
        except ImportError:
            return
        self._tracer = trace.get_tracer("scrubjay", __version__)

    @contextmanager
    def around(self, operation: Operation, store_id: str) -> Iterator[Span]:
        """The span of one operation; `store_id` is a pseudonym."""
        if self._tracer is None or operation.span is None:
            yield Span(None)
            return
        attributes = {"gen_ai.operation.name": operation.span, "gen_ai.memory.store.id": store_id}
        with self._tracer.start_as_current_span(
            operation.span, attributes=attributes, record_exception=False
        ) as opened:
            span = Span(opened)
            try:
                yield span
            except Exception as error:  # seam: it is named in the span and raised again
                opened.set_attribute("error.type", getattr(error, "code", type(error).__name__))
                raise


class Span:
    """One span, or none."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    @property
    def trace_id(self) -> str | None:
        """The trace it belongs to, if somebody records it."""
        context = self._opened.get_span_context() if self._opened is not None else None
        return f"{context.trace_id:032x}" if context is not None and context.is_valid else None

    def name_store(self, store_id: str) -> None:
        """Say which store it was about, where that is known only now; `store_id` is a pseudonym."""
        if self._opened is not None:
            self._opened.set_attribute("gen_ai.memory.store.id", store_id)

    def fail(self, kind: str) -> None:
        """Say how it went wrong, where nothing is raised."""
        if self._opened is not None:
            self._opened.set_attribute("error.type", kind)

    def count(self, result: object) -> None:
        """Say how many memories the answer is about."""
        if self._opened is not None and hasattr(result, "__len__"):
            self._opened.set_attribute("gen_ai.memory.record.count", len(result))
