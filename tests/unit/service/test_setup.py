"""How a service is set up: where it listens, without keys, within rates, beside other planes."""

from __future__ import annotations

import json
import logging
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from scrubjay import bootstrap
from scrubjay.engine import Kernel
from scrubjay.model.errors import Busy, Forbidden, InvalidRequest, Timeout
from scrubjay.model.memory import Memory
from scrubjay.model.scope import Scope
from scrubjay.service.problems import Problem
from scrubjay.service.server import JsonLines, Listening, bind, server
from scrubjay.service.service import BodyBudget, Options, Rates, Service
from scrubjay.settings import at_home
from tests.certificates import certificate_for_localhost
from tests.serving import serving
from tests.support.engines import MemoryHome
from tests.support.memory_blobs import MemoryBlobs
from tests.unit.service.test_routes import problem

SOMEBODY = Scope("local", "me")
ROOT = Path(__file__).parents[3]


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


@pytest.mark.parametrize("wrong", ["missing", "no certificate", "another key"])
def test_a_certificate_that_cannot_be_used_is_said_before_it_listens(
    certificate: Listening, tmp_path: Path, wrong: str
) -> None:
    assert certificate.tls_cert is not None
    assert certificate.tls_key is not None
    if wrong == "missing":
        certificate.tls_cert.unlink()
    elif wrong == "no certificate":
        certificate.tls_cert.write_text("hello")
    else:
        (elsewhere := tmp_path / "elsewhere").mkdir()
        _, other = certificate_for_localhost(elsewhere)
        certificate.tls_key.write_bytes(other.read_bytes())
    with pytest.raises(InvalidRequest, match="cannot be used"):
        server(cast(Any, None), certificate)


@pytest.mark.parametrize("which", ["tls_cert", "tls_key"])
def test_the_file_of_a_certificate_that_cannot_be_read_is_named(
    certificate: Listening, which: str
) -> None:
    file = getattr(certificate, which)
    file.unlink()
    with pytest.raises(InvalidRequest, match=str(file)):
        server(cast(Any, None), certificate)


