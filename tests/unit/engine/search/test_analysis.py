"""One analysis for what is stored and for what is asked."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import pytest

from scrubjay.engine.search import analysis
from scrubjay.engine.search.analysis import near_terms


def asked(question: str, *languages: str) -> set[str]:
    return {item.term for item in analysis.wanted(question, languages)}


def shares(question: str, text: str, language: str) -> list[float]:
    """What the terms of a text count for a question, best first."""
    held = set(analysis.terms(text, language))
    found = [
        share
        for item in analysis.wanted(question, [language])
        for term, share in {item.term: item.weight, **item.near}.items()
        if term in held
    ]
    return sorted(found, reverse=True)


def test_case_accents_and_endings_do_not_matter() -> None:
    assert analysis.terms("Cafés") == analysis.terms("cafe") == ["cafe"]
    assert set(analysis.terms("She was painting")) & asked("Who painted it?") == {"paint"}


def test_possessives_and_contractions_leave_the_word() -> None:
    assert analysis.words("John’s dog doesn't like l'amour") == [
        "john",
        "dog",
        "doesn",
        "like",
        "amour",
    ]


def test_numbers_are_one_word_however_written() -> None:
    assert analysis.terms("$1,200 for v0.6.2 at 3.5 %") == ["1200", "for", "v0.6.2", "at", "3.5"]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("我昨天在北京大学图书馆看书", "北京大学在哪里？"),
        ("昨日は東京タワーへ行きました", "いつ東京タワーに行った？"),
        ("ฉันชอบกินข้าวผัด", "ข้าวผัด"),
        ("저는 서울대학교에서 공부합니다", "서울대학교"),
    ],
)
def test_scripts_without_spaces_are_found_by_pairs_of_characters(text: str, question: str) -> None:
    shared = set(analysis.terms(text)) & asked(question)
    assert any(len(term) == 2 for term in shared)


@pytest.mark.parametrize(
    ("text", "question", "language"),
    [
        ("Ich habe gestern die neuen Bücher gelesen", "Welches Buch lese ich?", "german"),
        ("Я вчера купил новые книги", "Какую книгу я купил?", "russian"),
        ("J'ai mangé des pommes avec ma sœur", "Qui a mangé une pomme ?", "french"),
    ],
)
def test_a_language_is_recognized_and_stemmed(text: str, question: str, language: str) -> None:
    assert analysis.recognize(analysis.words(text)) == language
    assert set(analysis.terms(text)) & asked(question, language)


def test_a_question_is_stemmed_in_every_language_of_the_scope() -> None:
    assert shares("Books and Bücher", "das Buch", "german") == [1.0]


def test_stop_words_leave_questions_but_not_texts() -> None:
    assert asked("What did I say about the dog?") == {"dog"}
    assert analysis.terms("about the dog") == ["about", "the", "dog"]


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("May I eat nuts?", {"eat", "nut"}),
        ("Which food may be bad for Tom?", {"food", "bad", "tom"}),
        ("What may we cook in June?", {"cook", "june"}),
        ("the may invoice", {"may", "invoic"}),
        ("What did Tom pay in May?", {"tom", "pay", "may"}),
        ("rent 3 may", {"rent", "3", "may"}),
        ("Does Tom like May?", {"tom", "like", "may"}),
        ("may", {"may"}),
    ],
)
def test_what_may_be_is_no_month_to_search_for(question: str, kept: set[str]) -> None:
    assert asked(question) == kept


@pytest.mark.parametrize("question", ["hat size", "son birthday", "war stories", "ha, good one"])
def test_one_stop_word_makes_no_question_foreign_to_a_scope_without_that_language(
    question: str,
) -> None:
    found = analysis.words(question)
    assert analysis.language_of(found, ["english"]) == "english"
    assert analysis.language_of(found, [analysis.recognize(found)]) != "english"
    assert analysis.language_of(analysis.words("Wo ist der Hund?"), ["english"]) == "german"
    assert analysis.language_of(analysis.words("狗在哪里"), ["english"]) == "chinese"
    assert analysis.language_of(analysis.words("狗 com 在哪里"), ["english"]) == "chinese"


def test_a_question_of_stop_words_only_keeps_them() -> None:
    assert asked("who are you") == {"who", "are", "you"}


def test_near_words_come_with_their_nearness() -> None:
    near = near_terms("doctor")
    assert 0.4 < near["physician"] < 1
    assert near_terms("qwertz") == {}
    (item,) = analysis.wanted("doctor")
    assert item.near == near


def test_empty_text_has_no_terms() -> None:
    assert analysis.terms("  …!") == []
    assert analysis.wanted("") == []


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("小明什么时候去了北京？", {"小明", "去", "北京"}),
        ("猫の名前は何ですか？", {"猫", "名前"}),
        ("田中さんはいつ京都に引っ越しましたか", {"田中", "京都", "引っ"}),
        ("是什么", {"是什", "什么"}),
    ],
)
def test_what_only_asks_leaves_questions_without_spaces(question: str, kept: set[str]) -> None:
    terms = asked(question)
    assert kept <= terms
    assert not terms & {"时候", "了", "は", "の", "何", "か", "です"}


def test_a_compound_is_found_by_its_parts_and_finds_them() -> None:
    assert shares("Zahnarzt", "ein Zahnarzttermin", "german") == [analysis.PART_SHARE]
    assert shares("Termin", "ein Zahnarzttermin", "german") == [analysis.PART_SHARE]
    parts = shares("Zahnarzttermin", "Termin beim Zahnarzt", "german")
    assert parts == [analysis.PART_SHARE] * 2
    assert analysis.terms("a dishwasher", "english") == ["a", "dishwash"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Blumen gießen, Müll rausbringen", "german"),
        ("Купить хлеб", "russian"),
        ("牙医姓陈", "chinese"),
        ("母の誕生日", "japanese"),
        ("우유 사기", "korean"),
        ("Dentist: Dr. Wu", "english"),
    ],
)
def test_short_texts_tell_their_language_by_their_letters(text: str, language: str) -> None:
    assert analysis.recognize(analysis.words(text)) == language


def test_full_width_letters_are_the_same_letters() -> None:
    assert analysis.terms("Ｗｉｆｉ２０２４") == analysis.terms("wifi2024")


def test_latin_words_are_found_within_scripts_without_spaces() -> None:
    assert "iphon" in analysis.terms("我的iPhones坏了")


def test_a_single_digit_is_asked_for_a_single_letter_is_not() -> None:
    asked_for = {item.term for item in analysis.wanted("who is in room 7 a")}
    assert "7" in asked_for
    assert "a" not in asked_for
