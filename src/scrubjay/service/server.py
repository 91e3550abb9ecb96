"""HTTP server: connections with deadlines, address, TLS, JSON logs and graceful shutdown.

A connection that waits for a request gives way to a new one where its peer, or everybody together,
has too many: the one that has waited longest is closed. A connection whose request is being
answered never gives way. uvicorn has none of this: its timer stops at the first byte.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import resource
import socket
import ssl
import sys
from asyncio.sslproto import SSLProtocol
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final, cast

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scrubjay.model.endpoints import is_loopback
from scrubjay.model.errors import Forbidden, InvalidRequest
from scrubjay.service.endpoint import HEADER_BYTES

# -- connections -----------------------------------------------------------------------------------

CONNECTIONS: Final = 2048
"""How many connections may be open at once, where the system allows twice as many files."""
PEER_SHARE: Final = 4
"""One peer may have a fourth of all connections."""
_ARRIVALS: Final = count()
_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Length: 0\r\n\r\n"
)


UNPARSED: Final = 2 * HEADER_BYTES
"""How many bytes may come without a whole head, piece of a body or end of one. The gate answers a
head that is up to twice too large; the server hangs up on anything beyond."""
PIPELINED: Final = 16
"""How many requests may wait for the answer of an earlier one."""


class Connection(HttpToolsProtocol):
    """One connection; its timer runs from its beginning, or the last answer, to the next request.

    The timer is uvicorn's own for keep-alive, which a request that has all its headers stops. The
    parser keeps an unfinished header for as long as it grows, and its callers trailers and
    requests that are sent ahead: here all of them are bounded.
    """

    header_seconds = 10.0
    """How long the first request's headers may take, from the moment of the connection."""
    stall_seconds = 60.0
    """How long an answer may lie here without its reader taking any of it."""
    peer: str = ""
    waits_since: float = 0.0
    arrived: int = 0
    """Its place among all: uvloop's time is of a millisecond, in which many may come."""
    _stalled: asyncio.TimerHandle | None = None
    _unparsed = 0
    _in_head = True
    _head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it in, and close the one that has waited longest if there are too many."""
        super().connection_made(transport)
        self.peer = peer_of(self.client[0]) if self.client else ""
        self.waits_since, self.arrived = self.loop.time(), next(_ARRIVALS)
        handler = self.timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_later(self.header_seconds, handler)
        if not _make_room(self, self):
            transport.write(_REFUSAL)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Take in bytes; they alone do not stop the timer."""
        self._unparsed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # What follows is meant for another protocol, which nobody speaks here.
            self.cycle.keep_alive = False
        except httptools.HttpParserError:
            self._refuse()
        else:
            if self._unparsed > UNPARSED:
                self._refuse()

    def _refuse(self) -> None:
        """Answer 400, unless an answer is owed to an earlier request, and hang up."""
        if self.waits:
            self.send_400_response("Invalid HTTP request received.")
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._in_head, self._head = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a header; a trailer, which follows the body, is none."""
        if not self._in_head:
            return
        self._head += len(name) + len(value) + len(": \r\n")
        if self._head > UNPARSED:
            raise ValueError("The head is too large.")  # the parser refuses it, and the rest
        super().on_header(name, value.rstrip(b" \t"))  # RFC 9110: no part of the value

    def on_headers_complete(self) -> None:
        """Begin to answer, now that the head is whole."""
        if len(self.pipeline) >= PIPELINED:
            raise ValueError("Too many requests were sent ahead.")
        self._unparsed, self._in_head = 0, False
        self._unset_keepalive_if_required()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take in a piece of the body."""
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        self._unparsed = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waits_since = self.loop.time()
        super().on_response_complete()

    @property
    def waits(self) -> bool:
        """Whether no request is being answered here."""
        return self.cycle is None or self.cycle.response_complete

    def timeout_keep_alive_handler(self) -> None:
        """Close it, whatever of a request has come; an answer may still be taken for a while."""
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        if self.transport.get_write_buffer_size():
            self._expect_reader()
        self.transport.close()

    def pause_writing(self) -> None:
        """Begin to count how long the reader takes nothing."""
        super().pause_writing()
        self._expect_reader()

    def resume_writing(self) -> None:
        """The reader has taken something."""
        self._forgive_reader()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let it go, with its timers."""
        self._unset_keepalive_if_required()
        self._forgive_reader()
        super().connection_lost(exc)

    def _expect_reader(self) -> None:
        self._forgive_reader()
        self._stalled = self.loop.call_later(self.stall_seconds, self.transport.abort)

    def _forgive_reader(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class Handshake(SSLProtocol):
    """TLS handshake: a connection that waits, with the same deadline and the same cap per peer.

    asyncio would tell the connection of its peer only when the handshake is over.
    """

    def __init__(self, connection: Connection, context: ssl.SSLContext) -> None:
        # In the order of asyncio's own server; the types of it know no waiter that is None.
        timed: dict[str, Any] = {"waiter": None, "ssl_handshake_timeout": connection.header_seconds}
        super().__init__(connection.loop, connection, context, server_side=True, **timed)
        self._connection = connection
        self._raw: asyncio.BaseTransport | None = None
        self.peer, self.waits, self.waits_since = "", True, connection.loop.time()
        self.arrived = next(_ARRIVALS)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, and close the one that has waited longest if there are too many."""
        address = transport.get_extra_info("peername")
        self.peer, self._raw = peer_of(address[0]) if address else "", transport
        self._connection.connections.add(cast("Connection", self))
        super().connection_made(transport)
        if not _make_room(self._connection, self):
            self.timeout_keep_alive_handler()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Let it go."""
        self._connection.connections.discard(cast("Connection", self))
        super().connection_lost(exc)

    def _on_handshake_complete(self, handshake_exc: BaseException | None) -> None:
        self._connection.connections.discard(cast("Connection", self))
        super()._on_handshake_complete(handshake_exc)

    def timeout_keep_alive_handler(self) -> None:
        """Close it."""
        self._connection.connections.discard(cast("Connection", self))
        cast("asyncio.Transport", self._raw).abort()

    shutdown = timeout_keep_alive_handler


def _make_room(connection: Connection, newcomer: Connection | Handshake) -> bool:
    """Close the one that has waited longest if there are too many; False if none can go."""
    others = cast("set[Connection | Handshake]", connection.connections)
    most = connection.limit_concurrency or len(others) + 1
    alike = [one for one in others if one.peer == newcomer.peer]
    if len(alike) > max(1, most // PEER_SHARE):
        return _close_one(alike, newcomer)
    if len(others) >= most:
        _close_one(others, newcomer)
    return True


def most_connections() -> int:
    """How many connections may be open at once; asks the system for the files they need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 4 * CONNECTIONS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # some systems have a lower limit than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return CONNECTIONS if soft == resource.RLIM_INFINITY else min(CONNECTIONS, soft // 2)


