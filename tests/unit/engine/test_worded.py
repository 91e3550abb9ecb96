"""Recall of what holds a word of the query, and what a brief says of itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scrubjay.adapters.embedders.static import NoEmbedder
from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Origin
from scrubjay.model.requests import BriefRequest, Recall
from tests.support.engines import MemoryHome
from tests.unit.engine.asking import EAGER
from tests.unit.engine.scene import ALICE, BOB, forget, retain, supersede


def found(engine: Kernel, query: str, **asked: Any) -> list[str]:
    """What the hits of a recall by words say."""
    answer = engine.recall(ALICE, Recall(query=query, worded=True, **asked))
    return [hit.memory.content for hit in answer]


@pytest.mark.parametrize("vectors", [True, False])
def test_what_holds_no_word_of_the_query_is_left_out(home: MemoryHome, *, vectors: bool) -> None:
    if not vectors:
        home.embedder = NoEmbedder()
    engine = home.engine()
    for content in ("the garden has roses", "the train leaves at nine", "a garden chair"):
        retain(engine, content, session="one conversation")
    assert sorted(found(engine, "garden")) == ["a garden chair", "the garden has roses"]
    assert found(engine, "submarine") == []
    assert found(engine, "?!") == []


def test_the_limit_counts_what_holds_a_word(engine: Kernel) -> None:
    retain(engine, "an old garden", session="s")
    for number in range(30):
        retain(engine, f"train number {number}", session="s")
    assert found(engine, "garden", limit=1) == ["an old garden"]


def test_it_holds_for_every_scope_that_is_asked(engine: Kernel) -> None:
    retain(engine, "garden of Alice")
    retain(engine, "train of Alice")
    retain(engine, "garden of Bob", scope=BOB)
    retain(engine, "train of Bob", scope=BOB)
    assert sorted(found(engine, "garden", scopes=(BOB,))) == ["garden of Alice", "garden of Bob"]


def test_it_is_true_or_false() -> None:
    with pytest.raises(InvalidRequest):
        Recall(query="x", worded=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("eager", [True, False])
def test_a_brief_counts_all_that_is_there_whether_it_shows_it_or_not(
    home: MemoryHome, *, eager: bool
) -> None:
    engine = home.engine(EAGER if eager else None)
    first = retain(engine, "one")
    supersede(engine, first, "uno")
    retain(engine, "an episode", kind=Kind.EPISODE)
    retain(engine, "from the web", origin=Origin.WEB)
    forget(engine, retain(engine, "forgotten"))
    engine.recall(ALICE, Recall(query="uno"))
    told = engine.brief(ALICE, BriefRequest())
    assert (len(told), told.total) == (1, 4)
    assert home.engine().brief(ALICE, BriefRequest()).total == 4


def test_a_brief_says_when_it_was_made_and_ages_count_from_then(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, "one")
    home.clock.advance(timedelta(days=3, hours=5))
    told = engine.brief(ALICE, BriefRequest())
    assert told.made_at is not None
    (memory,) = told
    assert memory.age_days(told.made_at) == 3
    assert memory.age_days(memory.recorded_at - timedelta(days=1)) == 0
