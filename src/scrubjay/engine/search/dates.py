"""The span of time a question names, such as "last week", "in May 2023" or "three days ago"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from scrubjay.engine.search.calendar_words import FOREIGN_WORDS, MONTHS, in_english

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "couple of": 2,
    "a couple of": 2,
    "three": 3,
    "few": 3,
    "a few": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
}
MOST_DAYS = 365_000
"""About a thousand years: nothing said is older, whatever a question says."""
UNIT_DAYS = {
    "day": 1,
    "night": 1,
    "week": 7,
    "weekend": 7,
    "fortnight": 14,
    "month": 30.4,
    "year": 365.25,
}

_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" if len(month) > 3 else month for month in MONTHS)
_COUNT = r"(\d+|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + ")"
_UNIT = r"(day|night|week|weekend|fortnight|month|year)s?"
_YEAR = r"((?:19|20)\d\d)"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"

_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b")
_MONTH_DAY = re.compile(rf"\b({_MONTH})\.?\s+{_DAY}\b(?!:)(?:,?\s+{_YEAR})?")
_DAY_MONTH = re.compile(rf"\b{_DAY}\s+(?:of\s+)?({_MONTH})\b\.?(?:,?\s+{_YEAR})?")
_MONTH_ONLY = re.compile(
    rf"\b(?:(in|during|since|of|for|last|this|early|late|mid|by|until|through|before|after)[\s-]+)?"
    rf"({_MONTH})\b(?:\s+(?:of\s+)?{_YEAR}|(?!\s+\d))"
)
_SEASON = re.compile(rf"\b(spring|summer|autumn|fall|winter)(?:\s+(?:of\s+)?{_YEAR})?\b")
_YEAR_ONLY = re.compile(rf"\b(?:in|during|of|for)\s+{_YEAR}\b")
_AGO = re.compile(rf"\b{_COUNT}\s+{_UNIT}\s+(?:ago|before|earlier|back)\b")
_PAST = re.compile(rf"\b(?:past|last|previous)\s+{_COUNT}\s+{_UNIT}\b")
_LAST = re.compile(r"\b(last|past|previous|this|current)\s+(night|week|weekend|month|year)\b")
_LAST_DAY = re.compile(rf"\b(?:last|past|this|on)\s+({'|'.join(DAYS)})\b")
_NEAR = re.compile(r"\b(yesterday|today|tonight|this morning|recently)\b")


_LETTERS = re.compile(r"[a-z]+")
_TIME_WORDS = frozenset(
    {*MONTHS, *(month[:3] for month in MONTHS), *SEASONS, *DAYS, *FOREIGN_WORDS}
    | {*UNIT_DAYS, *(f"{unit}s" for unit in UNIT_DAYS)}
    | {"yesterday", "today", "tonight", "morning", "recently"}
)


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time: from `start` up to, not including, `end`."""

    start: datetime
    end: datetime


def windows(question: str, asked_at: datetime | None, latest: datetime | None) -> list[Window]:
    """The spans a question names; relative ones count from `asked_at`, else are not understood.

    A date without a year is the last one before `asked_at`, or before the latest memory.
    """
    text = question.lower()
    if text.isascii() and not _may_name(text):
        return []
    text = in_english(text)
    anchor = asked_at or latest
    found = list(_absolute(text, anchor))
    if asked_at is not None:
        found += _relative(text, asked_at)
    return found


def _may_name(text: str) -> bool:
    """Whether there is any word or digit that the patterns below could begin with.

    Most questions name no time, and a dozen patterns take longer to say so than this does.
    """
    if any(map(text.__contains__, "0123456789")):
        return True
    return not _TIME_WORDS.isdisjoint(_LETTERS.findall(text))