def peer_of(address: str) -> str:
    """Peer identity for limits: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


def _close_one(crowd: Iterable[Connection | Handshake], newcomer: Connection | Handshake) -> bool:
    """Close the connection that has waited longest for a request; False if none waits."""
    waiting = [one for one in crowd if one.waits and one is not newcomer]
    if not waiting:
        return False
    min(waiting, key=lambda one: (one.waits_since, one.arrived)).timeout_keep_alive_handler()
    return True


# -- logs and address ------------------------------------------------------------------------------

_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    *("message", "asctime", "taskName"),
    "color_message",  # the server's: the same event once more, with escape sequences
}


_line_of: Final = json.JSONEncoder(default=str, ensure_ascii=False).encode


class JsonLines(logging.Formatter):
    """JSON log formatter: event, level, time and fields, one object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info and record.exc_info[0]:
            # The text of an exception may quote what it failed on; its place does not.
            line["error"] = record.exc_info[0].__name__
            if places := list(walk_tb(record.exc_info[2])):
                frame, number = places[-1]
                line["at"] = f"{frame.f_globals.get('__name__')}:{number}"
        return _line_of(line)


def to_stderr(level: int = logging.INFO) -> None:
    """Send the log lines of scrubjay and of the server to stderr; this process is a service."""
    # No line names its thread, its process or the place in the code: that is not looked up.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # as the HOWTO of logging advises
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("scrubjay", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False


GRACE_SECONDS: Final = 30
_BACKLOG: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Listen address; beyond loopback only with TLS, unless `insecure_http`."""

    host: str = "127.0.0.1"
    port: int = 8377
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure_http: bool = False
    no_auth: bool = False

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidRequest("TLS needs both a certificate and its key.")
        if self.loopback:
            return
        if self.no_auth:
            raise Forbidden(
                "Without authentication it listens on loopback only.",
                hint="Leave out --no-auth or --host.",
            )
        if not self.tls and not self.insecure_http:
            raise Forbidden(
                "Beyond loopback, keys and memories would cross the network in plain text.",
                hint="Add --tls-cert and --tls-key, or --insecure-http behind a TLS proxy.",
            )

    @property
    def tls(self) -> bool:
        """Whether it uses TLS."""
        return self.tls_cert is not None

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def url(self, port: int) -> str:
        """URL of the service."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{name}:{port}"


def bind(listening: Listening) -> socket.socket:
    """A socket that listens; with port 0 the system chooses one."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # The protocol is named so that asyncio knows it may send small answers without delay.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listening.host, listening.port))
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise InvalidRequest(
            f"It cannot listen on {listening.host} port {listening.port}: {error.strerror}.",
            hint="End what listens there, or choose another --port; 0 takes a free one.",
        ) from error
    return bound


def server(
    app: ASGIApp,
    listening: Listening,
    *,
    http: type[Connection] = Connection,
    workers: int = 1,
    **more: Any,
) -> uvicorn.Server:
    """A server for the application; on SIGTERM it finishes what it has begun, then ends.

    It has its share of the connections, if it is one of several `workers`.
    The certificate is loaded now, so that a bad one is reported before the start.
    """
    context = _tls(listening) if listening.tls else None

    def secured(**arguments: Any) -> asyncio.BaseProtocol:
        connection = http(**arguments)
        return connection if context is None else Handshake(connection, context)

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        loop="uvloop",
        http=cast("type[asyncio.Protocol]", secured),
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE_SECONDS,
        limit_concurrency=most_connections() // workers,
        lifespan="on",
        **more,
    )
    config.load()
    return uvicorn.Server(config)


def _tls(listening: Listening) -> ssl.SSLContext:
    """TLS 1.3 with the certificate of the service; InvalidRequest if it cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    named = cast("Path", listening.tls_cert), cast("Path", listening.tls_key)
    try:
        for path in named:
            path.open("rb").close()  # its error names the file
        context.load_cert_chain(*named)
    except (OSError, ssl.SSLError) as error:
        which = error.filename or "The certificate or its key"
        raise InvalidRequest(
            f"{which} cannot be used: {error.strerror or error}.",
            hint="--tls-cert and --tls-key are PEM files that belong together.",
        ) from error
    return context
