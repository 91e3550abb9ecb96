"""Where the acceptance tests keep their homes, and the wheel they install."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]
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


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What people install, built from this checkout once."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run([*build, str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built
