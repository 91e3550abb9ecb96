"""Dates of other languages said in English, so that one reader of dates serves them all."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import re
import unicodedata
from typing import Final

MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_FOREIGN: Final = (
    "januar februar märz april mai juni juli august september oktober november dezember",
    "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)
_IN_ENGLISH: Final = {
    foreign: english
    for line in _FOREIGN
    for foreign, english in zip(line.split(), MONTHS, strict=True)
    if foreign not in {english, "mars"}  # in French a month, in English a planet
}
FOREIGN_WORDS: Final = frozenset(
    word
    for line in (
        *_FOREIGN,
        "gestern heute ayer hoy tag tagen woche wochen monat monaten jahr jahren",
    )
    for word in line.split()
    if word.isascii()
)
"""The words of other languages in English letters that may name a time."""
_LINKS: Final = {"im": "in", "en": "in", "в": "in", "de": "of"}
_MONTH: Final = re.compile(
    r"(?:(?<=\d)\.\s*)?(?:\b(im|en|в|de)\s+)?\b("
    + "|".join(_IN_ENGLISH)
    + r")\b(?:\s+de\s+(?=\d))?"
)
_UNITS: Final = {
    **dict.fromkeys(("天", "日", "tag", "tagen", "дня", "дней"), "days"),
    **dict.fromkeys(
        ("周", "週間", "星期", "woche", "wochen", "неделю", "недели", "недель"), "weeks"
    ),
    **dict.fromkeys(
        ("月", "か月", "ヶ月", "monat", "monaten", "месяц", "месяца", "месяцев"), "months"
    ),
    **dict.fromkeys(("年", "jahr", "jahren", "год", "года", "лет"), "years"),
}
_UNIT: Final = "|".join(sorted(_UNITS, key=len, reverse=True))
_DIGITS: Final = {"两": 2} | {digit: n for n, digit in enumerate("一二三四五六七八九十", 1)}
_AGO: Final = re.compile(
    rf"(\d+|[{''.join(_DIGITS)}])个?({_UNIT})前"
    rf"|\bvor (\d+) ({_UNIT})\b|\b(\d+) ({_UNIT}) назад\b"
)
_SPANS: Final = tuple(
    (re.compile(pattern), english)
    for pattern, english in (
        (r"\bletzte[nr]? woche\b|\bна прошлой неделе\b|上个?(?:星期|周)|先週", " last week "),
        (r"\bletzten monat\b|\bв прошлом месяце\b|上个?月|先月", " last month "),
        (r"\bletzte[ns] jahr\b|\bв прошлом году\b|去年|昨年", " last year "),
        (r"\bdiese[r]? woche\b|\bна этой неделе\b|这个?(?:星期|周)|今週", " this week "),
        (r"\bgestern\b|\bвчера\b|\bayer\b|昨天|昨日", " yesterday "),
        (r"\bheute\b|\bсегодня\b|\bhoy\b|今天|今日", " today "),
    )
)
_EASTERN: Final = re.compile(
    r"(?:((?:19|20)\d\d)年)?(?:(1[0-2]|[1-9])月(?:([12]\d|3[01]|[1-9])[日号])?)?"
)


def in_english(text: str) -> str:
    """The text, in lower case, with the dates it names in English; all else as it was."""
    text = _MONTH.sub(_month, text)
    text = _AGO.sub(_ago, unicodedata.normalize("NFKC", text))
    for pattern, english in _SPANS:
        text = pattern.sub(english, text)
    return _EASTERN.sub(_eastern, text) if "年" in text or "月" in text else text


def _month(match: re.Match[str]) -> str:
    link = f" {_LINKS[match[1]]} " if match[1] else " "
    return f"{link}{_IN_ENGLISH[match[2]]} "


def _ago(match: re.Match[str]) -> str:
    count, unit = (group for group in match.groups() if group)
    return f" {_DIGITS.get(count, count)} {_UNITS[unit]} ago "


def _eastern(match: re.Match[str]) -> str:
    """A date with the year first, the day last, and any but one of them left out."""
    year, month, day = match.groups()
    if month is None:
        return f" in {year} " if year else match[0]
    named = f"{MONTHS[int(month) - 1]} {day}" if day else f"in {MONTHS[int(month) - 1]}"
    return f" {named} {year or ''} "
