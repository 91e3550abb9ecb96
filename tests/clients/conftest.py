"""Tests with real programs by others, run by tools/test_others.sh, which installs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

collect_ignore_glob = [] if os.environ.get("SCRUBJAY_OTHERS") else ["*"]


@pytest.fixture(scope="session")
def client_home() -> Path:
    """The folder the program was installed in."""
    return Path(os.environ["OTHER_HOME"])
