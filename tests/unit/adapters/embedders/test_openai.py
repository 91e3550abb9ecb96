"""The client of an embedding endpoint: what it sends, and what it makes of bad answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import numpy as np
import pytest

from scrubjay.adapters.embedders.openai import Endpoint, OpenAIEmbedder
from scrubjay.model.errors import EmbedderError, InvalidRequest, Timeout
from scrubjay.ports import Clock, SystemClock
from scrubjay.testing.clock import FakeClock
from tests.support.embedding_server import EmbeddingServer, serve_embeddings
from tests.support.loopback import Failure

KEY = "sk-very-secret"
TEXTS = ["one", "two", "three"]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serve_embeddings() as running:
        yield running


class Sleeper:
    """Notes how long it was told to sleep, and does not."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


def embedder_for(
    server: EmbeddingServer, sleeper: Sleeper, clock: Clock | None = None, **limits: object
) -> OpenAIEmbedder:
    asked = {"base_url": server.base_url, "model": "small", "dimensions": server.dimensions}
    endpoint = Endpoint(**{**asked, "api_key": KEY, **limits})  # type: ignore[arg-type]
    return OpenAIEmbedder(endpoint, clock=clock or FakeClock(), sleep=sleeper)


def test_rows_are_the_answers_by_their_index(server: EmbeddingServer, sleeper: Sleeper) -> None:
    rows = embedder_for(server, sleeper).embed(TEXTS)
    expected = np.array([server.vector(text) for text in TEXTS])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(rows, expected, atol=1e-6)


def test_the_request_is_what_the_interface_asks_for(
    server: EmbeddingServer, sleeper: Sleeper
) -> None:
    embedder_for(server, sleeper).embed(["text"])
    assert server.requests == [
        {"path": "/v1/embeddings", "model": "small", "input": ["text"], "encoding_format": "float"}
    ]
    assert server.keys == [f"Bearer {KEY}"]


def test_a_model_is_asked_to_shorten_only_on_request(
    server: EmbeddingServer, sleeper: Sleeper
) -> None:
    embedder = embedder_for(server, sleeper, shorten=True, api_key=None)
    embedder.embed(["text"])
    assert server.requests[0]["dimensions"] == 16
    assert server.keys == [None]
    assert embedder.identity.startswith("openai:small-16:")


def test_texts_go_in_batches_and_blank_ones_stay_here(
    server: EmbeddingServer, sleeper: Sleeper
) -> None:
    embedder_for(server, sleeper, batch=2).embed(["a", "", "b", "  ", "c"])
    assert [request["input"] for request in server.requests] == [["a", "b"], ["c"]]


def test_the_identity_differs_by_model_and_by_place(
    server: EmbeddingServer, sleeper: Sleeper
) -> None:
    here = embedder_for(server, sleeper)
    assert here.identity == embedder_for(server, sleeper, base_url=f"{server.base_url}/").identity
    identities = {
        embedder_for(server, sleeper, model="large").identity,
        embedder_for(server, sleeper, base_url="https://example.org/v1").identity,
    }
    assert len({here.identity, *identities}) == 3
    assert not any("example" in identity for identity in identities)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(
    server: EmbeddingServer, sleeper: Sleeper, status: int
) -> None:
    server.failures.extend([Failure(status=status), Failure(hang_up=True)])
    assert embedder_for(server, sleeper).embed(TEXTS).any(axis=1).all()
    assert len(server.requests) == 3
    first, second = sleeper.slept
    assert 0.125 <= first <= 0.25 <= second <= 0.5


def test_a_lasting_failure_is_an_embedder_error_after_the_last_attempt(
    server: EmbeddingServer, sleeper: Sleeper
) -> None:
    server.failures.extend([Failure(status=503)] * 9)
    with pytest.raises(EmbedderError, match="503"):
        embedder_for(server, sleeper, attempts=4).embed(TEXTS)
    assert len(server.requests) == 4
    assert len(sleeper.slept) == 3


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404])
def test_a_refusal_is_not_tried_again(
    server: EmbeddingServer, sleeper: Sleeper, status: int
) -> None:
    server.failures.append(Failure(status=status))
    with pytest.raises(EmbedderError, match=str(status)):
        embedder_for(server, sleeper).embed(TEXTS)
    assert len(server.requests) == 1


