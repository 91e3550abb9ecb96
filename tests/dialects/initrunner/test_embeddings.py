"""Which model embeds a role's memories, and what happens when it is another one than before."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from scrubjay import InvalidRequest, settings
from scrubjay.settings import EmbedderName
from scrubjay.surfaces.initrunner import embeddings
from scrubjay.surfaces.initrunner.embeddings import (
    DimensionMismatch,
    EmbeddingKeyMissing,
    EmbeddingModelChanged,
)
from scrubjay.surfaces.initrunner.roles import EmbeddingConfig
from tests.dialects.initrunner.scene import Scene

GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"
OPENAI = "https://api.openai.com/v1"
OLLAMA = "http://localhost:11434/v1"
CUSTOM = "http://127.0.0.1:9/v1"
PLACE = hashlib.sha256(CUSTOM.encode()).hexdigest()[:8]


@pytest.mark.parametrize(
    ("agent", "config", "identity", "key", "url"),
    [
        ("openai", {}, "openai:text-embedding-3-small", "OPENAI_API_KEY", OPENAI),
        ("anthropic", {}, "openai:text-embedding-3-small", "OPENAI_API_KEY", OPENAI),
        ("google", {}, "google:text-embedding-004", "GOOGLE_API_KEY", GOOGLE),
        ("ollama", {}, "ollama:nomic-embed-text", "", OLLAMA),
        ("groq", {}, "openai:text-embedding-3-small", "OPENAI_API_KEY", OPENAI),
        ("openai", {"provider": "google"}, "google:text-embedding-004", "GOOGLE_API_KEY", GOOGLE),
        ("google", {"model": "openai:big"}, "openai:big", "OPENAI_API_KEY", OPENAI),
        ("google", {"model": "own"}, "google:own", "GOOGLE_API_KEY", GOOGLE),
        ("openai", {"model": "big", "api_key_env": "MINE"}, "openai:big", "MINE", OPENAI),
        ("openai", {"base_url": CUSTOM}, f"openai:text-embedding-3-small:{PLACE}", "", CUSTOM),
        (
            "openai",
            {"base_url": CUSTOM, "model": "own", "api_key_env": "MINE"},
            f"openai:own:{PLACE}",
            "MINE",
            CUSTOM,
        ),
        ("ollama", {"model": "ollama:m:tag"}, "ollama:m:tag", "", OLLAMA),
        ("ollama", {"base_url": CUSTOM}, f"ollama:nomic-embed-text:{PLACE}", "", CUSTOM),
    ],
)
def test_the_model_is_resolved_as_the_table_says(
    agent: str, config: dict[str, str], identity: str, key: str, url: str
) -> None:
    found = embeddings.resolve(EmbeddingConfig(**config), agent)
    assert (found.identity, found.key_variable) == (identity, key)
    chosen = found.settings(
        settings.at_home(Path("home")), lambda name: "secret" if name == key else None
    )
    assert chosen.embedder is EmbedderName.OPENAI
    assert (chosen.openai.url, chosen.openai.api_key) == (url, "secret" if key else None)


def test_local_needs_no_key_and_no_network(tmp_path: Path) -> None:
    found = embeddings.resolve(EmbeddingConfig(provider="local"), "openai")
    assert found.identity == "local"
    assert (
        found.settings(settings.at_home(tmp_path), lambda _: None).embedder is EmbedderName.STATIC
    )


@pytest.mark.parametrize(
    "named", [{"model": "cohere:embed-4"}, {"provider": "cohere"}, {"provider": "Local"}]
)
def test_a_provider_that_cannot_embed_is_refused_with_the_ways_out(named: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        embeddings.resolve(EmbeddingConfig(**named), "openai")
    assert named.get("provider", "cohere") in caught.value.message
    assert "local" in caught.value.hint


@pytest.mark.parametrize("agent", ["openai", "anthropic", "google"])
def test_a_missing_key_names_its_variable_and_the_way_out(agent: str, tmp_path: Path) -> None:
    found = embeddings.resolve(EmbeddingConfig(), agent)
    with pytest.raises(EmbeddingKeyMissing) as caught:
        found.settings(settings.at_home(tmp_path), lambda _: None)
    said = caught.value.message
    assert found.key_variable in said
    assert "embedding keys may differ from LLM keys" in said
    assert ("OpenAI is used by default" in said) is (agent == "anthropic")
    assert "provider to local" in caught.value.hint


# -- in use ----------------------------------------------------------------------------------------


def remote(scene: Scene, model: str = "one") -> None:
    scene.write({"embeddings": {"base_url": scene.model.url, "model": model}})


def test_memories_are_embedded_by_the_endpoint_and_the_model_is_recorded(scene: Scene) -> None:
    remote(scene)
    with scene.opened() as agent:
        agent.memory.remember("Alice likes tea")
        assert agent.memory.recall("tea").startswith("[Type: semantic")
        recorded = agent.memory.jay.document(("initrunner", "embeddings")).value
    place = hashlib.sha256(scene.model.url.encode()).hexdigest()[:8]
    assert recorded == {"embedding_model": f"openai:one:{place}", "dimensions": 16}
    assert {asked["model"] for asked in scene.model.embeddings.requests} == {"one"}


def test_another_model_is_refused_until_the_memories_are_embedded_anew(scene: Scene) -> None:
    remote(scene)
    with scene.opened() as agent:
        agent.memory.remember("Alice likes tea")
    remote(scene, "two")
    with scene.opened() as agent:
        with pytest.raises(EmbeddingModelChanged, match=r"openai:one.*openai:two"):
            agent.memory.remember("More")
        with pytest.raises(EmbeddingModelChanged):
            agent.memory.recall("tea")
        assert agent.memory.list_memories().endswith("Alice likes tea")
    done = scene.run("chat", stdin="exit\n")
    assert done.code == 5
    assert "scrubjay memory reembed ROLE" in done.err
    assert scene.run("memory reembed").out == "Embedded 1 memories.\n"
    with scene.opened() as agent:
        assert "Score" in agent.memory.recall("tea")


def test_another_number_of_dimensions_is_refused(scene: Scene) -> None:
    remote(scene)
    with scene.opened() as agent:
        agent.memory.remember("Alice likes tea")
    scene.model.embeddings.dimensions = 32
    with scene.opened() as agent, pytest.raises(DimensionMismatch, match=r"16d.*32d"):
        agent.memory.remember("More")


def test_a_session_needs_no_embedder(scene: Scene) -> None:
    scene.write({"embeddings": {"provider": "openai"}})
    done = scene.run("chat", stdin="Hello\nexit\n")
    assert done.code == 0
    assert "set the OPENAI_API_KEY environment variable" in done.err
    with scene.opened() as agent:
        assert agent.sessions is not None
        assert agent.sessions.latest() is not None
        with pytest.raises(EmbeddingKeyMissing):
            agent.memory.remember("Tea")


def test_a_list_needs_no_key(scene: Scene) -> None:
    with scene.opened() as agent:
        agent.memory.remember("Alice likes tea")
    scene.write({"embeddings": {"provider": "openai"}})
    assert "Alice likes tea" in scene.run("memory list").out


def test_without_its_key_nothing_is_embedded_anew_and_the_key_is_named(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scene.opened() as agent:
        agent.memory.jay.retain("Alice likes tea")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    scene.write({"embeddings": {"provider": "openai", "model": "one"}})
    done = scene.run("memory reembed")
    assert done.code != 0
    assert "OPENAI_API_KEY" in done.err