def test_over_tls_it_speaks_nothing_below_1_3(
    engine: Kernel, home: MemoryHome, certificate: Listening
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
def asking(engine: Kernel, home: MemoryHome, options: Options) -> Iterator[httpx2.Client]:
    with (
        serving(engine, home.clock, options) as running,
        httpx2.Client(base_url=running.url, verify=False) as http,
    ):
        yield http


def test_without_keys_everybody_is_the_person_at_the_machine(
    engine: Kernel, home: MemoryHome
) -> None:
    options = Options(no_auth=True, scope=Scope("local", "me"))
    with asking(engine, home, options) as http:
        one = http.post("/v1/memories", json={"content": "tea"}).json()["id"]
        assert http.get(f"/v1/memories/{one}").json()["content"] == "tea"
        assert http.get("/v1/scopes").json() == {"data": ["local/me"], "next_cursor": None}
        hidden = http.get("/v1/memories", headers={"X-Scrubjay-Scope": "system/keys"})
        problem(hidden, 403, "forbidden")


# -- versions --------------------------------------------------------------------------------------


class Meeting(Kernel):
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


# -- whether it is ready -------------------------------------------------------------------------


class Deaf:
    """An embedder that does not answer."""

    identity, dimensions, costly, languages = "deaf", 8, False, None

    def embed(self, *_: Any, **_more: Any) -> Any:
        raise Timeout("It did not answer.")


def test_without_an_embedder_it_is_ready_and_says_so() -> None:
    home = MemoryHome()
    home.embedder = Deaf()
    engine = home.engine()
    with asking(engine, home, Options(no_auth=True)) as http:
        answer = http.get("/readyz")
        checks = answer.json()["checks"]
        assert (answer.status_code, checks["embedder"]["code"]) == (200, "embedder_timeout")
    engine.close()


class Gone(MemoryBlobs):
    """A bucket that does not answer."""

    def names(self, address: str) -> Sequence[str]:
        raise Busy(f"The bucket of {address} does not answer.")


def test_without_its_bucket_it_is_ready_and_says_so() -> None:
    """Or a balancer would take every node away at once, for what all of them can do without."""
    home = MemoryHome()
    home.blobs = Gone()
    engine = home.engine()
    with asking(engine, home, Options(no_auth=True)) as http:
        answer = http.get("/readyz")
        assert (answer.status_code, answer.json()["checks"]["blobs"]["ok"]) == (200, False)
    engine.close()


def test_without_its_keys_it_is_not_ready_and_its_log_names_the_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = bootstrap.build(at_home(tmp_path / "home"))
    home, keys = MemoryHome(), tmp_path / "home" / "keys"
    try:
        with asking(engine, home, Options(no_auth=True, scope=SOMEBODY)) as http:
            made = http.post("/v1/memories", json={"content": "tea"})
            place, whichever = f"/v1/memories/{made.json()['id']}", {"If-Match": "*"}
            assert http.get("/readyz").json()["checks"]["keys"] == {"ok": True}
            for lost in ("", "key", "slots/installation"):
                (keys / lost).rename(tmp_path / "elsewhere")
                answer = http.get("/readyz")
                told = answer.json()["checks"]["keys"]
                assert (answer.status_code, told) == (503, {"ok": False, "code": "key_missing"})
                assert not (keys / lost).exists()
                with caplog.at_level(logging.WARNING):
                    problem(http.delete(place, headers=whichever), 500, "key_missing")
                shown = [vars(one).get("reason", "") for one in caplog.records]
                assert any(str(keys) in reason for reason in shown)
                caplog.clear()
                shutil.rmtree(keys / lost, ignore_errors=True)
                (tmp_path / "elsewhere").rename(keys / lost)
                assert http.get("/readyz").status_code == 200
    finally:
        engine.close()


# -- rates ---------------------------------------------------------------------------------------


def test_who_asks_too_often_is_told_when_to_come_back(engine: Kernel, home: MemoryHome) -> None:
    options = Options(no_auth=True, rates=Rates(reads=0.001), scope=Scope("local", "me"))
    with asking(engine, home, options) as http:
        http.post("/v1/scopes", json={})
        assert http.get("/v1/memories").status_code == 200
        refused = http.get("/v1/memories")
        problem(refused, 429, "rate_limited")
        assert int(refused.headers["retry-after"]) > 500
        assert refused.headers["ratelimit"].startswith('"reads";r=0;t=')


def test_every_answer_says_how_much_may_still_be_asked_for(
    engine: Kernel, home: MemoryHome
) -> None:
    """The headers of the IETF's draft: a policy, and what is left of it."""
    options = Options(no_auth=True, rates=Rates(reads=2, burst_seconds=5), scope=SOMEBODY)
    with asking(engine, home, options) as http:
        http.post("/v1/scopes", json={})
        left = [http.get("/v1/memories").headers["ratelimit"] for _ in range(2)]
        assert left == ['"reads";r=9;t=1', '"reads";r=8;t=1']
        assert http.get("/v1/memories").headers["ratelimit-policy"] == '"reads";q=10;w=5'


def test_bodies_that_are_too_large_together_are_told_to_come_back() -> None:
    room = BodyBudget(100)
    with room.share() as take:
        take(b"x" * 60)
        with room.share() as other:
            other(b"x" * 30)
            with pytest.raises(Problem) as refused:
                other(b"x" * 30)
        assert (refused.value.status, refused.value.headers["Retry-After"]) == (503, "1")
        assert room.left == 40
    assert room.left == 100


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


def test_a_plane_is_mounted_behind_the_same_gate(engine: Kernel, home: MemoryHome) -> None:
    plane = Echo()
    with serving(engine, home.clock, planes=[plane]) as running:
        answer = httpx2.get(f"{running.url}/count")
        assert (answer.text, answer.headers["cache-control"]) == ("1", "no-store")
        problem(httpx2.get(f"{running.url}/count", headers={"Host": "x"}), 403, "host_not_allowed")
    assert plane.events == ["begun", "ended"]


# -- what others look at -------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["openapi.py", "js_client.py"])
def test_what_was_generated_from_the_routes_is_up_to_date(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / tool, "--check"],
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
