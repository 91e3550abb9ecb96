"""Budgets: the limits hold, the order stays, and no untrusted source crowds out the others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from scrubjay.engine.search import recall
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.origin import UNTRUSTED_SHARE, Origin
from scrubjay.model.requests import Recall
from scrubjay.model.results import INJECTED, Hit
from scrubjay.model.scope import Scope
from scrubjay.model.text import tokens

ALICE = Scope("local", "alice")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _hit(content: str, origin: Origin = Origin.USER, channel: str | None = None) -> Hit:
    memory = Memory(
        id="mem-1",
        kind=Kind.FACT,
        content=content,
        recorded_at=NOW,
        origin=origin,
        provenance=Provenance(channel=channel),
    )
    return Hit(memory=memory, score=0.5, why={"words": 0.5}, scope=ALICE)


def _fit(hits: list[Hit], *, capped: bool = True, **limits: Any) -> list[Hit]:
    return recall.fit(hits, Recall(query="tea", **limits), capped=capped)


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("tea", 1), ("four", 1), ("fiver", 2), ("茶", 1), ("緑茶", 2), ("a茶", 2), ("ä", 1)],
)
def test_four_letters_or_one_other_character_make_a_token(text: str, count: int) -> None:
    assert tokens(text) == count


def test_without_limits_the_first_come_back_in_their_order() -> None:
    hits = [_hit(f"tea {number}") for number in range(20)]
    assert _fit(hits, limit=7) == hits[:7]


def test_a_hit_that_does_not_fit_is_passed_over_and_a_later_one_takes_its_place() -> None:
    long, short = _hit("x" * 50), _hit("y" * 10)
    assert _fit([long, short], max_bytes=20) == [short]
    assert _fit([long, short], max_tokens=5) == [short]


def test_bytes_are_counted_as_utf_8() -> None:
    assert _fit([_hit("ää")], max_bytes=4)
    assert not _fit([_hit("ää")], max_bytes=3)


def test_both_limits_hold_at_once() -> None:
    hits = [_hit("tea!") for _ in range(10)]
    assert len(_fit(hits, max_bytes=40, max_tokens=3)) == 3
    assert len(_fit(hits, max_bytes=8, max_tokens=30)) == 2


UNTRUSTED = [origin for origin in Origin if not origin.trusted]


@pytest.mark.parametrize("origin", UNTRUSTED)
def test_one_untrusted_source_gets_at_most_its_share_of_the_characters(origin: Origin) -> None:
    hits = [_hit("w" * 100, origin) for _ in range(10)] + [_hit("u" * 100) for _ in range(10)]
    chosen = _fit(hits, limit=10)
    said = sum(len(hit.memory.content) for hit in chosen)
    foreign = sum(len(hit.memory.content) for hit in chosen if hit.memory.origin is origin)
    assert len(chosen) == 10
    assert 0 < foreign <= UNTRUSTED_SHARE * said


def test_the_worst_hit_of_a_source_is_the_one_that_goes() -> None:
    best, worst = _hit("w" * 60, Origin.WEB), _hit("v" * 60, Origin.WEB)
    rest = [_hit("u" * 60) for _ in range(4)]
    assert _fit([best, *rest, worst], limit=6) == [best, *rest]


def test_all_untrusted_sources_have_one_share_together() -> None:
    rest = [_hit("u" * 50) for _ in range(7)]
    foreign = [_hit("w" * 50, one, f"channel {one}") for one in UNTRUSTED]
    assert len(foreign) == 4
    assert _fit([*foreign, *rest], limit=20) == [*foreign[:3], *rest]


@pytest.mark.parametrize("origin", [Origin.USER, Origin.OPERATOR, Origin.AGENT, Origin.IMPORT])
def test_who_is_vouched_for_may_fill_the_whole_answer(origin: Origin) -> None:
    hits = [_hit("u" * 100, origin) for _ in range(10)]
    assert _fit(hits, limit=10) == hits


def test_where_nothing_trusted_matches_nothing_is_held_back() -> None:
    hits = [_hit("w" * 600, Origin.WEB), _hit("u")]
    assert _fit(hits, limit=10, capped=False) == hits
    assert _fit(hits, limit=10) == hits[1:]


def test_what_a_person_approved_counts_as_trusted() -> None:
    approved = _hit("w" * 100, Origin.WEB)
    approved = replace(approved, memory=replace(approved.memory, approved="signed"))
    assert _fit([approved, _hit("u")]) == [approved, _hit("u")]


@given(
    hits=st.lists(
        st.builds(
            _hit,
            st.text(min_size=1, max_size=40),
            st.sampled_from(Origin),
            st.sampled_from((None, "mail")),
        ),
        max_size=30,
    ),
    limit=st.integers(1, 12),
    max_bytes=st.none() | st.integers(1, 400),
    max_tokens=st.none() | st.integers(1, 100),
    capped=st.booleans(),
)
def test_whatever_the_hits_every_limit_holds(
    hits: list[Hit], limit: int, max_bytes: int | None, max_tokens: int | None, capped: bool
) -> None:
    request = Recall(query="tea", limit=limit, max_bytes=max_bytes, max_tokens=max_tokens)
    chosen = recall.fit(hits, request, capped=capped)
    contents = [hit.memory.content for hit in chosen]
    assert len(chosen) <= limit
    assert max_bytes is None or sum(len(text.encode()) for text in contents) <= max_bytes
    assert max_tokens is None or sum(map(tokens, contents)) <= max_tokens
    untrusted = sum(len(hit.memory.content) for hit in chosen if not hit.memory.trusted)
    assert not capped or untrusted <= UNTRUSTED_SHARE * sum(map(len, contents))
    order = iter(hits)
    assert all(any(hit is other for other in order) for hit in chosen), "the order changed"


@pytest.mark.parametrize(
    ("relevance", "dated", "origin", "likely"),
    [
        (INJECTED, 0.0, "web", True),
        (0.0, 0.1, "user", True),
        (0.0, 0.1, "web", False),
        (0.01, 0.0, "user", False),
    ],
)
def test_a_hit_is_likely_by_relevance_or_if_it_is_trusted_by_its_time(
    relevance: float, dated: float, origin: str, likely: bool
) -> None:
    found = replace(_hit("tea", Origin(origin)), relevance=relevance, why={"dated": dated})
    assert found.likely is likely
