"""Whatever a query or a memory says, reading it takes time in proportion to its length."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from time import process_time

import pytest

from scrubjay.engine.search import analysis, question

SMALL = 2_000
TIMES = 8
"""How many times longer the long text is."""
MOST = 24
"""What it may cost, as a ratio to the short one: linear is 8, quadratic 64."""
NOTHING = 0.005
"""Seconds of work below which a ratio says nothing, and nobody is kept waiting."""
ATTEMPTS = 4

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SPEAKERS = {0: "Caroline", 1: "王小明", 2: "user", 3: "assistant", 4: "Анна"}
LANGUAGES = ("english", "german", "french", "dutch", "russian", "japanese")

READERS: dict[str, Callable[[str], object]] = {
    "question": lambda text: question.parse(text, SPEAKERS, asked_at=NOW, latest=NOW),
    "questions": question.questions,
    "dates": lambda text: question.windows(text, NOW, NOW),
    "signs": analysis.read_signs,
    "words": analysis.words,
    "wanted": lambda text: analysis.wanted(text, LANGUAGES),
    "holds": lambda text: analysis.holds(text)(text),
    "gist": analysis.gist,
    "terms": lambda text: [analysis.terms(text, language) for language in LANGUAGES],
}
REPEATED = (
    *("1", "9 ", "1/", "1/1/1/", "1.", "1, ", "1. ", "2020-", "1年", "3天", "一", "年"),
    *("a", "y", "ing", "ational", "a'", "a'a'a'", "á", "ááá", "ß", "İ", "ые", "_", "-", "'", "?"),
    *(" ", "\n", "may ", "in ", "your ", "ты ", "de ", "i would ", "Mel "),
    *("中", "は", "ん", "한", "何", "你", "あなた", "ﷺ", "\u3099", "\u0301\u0316", "a\u0316\u0301"),
)
AROUND = (
    *(("your", " ", "x"), ("ты", " ", "а"), ("ты ", "а", ""), ("what", " ", "x"), ("i", " ", "am")),
    *(
        ("", "1", "天"),
        ("", "1", "年"),
        ("vor ", "1", ""),
        ("past ", "1", " d"),
        ("past", " ", "1"),
    ),
    *(
        ("1.", " ", ""),
        ("1", " ", "may"),
        ("may", " ", "2"),
        ("in", " ", "may"),
        ("enero", " ", "de"),
    ),
    *(("ん", "は", "ん"), ("", "-", "always"), ("i", " would", "x"), ("which ", "a", "")),
)


def _long(before: str, repeated: str, after: str, size: int) -> str:
    return before + repeated * (size // len(repeated)) + after


def _seconds(read: Callable[[str], object], text: str, runs: int) -> float:
    """The least CPU time of some runs, none of which finds a word in the cache."""
    least = float("inf")
    for _ in range(runs):
        analysis._terms_in.cache_clear()
        begun = process_time()
        read(text)
        least = min(least, process_time() - begun)
    return least


def _grows_faster(read: Callable[[str], object], parts: tuple[str, str, str]) -> bool:
    """Whether it does in each of several attempts: a busy machine can spoil one."""
    for attempt in range(1, ATTEMPTS + 1):
        long = _seconds(read, _long(*parts, SMALL * TIMES), attempt)
        if long < NOTHING or long < MOST * _seconds(read, _long(*parts, SMALL), 2 * attempt):
            return False
    return True


@pytest.mark.parametrize("name", READERS)
def test_reading_takes_linear_time_whatever_a_text_repeats(name: str) -> None:
    read = READERS[name]
    read("When did we meet, wann, когда, 三天前, 何日?")  # tables and stemmers are loaded once
    texts = [*(("", repeated, "") for repeated in REPEATED), *AROUND]
    assert [parts for parts in texts if _grows_faster(read, parts)] == []


def test_a_reader_that_takes_the_square_is_noticed() -> None:
    def quadratic(text: str) -> int:
        return sum(text.count(letter) for letter in text[::8])

    assert _grows_faster(quadratic, ("", "ab", ""))


def test_a_query_of_digits_is_read_at_once() -> None:
    text = "1" * 4_000
    assert _seconds(READERS["question"], text, 3) < 0.05


def test_a_word_keeps_its_first_letters_however_long_it_is() -> None:
    (term,) = analysis.terms("ab" * 5_000)
    assert term == "ab" * (analysis.LONGEST_WORD // 2)


def test_accents_are_read_as_ever_and_a_heap_of_them_is_cut() -> None:
    assert analysis.terms("cafe\u0301") == ["cafe"]
    assert analysis.normalize("e\u0301") == "é"
    assert len(analysis.normalize("x" + "\u0316\u0301" * 1_000)) < 100
