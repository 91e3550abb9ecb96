"""Tests on the servers of a cluster, run by tools/test_others.sh, which installs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cluster.example import Example

collect_ignore_glob = [] if os.environ.get("SCRUBJAY_OTHERS") else ["*"]


@pytest.fixture(scope="module")
def example() -> Iterator[Example]:
    """The cluster of examples/cluster in a folder of its own; a test starts the parts it needs."""
    with TemporaryDirectory(prefix="scrubjay-cluster-") as folder:
        made = Example(Path(folder))
        yield made
        made.end()
