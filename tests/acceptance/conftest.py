"""Where the acceptance tests keep their homes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_RAM = Path("/dev/shm")  # a path of every Linux


@pytest.fixture
def ram(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the system has one, else an ordinary one.

    For tests that a disk's own speed would only blur: a kill leaves what was written to the
    kernel, power cuts are simulated, and where a sync is to take time, the test says how much.
    """
    if not os.access(_RAM, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=_RAM, prefix="scrubjay-") as folder:
        yield Path(folder)
