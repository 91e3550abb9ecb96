"""A role file, the model it names, and the command line on a home of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dialects.initrunner.scene import Scene
from tests.support.chat_server import ChatServer, serve_chat
from tests.unit.cli.conftest import CommandLine, cli

__all__ = ["cli"]


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A model that answers, calls tools and embeds."""
    with serve_chat() as running:
        yield running


@pytest.fixture
def scene(
    tmp_path: Path, model: ChatServer, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> Scene:
    """An agent in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # where InitRunner would have its databases
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return Scene(tmp_path, model, cli)
