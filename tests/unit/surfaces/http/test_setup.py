"""How a service is set up: where it listens, without keys, within rates, beside other planes."""

from __future__ import annotations

import json
import logging
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry import trace
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from scrubjay.domain.errors import Forbidden, InvalidRequest
from scrubjay.domain.memory import Memory
from scrubjay.domain.scope import Scope
from scrubjay.engine import Engine
from scrubjay.surfaces.http.limits import Meter, Rates
from scrubjay.surfaces.http.logs import JsonLines
from scrubjay.surfaces.http.problems import Problem
from scrubjay.surfaces.http.server import Listening, bind
from scrubjay.surfaces.http.service import Options, Service
from scrubjay.surfaces.http.tracing import Spans
from scrubjay.surfaces.operations import BY_NAME
from scrubjay.testing.clock import FakeClock
from scrubjay.testing.engines import MemoryHome
from tests.certificates import certificate_for_localhost
from tests.serving import serving
from tests.unit.surfaces.http.test_routes import problem

ROOT = Path(__file__).parents[4]


# -- where it listens ----------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_on_loopback_it_may_do_without_keys_and_tls(host: str) -> None:
    assert Listening(host=host, no_auth=True).loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "memory.example.com"])
def test_beyond_loopback_it_wants_keys_and_tls(host: str) -> None:
    with pytest.raises(Forbidden):
        Listening(host=host)
    with pytest.raises(Forbidden):
        Listening(host=host, no_auth=True, insecure_http=True)
    assert not Listening(host=host, insecure_http=True).loopback
    assert Listening(host=host, tls_cert=Path("c"), tls_key=Path("k")).tls


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(InvalidRequest):
        Listening(tls_cert=Path("c"))


def test_a_port_that_is_taken_is_said_so() -> None:
    with bind(Listening(port=0)) as taken, pytest.raises(InvalidRequest, match="cannot listen"):
        bind(Listening(port=taken.getsockname()[1]))


@pytest.fixture
def certificate(tmp_path: Path) -> Listening:
    """Where to listen with a certificate for localhost that was made just now."""
    cert, key = certificate_for_localhost(tmp_path)
    return Listening(port=0, tls_cert=cert, tls_key=key)


def test_over_tls_it_speaks_nothing_below_1_3(
    engine: Engine, home: MemoryHome, certificate: Listening
) -> None:
    with serving(engine, home.clock, listening=certificate) as running:
        url = running.url.replace("127.0.0.1", "localhost")
        context = ssl.create_default_context(cafile=certificate.tls_cert)
        answer = httpx2.get(f"{url}/healthz", verify=context)
        assert "strict-transport-security" in answer.headers
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{url}/healthz", verify=context)


# -- without keys --------------------------------------------------------------------------------


@contextmanager
def asking(engine: Engine, home: MemoryHome, options: Options) -> Iterator[httpx2.Client]:
    with (
        serving(engine, home.clock, options) as running,
        httpx2.Client(base_url=running.url, verify=False) as http,
    ):
        yield http


def test_without_keys_everybody_is_the_person_at_the_machine(
    engine: Engine, home: MemoryHome
) -> None:
    options = Options(no_auth=True, scope=Scope("local", "me"))
    with asking(engine, home, options) as http:
        one = http.post("/v1/memories", json={"content": "tea"}).json()["id"]
        assert http.get(f"/v1/memories/{one}").json()["content"] == "tea"
        assert http.get("/v1/scopes").json() == {"data": ["local/me"]}
        hidden = http.get("/v1/memories", headers={"X-Scrubjay-Scope": "system/keys"})
        problem(hidden, 403, "forbidden")


# -- versions --------------------------------------------------------------------------------------


class Meeting(Engine):
    """An engine in which who looks at a memory waits a while for somebody else to look, too."""

    gate: threading.Barrier | None = None

    def get(self, *about: Any, **more: Any) -> Memory:
        memory = super().get(*about, **more)
        if self.gate is not None:
            with suppress(threading.BrokenBarrierError):
                self.gate.wait(0.2)
        return memory


def test_of_two_who_saw_the_same_version_one_changes_it(home: MemoryHome) -> None:
    engine = Meeting(home.ports())
    options = Options(no_auth=True, scope=Scope("local", "me"))
    with asking(engine, home, options) as http, ThreadPoolExecutor(2) as pool:
        path = f"/v1/memories/{http.post('/v1/memories', json={'content': 'tea'}).json()['id']}"
        how: dict[str, Any] = {"headers": {"If-Match": http.get(path).headers["etag"]}}
        engine.gate = threading.Barrier(2)
        changes = [{"pinned": True}, {"expires_at": "2100-01-01T00:00:00Z"}]
        answers = list(pool.map(lambda change: http.patch(path, json=change, **how), changes))
    assert sorted(answer.status_code for answer in answers) == [200, 412]


