"""Every extractor keeps the contract of the port."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from scrubjay.adapters import distillers
from scrubjay.adapters.distillers.chat import CalledExtractor, ChatExtractor, ChatModel
from scrubjay.model.endpoints import ModelDialect
from scrubjay.model.errors import ExtractorError
from scrubjay.model.jobs import ModelAnswer
from scrubjay.ports import Extractor, SystemClock
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


class TestCalledExtractor(ExtractorContract):
    @pytest.fixture
    def extractor(self, server: ModelServer) -> Extractor:
        """A model that the program asks by an HTTP client of its own."""

        def ask(instructions: str, material: str, *, deadline: float | None = None) -> ModelAnswer:
            if deadline is not None and SystemClock().monotonic() >= deadline:
                raise ExtractorError("The model was not asked in time.")
            said = [
                {"role": "system", "content": instructions},
                {"role": "user", "content": material},
            ]
            asked = httpx2.post(f"{server.openai_url}/chat/completions", json={"messages": said})
            return ModelAnswer(text=asked.json()["choices"][0]["message"]["content"])

        return CalledExtractor(ask, name="m")


def test_no_extractor_is_left_without_its_contract() -> None:
    assert implementations(distillers, Extractor) == {ChatExtractor, CalledExtractor}
