"""Memories that were opened lately: told again without the store, and never when they changed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.engine.scope.scope_keys import PlaintextCache
from scrubjay.model.errors import Destroyed
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.requests import Destroy
from tests.support.engines import MemoryHome
from tests.unit.engine.asking import ask, said
from tests.unit.engine.scene import ALICE, flip_cell, forget, retain, supersede

TEA = Memory(
    id="mem-1", kind=Kind.FACT, content="green tea", recorded_at=datetime(2026, 1, 1, tzinfo=UTC)
)
ROW, OTHER = bytes(16), bytes(15) + b"\x01"


def _size(engine: Kernel) -> int:
    return engine._open(ALICE).kept.size


# -- in an engine ------------------------------------------------------------------------------


def test_what_was_opened_before_its_row_was_damaged_is_still_told(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, "green tea")
    assert said(engine, "tea") == ["green tea"]
    flip_cell(home, 1)
    assert said(engine, "tea") == ["green tea"]
    assert not engine.verify(ALICE).sound


def test_a_change_by_another_engine_is_told_at_once(home: MemoryHome, engine: Kernel) -> None:
    old = retain(engine, "green tea")
    retain(engine, "black coffee")
    assert len(ask(engine, "tea or coffee")) == 2
    supersede(home.engine(), old, "white tea")
    assert sorted(said(engine, "tea or coffee")) == ["black coffee", "white tea"]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_with_the_first_notice_of_an_erasure_nothing_is_kept(
    home: MemoryHome, engine: Kernel, elsewhere: bool
) -> None:
    secret = retain(engine, "green tea")
    retain(engine, "black tea")
    ask(engine, "tea")
    assert _size(engine)
    forget(home.engine() if elsewhere else engine, secret)
    if elsewhere:
        engine.head(ALICE)
    assert _size(engine) == 0
    assert said(engine, "tea") == ["black tea"]


def test_a_scope_that_makes_room_for_others_keeps_nothing(home: MemoryHome) -> None:
    engine = home.engine()
    retain(engine, "green tea")
    ask(engine, "tea")
    engine._shelf._budget = 0
    bob = type(ALICE).parse("acme/bob")
    retain(engine, "black tea", scope=bob)
    ask(engine, "tea", scope=bob)
    assert _size(engine) == 0


# -- by itself -----------------------------------------------------------------------------------


def test_a_memory_is_given_out_only_in_the_state_it_was_opened_in() -> None:
    kept = PlaintextCache(10_000)
    kept.follow(7, ())
    kept.put(ROW, TEA, 7)
    assert kept.get(ROW, 7) is TEA
    assert kept.get(ROW, 8) is kept.get(ROW, 6) is None


@pytest.mark.parametrize("seq", [6, 8])
def test_what_was_opened_in_another_state_is_not_kept(seq: int) -> None:
    """Who opened it late cannot know whether it changed between that state and this one."""
    kept = PlaintextCache(10_000)
    kept.follow(7, ())
    kept.put(ROW, TEA, seq)
    assert kept.get(ROW, 7) is None


def test_what_changed_goes_and_the_rest_stays() -> None:
    kept = PlaintextCache(10_000)
    for row in (ROW, OTHER):
        kept.put(row, TEA, 0)
    kept.follow(1, [ROW])
    assert kept.get(ROW, 1) is None
    assert kept.get(OTHER, 1) is TEA


def test_the_least_recently_used_makes_room() -> None:
    kept = PlaintextCache(2_100)
    third = bytes(15) + b"\x02"
    kept.put(ROW, TEA, 0)
    kept.put(OTHER, TEA, 0)
    kept.get(ROW, 0)
    kept.put(third, TEA, 0)
    assert [kept.get(row, 0) is TEA for row in (ROW, OTHER, third)] == [True, False, True]
    assert kept.size <= 2_100


def test_what_is_larger_than_the_budget_is_not_kept() -> None:
    kept = PlaintextCache(500)
    kept.put(ROW, TEA, 0)
    assert kept.size == 0


def test_what_somebody_does_to_the_metadata_they_were_given_stays_with_them(
    engine: Kernel,
) -> None:
    retain(engine, "green tea", metadata={"list": [1]})
    for _ in range(2):
        (hit,) = ask(engine, "tea")
        assert hit.memory.metadata == {"list": [1]}
        hit.memory.metadata["list"].append(2)  # type: ignore[union-attr]


def test_everything_a_memory_holds_counts_against_the_budget() -> None:
    kept = PlaintextCache(1_000_000)
    kept.put(ROW, replace(TEA, metadata={"filler": "x" * 15_000}, tags=("t" * 50,)), 0)
    assert kept.size > 15_000


def test_who_still_looks_at_the_state_before_an_erasure_brings_nothing_back() -> None:
    kept = PlaintextCache(10_000)
    kept.follow(7, ())
    kept.noticed(8)
    kept.put(ROW, TEA, 7)
    assert kept.size == 0
    kept.follow(8, ())
    kept.put(ROW, TEA, 8)
    assert kept.get(ROW, 8) is TEA


def test_after_a_destroy_by_another_engine_nothing_is_kept(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, "green tea")
    ask(engine, "tea")
    opened = engine._open(ALICE)
    home.engine().destroy(ALICE, Destroy(confirm=str(ALICE)))
    with pytest.raises(Destroyed):
        ask(engine, "tea")
    assert opened.kept.size == 0
