"""The plugin's configuration, and from a group's name to its scope."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scrubjay import settings
from scrubjay.model.errors import InvalidRequest
from scrubjay.settings import EmbedderName, OpenAISettings
from scrubjay.surfaces.carapace.memory import Config, Provider
from scrubjay.surfaces.carapace.wire import scope_of


def test_the_defaults_are_those_of_the_manifest() -> None:
    config = Config.read({})
    assert (config.max_brief_entries, config.max_brief_chars) == (50, 10_000)
    assert (config.purge_superseded_days, config.embedding_provider) == (90, Provider.NONE)
    assert config.storage_path is None


def test_every_key_is_read() -> None:
    given: Any = {
        "storage_path": "x",
        "max_brief_entries": 5,
        "max_brief_chars": 500.0,
        "purge_superseded_days": 0,
        "embedding_provider": "local",
    }
    config = Config.read(given)
    assert config == Config(
        storage_path="x",
        max_brief_entries=5,
        max_brief_chars=500,
        purge_superseded_days=0,
        embedding_provider=Provider.LOCAL,
    )


@pytest.mark.parametrize(
    "given",
    [
        {"max_brief_entries": "5"},
        {"max_brief_entries": 0},
        {"max_brief_entries": 1_001},
        {"max_brief_chars": 0},
        {"purge_superseded_days": -1},
        {"purge_superseded_days": 10**9},
        {"embedding_provider": "cloud"},
        {"storage_path": 5},
        {"storage": "x"},
    ],
    ids=str,
)
def test_a_wrong_value_is_refused(given: Any) -> None:
    with pytest.raises(InvalidRequest):
        Config.read(given)


@pytest.mark.parametrize(
    ("provider", "embedder"),
    [(Provider.NONE, EmbedderName.NONE), (Provider.LOCAL, EmbedderName.STATIC)],
)
def test_the_provider_decides_the_embedder(
    tmp_path: Path, provider: Provider, embedder: EmbedderName
) -> None:
    config = Config(embedding_provider=provider)
    assert config.settings(settings.at_home(tmp_path)).embedder is embedder


def test_openai_needs_an_endpoint(tmp_path: Path) -> None:
    config = Config(embedding_provider=Provider.OPENAI)
    found = settings.at_home(tmp_path)
    with pytest.raises(InvalidRequest, match="no endpoint"):
        config.settings(found)
    endpoint = OpenAISettings(url="http://127.0.0.1/v1", model="m", dimensions=3)
    assert config.settings(replace(found, openai=endpoint)).embedder is EmbedderName.OPENAI


def test_the_storage_path_is_a_home_of_its_own(tmp_path: Path) -> None:
    config = Config(storage_path=str(tmp_path / "own"))
    found = config.settings(settings.at_home(tmp_path / "other", passphrase="p"))
    assert found.data == tmp_path / "own" / "data"
    assert found.passphrase == "p"


@pytest.mark.parametrize("group", ["main", "Main", "a", "0", "a-b_c", "x" * 128])
def test_a_group_is_the_scope_of_its_name(group: str) -> None:
    assert str(scope_of(group)) == f"local/{group}"


@pytest.mark.parametrize(
    "group",
    ["", "-a", "_a", ".a", "a.b", "a b", "a/b", "../a", "a\n", "a\x00", "ä", "x" * 129, None, 5],
)
def test_a_name_that_could_be_anything_else_is_refused(group: Any) -> None:
    with pytest.raises(InvalidRequest):
        scope_of(group)
