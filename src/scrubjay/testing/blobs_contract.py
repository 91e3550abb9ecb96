"""What every Blobs must do. Subclass the contract, say how to open one, and run pytest.

    class TestMyBlobs(BlobsContract):
        @pytest.fixture
        def open_blobs(self, tmp_path):
            return partial(MyBlobs, tmp_path / "blobs")

`open_blobs` opens the same blobs each time it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.ports import Blobs

OpenBlobs = Callable[[], Blobs]
ALICE, BOB = "alice-address", "bob-address"
BAD_NAMES = ("", ".", "..", ".hidden", "a/b", "a\\b", "UPPER", "a b", "a\n", "a\x00", "ä", "a" * 65)
GOOD_NAMES = ("a", "0", "-", "a.b", "segment-0001.postings", "a" * 64)


class BlobsContract:
    """The promises of the port, one test each."""

    @pytest.fixture
    def open_blobs(self) -> OpenBlobs:
        """How to open the blobs under test; opening them again opens the same ones."""
        raise NotImplementedError("Say how to open the blobs.")

    @pytest.fixture
    def blobs(self, open_blobs: OpenBlobs) -> Blobs:
        """The blobs under test, none there."""
        return open_blobs()

    @pytest.mark.parametrize("content", [b"", b"\x00", b"\r\n", bytes(range(256)) * 1024])
    def test_what_was_put_is_got(self, blobs: Blobs, content: bytes) -> None:
        blobs.put(ALICE, "body", content)
        assert blobs.get(ALICE, "body") == content

    def test_a_second_put_takes_the_place_of_the_first(self, blobs: Blobs) -> None:
        blobs.put(ALICE, "body", b"a longer first content")
        blobs.put(ALICE, "body", b"second")
        assert blobs.get(ALICE, "body") == b"second"
        assert blobs.names(ALICE) == ["body"]

    def test_what_one_opened_the_next_one_finds(self, open_blobs: OpenBlobs) -> None:
        open_blobs().put(ALICE, "body", b"content")
        assert open_blobs().get(ALICE, "body") == b"content"

    def test_addresses_do_not_mix(self, blobs: Blobs) -> None:
        blobs.put(ALICE, "body", b"of alice")
        blobs.put(BOB, "body", b"of bob")
        assert blobs.get(ALICE, "body") == b"of alice"
        blobs.remove(BOB)
        assert blobs.names(ALICE) == ["body"]

    def test_an_absent_blob_is_not_found(self, blobs: Blobs) -> None:
        blobs.put(ALICE, "body", b"content")
        for address, name in ((ALICE, "other"), (BOB, "body")):
            with pytest.raises(NotFound):
                blobs.get(address, name)

    def test_a_deleted_blob_is_not_found(self, blobs: Blobs) -> None:
        blobs.put(ALICE, "body", b"content")
        blobs.delete(ALICE, "body")
        with pytest.raises(NotFound):
            blobs.get(ALICE, "body")
        assert blobs.names(ALICE) == []

    def test_deleting_what_is_absent_is_fine(self, blobs: Blobs) -> None:
        blobs.delete(ALICE, "body")
        blobs.put(ALICE, "other", b"content")
        blobs.delete(ALICE, "body")
        assert blobs.names(ALICE) == ["other"]

    def test_the_size_is_that_of_all_blobs_of_an_address(self, blobs: Blobs) -> None:
        assert blobs.size(ALICE) == 0
        blobs.put(ALICE, "a", bytes(100))
        blobs.put(ALICE, "b", bytes(1_000))
        assert blobs.size(ALICE) == 1_100

    def test_names_are_sorted(self, blobs: Blobs) -> None:
        assert blobs.names(ALICE) == []
        for name in ("b", "a.2", "c", "a-1"):
            blobs.put(ALICE, name, b"content")
        assert blobs.names(ALICE) == ["a-1", "a.2", "b", "c"]

    def test_raw_shows_every_byte_of_one_address(self, blobs: Blobs) -> None:
        assert list(blobs.raw(ALICE)) == []
        blobs.put(ALICE, "one", b"first needle")
        blobs.put(ALICE, "two", b"second needle")
        blobs.put(BOB, "one", b"not of alice")
        pieces = list(blobs.raw(ALICE))
        assert sorted(content for _, content in pieces) == [b"first needle", b"second needle"]
        assert len({place for place, _ in pieces}) == 2

    def test_remove_deletes_every_blob_of_one_address(self, blobs: Blobs) -> None:
        for name in ("one", "two"):
            blobs.put(ALICE, name, b"content")
        blobs.remove(ALICE)
        assert blobs.names(ALICE) == []
        assert list(blobs.raw(ALICE)) == []

    def test_removing_none_is_fine_and_later_puts_work(self, blobs: Blobs) -> None:
        blobs.remove(ALICE)
        blobs.put(ALICE, "body", b"content")
        blobs.remove(ALICE)
        blobs.remove(ALICE)
        blobs.put(ALICE, "body", b"again")
        assert blobs.get(ALICE, "body") == b"again"

    @pytest.mark.parametrize("name", GOOD_NAMES)
    def test_every_allowed_name_works(self, blobs: Blobs, name: str) -> None:
        blobs.put(name, name, b"content")
        assert blobs.get(name, name) == b"content"
        assert blobs.names(name) == [name]

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_a_name_that_is_no_safe_file_name_is_refused(self, blobs: Blobs, name: str) -> None:
        calls: tuple[Callable[[], object], ...] = (
            lambda: blobs.put(name, "body", b"content"),
            lambda: blobs.put(ALICE, name, b"content"),
            lambda: blobs.get(name, "body"),
            lambda: blobs.get(ALICE, name),
            lambda: blobs.delete(ALICE, name),
            lambda: blobs.names(name),
            lambda: list(blobs.raw(name)),
            lambda: blobs.remove(name),
        )
        for call in calls:
            with pytest.raises(InvalidRequest):
                call()

    def test_a_reader_sees_one_whole_content_or_the_other(self, open_blobs: OpenBlobs) -> None:
        contents = {bytes([n]) * 50_000 for n in range(4)}
        open_blobs().put(ALICE, "body", bytes(50_000))

        def write(content: bytes) -> None:
            blobs = open_blobs()
            for _ in range(10):
                blobs.put(ALICE, "body", content)

        with ThreadPoolExecutor(5) as pool:
            writers = [pool.submit(write, content) for content in contents]
            blobs = open_blobs()
            seen = {blobs.get(ALICE, "body") for _ in range(200)}
            for writer in writers:
                writer.result()
        assert seen <= contents
        assert blobs.names(ALICE) == ["body"]
        assert len(list(blobs.raw(ALICE))) == 1
