"""Blobs in OpenStack Swift, by its S3 interface, keep the contract of the port."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from scrubjay.adapters.blobs.s3 import S3Blobs
from scrubjay.testing.blobs_contract import BlobsContract, OpenBlobs
from tests.cluster.example import Example


class TestSwift(BlobsContract):
    @pytest.fixture
    def open_blobs(
        self, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> OpenBlobs:
        example.start("swift")
        found = example.variables()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, found[name])
        return partial(S3Blobs, found["SCRUBJAY_BLOBS"].replace("/blobs?", f"/{tmp_path.name}?"))
