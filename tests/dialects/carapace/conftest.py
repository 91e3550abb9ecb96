"""What the tests of the dialect stand on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dialects.carapace.scene import Stage, home_without_vectors


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A host with the plugin and nothing in it."""
    made = Stage(home_without_vectors())
    yield made
    made.memory.shutdown()
