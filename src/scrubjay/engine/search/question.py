"""Query analysis: speakers, time ranges and the kind of answer a question asks for."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from scrubjay.engine.search.analysis import common_words, normalize, pattern, table, wanted, words
from scrubjay.engine.search.sounds import same_name
from scrubjay.model.text import lazy_pattern

NONE = -1
"""The code of no session, no speaker; the row of no neighbor."""

_USERS = (
    "user human customer client me nutzer benutzer utilisateur usuario utente пользователь 用户"
    " ユーザー"
)
_ASSISTANTS = (
    "assistant ai agent bot model chatbot assistent asistente assistente ассистент помощник 助手"
    " アシスタント"
)
USER_NAMES = frozenset(_USERS.split())
ASSISTANT_NAMES = frozenset(_ASSISTANTS.split())
SHORTEST_NICKNAME = 3

MOST_QUESTIONS = 4
"""Questions of one text that are looked for apart; more of them are taken as one."""
LEAST_ASKED = 2
"""Words, beyond stop words and small talk, of a question that can be understood by itself."""

_QUESTION = lazy_pattern("[^?\uff1f]*[?\uff1f]+|[^?\uff1f]+$")
_WORD = lazy_pattern(r"[^\W_]+")
_HAN = lazy_pattern("[\u3400-\u9fff]{3,4}")
_DIGIT = lazy_pattern(r"\d")
_CASE_ENDING = lazy_pattern("(?<=[а-я]{2})(?:[аоуыиеьюя]|ом|ем|ой|ей|ою|ею)$")


class Window(Struct, frozen=True):
    """A span of time: from `start` up to, not including, `end`."""

    start: datetime
    end: datetime
    exact: bool = False
    """Whether it is a day people do not mistake, such as yesterday."""


class ParsedQuery(Struct, frozen=True, kw_only=True):
    """A parsed question, as the ranking uses it."""

    asked: frozenset[int] = frozenset()
    """Codes of the speakers it asks about, by name or by role; may include NONE."""
    named: bool = False
    """Whether it names one of these speakers: then it is about this scope."""
    own: bool = False
    """Whether it is in the first person and names nobody here: then it likely is."""
    assistants: frozenset[int] = frozenset()
    """Codes of the speakers that are assistants: their words are no preferences of the user."""
    windows: tuple[Window, ...] = ()
    asked_at: datetime | None = None
    when: bool = False
    advice: bool = False
    """Whether it asks for help now, so that instructions and preferences count."""
    many: bool = False
    """Whether it asks for several things, which seldom stand together."""


def parse(
    question: str,
    speakers: Mapping[int, str],
    *,
    asked_at: datetime | None = None,
    latest: datetime | None = None,
    zone: tzinfo = UTC,
    strange: frozenset[str] = frozenset(),
) -> ParsedQuery:
    """Read a question against a scope, whose speakers are given by code.

    A `strange` name, which nothing there holds, may be that of a speaker in another spelling.

    Relative words count from `asked_at`, a date without a year back from `latest`; days are those
    of the zone.
    """
    assistants = _in_role(speakers, ASSISTANT_NAMES)
    lowered = question.lower()
    asked = _named(question, speakers, strange)
    named = bool(asked)
    people = _Callings.of(tuple(speakers.items())).names
    if not asked and pattern("question", "second_person").search(lowered):
        asked = assistants
    elif not asked and (users := _in_role(speakers, USER_NAMES)):
        # What nobody in particular said, such as a bare fact, is kept for the user like theirs.
        asked = users | {NONE}
    return ParsedQuery(
        asked=asked,
        named=named,
        own=not named and _is_own(lowered),
        assistants=assistants,
        windows=tuple(windows(question, asked_at, latest, zone, people)),
        asked_at=asked_at,
        when=bool(pattern("question", "when").search(lowered)),
        advice=asks_advice(question),
        many=bool(pattern("question", "many").search(lowered)),
    )


class Asked(Struct, frozen=True):
    """One question, and its subject: what is left without the words that only ask for help."""

    text: str
    subject: str

    @classmethod
    def of(cls, text: str) -> Asked:
        """The question of a text; of one that does not ask for help, all of it is the subject."""
        subject = pattern("question", "framing").sub(" ", text) if asks_advice(text) else text
        return cls(text, subject if _WORD.search(subject) else text)


def questions(text: str) -> list[Asked]:
    """The questions a text asks, each with what leads to it; the whole text if it asks one.

    One of too few words to be understood by itself belongs to the next one, or the one before.
    """
    marked = _QUESTION.findall(text) if text.count("?") + text.count("\uff1f") > 1 else []
    found, begun, telling = list[str](), "", 0
    for part in marked:
        begun += part
        telling += sum(one.telling == 1 for one in wanted(part))
        if telling >= LEAST_ASKED:
            found.append(begun)
            begun, telling = "", 0
    if found:
        found[-1] += begun
    return list(map(Asked.of, found if 1 < len(found) <= MOST_QUESTIONS else [text]))


def _is_own(question: str) -> bool:
    """Whether it is in the first person, and not about how anybody does it: "how do I exit vim"."""
    own, method = pattern("question", "first_person"), pattern("question", "method")
    return bool(own.search(question)) and not method.search(question)


def asks_advice(question: str) -> bool:
    """Whether the question asks for help or advice now, not for a memory."""
    request, advice = pattern("question", "request"), pattern("question", "advice")
    asked = question.strip().lower()
    return bool(request.search(asked) or advice.search(asked))


# -- who --------------------------------------------------------------------------------------


def _in_role(speakers: Mapping[int, str], names: frozenset[str]) -> frozenset[int]:
    return frozenset(code for code, name in speakers.items() if name.casefold() in names)


def _named(question: str, speakers: Mapping[int, str], strange: frozenset[str]) -> frozenset[int]:
    """Speakers named by any word of their name, in any case, or by a nickname that begins it.

    If a word is capitalized ("Will" in "what will Will do"), only such words count; a nickname
    must be capitalized ("the" is not Theo), and so must a name that is a stop word.
    """
    callings = _Callings.of(tuple(speakers.items()))
    found_words = [(match.start(), match[0]) for match in _WORD.finditer(question)]
    proper = [form for at, word in found_words if at and word[0].isupper() for form in _forms(word)]
    found = _called(proper, callings.nicknames) | _called(proper, callings.names)
    if not found:
        plain = [word for _, word in found_words if _called(_forms(word), callings.names)]
        common = plain and common_words(question)
        plain = [word for word in plain if word.casefold() not in common]
        found = _called([form for word in plain for form in _forms(word)], callings.names)
    if strange and not found:
        known = [name for name in callings.names if any(same_name(one, name) for one in strange)]
        found = _called(known, callings.names)
    return found | {code for name, code in callings.caseless if name in question}


def _forms(word: str) -> tuple[str, ...]:
    """A name as it may stand in a sentence: Peters for Peter, Анны for Анна."""
    folded = word.casefold()
    bare = folded if folded.isascii() else _CASE_ENDING.sub("", folded)
    return (
        folded,
        *([bare] if bare != folded else []),
        *([folded[:-1]] if folded[-1] == "s" else []),
    )


def _called(words: Iterable[str], callings: Mapping[str, frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*(callings.get(word, ()) for word in words))


class _Callings(Struct, frozen=True):
    """Names and nicknames of the speakers of a scope."""

    names: dict[str, frozenset[int]]
    nicknames: dict[str, frozenset[int]]
    caseless: tuple[tuple[str, int], ...]
    """Names in scripts without capitals, which may have no spaces around them either."""

    @staticmethod
    @lru_cache(64)
    def of(speakers: tuple[tuple[int, str], ...]) -> _Callings:
        """The callings of these speakers, given by code and name."""
        names: dict[str, frozenset[int]] = {}
        nicknames: dict[str, frozenset[int]] = {}
        caseless = []
        for code, name in speakers:
            parts = {part.casefold() for part in _WORD.findall(name)}
            if parts & (USER_NAMES | ASSISTANT_NAMES):
                continue
            if name.upper() == name.lower() and len(name) > 1:
                caseless.append((name, code))
                if _HAN.fullmatch(name):
                    # What a full name is shortened to: 小明 for 王小明, 田中 for 田中太郎.
                    short = (name[1:],) if len(name) == 3 else (name[:2], name[2:])
                    caseless += [(calling, code) for calling in short]
            for part in parts | {_CASE_ENDING.sub("", part) for part in parts}:
                names[part] = names.get(part, frozenset()) | {code}
                # At least three letters and about half of the name.
                for end in range(max(SHORTEST_NICKNAME, len(part) // 2), len(part)):
                    nicknames[part[:end]] = nicknames.get(part[:end], frozenset()) | {code}
        return _Callings(names, nicknames, tuple(caseless))


# -- when: dates of other languages in English, so that one reader serves them all ---------------

_ENGLISH = "january february march april may june july august september october november december"
MONTHS: Final = tuple(_ENGLISH.split())
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DATES: Final = table("dates")


def _in_other_languages(name: str, english: Sequence[str]) -> dict[str, str]:
    """English words by those of other languages, which stand in the same order."""
    lines = [zip(line.split(), english, strict=True) for line in _DATES[name]]
    return {foreign: one for line in lines for foreign, one in line if foreign not in {one, "mars"}}


def _date_pattern(name: str, of: Iterable[str] = ()) -> re.Pattern[str]:
    """A regular expression of dates, with these words in the place of `{words}`."""
    return lazy_pattern(_DATES[name].replace("{words}", "|".join(of)))


_IN_ENGLISH: Final = _in_other_languages("months", MONTHS)
_FOREIGN_DAYS: Final = _in_other_languages("days", DAYS)
_FOREIGN_UNITS: Final = {
    foreign: unit for unit, line in _DATES["units"].items() for foreign in line.split()
}
_FOREIGN_WORDS: Final = frozenset(
    word
    for line in (*_DATES["months"], *_DATES["days"], _DATES["words"])
    for word in line.split()
    if word.isascii()
)
"""Words of other languages, in English letters, that may name a time."""
_LINKS: Final[Mapping[str, str]] = _DATES["links"]
_NUMERALS: Final[Mapping[str, int]] = _DATES["numerals"]
_FOREIGN_MONTH: Final = _date_pattern("month", _IN_ENGLISH)
_FOREIGN_DAY: Final = _date_pattern("day", _FOREIGN_DAYS)
_HERE: Final = _date_pattern("here")
_FOREIGN_AGO: Final = _date_pattern("ago", sorted(_FOREIGN_UNITS, key=len, reverse=True))
_SPANS: Final = tuple((lazy_pattern(says), f" {english} ") for english, says in _DATES["spans"])
_EASTERN: Final = _date_pattern("eastern")


def _in_english(text: str) -> str:
    """The text, in lower case, with the dates it names in English; all else as it was."""
    common = common_words(text)
    anglophone = "the" in common and not common.isdisjoint(words(text))

    def month(match: re.Match[str]) -> str:
        first, end = match.span()
        if anglophone and not match[1] and not _DIGIT.search(text[max(first - 4, 0) : end + 3]):
            return match[0]  # among English words "Mai" and "Julio" are people
        link = f" {_LINKS[match[1]]} " if match[1] else " "
        return f"{link}{_IN_ENGLISH[match[2]]} "

    def ago(match: re.Match[str]) -> str:
        count, unit = (group for group in match.groups() if group)
        return f" {_NUMERALS.get(count, count)} {_FOREIGN_UNITS[unit]} ago "

    def eastern(match: re.Match[str]) -> str:
        """A date with the year first, the day last, and any but one of them left out."""
        year, month, day = match.groups()
        if month is None:
            return f" in {year} " if year else match[0]
        named = f"{MONTHS[int(month) - 1]} {day}" if day else f"in {MONTHS[int(month) - 1]}"
        return f" {named} {year or ''} "

    if "hier" in common:
        text = _HERE.sub(" ", text)
    text = _FOREIGN_MONTH.sub(month, text)
    text = _FOREIGN_AGO.sub(ago, normalize(text))
    for foreign, english in _SPANS:
        text = foreign.sub(english, text)
    text = _FOREIGN_DAY.sub(lambda match: _FOREIGN_DAYS[match[1]], text)
    return _EASTERN.sub(eastern, text) if "年" in text or "月" in text else text


# -- when: the spans of time a question names ----------------------------------------------------

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_COUNTED = "one two three four five six seven eight nine ten eleven twelve"
NUMBERS = {
    **{word: number for number, word in enumerate(_COUNTED.split(), 1)},
    "a": 1,
    "an": 1,
    "couple of": 2,
    "a couple of": 2,
    "few": 3,
    "a few": 3,
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

_MONTH = "|".join(
    f"{month[:3]}(?:{month[3:]})?"
    if len(month) > 3
    else rf"{month}(?!\s+(?:be|not|have|also|well)\b)"
    for month in MONTHS
)
_COUNT = r"(\d+|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + ")"
_UNIT = r"(day|night|week|weekend|fortnight|month|year)s?"
_YEAR = r"((?:19|20)\d\d)"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"

_ISO = lazy_pattern(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b")
_MONTH_DAY = lazy_pattern(rf"\b({_MONTH})\.?\s+{_DAY}\b(?!:)(?:,?\s+{_YEAR})?")
_DAY_MONTH = lazy_pattern(rf"\b{_DAY}\s+(?:of\s+)?({_MONTH})\b\.?(?:,?\s+{_YEAR})?")
_MONTH_ONLY = lazy_pattern(
    r"\b(?:(in|during|since|of|for|from|last|this|next|early|late|mid|by|until|till|through|before"
    r"|after)[\s-]+|(the|my|our|your|his|her|their|every|each)\s+"
    r"|(do|does|did|has|have|had|will|would|can|could|should)\s+)?"
    rf"({_MONTH})\b('s\b)?(?:\s+(?:of\s+)?{_YEAR}|(?!\s+\d))"
)
_ALSO_WORDS = frozenset(("mar", "march", "may", "jan", "jun", "dec"))
"""Months that alone are a verb, a name or an abbreviation of something else."""
_PARTS: Final = {
    **dict.fromkeys(("early", "beginning", "start"), (0.0, 0.34)),
    **dict.fromkeys(("mid", "middle"), (0.3, 0.7)),
    **dict.fromkeys(("late", "end"), (0.66, 1.0)),
    "first half": (0.0, 0.5),
    "second half": (0.5, 1.0),
    "first week": (0.0, 0.24),
    "second week": (0.2, 0.5),
    "third week": (0.43, 0.73),
    "last week": (0.76, 1.0),
}
"""Parts of a month or a year, as shares of it."""
_PART = lazy_pattern(
    rf"\b({'|'.join(_PARTS)})[\s-]+(?:(?:of|in)\s+)?(?:the\s+)?"
    rf"(?:({_MONTH})\b(?:\s+(?:of\s+)?{_YEAR})?|(?:year\s+)?{_YEAR}\b)"
)
_BETWEEN = lazy_pattern(
    rf"\b(?:between|from)\s+({_MONTH})\b(?:\s+{_YEAR})?\s+(?:and|to|until|through|und|et|y|и)\s+"
    rf"({_MONTH})\b(?:\s+(?:of\s+)?{_YEAR})?"
)
_WEEK_OF = lazy_pattern(r"\bweek\s+of\s+(?:the\s+)?$")
_SEASONS_AGO = lazy_pattern(rf"\b{_COUNT}\s+(spring|summer|autumn|fall|winter)s\s+ago\b")
_SEASON = lazy_pattern(rf"\b(spring|summer|autumn|fall|winter)(?:\s+(?:of\s+)?{_YEAR})?\b")
_YEAR_ONLY = lazy_pattern(rf"\b(?:in|during|of|for)\s+{_YEAR}\b")
_AGO = lazy_pattern(rf"\b{_COUNT}\s+{_UNIT}\s+(?:ago|before|earlier|back)\b")
_PAST = lazy_pattern(rf"\b(?:past|last|previous)\s+{_COUNT}\s+{_UNIT}\b")
_LAST = lazy_pattern(r"\b(last|past|previous|this|current)\s+(night|week|weekend|month|year)\b")
_LAST_DAY = lazy_pattern(rf"\b(?:last|past|this|on|since)\s+({'|'.join(DAYS)})\b")
_SINCE = lazy_pattern(r"\bsince\b")
_NEAR = lazy_pattern(r"\b(yesterday|today|tonight|this morning|recently)\b")


_LETTERS = lazy_pattern(r"[a-z]+")
_TIME_WORDS = frozenset(
    {*MONTHS, *(month[:3] for month in MONTHS), *SEASONS, *DAYS, *_FOREIGN_WORDS}
    | {*UNIT_DAYS, *(f"{unit}s" for unit in UNIT_DAYS)}
    | {f"{season}s" for season in SEASONS}
    | {"yesterday", "today", "tonight", "morning", "recently"}
)


def windows(
    question: str,
    asked_at: datetime | None,
    latest: datetime | None,
    zone: tzinfo = UTC,
    people: Iterable[str] = (),
) -> list[Window]:
    """The spans of time a question names: "last week", "in May 2023", "three days ago".

    Relative ones count from `asked_at`, and are not understood without. A date without a year is
    the last one before `latest`, or `asked_at`. Days begin and end as in the zone. A month that
    one of the `people` is called, such as April, needs the company of a date: "in April".
    """
    text = question.lower()
    # Most questions name no time, and a dozen patterns take longer to say so than this does.
    digits = any(map(text.__contains__, "0123456789"))
    written = _LETTERS.findall(text) if text.isascii() else None
    if written is not None and not digits and _TIME_WORDS.isdisjoint(written):
        return []
    if written is None or not _FOREIGN_WORDS.isdisjoint(written):
        text = _in_english(text)
    # Reckoned by the calendar of the zone; only what comes out is a moment again.
    now, anchor = (
        time and time.astimezone(zone).replace(tzinfo=None)
        for time in (asked_at, latest or asked_at)
    )
    called = frozenset(_IN_ENGLISH.get(name, name) for name in people)
    found = list(_absolute(text, anchor, called))
    if now is not None:
        found += _relative(text, now)
        if _SINCE.search(text):
            end = now + timedelta(days=1)
            found = [replace(window, end=max(window.end, end)) for window in found]
    return [
        replace(one, start=one.start.replace(tzinfo=zone), end=one.end.replace(tzinfo=zone))
        for one in found
    ]


def _absolute(text: str, anchor: datetime | None, called: frozenset[str]) -> Iterator[Window]:
    for match in _ISO.finditer(text):
        yield from _day(int(match[1]), int(match[2]), int(match[3]))
    for match in _MONTH_DAY.finditer(text):
        days = _dated(_month(match[1]), int(match[2]), match[3], anchor)
        yield from map(_week, days) if _WEEK_OF.search(text[: match.start()]) else days
    for match in _DAY_MONTH.finditer(text):
        days = _dated(_month(match[2]), int(match[1]), match[3], anchor)
        yield from map(_week, days) if _WEEK_OF.search(text[: match.start()]) else days
    rest = _DAY_MONTH.sub(" ", _MONTH_DAY.sub(" ", text))
    yield from _composed(rest, anchor)
    rest = _SEASONS_AGO.sub(" ", _PART.sub(" ", _BETWEEN.sub(" ", rest)))
    for match in _MONTH_ONLY.finditer(rest):
        if _is_month(match, called):
            yield from _months(_month(match[4]), 1, match[6], anchor)
    for match in _SEASON.finditer(rest):
        if match[1] != "fall" or match[2]:
            yield from _months(SEASONS[match[1]], 3, match[2], anchor)
    for match in _YEAR_ONLY.finditer(_SEASON.sub(" ", _MONTH_ONLY.sub(" ", rest))):
        yield Window(_at(int(match[1]), 1, 1), _at(int(match[1]) + 1, 1, 1))


def _is_month(match: re.Match[str], called: frozenset[str]) -> bool:
    """Whether a month that stands without a day is one, not a person or a verb.

    "In May", "May 2023"; "my May trip", but nobody's march; and neither "did April", "April's" nor
    "may" alone.
    """
    linked, owned, helped, name, possessive, year = match.groups()
    if linked or year:
        return True
    if name in called or (owned and _month(name) == 3):
        return False
    return bool(owned) or not (helped or possessive or name in _ALSO_WORDS)


def _composed(text: str, anchor: datetime | None) -> Iterator[Window]:
    """Several months, a part of one or of a year, and seasons counted back."""
    for match in _BETWEEN.finditer(text):
        first, last = _month(match[1]), _month(match[3])
        for window in _months(last, 1, match[4], anchor):
            year = int(match[2] or window.start.year - (first > last))
            yield Window(_at(year, first, 1), window.end)
    for match in _PART.finditer(_BETWEEN.sub(" ", text)):
        if match[2]:
            whole = _months(_month(match[2]), 1, match[3], anchor)
        else:
            whole = _months(1, 12, match[4], anchor)
        first_share, last_share = _PARTS[match[1]]
        for window in whole:
            span = window.end - window.start
            yield Window(window.start + first_share * span, window.start + last_share * span)
    for match in _SEASONS_AGO.finditer(text):
        for window in _months(SEASONS[match[2]], 3, None, anchor):
            back = int(min(_count(match[1]), 1000)) - 1
            start = _at(window.start.year - back, window.start.month, 1)
            yield Window(start, start + (window.end - window.start))


def _relative(text: str, asked_at: datetime) -> Iterator[Window]:
    today = asked_at.replace(hour=0, minute=0, second=0, microsecond=0)
    for match in _AGO.finditer(text):
        # Give or take: the vaguer the unit, the wider.
        count, unit = _count(match[1]), UNIT_DAYS[match[2]]
        slack = 1 if unit == 1 and count < 10 else max(2, unit * 0.5)
        yield _span(today, count * unit + slack, count * unit - slack - 1)
    for match in _PAST.finditer(text):
        yield _span(today, _count(match[1]) * UNIT_DAYS[match[2]] + 1, -1)
    for match in _LAST.finditer(text):
        yield _last(today, match[1], match[2])
    for match in _LAST_DAY.finditer(text):
        back = (today.weekday() - DAYS.index(match[1])) % 7 or 7
        yield _span(today, back, back - 1)
    for match in _NEAR.finditer(text):
        first, last = {"yesterday": (1, 0), "recently": (21, -1)}.get(match[1], (0, -1))
        yield replace(_span(today, first, last), exact=match[1] != "recently")


def _last(today: datetime, which: str, unit: str) -> Window:
    """Last week, this month, …, with a margin, because people count loosely."""
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


def _span(today: datetime, first: float, last: float) -> Window:
    """Days before a date, cut to the range of the calendar."""
    start, end = (today - timedelta(days=min(days, MOST_DAYS)) for days in (first, last))
    return Window(start, end)


def _week(day: Window) -> Window:
    """The week, from Monday on, that a day is in."""
    start = day.start - timedelta(days=day.start.weekday())
    return Window(start, start + timedelta(days=7))


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
    """A number of months from a first one; without a year, the last such before the anchor."""
    if year is not None:
        chosen = int(year)
    elif anchor is not None:
        chosen = anchor.year - (_at(anchor.year, first, 1) > anchor)
    else:
        return
    after = first + count - 1
    yield Window(_at(chosen, first, 1), _at(chosen + after // 12, after % 12 + 1, 1))


def _month(name: str) -> int:
    return next(n for n, month in enumerate(MONTHS, 1) if month.startswith(name[:3]))


def _count(text: str) -> float:
    return NUMBERS.get(text) or float(text)


def _at(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day)  # noqa: DTZ001 - of the zone that `windows` goes by