@pytest.mark.parametrize(("header", "pause"), [("2", 2.0), ("3600", 8.0)])
def test_a_wait_the_endpoint_asks_for_is_kept_within_reason(
    server: EmbeddingServer, sleeper: Sleeper, header: str, pause: float
) -> None:
    server.failures.append(Failure(status=429, headers=(("Retry-After", header),)))
    embedder_for(server, sleeper).embed(TEXTS)
    assert sleeper.slept == [pause]


def test_no_pause_outlasts_the_deadline(server: EmbeddingServer, sleeper: Sleeper) -> None:
    clock = FakeClock()
    server.failures.append(Failure(status=429, headers=(("Retry-After", "5"),)))
    with pytest.raises(Timeout):
        embedder_for(server, sleeper, clock).embed(TEXTS, deadline=clock.monotonic() + 3)
    assert sleeper.slept == []


def test_a_slow_answer_is_a_timeout(server: EmbeddingServer, sleeper: Sleeper) -> None:
    server.failures.extend([Failure(delay=5)] * 2)
    with pytest.raises(Timeout):
        embedder_for(server, sleeper, SystemClock(), seconds=0.05, attempts=2).embed(TEXTS)
    assert len(server.requests) == 2


def test_the_deadline_cuts_an_attempt_short(server: EmbeddingServer, sleeper: Sleeper) -> None:
    clock = SystemClock()
    server.failures.append(Failure(delay=5))
    started = clock.monotonic()
    with pytest.raises(Timeout):
        embedder_for(server, sleeper, clock).embed(TEXTS, deadline=started + 0.1)
    assert clock.monotonic() - started < 3


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b'{"data": 5}',
        b'{"data": [{"index": 0}]}',
        json.dumps({"data": [{"index": n, "embedding": [1.0] * 15} for n in range(3)]}).encode(),
        json.dumps({"data": [{"index": n, "embedding": [1.0] * 16} for n in range(2)]}).encode(),
        json.dumps({"data": [{"index": n, "embedding": [1e999] * 16} for n in range(3)]}).encode(),
        json.dumps({"data": [{"index": n, "embedding": ["x"] * 16} for n in range(3)]}).encode(),
        json.dumps({"data": [{"index": 0, "embedding": [10**400] * 16}] * 3}).encode(),
        b'{"data": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b" " * 1_000_000,
    ],
)
def test_an_answer_that_is_no_vectors_is_an_embedder_error(
    server: EmbeddingServer, sleeper: Sleeper, body: bytes
) -> None:
    server.failures.append(Failure(body=body))
    with pytest.raises(EmbedderError):
        embedder_for(server, sleeper).embed(TEXTS)
    assert len(server.requests) == 1


def test_an_endpoint_that_is_not_there_is_an_embedder_error(sleeper: Sleeper) -> None:
    with serve_embeddings() as server:
        pass
    with pytest.raises(EmbedderError, match="cannot be reached"):
        embedder_for(server, sleeper).embed(TEXTS)


def test_key_and_texts_are_in_no_log_and_no_error(
    server: EmbeddingServer, sleeper: Sleeper, caplog: pytest.LogCaptureFixture
) -> None:
    server.failures.extend([Failure(status=500, body=f"{KEY} one".encode())] * 3)
    embedder = embedder_for(server, sleeper)
    with caplog.at_level(logging.DEBUG), pytest.raises(EmbedderError) as caught:
        embedder.embed(["one-text"])
    told = caplog.text + repr(caught.value) + caught.value.hint + repr(embedder._endpoint)
    assert "remote.refused" in told
    assert KEY not in told
    assert "one-text" not in told


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/v1",
        "http://10.0.0.1/v1",
        "ftp://example.org",
        "https://user:password@example.org/v1",
        "https://example.org/v1?key=1",
        "example.org",
        "",
    ],
)
def test_an_address_that_would_give_texts_away_is_refused(url: str, sleeper: Sleeper) -> None:
    with pytest.raises(InvalidRequest):
        OpenAIEmbedder(
            Endpoint(base_url=url, model="m", dimensions=3), clock=FakeClock(), sleep=sleeper
        )


@pytest.mark.parametrize("url", ["https://a.example", "http://localhost:1", "http://[::1]:1/v1"])
def test_https_and_this_machine_are_fine(url: str, sleeper: Sleeper) -> None:
    endpoint = Endpoint(base_url=url, model="m", dimensions=3)
    assert OpenAIEmbedder(endpoint, clock=FakeClock(), sleep=sleeper).dimensions == 3
