"""The default table is the one that was made, and says sensible things."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from scrubjay.adapters.embedders.static import HEAD, TABLE, StaticEmbedder
from scrubjay.model.errors import EmbedderError, Timeout
from scrubjay.testing.clock import FakeClock

TABLE_SHA256 = "cec7aed4f710a206b5079f1ce62e933504649dac70c94589af9cede4f5cdbd0d"


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return StaticEmbedder(FakeClock())


def test_the_table_is_the_one_that_was_measured() -> None:
    raw = TABLE.read_bytes()
    assert hashlib.sha256(raw[HEAD.size :]).hexdigest() == TABLE_SHA256
    assert HEAD.unpack_from(raw)[4].hex() == TABLE_SHA256


def test_the_identity_names_the_table(embedder: StaticEmbedder) -> None:
    assert embedder.identity == f"static:minilm-l6-256-int8:{TABLE_SHA256[:8]}"
    assert embedder.dimensions == 256


@pytest.mark.parametrize(
    ("question", "near", "far"),
    [
        ("Which pet did she adopt?", "I got a puppy from the shelter", "The bus was late again"),
        ("Where does my physician work?", "The doctor's office is downtown", "I baked some bread"),
        ("What sport does he play?", "He joined a basketball team", "The invoice was paid"),
    ],
)
def test_what_means_the_same_is_nearer(
    embedder: StaticEmbedder, question: str, near: str, far: str
) -> None:
    asked, same, other = embedder.embed([question, near, far])
    assert asked @ same > asked @ other + 0.1


def test_words_of_like_meaning_are_near(embedder: StaticEmbedder) -> None:
    dog, puppy, canine, bread = embedder.embed(["dog", "puppy", "canine", "bread"])
    assert min(dog @ puppy, dog @ canine) >= 0.5 > dog @ bread


def test_case_and_accents_do_not_count(embedder: StaticEmbedder) -> None:
    rows = embedder.embed(["A café in Zürich", "a CAFE in zurich"])
    assert np.array_equal(rows[0], rows[1])


def test_unknown_signs_say_nothing(embedder: StaticEmbedder) -> None:
    assert not embedder.embed(["\U000130b8\U000130b9"]).any()


def test_a_deadline_that_passes_on_the_way_is_a_timeout() -> None:
    clock = FakeClock()
    with pytest.raises(Timeout):
        StaticEmbedder(clock).embed(["word " * 5_000] * 50, deadline=clock.monotonic() + 0.02)


@pytest.mark.parametrize("kept", [0, 20, HEAD.size, 5_000, -1])
def test_a_table_cut_short_is_an_embedder_error(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "table.bin"
    path.write_bytes(TABLE.read_bytes()[:kept])
    with pytest.raises(EmbedderError):
        StaticEmbedder(FakeClock(), path).embed(["text"])


def test_a_file_that_is_no_table_is_an_embedder_error(tmp_path: Path) -> None:
    path = tmp_path / "table.bin"
    path.write_bytes(b"x" * 1_000)
    for broken in (path, tmp_path / "absent.bin"):
        with pytest.raises(EmbedderError):
            StaticEmbedder(FakeClock(), broken).embed(["text"])
