"""Limits: the largest of everything is taken, and one more is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from scrubjay.model import text
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Kind

HALF = "\ud83d"
EAST = timezone(timedelta(hours=14))
WEST = timezone(timedelta(hours=-12))

Check = Callable[[Any], object]


def check_name(value: Any) -> object:
    return text.check_name("It", value)


def check_ids(value: Any) -> object:
    return text.check_ids("It", value)


def check_share(value: Any) -> object:
    return text.check_share("It", value)


def check_count(value: Any) -> object:
    return text.check_count("It", value)


def check_from_one(value: Any) -> object:
    return text.check_count("It", value, least=1)


def check_flag(value: Any) -> object:
    return text.check_flag("It", value)


def check_time(value: Any) -> object:
    return text.check_time("It", value)


def check_kind(value: Any) -> object:
    return text.check_choice("It", value, Kind)


TAKEN: list[tuple[Check, object]] = [
    (text.check_content, "x"),
    (text.check_content, " two\nlines\r\n"),
    (text.check_content, "a" * 65_536),
    (text.check_content, "ä" * 32_768),
    (check_name, None),
    (check_name, "ö" * 512),
    (text.check_id, "mem-00000000-0000-4000-8000-000000000000"),
    (text.check_id, "hist1_" + "0af9" * 16),
    (text.check_id, "a" * 200),
    (text.check_tags, [str(number) for number in range(64)]),
    (text.check_tags, ["ü" * 128]),
    (text.check_tags, []),
    (check_ids, [f"mem-{number}" for number in range(256)]),
    (check_share, 0),
    (check_share, 1.0),
    (check_count, None),
    (check_count, 2**53 - 1),
    (check_from_one, 1),
    (text.check_metadata, {}),
    (text.check_metadata, {"a": [1, None, {"b": "ä"}]}),
    (text.check_metadata, {"a": "x" * (16 * 1024 - len('{"a": ""}'))}),
]

REFUSED: list[tuple[Check, object]] = [
    (text.check_content, ""),
    (text.check_content, " \n\t"),
    (text.check_content, "a" * 65_537),
    (text.check_content, "ä" * 32_768 + "a"),
    (text.check_content, HALF),
    (text.check_content, b"tea"),
    (text.check_content, None),
    (check_name, ""),
    (check_name, " "),
    (check_name, "a" * 513),
    (check_name, HALF),
    (check_name, 7),
    (text.check_id, ""),
    (text.check_id, "mem 1"),
    (text.check_id, "mem-1\n"),
    (text.check_id, "../mem"),
    (text.check_id, "ä"),
    (text.check_id, "a" * 201),
    (text.check_id, None),
    (text.check_tags, "travel"),
    (text.check_tags, [""]),
    (text.check_tags, [" "]),
    (text.check_tags, ["a" * 129]),
    (text.check_tags, [7]),
    (text.check_tags, [["a"]]),
    (text.check_tags, [HALF]),
    (text.check_tags, [str(number) for number in range(65)]),
    (text.check_tags, 7),
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
    (text.check_metadata, None),
    (text.check_metadata, [("a", 1)]),
    (text.check_metadata, {1: "a"}),
    (text.check_metadata, {"a": object()}),
    (text.check_metadata, {"a": float("nan")}),
    (text.check_metadata, {"a": HALF}),
    (text.check_metadata, {"a": "x" * (16 * 1024)}),
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
        text.check_metadata(loop)


def test_tags_and_ids_are_kept_once_in_the_order_given() -> None:
    assert text.check_tags(["b", "a", "b"]) == ("b", "a")
    assert text.check_ids("It", ["mem-2", "mem-1", "mem-2"]) == ("mem-2", "mem-1")


def test_a_time_is_turned_into_utc() -> None:
    time = text.check_time("It", datetime(2026, 5, 1, 14, tzinfo=EAST))
    assert time == datetime(2026, 5, 1, tzinfo=UTC)
    assert time is not None
    assert time.tzinfo is UTC


def test_half_a_surrogate_pair_is_named_by_its_place() -> None:
    with pytest.raises(InvalidRequest, match="at character 3"):
        text.check_content("tea" + HALF)


def test_an_unknown_choice_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        text.check_choice("The kind", "dream", Kind)
    assert all(kind.value in refusal.value.hint for kind in Kind)
