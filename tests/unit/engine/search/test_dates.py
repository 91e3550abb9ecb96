"""The span of time a question names."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scrubjay.engine.search.question import windows

ASKED = datetime(2023, 5, 24, 15, tzinfo=UTC)  # a Wednesday


def covers(question: str, day: str, asked_at: datetime | None = ASKED) -> bool:
    moment = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
    return any(w.start <= moment < w.end for w in windows(question, asked_at, ASKED))


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("What happened on May 7, 2022?", "2022-05-07", "2022-05-08"),
        ("What happened on 7 May?", "2023-05-07", "2022-05-07"),
        ("the 3rd of December", "2022-12-03", "2023-12-03"),
        ("Where was I on 2023-02-01?", "2023-02-01", "2023-02-02"),
        ("What did she do in August 2022?", "2022-08-30", "2022-09-01"),
        ("in December", "2022-12-24", "2023-01-01"),
        ("during the summer of 2021", "2021-07-14", "2021-09-01"),
        ("in winter 2021", "2022-02-14", "2022-03-01"),
        ("books I read in 2022", "2022-06-06", "2023-01-01"),
        ("three days ago", "2023-05-21", "2023-05-17"),
        ("two months ago", "2023-03-24", "2023-05-20"),
        ("a couple of weeks ago", "2023-05-10", "2023-05-20"),
        ("in the past two weeks", "2023-05-12", "2023-05-01"),
        ("last month", "2023-04-10", "2023-05-20"),
        ("last week", "2023-05-17", "2023-05-05"),
        ("last year", "2022-03-03", "2023-03-03"),
        ("last Saturday", "2023-05-20", "2023-05-21"),
        ("yesterday", "2023-05-23", "2023-05-22"),
        ("today", "2023-05-24", "2023-05-23"),
    ],
)
def test_a_date_is_understood(question: str, inside: str, outside: str) -> None:
    assert covers(question, inside)
    assert not covers(question, outside)


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("小明2022年5月去了哪里？", "2022-05-20", "2022-06-01"),
        ("2022年12月3日发生了什么？", "2022-12-03", "2022-12-04"),
        ("4月3日に何をしましたか", "2023-04-03", "2023-04-04"),
        ("三天前", "2023-05-21", "2023-05-17"),
        ("先週は何をした？", "2023-05-17", "2023-05-05"),
        ("Was war im Mai 2022?", "2022-05-07", "2022-06-01"),
        ("Wo war ich am 3. März?", "2023-03-03", "2023-03-04"),
        ("vor 3 Tagen", "2023-05-21", "2023-05-17"),
        ("letzten Monat", "2023-04-10", "2023-05-20"),
        ("Что было 3 мая 2022?", "2022-05-03", "2022-05-04"),
        ("на прошлой неделе", "2023-05-17", "2023-05-05"),
        ("el 3 de mayo de 2022", "2022-05-03", "2022-05-04"),
    ],
)
def test_a_date_is_understood_in_other_languages(question: str, inside: str, outside: str) -> None:
    assert covers(question, inside)
    assert not covers(question, outside)


@pytest.mark.parametrize(
    "question",
    [
        "May I ask you something?",
        "Did he march on?",
        "Who will fall ill?",
        "31 apples",
        "a trip to Mars",
    ],
)
def test_words_that_look_like_dates_are_none(question: str) -> None:
    assert windows(question, ASKED, ASKED) == []


def test_relative_dates_need_the_time_of_asking() -> None:
    assert windows("last week", None, ASKED) == []
    assert covers("in May 2023", "2023-05-02", None)
    assert windows("in June", None, None) == []


@pytest.mark.parametrize(
    "question",
    [
        "on February 31",
        "on 2023-13-45",
        "99 May",
        "0 days ago",
        "3000 years ago",
        "9999999999 days ago",
    ],
)
def test_impossible_dates_do_no_harm(question: str) -> None:
    windows(question, ASKED, ASKED)
