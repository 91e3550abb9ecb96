"""Times as people type them: an ISO date or time, or a duration counted from now."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from scrubjay.domain.errors import InvalidRequest

_DURATION = re.compile(r"(\d{1,6})\s*([hdw])", re.IGNORECASE)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_HINT = "Write a date (2026-05-01), a time (2026-05-01T18:30), or a duration (12h, 7d, 2w)."


def past(text: str, now: datetime) -> datetime:
    """The time meant; a duration counts back from now."""
    length = duration(text)
    return moment(text) if length is None else _shifted(text, now, -length)


def future(text: str, now: datetime) -> datetime:
    """The time meant, which lies ahead; a duration counts from now."""
    length = duration(text)
    time = moment(text) if length is None else _shifted(text, now, length)
    if time <= now:
        raise InvalidRequest(f"{text} is over already.", hint="Name a time to come.")
    return time


def duration(text: str) -> timedelta | None:
    """The length of a duration such as 12h, 7d or 2w; None if it is not written as one."""
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else int(found[1]) * _UNITS[found[2].lower()]


def moment(text: str) -> datetime:
    """The time of an ISO date, its first moment, or of an ISO time.

    What names no zone is meant where the reader is, as on any clock on a wall.
    """
    try:
        time = datetime.fromisoformat(text.strip())
        return time.astimezone() if time.tzinfo is None else time
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"{text!r} is not a time.", hint=_HINT) from error


def _shifted(text: str, now: datetime, by: timedelta) -> datetime:
    try:
        return now + by
    except OverflowError as error:
        raise InvalidRequest(f"{text} is outside the years 1 to 9999.", hint=_HINT) from error
