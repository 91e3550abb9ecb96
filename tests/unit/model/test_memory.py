"""Memories: when one is to be seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scrubjay.model.memory import Kind, Memory

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def memory(**fields: object) -> Memory:
    return Memory(id="mem-1", kind=Kind.FACT, content="tea", recorded_at=NOON, **fields)  # type: ignore[arg-type]


def test_a_memory_is_seen_from_the_moment_it_was_recorded() -> None:
    assert not memory().visible(NOON - TICK)
    assert memory().visible(NOON)


def test_a_superseded_memory_is_seen_until_the_moment_it_was_retired() -> None:
    old = memory(retired_at=NOON + TICK, superseded_by="mem-2")
    assert old.visible(NOON)
    assert not old.visible(NOON + TICK)


def test_a_memory_is_seen_until_the_moment_it_expires() -> None:
    brief = memory(expires_at=NOON + TICK)
    assert brief.visible(NOON)
    assert not brief.visible(NOON + TICK)


def test_a_memory_is_expired_at_its_time_and_not_before() -> None:
    brief = memory(expires_at=NOON)
    assert not brief.expired(NOON - TICK)
    assert brief.expired(NOON)
    assert not memory().expired(datetime.max.replace(tzinfo=UTC))


def test_only_the_head_of_a_chain_is_live() -> None:
    assert memory(supersedes="mem-0").live
    assert not memory(superseded_by="mem-2").live


def test_a_memory_does_not_change() -> None:
    with pytest.raises(AttributeError):
        memory().content = "coffee"  # type: ignore[misc]


def test_the_first_four_kinds_steer_behavior() -> None:
    behavioral = {kind.value for kind in Kind if kind.behavioral}
    assert behavioral == {"preference", "instruction", "correction", "procedure"}
