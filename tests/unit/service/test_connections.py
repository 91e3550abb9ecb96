"""Connections: deadlines, a cap for each peer, and no room for half-open ones."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config

from scrubjay.service.server import Connection, Listening, bind, peer_of, server
from tests.certificates import certificate_for_localhost
from tests.serving import Running

ANSWER_BYTES = 64 * 1024 * 1024
"""More than the system takes off our hands for a reader that does not read."""
Address = tuple[str, int]


class HastyConnection(Connection):
    """A connection whose deadlines a test can wait for."""

    header_seconds = 0.2
    stall_seconds = 0.2

    def __init__(self, config: Config, *arguments: Any, **more: Any) -> None:
        super().__init__(config, *arguments, **more)
        self.timeout_keep_alive: Any = 0.2
        self.limit_concurrency = 40


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers at once, without reading: `/large` with much, `/body` after the whole body."""
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = bytes(ANSWER_BYTES) if scope["path"] == "/large" else b"ok"
    while scope["path"] == "/body" and (await receive()).get("more_body"):
        pass
    length = str(len(body)).encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]}
    )
    for at in range(0, len(body), 65_536):
        piece, more = body[at : at + 65_536], at + 65_536 < len(body)
        with suppress(asyncio.CancelledError):
            await send({"type": "http.response.body", "body": piece, "more_body": more})


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    """Where a hasty server listens."""
    listening = Listening(port=0)
    with bind(listening) as bound:
        running = server(application, listening, http=HastyConnection)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
        thread.start()
        yield bound.getsockname()
        running.should_exit = True
        thread.join()


@contextmanager
def talking(address: Address, said: bytes, source: str = "127.0.0.1") -> Iterator[socket.socket]:
    with socket.create_connection(address, timeout=60, source_address=(source, 0)) as talk:
        talk.sendall(said)
        yield talk


def is_closed(talk: socket.socket) -> bool:
    """Whether the other side hangs up, after whatever it says, within the time of the socket."""
    try:
        while talk.recv(65_536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GE",
        b"GET /healthz HTTP/1.1\r\nHost: loc",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHost",
    ],
)
def test_a_connection_without_a_whole_request_is_closed_by_a_deadline(
    address: Address, said: bytes
) -> None:
    with talking(address, said) as talk:
        assert is_closed(talk)


def test_dripping_does_not_move_the_deadline(address: Address) -> None:
    with talking(address, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ") as talk:
        talk.settimeout(0.02)
        for _ in range(500):
            try:
                talk.sendall(b"a")
                if not talk.recv(10):
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    pytest.fail("It was never closed.")


def test_a_reader_that_takes_nothing_is_given_up(address: Address) -> None:
    with talking(address, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n") as talk:
        assert talk.recv(100)
        threading.Event().wait(1.0)  # what it has to see is that nothing is read for a while
        read = 0
        with suppress(ConnectionError):
            while piece := talk.recv(1 << 20):
                read += len(piece)
        assert read < ANSWER_BYTES


def test_a_reader_that_takes_its_time_gets_everything(address: Address) -> None:
    with talking(address, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n") as talk:
        read = 0
        while read < ANSWER_BYTES:
            piece = talk.recv(1 << 20)
            assert piece
            read += len(piece)


def test_of_a_peer_with_too_many_connections_the_one_that_waited_longest_goes(
    address: Address,
) -> None:
    with talking(address, b"GET /") as oldest:
        others = [socket.create_connection(address, timeout=60) for _ in range(10)]
        oldest.settimeout(5)
        assert is_closed(oldest)
        for one in others:
            one.close()


def test_a_peer_whose_requests_take_all_its_room_is_refused_and_others_are_not(
    address: Address,
) -> None:
    begun = b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"
    busy = [socket.create_connection(address, timeout=60) for _ in range(10)]
    for one in busy:
        one.sendall(begun)
        one.sendall(b"1")
    with talking(address, begun + b"12345", source="127.0.0.2") as other:
        assert b" 200 " in other.recv(1000)
    with talking(address, b"") as another:
        assert b" 503 " in another.recv(1000)
    for one in busy:
        one.sendall(b"2345")
        assert b" 200 " in one.recv(1000)
        one.close()


def test_a_peer_is_an_address_or_a_network_of_ipv6() -> None:
    assert peer_of("10.0.0.1") != peer_of("10.0.0.2")
    assert peer_of("::ffff:10.0.0.1") == peer_of("10.0.0.1")
    assert peer_of("2001:db8:1:2::1") == peer_of("2001:db8:1:2:ffff::9")
    assert peer_of("2001:db8:1:2::1") != peer_of("2001:db8:1:3::1")
    assert peer_of("fe80::1%eth0") == peer_of("fe80::2")


def test_a_request_with_two_lengths_is_refused_and_what_follows_is_not_heard(
    service: Running,
) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    smuggled = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for lengths in (
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    ):
        said = b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\n" + lengths + b"\r\n0\r\n\r\n"
        with talking((host, int(port)), said + smuggled) as talk:
            heard = b""
            with suppress(ConnectionError):
                while piece := talk.recv(65_536):
                    heard += piece
        assert heard.startswith(b"HTTP/1.1 400 ")
        assert b'"version"' not in heard
        assert heard.count(b"HTTP/1.1") == 1


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Where a hasty server with TLS listens."""
    cert, key = certificate_for_localhost(tmp_path_factory.mktemp("tls"))
    listening = Listening(port=0, tls_cert=cert, tls_key=key)
    with bind(listening) as bound:
        running = server(application, listening, http=HastyConnection)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
        thread.start()
        yield bound.getsockname()
        running.should_exit = True
        thread.join()


class TestHandshakes:
    """TLS: a handshake that is not finished is a connection that waits."""

    @pytest.mark.parametrize(
        "said", [b"", b"\x16\x03\x01", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"]
    )
    def test_one_that_is_not_finished_is_closed_by_a_deadline(
        self, secured: Address, said: bytes
    ) -> None:
        with talking(secured, said) as talk:
            assert is_closed(talk)

    def test_of_a_peer_with_too_many_the_oldest_goes_at_once(
        self, secured: Address, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(HastyConnection, "header_seconds", 60.0)
        with talking(secured, b"\x16") as oldest:
            others = [socket.create_connection(secured, timeout=60) for _ in range(11)]
            oldest.settimeout(5)
            assert is_closed(oldest)
            assert answers(secured, "127.0.0.1")
            for one in others:
                one.close()

    def test_they_keep_no_other_peer_out(
        self, secured: Address, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(HastyConnection, "header_seconds", 60.0)
        crowd = [
            socket.create_connection(
                secured, timeout=60, source_address=(f"127.0.0.{2 + n % 9}", 0)
            )
            for n in range(90)
        ]
        assert answers(secured, "127.0.0.1")
        for one in crowd:
            one.close()

    def test_one_without_tls_is_told_nothing(self, secured: Address) -> None:
        with talking(secured, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") as talk:
            assert b"HTTP" not in talk.recv(100)


def answers(address: Address, source: str) -> bool:
    """Whether a whole request over TLS is answered."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(address, timeout=60, source_address=(source, 0)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as talk,
    ):
        talk.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return b"200" in talk.recv(100)
