"""A database that the real InitRunner 1.2.0 wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import initrunner_database


@pytest.fixture
def database(client_home: Path, tmp_path: Path) -> Path:
    """A database with four memories and a session of two turns."""
    path = tmp_path / "assistant.db"
    script = Path(__file__).with_name("write_database.py")
    subprocess.run([client_home / "bin" / "python", script, path], check=True)
    return path


def test_it_has_the_tables_that_our_own_fixture_has(database: Path) -> None:
    assert initrunner_database.columns(database) == initrunner_database.COLUMNS
