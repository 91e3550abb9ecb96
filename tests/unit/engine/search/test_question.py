"""What a question is after."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scrubjay.engine.search.question import (
    MOST_QUESTIONS,
    NONE,
    asks_advice,
    parse,
    questions,
)

PEOPLE = {0: "Caroline", 1: "Melanie", 2: "Fahim Khan"}
ROLES = {4: "user", 7: "assistant"}


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did Caroline paint?", {0}),
        ("What is melanie's job?", {1}),
        ("What did Mel and her kids paint?", {1}),
        ("What did Fahim tell Caroline?", {0, 2}),
        ("What is Khan’s dog called?", {2}),
        ("Who painted?", set()),
    ],
)
def test_people_are_known_by_name_or_nickname(question: str, named: set[int]) -> None:
    assert parse(question, PEOPLE).asked == named


def test_ordinary_words_are_no_names() -> None:
    people = {0: "Will", 1: "Theo", 2: "Anna", 3: "小明"}
    assert parse("What will Anna eat in the evening?", people).asked == {2}
    assert parse("What did the cat eat?", people).asked == frozenset()
    assert parse("what did theo eat", people).asked == {1}
    assert parse("what will we eat", people).asked == frozenset()
    assert parse("what will Will eat", people).asked == {0}
    assert parse("昨天小明去哪里了？", people).asked == {3}


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Wie heißt Peters Hund?", "Peter"),
        ("Как зовут собаку Анны?", "Анна"),
        ("Где Игорь был с Иваном?", "Иван"),
        ("小明的女儿几岁？", "王小明"),
        ("田中さんはどこで働いていますか？", "田中太郎"),
    ],
)
def test_names_are_known_in_other_forms(question: str, name: str) -> None:
    assert parse(question, {0: "Zoe", 5: name}).asked == {5}


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("Where did I park?", "user"),
        ("What is the budget of the project?", "user"),
        ("Can you suggest a book?", "user"),
        ("What did you recommend for dinner?", "assistant"),
        ("Remind me of the list you gave me", "assistant"),
        ("Which book was in your previous suggestion?", "assistant"),
        ("你之前推荐了什么书？", "assistant"),
    ],
)
def test_a_role_is_asked_about(question: str, speaker: str) -> None:
    asked = parse(question, ROLES).asked
    assert [ROLES[code] for code in asked if code != NONE] == [speaker]
    assert (NONE in asked) == (speaker == "user"), "bare facts are kept for the user"


@pytest.mark.parametrize(
    ("question", "aim"),
    [
        ("When did she leave?", "when"),
        ("How long did it take?", "when"),
        ("Wann war das?", "when"),
        ("Когда она уехала?", "when"),
        ("他几点到？", "when"),
        ("Kannst du mir ein Buch empfehlen?", "advice"),
        ("Can you help me plan a trip?", "advice"),
    ],
)
def test_the_kind_of_answer_is_seen(question: str, aim: str) -> None:
    assert getattr(parse(question, {}), aim)


def test_remembering_is_no_request_for_advice() -> None:
    assert not asks_advice("What did she say about the dog?")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Where does Anna work?", 1),
        ("Where does Anna work? And what is her dentist called?", 2),
        ("上司是做什么工作的呢？另外，论坛的地点是什么？", 2),
        # What leads to a question belongs to it, and so does one that says nothing by itself.
        ("Guess what? I broke a bowl of my mother. How do I tell her?", 1),
        ("Do you know Ravel's bolero? Really? When was it composed in Paris? Thanks.", 2),
        ("Apples, pears, plums? " * (MOST_QUESTIONS + 1), 1),
        ("Who painted???", 1),
        ("??", 1),
    ],
)
def test_the_questions_of_a_text_are_told_apart_and_nothing_is_lost(text: str, count: int) -> None:
    found = [one.text for one in questions(text)]
    assert len(found) == count
    assert "".join(found) == text


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Can you recommend some quiet hotels in Rome for me?", "quiet hotels in Rome ?"),
        ("What are good options for a desk?", "good for a desk?"),
        ("Any suggestions?", "Any suggestions?"),  # nothing else is left
        ("Which people can swim?", "Which people can swim?"),
    ],
)
def test_the_subject_of_a_request_is_what_is_left_without_the_words_that_ask(
    text: str, subject: str
) -> None:
    (found,) = questions(text)
    assert (found.text, " ".join(found.subject.split())) == (text, subject)


def test_dates_are_read_relative_to_the_time_of_asking() -> None:
    asked_at = datetime(2024, 1, 10, tzinfo=UTC)
    (window,) = parse("What happened yesterday?", {}, asked_at=asked_at).windows
    assert window.start == datetime(2024, 1, 9, tzinfo=UTC)
