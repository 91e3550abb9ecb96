"""The bytes of HTTP: what two servers could read differently is refused, and all is bounded."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from starlette.types import Receive, Scope, Send

from scrubjay.service.server import PIPELINED, UNPARSED, Listening, bind, server

Address = tuple[str, int]
SEEN: list[tuple[str, dict[bytes, bytes], bytes]] = []
HEAD = b"POST /first HTTP/1.1\r\nHost: localhost\r\n"
NEXT = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Notes what reaches it, and answers when the whole body is there."""
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = b""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message.get("body", b""), message.get("more_body", False)
    SEEN.append((scope["path"], dict(scope["headers"]), body))
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    listening = Listening(port=0)
    with bind(listening) as bound:
        running = server(application, listening)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
        thread.start()
        yield bound.getsockname()
        running.should_exit = True
        thread.join()


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


def answer(address: Address, said: bytes) -> bytes:
    """Everything that comes back until the server hangs up."""
    with socket.create_connection(address, timeout=60) as talk:
        with suppress(ConnectionError):
            talk.sendall(said)
        heard = b""
        with suppress(ConnectionError):
            while piece := talk.recv(65_536):
                heard += piece
        return heard


AMBIGUOUS = {
    "a length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
    "a list of lengths": b"Content-Length: 0, 44\r\n\r\n",
    "a signed length": b"Content-Length: +0\r\n\r\n",
    "a length in hexadecimal": b"Content-Length: 0x0\r\n\r\n",
    "chunks that are not last": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "an unknown encoding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Content-Length : 44\r\n\r\n",
    "a folded header": b"X-One: a\r\n Content-Length: 44\r\n\r\n",
    "a bare line feed": b"X-One: a\nContent-Length: 0\r\n\r\n",
    "a bare carriage return": b"X-One: a\rContent-Length: 44\r\n\r\n",
    "a zero byte": b"X-One: a\x00b\r\n\r\n",
    "a header without a name": b": 44\r\n\r\n",
    "a size of chunk beyond all numbers": b"Transfer-Encoding: chunked\r\n\r\n"
    + b"f" * 17
    + b"\r\n",
    "a size of chunk that is no number": b"Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    "a chunk longer than it says": b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
    "a line feed after a chunk": b"Transfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n",
}


@pytest.mark.parametrize("rest", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_nothing_after_an_ambiguous_request_is_taken_for_another(
    address: Address, rest: bytes
) -> None:
    """It hangs up, before the body begins with 400."""
    heard = answer(address, HEAD + rest + NEXT)
    assert heard.count(b"HTTP/1.1 ") == heard.count(b"HTTP/1.1 400 ") <= 1
    assert not SEEN


def test_white_space_around_the_value_of_a_header_is_no_part_of_it(address: Address) -> None:
    said = b"GET /one HTTP/1.1\r\nHost: localhost\r\nMcp-Name: \t memory  \t\r\n"
    assert answer(address, said + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    ((_, headers, _),) = SEEN
    assert headers[b"mcp-name"] == b"memory"


def test_a_trailer_is_no_header(address: Address) -> None:
    chunks = b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nAuthorization: Bearer x\r\n\r\n"
    answer(address, HEAD + b"Connection: close\r\n" + chunks)
    ((_, headers, body),) = SEEN
    assert body == b"ab"
    assert b"authorization" not in headers


ENDLESS = {
    "header": HEAD + b"X-One: ",
    "name of a header": HEAD,
    "path": b"GET /",
    "trailer": HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-One: ",
    "extension of a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;x=",
}


@pytest.mark.parametrize("begun", ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends_is_cut_off(address: Address, begun: bytes) -> None:
    answer(address, begun + b"a" * 16 * UNPARSED)
    assert not SEEN


def test_a_head_of_many_headers_is_cut_off(address: Address) -> None:
    heard = answer(address, HEAD + b"a: b\r\n" * UNPARSED)
    assert heard.startswith(b"HTTP/1.1 400 ")
    assert not SEEN


def test_requests_sent_ahead_are_answered_in_their_order(address: Address) -> None:
    ahead = b"".join(
        b"GET /%d HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
        % (number, b"Connection: close\r\n" if number == PIPELINED else b"")
        for number in range(PIPELINED + 1)
    )
    assert answer(address, ahead).count(b"HTTP/1.1 200 ") == PIPELINED + 1
    assert [path for path, _, _ in SEEN] == [f"/{number}" for number in range(PIPELINED + 1)]


def test_only_so_many_requests_may_be_sent_ahead(address: Address) -> None:
    answer(address, NEXT * 1_000)
    assert len(SEEN) <= PIPELINED + 1


def test_after_an_upgrade_nobody_speaks_nothing_is_taken_for_a_request(address: Address) -> None:
    upgrade = b"GET /first HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
    heard = answer(address, upgrade + b"\r\n" + NEXT)
    assert heard.count(b"HTTP/1.1 200 ") == 1
    assert [path for path, _, _ in SEEN] == ["/first"]