# -- rates ---------------------------------------------------------------------------------------


def test_a_bucket_empties_and_fills_again() -> None:
    clock = FakeClock()
    meter = Meter(Rates(reads=2, burst_seconds=1), clock)
    recall = BY_NAME["recall"]
    meter.spend("one", recall)
    meter.spend("one", recall)
    with pytest.raises(Problem) as refused:
        meter.spend("one", recall)
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
    meter.spend("another", recall)
    meter.spend("one", BY_NAME["retain"])
    clock.advance(seconds=0.5)
    meter.spend("one", recall)


def test_who_asks_too_often_is_told_when_to_come_back(engine: Engine, home: MemoryHome) -> None:
    options = Options(no_auth=True, rates=Rates(reads=0.001), scope=Scope("local", "me"))
    with asking(engine, home, options) as http:
        http.post("/v1/scopes", json={})
        assert http.get("/v1/memories").status_code == 200
        refused = http.get("/v1/memories")
        problem(refused, 429, "rate_limited")
        assert int(refused.headers["retry-after"]) > 500


# -- beside other planes -------------------------------------------------------------------------


class Echo:
    """A plane that says how many scopes there are, and when it began and ended."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def routes(self, service: Service) -> Sequence[BaseRoute]:
        async def count(_request: Request) -> Response:
            number = await service.bridge.read(lambda: len(service.engine.scopes()))
            return PlainTextResponse(str(number))

        return [Route("/count", count)]

    def running(self, service: Service) -> AbstractAsyncContextManager[None]:
        @asynccontextmanager
        async def run() -> Any:
            self.events.append("begun")
            yield
            await service.bridge.write(lambda: self.events.append("ended"))

        return run()


def test_a_plane_is_mounted_behind_the_same_gate(engine: Engine, home: MemoryHome) -> None:
    plane = Echo()
    with serving(engine, home.clock, planes=[plane]) as running:
        answer = httpx2.get(f"{running.url}/count")
        assert (answer.text, answer.headers["cache-control"]) == ("1", "no-store")
        problem(httpx2.get(f"{running.url}/count", headers={"Host": "x"}), 403, "host_not_allowed")
    assert plane.events == ["begun", "ended"]


# -- what others look at -------------------------------------------------------------------------


def test_the_committed_document_is_the_one_that_is_served() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "openapi.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_failure_is_logged_by_its_place_and_not_its_text() -> None:
    try:
        raise ValueError("tea at dawn")  # what a library says may quote what it was given
    except ValueError:
        record = logging.LogRecord("x", 40, "", 0, "request.failed", None, sys.exc_info())
    line = json.loads(JsonLines().format(record))
    assert (line["event"], line["error"]) == ("request.failed", "ValueError")
    assert "dawn" not in json.dumps(line)


class Recorder:
    """As much of a tracer as is used; it remembers which spans were opened, and as what."""

    def __init__(self) -> None:
        self.spans: list[RecordedSpan] = []

    @contextmanager
    def start_as_current_span(
        self, name: str, *, attributes: Mapping[str, Any], record_exception: bool
    ) -> Iterator[trace.Span]:
        assert not record_exception, "an exception's text may quote what it was given"
        self.spans.append(RecordedSpan(name, attributes))
        yield self.spans[-1]


class RecordedSpan(trace.NonRecordingSpan):
    """A span that keeps its attributes."""

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name = name
        self.attributes = dict(attributes)

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value


def test_a_span_has_the_name_of_the_conventions_and_no_scope_in_clear() -> None:
    spans, recorder = Spans(), Recorder()
    spans._tracer = recorder
    with spans.around(BY_NAME["recall"], "0a1b2c") as span:
        span.count([1, 2, 3])
    with pytest.raises(Forbidden), spans.around(BY_NAME["retain"], "0a1b2c"):
        raise Forbidden("no")
    with spans.around(BY_NAME["verify"], ""):
        pass
    assert [span.name for span in recorder.spans] == ["search_memory", "create_memory"]
    assert recorder.spans[0].attributes == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.store.id": "0a1b2c",
        "gen_ai.memory.record.count": 3,
    }
    assert recorder.spans[1].attributes["error.type"] == "forbidden"
