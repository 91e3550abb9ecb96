"""HTTP client of an endpoint on another machine: one POST with retries, a deadline, a size limit.

Configuring an endpoint means trusting it with what is sent there. Neither the request, nor the key,
nor the answer is ever part of an error or a log line. No redirect is followed.

It is the standard library's client: httpx bounds the time of each read, not that of the whole
answer, so the loop that reads would stay, and the package would need it without an extra.
"""

from __future__ import annotations

import io
import logging
import socket
from collections.abc import Callable, Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final, cast
from urllib.parse import urlsplit

from scrubjay.model.endpoints import addresses, is_loopback
from scrubjay.model.errors import InvalidRequest
from scrubjay.ports import Clock

Sleep = Callable[[float], None]
PASSING: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Status codes of transient failures, worth a retry."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0


class Unanswered(Exception):
    """The endpoint gave no answer; the text continues a sentence that begins with its name."""


class RemoteTimeout(Unanswered):
    """The deadline passed."""


class BadStatus(Unanswered):
    """It answered with another status than 200."""

    def __init__(self, status: int, wait: float | None) -> None:
        super().__init__(f"answered {status}.")
        self.status = status
        self.wait = wait


class _TimedReader(io.RawIOBase):
    """Reads from a socket, each time for no longer than what is left until a deadline."""

    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        self._sock, self._left = sock, left
        self._stream = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._left())
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _TimedResponse(HTTPResponse):
    """An answer that is over by a deadline, however slowly its head or its pieces drip in."""

    def __init__(
        self, sock: socket.socket, *args: Any, left: Callable[[], float], **more: Any
    ) -> None:
        super().__init__(sock, *args, **more)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(sock, left))


class _PlainConnection(HTTPConnection):
    """A connection to this machine, which is what was checked: a resolver could say another."""

    def connect(self) -> None:
        for address in addresses(self.host):
            try:
                self.sock = socket.create_connection((address, self.port), self.timeout)
            except ConnectionError as error:
                refused = error
            else:
                self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return
        raise refused


class Remote:
    """HTTP endpoint with retries of transient failures; thread-safe."""

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        seconds: float,
        attempts: int,
        clock: Clock,
        sleep: Sleep,
        log: logging.Logger,
    ) -> None:
        self._url = url = urlsplit(base_url)
        if url.query or url.fragment or url.username or not url.hostname:
            raise InvalidRequest(f"The address of the {name} is not a plain URL.")
        if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.hostname)):
            raise InvalidRequest(
                f"The {name} is not reached over https.",
                hint="Use an https address; plain http works only to this machine.",
            )
        self._seconds = seconds
        self._attempts = attempts
        self._clock = clock
        self._sleep = sleep
        self._log = log

    def post(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        most_bytes: int,
        deadline: float | None = None,
    ) -> bytes:
        """The body of a 200 answer, up to a size limit; Unanswered otherwise.

        `deadline` is a reading of the clock's `monotonic`.
        """
        sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        for attempt in range(1, self._attempts + 1):
            wait = 0.0
            try:
                return self._ask(path, body, sent, most_bytes, deadline)
            except BadStatus as error:
                self._log.warning("remote.refused status=%d attempt=%d", error.status, attempt)
                failure: Exception = error
                wait = error.wait or 0.0
                if error.status not in PASSING:
                    break
            except (OSError, HTTPException) as error:
                kind = type(error).__name__
                self._log.warning("remote.failed error=%s attempt=%d", kind, attempt)
                failure = error
            if attempt < self._attempts:
                # Longer each time, by chance more or less, so that many callers spread out.
                chance = 0.5 + int.from_bytes(self._clock.random(2)) / 2**17
                pause = min(max(FIRST_PAUSE * 2 ** (attempt - 1) * chance, wait), LONGEST_PAUSE)
                if deadline is not None and self._clock.monotonic() + pause >= deadline:
                    raise RemoteTimeout("did not answer by the deadline.")
                self._sleep(pause)
        if isinstance(failure, Unanswered):
            raise failure
        if isinstance(failure, TimeoutError):
            raise RemoteTimeout("did not answer in time.") from failure
        raise Unanswered("cannot be reached.") from failure

    def _ask(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        most_bytes: int,
        deadline: float | None,
    ) -> bytes:
        until = self._clock.monotonic() + self._seconds
        until = until if deadline is None else min(until, deadline)
        kind = HTTPSConnection if self._url.scheme == "https" else _PlainConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=self._left(until))
        timed = partial(_TimedResponse, left=lambda: self._left(until))
        connection.response_class = cast(type[HTTPResponse], timed)
        raw = bytearray()
        try:
            whole = f"{self._url.path.rstrip('/')}{path}"
            connection.request("POST", whole, body=body, headers=dict(headers))
            with connection.getresponse() as response:
                # Piece by piece: neither longer nor later than it may be.
                while chunk := response.read1(65_536):
                    raw += chunk
                    if len(raw) > most_bytes:
                        raise Unanswered("answered with too much.")
        finally:
            connection.close()
        if response.status != 200:
            after = response.getheader("Retry-After") or ""  # a number of seconds, or a date
            raise BadStatus(response.status, float(after) if after.isdecimal() else None)
        return bytes(raw)

    def _left(self, until: float) -> float:
        left = until - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
