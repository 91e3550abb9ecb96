"""Limits: the largest of everything is taken, and one more is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from typing import Any

import pytest

from scrubjay.model import text
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import (
    Content,
    Importance,
    Kind,
    MemoryId,
    MetadataMap,
    SourceIds,
    Tags,
)

HALF = "\ud83d"
EAST = timezone(timedelta(hours=14))
WEST = timezone(timedelta(hours=-12))

Check = Callable[[Any], object]
NUMBERS = count()


def by(hint: Any) -> Check:
    """The check by a type; its name tells the parameters of the tests apart."""

    def check(value: Any) -> object:
        return text.check("it", hint, value)

    check.__name__ = f"check_{next(NUMBERS)}"
    return check


check_content = by(Content)
check_id = by(MemoryId)
check_tags = by(Tags)
check_metadata = by(MetadataMap)
check_name = by(text.Name | None)
check_ids = by(SourceIds)
check_share = by(Importance)
check_count = by(text.Count | None)
check_from_one = by(text.Positive)
check_flag = by(bool)
check_time = by(text.Time | None)
check_kind = by(Kind)


TAKEN: list[tuple[Check, object]] = [
    (check_content, "x"),
    (check_content, " two\nlines\r\n"),
    (check_content, "a" * 65_536),
    (check_content, "ä" * 32_768),
    (check_name, None),
    (check_name, "ö" * 512),
    (check_id, "mem-00000000-0000-4000-8000-000000000000"),
    (check_id, "hist1_" + "0af9" * 16),
    (check_id, "a" * 200),
    (check_tags, [str(number) for number in range(64)]),
    (check_tags, ["ü" * 128]),
    (check_tags, []),
    (check_ids, [f"mem-{number}" for number in range(256)]),
    (check_share, 0),
    (check_share, 1.0),
    (check_count, None),
    (check_count, 2**53 - 1),
    (check_from_one, 1),
    (check_metadata, {}),
    (check_metadata, {"a": [1, None, {"b": "ä"}]}),
    (check_metadata, {"a": "x" * (16 * 1024 - len('{"a": ""}'))}),
]

REFUSED: list[tuple[Check, object]] = [
    (check_content, ""),
    (check_content, " \n\t"),
    (check_content, "a" * 65_537),
    (check_content, "ä" * 32_768 + "a"),
    (check_content, HALF),
    (check_content, b"tea"),
    (check_content, None),
    (check_name, ""),
    (check_name, " "),
    (check_name, "a" * 513),
    (check_name, HALF),
    (check_name, 7),
    (check_id, ""),
    (check_id, "mem 1"),
    (check_id, "mem-1\n"),
    (check_id, "../mem"),
    (check_id, "ä"),
    (check_id, "a" * 201),
    (check_id, None),
    (check_tags, "travel"),
    (check_tags, [""]),
    (check_tags, [" "]),
    (check_tags, ["a" * 129]),
    (check_tags, [7]),
    (check_tags, [["a"]]),
    (check_tags, [HALF]),
    (check_tags, [str(number) for number in range(65)]),
    (check_tags, 7),
    (check_ids, "mem-1"),
    (check_ids, ["mem 1"]),
    (check_ids, [None]),
    (check_ids, [f"mem-{number}" for number in range(257)]),
    (check_ids, 7),
    (check_share, -0.001),
    (check_share, 1.001),
    (check_share, float("nan")),
    (check_share, True),
    (check_share, "0.5"),
    (check_count, -1),
    (check_count, 2**53),
    (check_count, 1.0),
    (check_count, True),
    (check_from_one, 0),
    (check_flag, 1),
    (check_flag, "yes"),
    (check_flag, None),
    (check_time, datetime(2026, 5, 1)),  # noqa: DTZ001
    (check_time, "2026-05-01T00:00:00Z"),
    (check_time, datetime.min.replace(tzinfo=EAST)),
    (check_time, datetime.max.replace(tzinfo=WEST)),
    (check_metadata, None),
    (check_metadata, [("a", 1)]),
    (check_metadata, {1: "a"}),
    (check_metadata, {"a": object()}),
    (check_metadata, {"a": float("nan")}),
    (check_metadata, {"a": HALF}),
    (check_metadata, {"a": "x" * (16 * 1024)}),
    (check_kind, "dream"),
    (check_kind, "FACT"),
    (check_kind, None),
    (check_kind, ["fact"]),
]


@pytest.mark.parametrize(("check", "value"), TAKEN)
def test_what_is_within_the_limits_is_taken(check: Check, value: object) -> None:
    check(value)


@pytest.mark.parametrize(("check", "value"), REFUSED)
def test_what_is_beyond_the_limits_is_refused(check: Check, value: object) -> None:
    with pytest.raises(InvalidRequest):
        check(value)


def test_metadata_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop
    with pytest.raises(InvalidRequest):
        check_metadata(loop)


def test_tags_and_ids_are_kept_once_in_the_order_given() -> None:
    assert check_tags(["b", "a", "b"]) == ("b", "a")
    assert check_ids(["mem-2", "mem-1", "mem-2"]) == ("mem-2", "mem-1")


def test_a_time_is_turned_into_utc() -> None:
    time = text.check("it", text.Time, datetime(2026, 5, 1, 14, tzinfo=EAST))
    assert time == datetime(2026, 5, 1, tzinfo=UTC)
    assert time.tzinfo is UTC


def test_half_a_surrogate_pair_is_named_by_its_place() -> None:
    with pytest.raises(InvalidRequest, match="at character 3"):
        check_content("tea" + HALF)


@pytest.mark.parametrize(
    "hint", [text.Time, text.Positive, text.Share, bool, Kind, list[int]], ids=range(6)
)
def test_half_a_surrogate_pair_where_no_text_belongs_is_refused(hint: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"half a surrogate pair|expected"):
        text.check("it", hint, HALF)
    with pytest.raises(InvalidRequest):
        text.check("it", list[hint], [HALF])


def test_an_unknown_choice_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_kind("dream")
    assert all(kind.value in refusal.value.message for kind in Kind)
