"""The span of time a question names."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from scrubjay.engine.search.question import windows

ASKED = datetime(2023, 5, 24, 15, tzinfo=UTC)  # a Wednesday


def covers(question: str, day: str, asked_at: datetime | None = ASKED) -> bool:
    moment = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
    return any(w.start <= moment < w.end for w in windows(question, asked_at, asked_at or ASKED))


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
        ("in the last week of August", "2022-08-30", "2022-08-15"),
        ("early June", "2022-06-04", "2022-06-20"),
        ("in late 2021", "2021-11-11", "2021-05-11"),
        ("the first half of 2023", "2023-03-03", "2023-08-01"),
        ("between May and July 2022", "2022-06-15", "2022-08-02"),
        ("from November to February 2023", "2022-12-24", "2023-03-02"),
        ("the week of October 2nd", "2022-10-01", "2022-10-04"),
        ("since Tuesday", "2023-05-24", "2023-05-22"),
        ("since March", "2023-05-20", "2023-02-20"),
        ("two summers ago", "2021-07-07", "2022-07-07"),
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
        ("Was habe ich gestern gemacht?", "2023-05-23", "2023-05-22"),
        ("Qu'est-ce que j'ai fait hier ?", "2023-05-23", "2023-05-22"),
        ("¿Qué hice ayer?", "2023-05-23", "2023-05-22"),
        ("Anfang Juni", "2022-06-04", "2022-06-20"),
        ("Ende August 2022", "2022-08-30", "2022-08-10"),
        ("in der ersten Hälfte 2023", "2023-03-03", "2023-08-01"),
        ("zwischen Mai und Juli 2022", "2022-06-15", "2022-08-02"),
        ("entre mai et juillet 2022", "2022-06-15", "2022-08-02"),
        ("entre mayo y julio 2022", "2022-06-15", "2022-08-02"),
        ("seit Dienstag", "2023-05-24", "2023-05-22"),
        ("depuis mardi", "2023-05-24", "2023-05-22"),
        ("в начале июня", "2022-06-04", "2022-06-20"),
        ("la semaine dernière", "2023-05-17", "2023-05-05"),
        ("Où étions-nous en mars ?", "2023-03-12", "2023-04-02"),
        ("le 3 mars", "2023-03-03", "2023-03-04"),
        ("Où étais-je hier soir ?", "2023-05-23", "2023-05-22"),
        ("Was war letzten Mai?", "2023-05-12", "2023-04-12"),
        ("bis März", "2023-03-12", "2023-04-12"),
        ("hasta mayo", "2023-05-12", "2023-04-12"),
        ("с марта", "2023-05-12", "2023-02-12"),
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
        "Which food of his may be bad for me?",
        "What did I say this may be?",
        "Which form of it may not be signed?",
        "Who was at the march?",
        "What did Jan cook?",
        "What did April say about the trip?",
        "Whose is April's car?",
        "Who bought a jar of mayo?",
        "What did I give Mai for lunch?",
        "Wer wohnt hier?",
        "Wat doen wij hier?",
    ],
)
def test_words_that_look_like_dates_are_none(question: str) -> None:
    assert windows(question, ASKED, ASKED) == []


@pytest.mark.parametrize(
    "question", ["my May trip", "the June budget", "in jan", "each March 2022"]
)
def test_a_month_in_the_company_of_a_date_is_one(question: str) -> None:
    assert windows(question, ASKED, ASKED)


def test_a_month_that_somebody_here_is_called_needs_the_company_of_a_date() -> None:
    def spans(question: str) -> int:
        return len(windows(question, ASKED, ASKED, people=["juli", "august"]))

    assert [spans("Wo wohnt August?"), spans("was mag Juli")] == [0, 0]
    assert [spans("im Juli"), spans("August 2022"), spans("Wo war ich April?")] == [1, 1, 1]


def test_a_day_is_the_day_of_the_zone() -> None:
    late = datetime(2023, 5, 24, 23, tzinfo=UTC)  # in Tokyo it is Thursday already
    [window] = windows("What did I do today?", late, late, ZoneInfo("Asia/Tokyo"))
    assert window.start == datetime(2023, 5, 24, 15, tzinfo=UTC)
    [window] = windows("What did I do today?", late, late)
    assert window.start == datetime(2023, 5, 24, tzinfo=UTC)


def test_a_date_without_a_year_counts_from_the_latest_memory_a_relative_one_from_now() -> None:
    latest = datetime(2020, 8, 1, tzinfo=UTC)
    assert [w.start.year for w in windows("in June", ASKED, latest)] == [2020]
    assert [w.start.year for w in windows("last week", ASKED, latest)] == [2023]


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
