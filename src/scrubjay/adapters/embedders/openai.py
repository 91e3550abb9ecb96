"""An embedder behind an OpenAI-compatible endpoint: `POST {base_url}/embeddings`.

The texts leave the machine: whoever configures this trusts the endpoint with them. The key and
the texts are never part of an error or a log line.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from socket import socket
from typing import Any
from urllib.parse import SplitResult, urlsplit

from scrubjay.domain.errors import EmbedderError, InvalidRequest, Timeout
from scrubjay.ports import Clock, Floats

Sleep = Callable[[float], None]
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Answers that another attempt may turn into a good one."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0
ANSWER_BYTES_PER_NUMBER = 40
ANSWER_BYTES = 65_536

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where vectors come from, and how patient to be with it."""

    base_url: str
    """With the version, as in `https://api.example.com/v1`; plain http only to this machine."""
    model: str
    dimensions: int
    api_key: str | None = field(default=None, repr=False)
    shorten: bool = False
    """Ask for `dimensions` in each request, of a model that can shorten its vectors."""
    batch: int = 64
    seconds: float = 10.0
    """How long one attempt may take."""
    attempts: int = 3


class _Refused(Exception):
    """The endpoint answered, but not with vectors."""

    def __init__(self, status: int, wait: float | None) -> None:
        super().__init__(status)
        self.status = status
        self.wait = wait


class OpenAIEmbedder:
    """An Embedder that asks an endpoint, in batches, and again when it fails in passing."""

    def __init__(self, endpoint: Endpoint, *, clock: Clock, sleep: Sleep) -> None:
        self._endpoint = endpoint
        self._url = _checked(endpoint)
        self._clock = clock
        self._sleep = sleep

    @property
    def identity(self) -> str:
        """Which vectors these are: the model's, and where it is served, as a hash."""
        place = hashlib.sha256(self._endpoint.base_url.rstrip("/").encode()).hexdigest()[:8]
        size = f"-{self.dimensions}" if self._endpoint.shorten else ""
        return f"openai:{self._endpoint.model}{size}:{place}"

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return self._endpoint.dimensions

    @property
    def costly(self) -> bool:
        """Asking again would take long."""
        return True

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        """One row per text, in their order, of length 1; zeros where a text is blank."""
        import numpy as np

        rows = np.zeros((len(texts), self.dimensions), np.float32)
        # Endpoints refuse a blank text, and it says nothing anyway.
        told = [place for place, text in enumerate(texts) if text.strip()]
        for start in range(0, len(told), self._endpoint.batch):
            places = told[start : start + self._endpoint.batch]
            rows[places] = self._embed([texts[place] for place in places], deadline)
        return rows

    def _embed(self, texts: Sequence[str], deadline: float | None) -> Floats:
        for attempt in range(1, self._endpoint.attempts + 1):
            try:
                return self._ask(texts, deadline)
            except _Refused as refused:
                log.warning("embedder.refused status=%d attempt=%d", refused.status, attempt)
                failure: Exception = refused
                if refused.status not in PASSING:
                    break
            except (OSError, HTTPException) as error:
                log.warning("embedder.failed error=%s attempt=%d", type(error).__name__, attempt)
                failure = error
            if attempt < self._endpoint.attempts:
                self._pause(attempt, getattr(failure, "wait", None), deadline)
        raise _told(failure) from failure

    def _pause(self, attempt: int, wished: float | None, deadline: float | None) -> None:
        """Wait longer each time, by chance more or less, so that many callers spread out."""
        chance = 0.5 + int.from_bytes(self._clock.random(2)) / 2**17
        pause = min(max(FIRST_PAUSE * 2 ** (attempt - 1) * chance, wished or 0.0), LONGEST_PAUSE)
        if deadline is not None and self._clock.monotonic() + pause >= deadline:
            raise Timeout("The embedding endpoint did not answer by the deadline.")
        self._sleep(pause)

    def _ask(self, texts: Sequence[str], deadline: float | None) -> Floats:
        until = self._clock.monotonic() + self._endpoint.seconds
        until = until if deadline is None else min(until, deadline)
        connection = self._connect(self._left(until))
        try:
            path = f"{self._url.path.rstrip('/')}/embeddings"
            connection.request("POST", path, body=self._body(texts), headers=self._headers())
            sock = connection.sock
            with connection.getresponse() as response:
                raw = b"".join(self._read(sock, response, until, len(texts)))
        finally:
            connection.close()
        if response.status != 200:
            raise _Refused(response.status, _seconds(response.getheader("Retry-After")))
        return self._vectors(raw, len(texts))

    def _read(
        self, sock: socket, response: HTTPResponse, until: float, count: int
    ) -> Iterator[bytes]:
        """The answer piece by piece: neither longer nor later than it may be."""
        room = ANSWER_BYTES + count * self.dimensions * ANSWER_BYTES_PER_NUMBER
        while chunk := response.read1(65_536):
            room -= len(chunk)
            if room < 0:
                raise EmbedderError("The embedding endpoint answered with too much.")
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

    def _body(self, texts: Sequence[str]) -> bytes:
        wanted: dict[str, Any] = {
            "model": self._endpoint.model,
            "input": texts,
            "encoding_format": "float",
        }
        if self._endpoint.shorten:
            wanted["dimensions"] = self.dimensions
        return json.dumps(wanted).encode()

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._endpoint.api_key:
            headers["Authorization"] = f"Bearer {self._endpoint.api_key}"
        return headers

    def _vectors(self, raw: bytes, count: int) -> Floats:
        import numpy as np

        try:
            answers = sorted(json.loads(raw)["data"], key=lambda answer: answer["index"])
            rows = np.array([answer["embedding"] for answer in answers], np.float32)
        except (ValueError, TypeError, KeyError) as error:
            raise EmbedderError("The embedding endpoint answered something else.") from error
        if rows.shape != (count, self.dimensions):
            raise EmbedderError(
                f"The embedding endpoint gave vectors of shape {rows.shape}, "
                f"not {(count, self.dimensions)}.",
                hint="Set the dimensions to those of the model.",
            )
        if not np.isfinite(rows).all():
            raise EmbedderError("The embedding endpoint answered numbers that are none.")
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(lengths > 0, lengths, 1)
        return rows


def _told(failure: Exception) -> EmbedderError:
    """What the caller is told of the last attempt; never what the endpoint wrote."""
    if isinstance(failure, _Refused):
        return EmbedderError(f"The embedding endpoint answered {failure.status}.")
    if isinstance(failure, TimeoutError):
        return Timeout("The embedding endpoint did not answer in time.")
    return EmbedderError("The embedding endpoint cannot be reached.")


def _seconds(header: str | None) -> float | None:
    """The wait a header asks for, unless it names a date."""
    return float(header) if header and header.isdecimal() else None


def _checked(endpoint: Endpoint) -> SplitResult:
    url = urlsplit(endpoint.base_url)
    if url.query or url.fragment or url.username or not url.hostname:
        raise InvalidRequest("The address of the embedding endpoint is not a plain URL.")
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(url.hostname)):
        raise InvalidRequest(
            "The embedding endpoint is not reached over https.",
            hint="Use an https address; plain http works only to this machine.",
        )
    if min(endpoint.dimensions, endpoint.batch, endpoint.attempts, endpoint.seconds) <= 0:
        raise InvalidRequest("The limits of the embedding endpoint must be above zero.")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