def _absolute(text: str, anchor: datetime | None) -> Iterator[Window]:
    for match in _ISO.finditer(text):
        yield from _day(int(match[1]), int(match[2]), int(match[3]))
    for match in _MONTH_DAY.finditer(text):
        yield from _dated(_month(match[1]), int(match[2]), match[3], anchor)
    for match in _DAY_MONTH.finditer(text):
        yield from _dated(_month(match[2]), int(match[1]), match[3], anchor)
    rest = _DAY_MONTH.sub(" ", _MONTH_DAY.sub(" ", text))
    for match in _MONTH_ONLY.finditer(rest):
        month = _month(match[2])
        # "may" and "march" are words of their own unless something makes them a month.
        if match[1] or match[3] or month not in {3, 5}:
            yield from _months(month, 1, match[3], anchor)
    for match in _SEASON.finditer(rest):
        if match[1] != "fall" or match[2]:
            yield from _months(SEASONS[match[1]], 3, match[2], anchor)
    for match in _YEAR_ONLY.finditer(_SEASON.sub(" ", _MONTH_ONLY.sub(" ", rest))):
        yield Window(_at(int(match[1]), 1, 1), _at(int(match[1]) + 1, 1, 1))


def _relative(text: str, asked_at: datetime) -> Iterator[Window]:
    today = asked_at.replace(hour=0, minute=0, second=0, microsecond=0)
    for match in _AGO.finditer(text):
        yield _around(today, _count(match[1]), UNIT_DAYS[match[2]])
    for match in _PAST.finditer(text):
        yield _span(today, _count(match[1]) * UNIT_DAYS[match[2]] + 1, -1)
    for match in _LAST.finditer(text):
        yield _named(today, match[1], match[2])
    for match in _LAST_DAY.finditer(text):
        back = (today.weekday() - DAYS.index(match[1])) % 7 or 7
        yield _span(today, back, back - 1)
    for match in _NEAR.finditer(text):
        first, last = {"yesterday": (1, 0), "recently": (21, -1)}.get(match[1], (0, -1))
        yield _span(today, first, last)


def _named(today: datetime, which: str, unit: str) -> Window:
    """Last week, this month, ..., generously: people count loosely."""
    days = UNIT_DAYS[unit]
    if which in {"this", "current"}:
        return _span(today, days, -1)
    if unit == "night":
        return _span(today, 1, 0)
    if unit == "month":
        end = today.replace(day=1)
        return Window((end - timedelta(days=1)).replace(day=1), end + timedelta(days=3))
    if unit == "year":
        return Window(_at(today.year - 1, 1, 1), _at(today.year, 1, 1))
    return _span(today, days + today.weekday() / 2 + 2, 0)


def _around(today: datetime, count: float, unit: float) -> Window:
    """So many units ago, give or take: the vaguer the unit, the wider."""
    slack = 1 if unit == 1 and count < 10 else max(2, unit * 0.5)
    return _span(today, count * unit + slack, count * unit - slack - 1)


def _span(today: datetime, first: float, last: float) -> Window:
    return Window(_days_before(today, first), _days_before(today, last))


def _days_before(today: datetime, days: float) -> datetime:
    """So many days before; the calendar ends somewhere, and a question may go beyond it."""
    return today - timedelta(days=min(days, MOST_DAYS))


def _dated(month: int, day: int, year: str | None, anchor: datetime | None) -> Iterator[Window]:
    if year is not None:
        yield from _day(int(year), month, day)
    elif anchor is not None:
        for window in _day(anchor.year, month, day):
            late = window.start > anchor
            yield from _day(anchor.year - 1, month, day) if late else [window]


def _day(year: int, month: int, day: int) -> Iterator[Window]:
    if 1 <= month <= 12 and 1 <= day <= 31:
        start = _at(year, month, 1) + timedelta(days=day - 1)
        yield Window(start, start + timedelta(days=1))


def _months(first: int, count: int, year: str | None, anchor: datetime | None) -> Iterator[Window]:
    if year is not None:
        chosen = int(year)
    elif anchor is not None:
        chosen = _year(first, anchor)
    else:
        return
    after = first + count - 1
    yield Window(_at(chosen, first, 1), _at(chosen + after // 12, after % 12 + 1, 1))


def _year(month: int, anchor: datetime) -> int:
    """The year of the last such month before the anchor."""
    return anchor.year - (_at(anchor.year, month, 1) > anchor)


def _month(name: str) -> int:
    return next(n for n, month in enumerate(MONTHS, 1) if month.startswith(name[:3]))


def _count(text: str) -> float:
    return NUMBERS.get(text) or float(text)


def _at(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)
