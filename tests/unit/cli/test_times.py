"""Times as people type them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scrubjay.cli import parser
from scrubjay.model.errors import InvalidRequest

NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
        (" 2 W ", timedelta(days=14)),
    ],
)
def test_a_duration_counts_back_or_ahead_from_now(text: str, length: timedelta) -> None:
    assert parser.past(text, NOW) == NOW - length
    assert parser.future(text, NOW) == NOW + length


def test_a_time_with_a_zone_is_that_time() -> None:
    assert parser.past("2026-05-01T18:30:00+02:00", NOW) == datetime(2026, 5, 1, 16, 30, tzinfo=UTC)
    assert parser.past("2026-05-01T18:30Z", NOW) == datetime(2026, 5, 1, 18, 30, tzinfo=UTC)


def test_a_date_is_the_first_moment_of_that_day_here() -> None:
    found = parser.past("2026-05-01", NOW)
    assert found.tzinfo is not None
    assert found.replace(tzinfo=None) == datetime(2026, 5, 1)  # noqa: DTZ001  # the wall clock's


@pytest.mark.parametrize("text", ["", "soon", "7", "7 days", "d", "2026-13-01", "-3d", "9999999d"])
def test_what_is_not_a_time_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parser.past(text, NOW)
    assert "7d" in caught.value.hint


def test_a_time_beyond_all_calendars_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        parser.future("999999w", NOW)


@pytest.mark.parametrize("text", ["2026-05-10T12:00Z", "2001-01-01", "0d"])
def test_what_is_to_come_cannot_be_over(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parser.future(text, NOW)
