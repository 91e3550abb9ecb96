"""Every implementation of blobs keeps the contract of the port."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from scrubjay.adapters import blobs
from scrubjay.adapters.blobs.files import FileBlobs
from scrubjay.adapters.blobs.s3 import S3Blobs
from scrubjay.ports import Blobs
from scrubjay.testing.blobs_contract import BlobsContract, OpenBlobs
from tests.support.memory_blobs import MemoryBlobs
from tests.support.registry import implementations


class TestMemoryBlobs(BlobsContract):
    @pytest.fixture
    def open_blobs(self) -> OpenBlobs:
        opened = MemoryBlobs()
        return lambda: opened


class TestFileBlobs(BlobsContract):
    tested = FileBlobs

    @pytest.fixture
    def open_blobs(self, tmp_path: Path) -> OpenBlobs:
        return partial(FileBlobs, tmp_path / "blobs")


class TestS3Blobs(BlobsContract):
    tested = S3Blobs

    @pytest.fixture
    def open_blobs(self, bucket: str) -> OpenBlobs:
        return partial(S3Blobs, bucket)


def test_every_implementation_runs_the_contract() -> None:
    """One added to the package without a suite here fails this test."""
    assert implementations(blobs, Blobs) == {TestFileBlobs.tested, TestS3Blobs.tested}
