"""Every extractor keeps the contract of the port."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrubjay.adapters import distillers
from scrubjay.adapters.clock import SystemClock
from scrubjay.adapters.distillers.chat import ChatExtractor, ChatModel
from scrubjay.model.endpoints import ModelDialect
from scrubjay.ports import Extractor
from scrubjay.testing.distiller_contract import ExtractorContract
from tests.support.model_server import ModelServer, note, serve_model
from tests.support.registry import implementations

NOTES = (note("Sam has a dentist named Wu.", about="Sam's dentist"), note("Sam drinks tea."))


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with serve_model(*NOTES * 6) as running:
        yield running


class TestChatExtractor(ExtractorContract):
    @pytest.fixture(params=ModelDialect)
    def extractor(self, server: ModelServer, request: pytest.FixtureRequest) -> Extractor:
        is_openai = request.param is ModelDialect.OPENAI
        url = server.openai_url if is_openai else server.anthropic_url
        model = ChatModel(base_url=url, name="m", dialect=request.param)
        return ChatExtractor(model, clock=SystemClock(), sleep=lambda _: None)


def test_no_extractor_is_left_without_its_contract() -> None:
    assert implementations(distillers, Extractor) == {ChatExtractor}
