"""Wording of a derived statement: in the third person, with absolute dates.

The turn keeps what was said, word for word. A statement is read without its turn, perhaps a year
later, when nobody knows who "I" was and which day "tomorrow" meant. Both follow from the turn
alone, so a derivation stays a function of the set of turns.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import partial
from typing import Final

from msgspec import Struct

_WEEK: Final = 7


class Rewrite(Struct, frozen=True, forbid_unknown_fields=True):
    """One replacement; {verb} is the group of that name in the third person, others as they are."""

    says: re.Pattern[str]
    by: str


class RelativeDate(Struct, frozen=True, forbid_unknown_fields=True):
    """Words that name a date by its distance from the turn.

    `unit` is day, week, weekend, month or year; weekday is the nearest one after or before,
    day_of_week one of the week that is `count` weeks away. The group `n` is a number that
    multiplies `count`.
    """

    says: re.Pattern[str]
    unit: str
    count: int = 0
    also: str = ""
    """Words that are said along, such as a part of the day."""


class Grammar(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one language tells of the user, and names dates."""

    third: list[Rewrite]
    verbs: dict[str, str] = {}
    endings: list[Rewrite] = []
    dates: list[RelativeDate]
    phrases: dict[str, str]
    """By unit, how a date is said: `on {}`."""
    leads: re.Pattern[str]
    """Words before a date that stand in place of the preposition: `by tomorrow`."""
    weekdays: list[str]
    """Monday first, each name or several with a bar between."""
    numbers: list[str]
    """From one on."""
    first_person: re.Pattern[str]
    stop: str = "."

    def tell(self, said: str, day: date) -> str:
        """A statement of the user as others tell it, at any later time."""
        told = self._dated(said, day)
        for rule in self.third:
            told = rule.says.sub(partial(self._retold, by=rule.by), told)
        if "User" not in told and self.first_person.search(told):
            told = f"User: {told}"
        return f"{told[:1].upper()}{told[1:]}{self.stop}"

    def _retold(self, found: re.Match[str], by: str) -> str:
        groups = found.groupdict("")
        for name in ("no", "ya"):
            groups |= {name: groups[name].lower()} if name in groups else {}
        if verb := groups.get("verb"):
            groups["verb"] = self.verbs.get(verb.lower()) or self._conjugated(verb)
        return by.format(**groups)

    def _conjugated(self, verb: str) -> str:
        for ending in self.endings:
            if ending.says.fullmatch(verb):
                return ending.says.sub(ending.by, verb)
        return verb

    # -- dates ---------------------------------------------------------------------------

    def _dated(self, said: str, day: date) -> str:
        for words in self.dates:
            for found in reversed(list(words.says.finditer(said))):
                before, after = said[: found.start()], said[found.end() :]
                name = self._name(words, found, day)
                if name is None:
                    continue
                is_led = after.startswith("'s") or self.leads.search(before)
                phrase = name if is_led else self.phrases[words.unit].format(name)
                said = f"{before}{phrase}{words.also}{after}"
        return said

    def _name(self, words: RelativeDate, found: re.Match[str], day: date) -> str | None:
        """The date in ISO 8601; None if the calendar has none."""
        groups, count = found.groupdict(), words.count
        if number := groups.get("n"):
            count *= int(number) if number.isdecimal() else self._index(self.numbers, number) + 1
        named = groups.get("weekday")
        weekday = self._index(self.weekdays, named) if named else 0
        monday = day - timedelta(days=day.weekday())
        try:
            match words.unit:
                case "day":
                    return str(day + timedelta(days=count))
                case "week":
                    return str(monday + timedelta(weeks=count))
                case "weekend":
                    return str(monday + timedelta(weeks=count, days=5))
                case "day_of_week":
                    return str(monday + timedelta(weeks=count, days=weekday))
                case "weekday":
                    ahead = (weekday - day.weekday()) * count % _WEEK or _WEEK
                    return str(day + timedelta(days=ahead * count))
                case "month":
                    year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
                    return f"{day.replace(year=year, month=month + 1, day=1):%Y-%m}"
                case _:
                    return f"{day.replace(year=day.year + count, day=1):%Y}"
        except (ValueError, OverflowError):  # beyond the calendar: the words stay
            return None

    def _index(self, names: list[str], said: str) -> int:
        return next(at for at, name in enumerate(names) if re.fullmatch(name, said, re.IGNORECASE))
