"""The encoder: pinned weights, meaning across languages, and a clear word where it is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from scrubjay import bootstrap, settings
from scrubjay.adapters.embedders import encoder
from scrubjay.adapters.embedders.encoder import DIMENSIONS, EncoderEmbedder
from scrubjay.model.errors import EmbedderError
from scrubjay.testing.clock import FakeClock


@pytest.fixture
def embedder() -> EncoderEmbedder:
    return EncoderEmbedder(FakeClock())


def test_the_settings_choose_it(tmp_path: Path) -> None:
    chosen = settings.read({"SCRUBJAY_EMBEDDER": "encoder"}, home=tmp_path)
    assert bootstrap.make_embedder(chosen, FakeClock()).identity.startswith("encoder:")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, encoder.MODULE, None)  # as if it were not installed
    with pytest.raises(EmbedderError) as caught:
        EncoderEmbedder(FakeClock())
    assert "pip install 'scrubjay[encoder]'" in caught.value.hint


@pytest.mark.parametrize("name", encoder.FILES)
def test_other_weights_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(encoder.FILES, name, "0" * 64)
    encoder._load.cache_clear()
    with pytest.raises(EmbedderError, match=name):
        EncoderEmbedder(FakeClock()).embed(["tea"])


def test_the_identity_names_the_weights_and_the_table(embedder: EncoderEmbedder) -> None:
    assert encoder.FILES["weights.npz"][:8] in embedder.identity
    assert "+static:" in embedder.identity


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Je suis infirmière à l'hôpital.", "Was ist mein Beruf?"),
        ("Я медсестра в детском отделении.", "What is my job?"),
        ("我在儿童医院当护士。", "¿Cuál es mi profesión?"),
    ],
)
def test_what_means_the_same_is_alike_in_other_languages(
    embedder: EncoderEmbedder, said: str, asked: str
) -> None:
    other = "The train to Hamburg leaves at eight."
    right, wrong, question = embedder.embed([said, other, asked])
    assert right @ question > wrong @ question + 0.1


def test_the_table_speaks_of_latin_letters_only(embedder: EncoderEmbedder) -> None:
    latin, cyrillic = embedder.embed(["I like tea", "Я люблю чай"])[:, DIMENSIONS:]
    assert np.linalg.norm(latin) > 0.5
    assert not cyrillic.any()


def test_of_a_long_text_the_network_reads_the_beginning(embedder: EncoderEmbedder) -> None:
    begin = "чай " * (encoder.CHARS // 4)
    short, long = embedder.embed([begin, begin + "кофе " * 10_000])
    assert np.allclose(short, long, atol=1e-5)
