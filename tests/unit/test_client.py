"""The client where the service is not there, not ours, or not installed."""

from __future__ import annotations

import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import httpx2
import pytest

from scrubjay import Busy, Forbidden, InvalidRequest, LimitReached, StoreError, connect
from scrubjay.engine import Kernel
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from scrubjay.service.service import Options, Rates
from tests.certificates import certificate_for_localhost
from tests.serving import serving
from tests.support.engines import MemoryHome

_WITHOUT_THE_EXTRA = """
import sys
sys.modules["httpx2"] = None
import scrubjay
try:
    scrubjay.connect
except ModuleNotFoundError as error:
    assert "scrubjay[server]" in str(error), error
else:
    raise AssertionError("it was there")
"""


class Page(BaseHTTPRequestHandler):
    """Some other service: a page of HTML for whatever it is asked."""

    def do_GET(self) -> None:  # the name the library looks for
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def some_service(kind: type[BaseHTTPRequestHandler] = Page) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class Cut(BaseHTTPRequestHandler):
    """A way to a service on which the connection breaks before the first answer to a POST."""

    to: ClassVar[str]
    seen: ClassVar[list[str | None]]

    def do_GET(self) -> None:  # the name the library looks for
        self._pass(httpx2.get(self.to + self.path, headers=self._headers()))

    def do_POST(self) -> None:  # the name the library looks for
        body = self.rfile.read(int(self.headers["content-length"]))
        answer = httpx2.post(self.to + self.path, headers=self._headers(), content=body)
        self.seen.append(self.headers["idempotency-key"])
        if len(self.seen) > 1:
            self._pass(answer)

    def _headers(self) -> dict[str, str]:
        wanted = ("authorization", "content-type", "idempotency-key", "x-scrubjay-scope")
        return {name: self.headers[name] for name in wanted if name in self.headers}

    def _pass(self, answer: httpx2.Response) -> None:
        self.send_response(answer.status_code)
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_write_is_asked_for_again_under_its_key_when_the_connection_breaks(
    engine: Kernel, home: MemoryHome
) -> None:
    with serving(engine, home.clock) as running:
        way = type("Way", (Cut,), {"to": running.url, "seen": []})
        with (
            some_service(way) as url,
            connect(url, running.key("acme/alice")) as jay,
        ):
            receipt = jay.retain("tea")
            first, again = way.seen  # type: ignore[attr-defined]
            assert first == again
            assert [memory.id for memory in jay.browse()] == [receipt.id]
            jay.retain("tea")
            assert len(jay.browse()) == 2, "each write has a key of its own"


class Held(Kernel):
    """An engine in which every verb waits, once it is told to."""

    waits: threading.Event | None = None

    def _begin(self, scope: Scope, *, create: bool = True) -> OpenScope:
        if self.waits is not None:
            self.waits.wait(10)
        return super()._begin(scope, create=create)


def test_a_write_that_is_not_answered_in_time_is_said_to_be_in_doubt(home: MemoryHome) -> None:
    engine = Held(home.ports())
    with (
        serving(engine, home.clock) as running,
        connect(running.url, running.key("acme/alice"), seconds=0.5, create=True) as jay,
    ):
        waits = engine.waits = threading.Event()
        with pytest.raises(Busy, match="may have been done"):
            jay.retain("tea")
        waits.set()
        engine.waits = None
    engine.close()


def test_a_service_that_is_not_there_is_a_clear_error() -> None:
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        port = server.server_port
    with pytest.raises(StoreError, match=f"at 127.0.0.1:{port} cannot be reached"):
        connect(f"http://ann:secret@127.0.0.1:{port}", "sj_key")


NO_ADDRESSES = [
    "localhost:8377",
    "",
    "127.0.0.1",
    "ftp://host",
    "http://",
    "http://host:port",
    None,
]


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_what_is_no_address_is_refused_with_an_example_of_one(url: str) -> None:
    with pytest.raises(InvalidRequest, match="no address of a service") as raised:
        connect(url, "sj_key")
    assert raised.value.hint == "Write it like http://127.0.0.1:8377."


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/memory/v1"])
def test_an_address_is_given_without_the_version(path: str) -> None:
    with pytest.raises(InvalidRequest, match="Give the address without /v1"):
        connect(f"http://127.0.0.1:8377{path}", "sj_key")


def test_a_connection_that_is_not_safe_is_said_to_be_one(tmp_path: Path) -> None:
    """A certificate that nobody vouches for, and a service that speaks no TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate_for_localhost(tmp_path))
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with pytest.raises(StoreError, match="TLS") as raised:
                connect(f"https://localhost:{server.server_port}", "sj_key")
        finally:
            server.shutdown()
            thread.join()
    assert "certificate" in raised.value.hint
    with some_service() as url, pytest.raises(StoreError, match="TLS"):
        connect(url.replace("http:", "https:"), "sj_key")


def test_a_service_that_is_not_ours_is_a_clear_error() -> None:
    with some_service() as url, pytest.raises(StoreError, match="not JSON"):
        connect(url, "sj_key")


def test_a_key_that_is_not_good_is_forbidden(engine: Kernel, home: MemoryHome) -> None:
    with serving(engine, home.clock) as running, pytest.raises(Forbidden):
        connect(running.url, "sj_aaaaaaaa_bbbb")


def test_the_scope_is_the_keys_own_or_has_to_be_named(engine: Kernel, home: MemoryHome) -> None:
    with serving(engine, home.clock) as running:
        with connect(running.url, running.key("acme/alice")) as jay:
            assert repr(jay) == "<Client acme/alice>"
        with pytest.raises(InvalidRequest, match="more than one scope"):
            connect(running.url, running.key("acme/*"))
        with pytest.raises(Forbidden):
            connect(running.url, running.key("acme/alice"), scope="acme/bob", create=True)


@pytest.mark.parametrize("actor", [Actor.AGENT, Actor.USER])
def test_words_have_the_origin_of_the_actor_of_their_key(
    engine: Kernel, home: MemoryHome, actor: Actor
) -> None:
    with serving(engine, home.clock) as running:
        key = running.key("acme/alice", actor=actor)
        with connect(running.url, key, create=True) as jay:
            jay.retain("Alice prefers green tea")
            assert [one.origin.value for one in jay.browse()] == [actor.value]


def test_without_keys_it_is_the_default_scope(engine: Kernel, home: MemoryHome) -> None:
    options = Options(no_auth=True)
    with serving(engine, home.clock, options) as running, connect(running.url) as jay:
        assert str(jay.scope) == "local/default"
        jay.retain("tea")
        assert jay.browse()[0].content == "tea"


def test_too_many_questions_are_a_limit_that_was_reached(engine: Kernel, home: MemoryHome) -> None:
    options = Options(rates=Rates(reads=0.001))
    with serving(engine, home.clock, options) as running:
        key = running.key("acme/alice", actor=Actor.AGENT)
        with connect(running.url, key, scope="acme/alice", create=True) as jay:
            jay.browse()
            with pytest.raises(LimitReached):
                jay.browse()


def test_a_wrong_field_is_named(engine: Kernel, home: MemoryHome) -> None:
    with serving(engine, home.clock) as running:
        key = running.key("acme/alice")
        with (
            connect(running.url, key, create=True) as jay,
            pytest.raises(InvalidRequest, match="limit"),
        ):
            jay.audit(limit="soon")  # type: ignore[arg-type]


def test_without_the_extra_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_THE_EXTRA], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
