"""Asking an endpoint on another machine: one POST, patient, bounded, and discreet.

Whoever configures an endpoint trusts it with what is sent there. Neither that, nor the key, nor
what the endpoint answered is ever part of an error or a log line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import socket
from typing import Final
from urllib.parse import SplitResult, urlsplit

from scrubjay.model.endpoints import is_loopback
from scrubjay.model.errors import InvalidRequest
from scrubjay.ports import Clock

Sleep = Callable[[float], None]
PASSING: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Answers that another attempt may turn into a good one."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0


class Unanswered(Exception):
    """The endpoint gave no answer; the text goes on where a sentence began with its name."""


class Late(Unanswered):
    """It took too long."""


class Refused(Unanswered):
    """It answered, but not with what was asked for."""

    def __init__(self, status: int, wait: float | None) -> None:
        super().__init__(f"answered {status}.")
        self.status = status
        self.wait = wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long one attempt may take, and how many there are."""

    seconds: float
    attempts: int = 3


class Remote:
    """An endpoint; asked again when it fails in passing. Safe for several threads."""

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        patience: Patience,
        clock: Clock,
        sleep: Sleep,
        log: logging.Logger,
    ) -> None:
        self._url = _checked(base_url, name)
        self._patience = patience
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
        """What it answers with 200, at most so many bytes; Unanswered if there is no such answer.

        `deadline` is a reading of the clock's `monotonic`.
        """
        sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        for attempt in range(1, self._patience.attempts + 1):
            try:
                return self._ask(path, body, sent, most_bytes, deadline)
            except Refused as refused:
                self._log.warning("remote.refused status=%d attempt=%d", refused.status, attempt)
                failure: Exception = refused
                if refused.status not in PASSING:
                    break
            except (OSError, HTTPException) as error:
                kind = type(error).__name__
                self._log.warning("remote.failed error=%s attempt=%d", kind, attempt)
                failure = error
            if attempt < self._patience.attempts:
                self._pause(attempt, getattr(failure, "wait", None), deadline)
        raise _told(failure) from failure

    def _pause(self, attempt: int, wished: float | None, deadline: float | None) -> None:
        """Wait longer each time, by chance more or less, so that many callers spread out."""
        chance = 0.5 + int.from_bytes(self._clock.random(2)) / 2**17
        pause = min(max(FIRST_PAUSE * 2 ** (attempt - 1) * chance, wished or 0.0), LONGEST_PAUSE)
        if deadline is not None and self._clock.monotonic() + pause >= deadline:
            raise Late("did not answer by the deadline.")
        self._sleep(pause)

    def _ask(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        most_bytes: int,
        deadline: float | None,
    ) -> bytes:
        until = self._clock.monotonic() + self._patience.seconds
        until = until if deadline is None else min(until, deadline)
        connection = self._connect(self._left(until))
        try:
            whole = f"{self._url.path.rstrip('/')}{path}"
            connection.request("POST", whole, body=body, headers=dict(headers))
            sock = connection.sock
            with connection.getresponse() as response:
                raw = b"".join(self._read(sock, response, until, most_bytes))
        finally:
            connection.close()
        if response.status != 200:
            raise Refused(response.status, _seconds(response.getheader("Retry-After")))
        return raw

    def _read(
        self, sock: socket, response: HTTPResponse, until: float, room: int
    ) -> Iterator[bytes]:
        """The answer piece by piece: neither longer nor later than it may be."""
        while chunk := response.read1(65_536):
            room -= len(chunk)
            if room < 0:
                raise Unanswered("answered with too much.")
            yield chunk
            if not response.isclosed():
                sock.settimeout(self._left(until))

    def _left(self, until: float) -> float:
        left = until - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _connect(self, seconds: float) -> HTTPConnection:
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        return kind(self._url.hostname or "", self._url.port, timeout=seconds)


def _told(failure: Exception) -> Unanswered:
    """What the caller is told of the last attempt; never what the endpoint wrote."""
    if isinstance(failure, Unanswered):
        return failure
    if isinstance(failure, TimeoutError):
        return Late("did not answer in time.")
    return Unanswered("cannot be reached.")


def _seconds(header: str | None) -> float | None:
    """The wait a header asks for, unless it names a date."""
    return float(header) if header and header.isdecimal() else None


def _checked(base_url: str, name: str) -> SplitResult:
    url = urlsplit(base_url)
    if url.query or url.fragment or url.username or not url.hostname:
        raise InvalidRequest(f"The address of the {name} is not a plain URL.")
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.hostname)):
        raise InvalidRequest(
            f"The {name} is not reached over https.",
            hint="Use an https address; plain http works only to this machine.",
        )
    return url
