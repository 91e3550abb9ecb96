"""HTTP server: address, TLS, JSON logs and graceful shutdown."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from scrubjay.model.endpoints import is_loopback
from scrubjay.model.errors import Forbidden, InvalidRequest
from scrubjay.service.connections import Connection, most_connections
from scrubjay.service.gate import HEADER_BYTES

_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    *("message", "asctime", "taskName"),
    "color_message",  # the server's: the same event once more, with escape sequences
}


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
        return json.dumps(line, default=str, ensure_ascii=False)


def to_stderr(level: int = logging.INFO) -> None:
    """Send the log lines of scrubjay and of the server to stderr."""
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
    app: ASGIApp, listening: Listening, *, http: type[Connection] = Connection, **more: Any
) -> uvicorn.Server:
    """A server for the application; on SIGTERM it finishes what it has begun, then ends.

    The certificate is loaded now, so that a bad one is reported before the start.
    """

    def tls(_config: uvicorn.Config, default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        context = default()
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        http=http,
        # The gate answers what is up to twice too large; the server hangs up on anything beyond.
        h11_max_incomplete_event_size=2 * HEADER_BYTES,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE_SECONDS,
        limit_concurrency=most_connections(),
        lifespan="on",
        ssl_certfile=listening.tls_cert,
        ssl_keyfile=listening.tls_key,
        ssl_context_factory=tls if listening.tls else None,
        **more,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise InvalidRequest(
            f"The certificate or its key cannot be used: {error.strerror or error}.",
            hint="--tls-cert and --tls-key are PEM files that belong together.",
        ) from error
    return uvicorn.Server(config)
