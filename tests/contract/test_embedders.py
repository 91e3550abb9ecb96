"""Every embedder keeps the contract of the port."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrubjay.adapters import embedders
from scrubjay.adapters.embedders.encoder import EncoderEmbedder
from scrubjay.adapters.embedders.openai import Endpoint, OpenAIEmbedder
from scrubjay.adapters.embedders.static import NoEmbedder, StaticEmbedder
from scrubjay.ports import Clock, Embedder
from scrubjay.testing.embedder_contract import EmbedderContract, VectorContract
from tests.support.embedding_server import serve_embeddings
from tests.support.registry import implementations


class TestNoEmbedder(EmbedderContract):
    tested = NoEmbedder

    @pytest.fixture
    def embedder(self) -> Embedder:
        return NoEmbedder()


class TestStaticEmbedder(VectorContract):
    tested = StaticEmbedder

    @pytest.fixture
    def embedder(self, clock: Clock) -> Embedder:
        return StaticEmbedder(clock)


class TestOpenAIEmbedder(VectorContract):
    tested = OpenAIEmbedder

    @pytest.fixture
    def embedder(self, clock: Clock) -> Iterator[Embedder]:
        with serve_embeddings() as server:
            endpoint = Endpoint(base_url=server.base_url, model="m", dimensions=server.dimensions)
            yield OpenAIEmbedder(endpoint, clock=clock, sleep=lambda _: None)


class TestEncoderEmbedder(VectorContract):
    tested = EncoderEmbedder

    @pytest.fixture
    def embedder(self, clock: Clock) -> Embedder:
        return EncoderEmbedder(clock)


def test_every_embedder_runs_the_contract() -> None:
    """One added to the package without a suite here fails this test."""
    suites = (TestNoEmbedder, TestStaticEmbedder, TestOpenAIEmbedder, TestEncoderEmbedder)
    assert implementations(embedders, Embedder) == {suite.tested for suite in suites}
