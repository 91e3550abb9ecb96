"""Spans: the names of the conventions, no scope in clear, and nothing that was said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from scrubjay.engine import Kernel
from scrubjay.model.scope import Scope
from scrubjay.service.service import UNLIMITED, Options
from scrubjay.surfaces.clawdapus.descriptor import PlaneOffer
from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane
from tests.serving import serving
from tests.support.engines import MemoryHome

SCOPE = Scope("local", "somebody")
PLANE = ClawdapusPlane(PlaneOffer(recall_seconds=30))


class Recorded:
    """A service whose spans are recorded."""

    def __init__(self, http: httpx2.Client, exporter: InMemorySpanExporter) -> None:
        self.http = http
        self._exporter = exporter

    def post(self, path: str, **how: Any) -> ReadableSpan:
        """The span of one request."""
        return self.sent(f"/v1{path}", **how)

    def sent(self, path: str, **how: Any) -> ReadableSpan:
        """The same, whichever plane the path is of."""
        self._exporter.clear()
        self.http.post(path, **how)
        (span,) = self._exporter.get_finished_spans()
        return span


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """Where the spans of this process go; there can be one such place only."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture(scope="module")
def reader() -> InMemoryMetricReader:
    """Where the measurements of this process go."""
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
    return reader


@pytest.fixture
def recorded(
    engine: Kernel,
    home: MemoryHome,
    exporter: InMemorySpanExporter,
    request: pytest.FixtureRequest,
) -> Iterator[Recorded]:
    content = getattr(request, "param", False)
    options = Options(no_auth=True, scope=SCOPE, rates=UNLIMITED, trace_content=content)
    with (
        serving(engine, home.clock, options, planes=[PLANE]) as running,
        httpx2.Client(base_url=running.url, verify=False) as http,
    ):
        yield Recorded(http, exporter)


def test_a_span_has_the_names_of_the_conventions_and_no_scope_in_clear(recorded: Recorded) -> None:
    made = recorded.post("/memories", json={"content": "tea at dawn", "session": "chat-7"})
    found = recorded.post("/recall", json={"query": "what about dawn?"})
    assert (made.name, found.name) == ("create_memory", "search_memory")
    assert made.attributes is not None
    assert found.attributes is not None
    store = made.attributes["gen_ai.memory.store.id"]
    assert dict(found.attributes) == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.store.id": store,
        "gen_ai.memory.record.count": 1,
    }
    assert made.attributes["gen_ai.conversation.id"] == "chat-7"
    assert str(made.attributes["gen_ai.memory.record.id"]).startswith("mem-")
    for private in ("dawn", "somebody"):
        assert private not in made.to_json() + found.to_json()


def test_what_a_pod_asks_is_a_span_as_any_other_and_names_no_agent(recorded: Recorded) -> None:
    agent = {"agent_id": "somebody", "pod": "desk"}
    found = recorded.sent("/recall", json=agent)
    made = recorded.sent("/retain", json={**agent, "entry": {"id": "dawn"}})
    wrong = recorded.sent("/recall", json={})
    assert (made.name, found.name) == ("create_memory", "search_memory")
    assert found.attributes is not None
    assert made.attributes is not None
    assert wrong.attributes is not None
    assert found.attributes["gen_ai.memory.record.count"] == 0
    stores = {one["gen_ai.memory.store.id"] for one in (found.attributes, made.attributes)}
    assert len(stores) == 1
    assert wrong.attributes["error.type"] == "400"
    for private in ("dawn", "somebody", "desk"):
        assert private not in made.to_json() + found.to_json()


def test_a_retain_under_a_key_of_the_callers_own_is_an_upsert(recorded: Recorded) -> None:
    own = recorded.post("/memories", json={"content": "tea", "key": "k"})
    assert own.name == "upsert_memory"
    assert own.attributes is not None
    assert own.attributes["gen_ai.operation.name"] == "upsert_memory"
    repeatable = recorded.post(
        "/memories", json={"content": "tea"}, headers={"Idempotency-Key": "k"}
    )
    assert repeatable.name == "create_memory"


def test_an_error_is_named_and_not_quoted(recorded: Recorded) -> None:
    span = recorded.post("/memories/mem-dawn/supersede", json={"content": "tea"})
    assert span.attributes is not None
    assert span.attributes["error.type"] == "not_found"
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.status.description is None
    assert not span.events


def test_a_span_belongs_to_the_trace_of_the_request(recorded: Recorded) -> None:
    parent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    span = recorded.post("/memories", json={"content": "tea"}, headers=parent)
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize("recorded", [True], indirect=True)
def test_what_was_asked_and_answered_is_in_a_span_only_for_who_wants_it(
    recorded: Recorded,
) -> None:
    recorded.post("/memories", json={"content": "tea at dawn"})
    found = recorded.post("/recall", json={"query": "what about dawn?"})
    assert found.attributes is not None
    assert found.attributes["gen_ai.memory.query.text"] == "what about dawn?"
    assert "tea at dawn" in str(found.attributes["gen_ai.memory.records"])


def test_how_long_an_operation_took_is_measured(
    reader: InMemoryMetricReader, recorded: Recorded
) -> None:
    recorded.post("/memories", json={"content": "tea"})
    told = reader.get_metrics_data()
    assert told is not None
    text = told.to_json()
    assert "gen_ai.client.operation.duration" in text
    assert "create_memory" in text
