"""Texts fall into the pieces that the models of this vocabulary were trained on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.adapters.embedders.static import HEAD, TABLE, UNKNOWN, WordPiece


@pytest.fixture(scope="module")
def vocabulary() -> list[str]:
    raw = TABLE.read_bytes()
    return raw[HEAD.size : HEAD.size + HEAD.unpack_from(raw)[3]].decode().split("\n")


# As the tokenizer published with the model answers.
GOLDEN = [
    ("Hello, World!", ["hello", ",", "world", "!"]),
    ("naïve café", ["naive", "cafe"]),
    ("unbelievably", ["un", "##bel", "##ie", "##va", "##bly"]),
    ("$5+5=10", ["$", "5", "+", "5", "=", "10"]),
    ("日本語のテスト", ["日", "本", "語", "の", "##テ", "##ス", "##ト"]),
    ("한국어", ["ᄒ", "##ᅡ", "##ᆫ", "##ᄀ", "##ᅮ", "##ᆨ", "##ᄋ", "##ᅥ"]),
    ("don't_stop", ["don", "'", "t", "_", "stop"]),
    ("ÅNGSTRÖM İstanbul", ["ang", "##strom", "istanbul"]),
    ("emoji 😀 party", ["em", "##oj", "##i", "[UNK]", "party"]),
    ("a\x00b\tc\u2028d", ["ab", "c", "d"]),
    ("“quoted” – dash…", ["“", "quoted", "”", "–", "dash", "…"]),  # noqa: RUF001 - such dashes are meant
    ("x" * 101, ["[UNK]"]),
    ("", []),
]


@pytest.mark.parametrize(("text", "pieces"), GOLDEN)
def test_a_text_falls_into_known_pieces(
    vocabulary: list[str], text: str, pieces: list[str]
) -> None:
    found = WordPiece(vocabulary).pieces(text)
    assert [vocabulary[number] for number in found] == pieces


@given(
    st.text(
        st.sampled_from("ab, \t\n\v\f\x1c\x85\u00a0\u2003\u2028\u200b\u0301\u03a3\u00c9\u4e2d"),
        max_size=12,
    )
)
def test_a_text_is_folded_as_if_as_a_whole(text: str) -> None:
    words = WordPiece([UNKNOWN, "a", "##a", "b", "##b", ",", "e", "\u4e2d"])
    assert words.packed(text) == words._fold(text)


def test_a_full_cache_changes_no_answer(vocabulary: list[str]) -> None:
    text = " ".join(vocabulary[2000:2100])
    expected = WordPiece(vocabulary).pieces(text)
    small = WordPiece(vocabulary, cached=7)
    assert [small.pieces(text) for _ in range(3)] == [expected] * 3
