"""The model clients of OpenAI's Responses, Anthropic and Google, against servers of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.dialects.initrunner.scene import Scene
from tests.support.chat_server import Call
from tests.support.provider_server import ProviderServer, Said, serve_providers

pytestmark = pytest.mark.filterwarnings("ignore:invalid escape sequence")  # in Google's library
PROVIDERS = {
    "openai": ("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"),
    "anthropic": ("ANTHROPIC_BASE_URL", "", "ANTHROPIC_API_KEY"),
    "google": ("GOOGLE_GEMINI_BASE_URL", "", "GOOGLE_API_KEY"),
}


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serve_providers() as running:
        yield running


def speaking(
    scene: Scene, server: ProviderServer, provider: str, patch: pytest.MonkeyPatch, **model: str
) -> None:
    """The agent, on a model of this provider."""
    place, path, key = PROVIDERS[provider]
    patch.setenv(place, server.url + path)
    if not model:
        patch.setenv(key, "secret")
    scene.write(
        {"consolidation": {"interval": "manual"}},
        model={"provider": provider, "name": "m", **model},
    )


def remembering(results: list[str]) -> Said:
    """A model that recalls, remembers, and then repeats what it was told."""
    plan = [Call("recall", {"query": "tea"}), Call("remember", {"content": "Alice drinks tea"})]
    return plan[len(results)] if len(results) < len(plan) else f"Told: {results[-1]}"


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("command", ["chat", "run"])
def test_an_agent_remembers_by_whatever_provider_speaks(
    scene: Scene,
    server: ProviderServer,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
    command: str,
) -> None:
    """In a chat the answer is a stream, in a run it comes whole."""
    speaking(scene, server, provider, monkeypatch)
    server.says = remembering
    words = ["--task", "Hello", "--trigger", "cron"] if command == "run" else []
    done = scene.run(command, *words, stdin="Hello\nexit\n")
    assert done.code == 0, done.err
    assert "Remembered (id=1, category=general)" in done.out
    assert "Alice drinks tea" in scene.run("memory list").out
    assert len(server.requests) == 3
    tools = json.dumps(server.requests[0]["tools"])
    assert "learn_procedure" in tools
    assert "You help." in json.dumps(server.requests[0])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_session_goes_on_by_whatever_provider_speaks(
    scene: Scene, server: ProviderServer, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    speaking(scene, server, provider, monkeypatch)
    server.says = remembering
    scene.run("chat", stdin="My name is Alice\nexit\n")
    server.says = lambda _: "Noted."
    done = scene.run("chat", "--resume", stdin="Who am I?\nexit\n")
    assert "Resumed session with 6 messages." in done.out
    told = json.dumps(server.requests[-1])
    assert "My name is Alice" in told
    assert "Remembered (id=1" in told


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_key_of_a_variable_that_the_role_names_is_sent(
    scene: Scene, server: ProviderServer, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("MINE", "my-own")
    speaking(scene, server, provider, monkeypatch, api_key_env="MINE")
    assert scene.run("run", "--task", "Hello", "--trigger", "cron").code == 0
    assert server.keys[-1] in {"my-own", "Bearer my-own"}
