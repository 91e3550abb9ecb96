"""What unit tests stand on: an installation in memory, or in a folder, with a clock of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scrubjay.engine import Engine
from scrubjay.testing.engines import MemoryHome, SqliteHome


@pytest.fixture
def home() -> MemoryHome:
    """An empty installation in memory."""
    return MemoryHome()


@pytest.fixture
def engine(home: MemoryHome) -> Iterator[Engine]:
    """An engine on the installation in memory."""
    engine = home.engine()
    yield engine
    engine.close()


@pytest.fixture
def sqlite_home(tmp_path: Path) -> SqliteHome:
    """An empty installation in a folder."""
    return SqliteHome(tmp_path / "home")
