"""Every embedder keeps the contract of the port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scrubjay.adapters import embedders
from scrubjay.adapters.embedders.minilm import MiniLMEmbedder
from scrubjay.adapters.embedders.none import NoEmbedder
from scrubjay.adapters.embedders.openai import Endpoint, OpenAIEmbedder
from scrubjay.adapters.embedders.static import StaticEmbedder
from scrubjay.ports import Clock, Embedder
from scrubjay.testing.embedder_contract import EmbedderContract, VectorContract
from tests.support.embedding_server import serve_embeddings
from tests.support.registry import implementations
from tests.tiny_model import write_tiny_model


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


class TestMiniLMEmbedder(VectorContract):
    tested = MiniLMEmbedder

    @pytest.fixture
    def embedder(self, clock: Clock, tmp_path: Path) -> Embedder:
        write_tiny_model(tmp_path)
        return MiniLMEmbedder(tmp_path, clock)


class TestOpenAIEmbedder(VectorContract):
    tested = OpenAIEmbedder

    @pytest.fixture
    def embedder(self, clock: Clock) -> Iterator[Embedder]:
        with serve_embeddings() as server:
            endpoint = Endpoint(base_url=server.base_url, model="m", dimensions=server.dimensions)
            yield OpenAIEmbedder(endpoint, clock=clock, sleep=lambda _: None)


def test_every_embedder_runs_the_contract() -> None:
    """One added to the package without a suite here fails this test."""
    suites = (TestNoEmbedder, TestStaticEmbedder, TestMiniLMEmbedder, TestOpenAIEmbedder)
    assert implementations(embedders, Embedder) == {suite.tested for suite in suites}
