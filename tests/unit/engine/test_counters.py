"""Counters: how often memories were recalled, counted in memory and written seldom."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from scrubjay import vault
from scrubjay.engine import Kernel
from scrubjay.engine.scope.counters_and_retention import PAGE
from scrubjay.model.batches import RetainMany
from scrubjay.model.errors import Frozen, InvalidRequest, NotFound, StoreError
from scrubjay.model.memory import Kind
from scrubjay.model.requests import (
    COUNTERS_LIMIT,
    Amend,
    BriefRequest,
    CountersRequest,
    Forget,
    FreezeRequest,
    Get,
    Load,
    Recall,
    Restore,
)
from scrubjay.model.retention import KindLimit, SetRetention
from scrubjay.model.rows import Freeze
from scrubjay.model.text import made
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, BOB, address, browse, change, forget, retain, supersede


def recall(engine: Kernel, query: str = "tea", **fields: object) -> None:
    engine.recall(ALICE, made(Recall, {"query": query, **fields}))


def recalls(engine: Kernel, *ids: str) -> list[int]:
    return [one.recalls for one in engine.counters(ALICE, CountersRequest(ids))]


def pages(home: MemoryHome) -> dict[int, bytes]:
    with home.store.read(address(home)) as view:
        cells = {at: view.value(f"counters.{at}") for at in range(4)}
    return {at: cell for at, cell in cells.items() if cell is not None}


@pytest.fixture
def home() -> MemoryHome:
    return MemoryHome()


# -- what counts ----------------------------------------------------------------------------------


def test_every_hit_counts_once_and_has_the_time_of_the_last(home: MemoryHome) -> None:
    engine = home.engine()
    tea, wine = retain(engine, "Alice drinks tea"), retain(engine, "Alice drinks wine")
    recall(engine, "tea", limit=1)
    home.clock.advance(days=3)
    before = home.clock.now()
    recall(engine, "What does Alice drink, tea or wine?")
    one, other = engine.counters(ALICE, CountersRequest((tea, wine)))
    assert (one.recalls, other.recalls) == (2, 1)
    assert one.recalled_at == other.recalled_at
    assert one.recalled_at is not None
    assert 0 <= (one.recalled_at - before).total_seconds() + 1 < 60


def test_a_look_a_list_a_brief_and_a_preview_do_not_count(engine: Kernel) -> None:
    tea = retain(engine, "Alice drinks tea")
    engine.get(ALICE, Get(tea))
    browse(engine)
    engine.brief(ALICE, BriefRequest())
    engine.preview(ALICE, Forget((tea,)))
    (never,) = engine.counters(ALICE, CountersRequest((tea,)))
    assert (never.recalls, never.recalled_at) == (0, None)


def test_hits_of_two_scopes_count_in_their_own(engine: Kernel) -> None:
    one, other = retain(engine, "tea"), retain(engine, "tea", scope=BOB)
    engine.recall(ALICE, Recall("tea", scopes=("local/bob",)))
    assert recalls(engine, one) == [1]
    assert engine.counters(BOB, CountersRequest((other,)))[0].recalls == 1


def test_a_correction_begins_at_nothing_and_an_archived_memory_keeps_its_count(
    engine: Kernel,
) -> None:
    tea = retain(engine, "Alice drinks tea")
    recall(engine)
    wine = supersede(engine, tea, "Alice drinks wine")
    engine.amend(ALICE, Amend(wine, archived=True))
    assert recalls(engine, tea, wine) == [1, 0]


# -- limits and errors ----------------------------------------------------------------------------


def test_unknown_and_forgotten_memories_have_no_counter(engine: Kernel) -> None:
    tea = retain(engine, "tea")
    forget(engine, tea)
    for public_id in (tea, "mem-unknown"):
        with pytest.raises(NotFound):
            recalls(engine, public_id)


def test_at_most_a_hundred_counters_are_asked_for_at_once(engine: Kernel) -> None:
    retain(engine, "tea")
    with pytest.raises(InvalidRequest, match="ids"):
        made(CountersRequest, {"ids": [f"mem-{at}" for at in range(COUNTERS_LIMIT + 1)]})
    assert engine.counters(ALICE, CountersRequest(())) == ()


# -- when they are written ------------------------------------------------------------------------


def test_nothing_is_written_within_a_minute_and_then_only_the_touched_pages(
    home: MemoryHome,
) -> None:
    engine = home.engine()
    engine.retain_many(ALICE, RetainMany(f"memory {at}" for at in range(2 * PAGE)))
    tea = retain(engine, "tea")
    recall(engine, "tea", limit=1, worded=True)
    for _ in range(50):
        recall(engine, "tea", limit=1, worded=True)
    assert pages(home) == {}
    home.clock.advance(seconds=60)
    recall(engine, "tea", limit=1, worded=True)
    first = pages(home)
    assert [*first] == [2]
    assert recalls(engine, tea) == recalls(home.engine(), tea) == [52]
    home.clock.advance(seconds=30)
    recall(engine, "tea", limit=1, worded=True)
    assert pages(home) == first, "half a minute after the last write"
    assert recalls(engine, tea) == [53]


def test_what_was_counted_is_written_on_close(home: MemoryHome) -> None:
    engine = home.engine()
    tea = retain(engine, "tea")
    recall(engine)
    assert recalls(home.engine(), tea) == [0]
    engine.close()
    assert recalls(home.engine(), tea) == [1]


def test_two_processes_add_up(home: MemoryHome) -> None:
    engines = home.engine(), home.engine()
    tea = retain(engines[0], "tea")
    for engine in engines:
        recall(engine)
    home.clock.advance(seconds=61)
    for engine in engines:
        recall(engine)
    assert recalls(home.engine(), tea) == [4]


@pytest.mark.parametrize("level", [Freeze.WRITES, Freeze.ALL])
def test_a_frozen_scope_is_never_written_to(home: MemoryHome, level: Freeze) -> None:
    engine = home.engine()
    tea = retain(engine, "tea")
    recall(engine)
    engine.freeze(ALICE, FreezeRequest(level))
    home.clock.advance(seconds=61)
    before = engine.head(ALICE)
    with suppress(Frozen):
        recall(engine)
    browse(engine)
    assert engine.head(ALICE) == before
    engine.close()
    assert pages(home) == {}
    assert recalls(home.engine(), tea) == [0]


def test_a_thawed_scope_gets_what_was_counted_meanwhile(home: MemoryHome) -> None:
    engine = home.engine()
    tea = retain(engine, "tea")
    engine.freeze(ALICE)
    recall(engine)
    home.clock.advance(seconds=61)
    recall(engine)
    engine.freeze(ALICE, FreezeRequest(Freeze.NONE))
    recall(engine)
    assert recalls(home.engine(), tea) == [3]


def test_a_scope_that_cannot_be_written_is_recalled_all_the_same(
    home: MemoryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = home.engine()
    tea = retain(engine, "tea")
    recall(engine)
    home.clock.advance(seconds=61)

    def refuse(*_: object, **__: object) -> None:
        raise StoreError("The disk is read-only.")

    with monkeypatch.context() as readonly:
        readonly.setattr(home.store, "write", refuse)
        assert engine.recall(ALICE, Recall("tea")).hits
        engine.close()
    assert recalls(home.engine(), tea) == [0]


# -- erasure --------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [True, False])
def test_a_counter_is_erased_with_its_memory(home: MemoryHome, *, written: bool) -> None:
    engine = home.engine()
    tea, wine = retain(engine, "tea for Alice"), retain(engine, "wine for Alice")
    recall(engine, "Alice")
    if written:
        engine.close()
        engine = home.engine()
    forget(engine, tea)
    engine.close()
    engine = home.engine()
    assert recalls(engine, wine) == [1]
    assert engine.verify(ALICE).problems == ()
    forget(engine, wine)
    assert pages(home) == {}, "an empty page is none"


def test_the_page_of_an_erased_memory_is_sealed_under_the_new_key(home: MemoryHome) -> None:
    engine = home.engine()
    tea = retain(engine, "tea for Alice")
    retain(engine, "wine for Alice")
    home.clock.advance(seconds=61)
    recall(engine, "Alice")
    (before,) = pages(home).values()
    forget(engine, tea)
    (after,) = pages(home).values()
    epoch = engine.head(ALICE).memory.epoch
    assert vault.epoch_of(before) < vault.epoch_of(after) == epoch
    assert len(before) == len(after), "its size says nothing of how many were recalled"


def test_a_damaged_page_costs_its_counts_and_is_reported(home: MemoryHome) -> None:
    engine = home.engine()
    tea = retain(engine, "tea")
    recall(engine)
    engine.close()
    (cell,) = pages(home).values()
    change(home, lambda tx: tx.set_value("counters.0", cell[:-1] + bytes([cell[-1] ^ 1])))
    engine = home.engine()
    assert recalls(engine, tea) == [0]
    assert [one for one in engine.verify(ALICE).problems if "counters" in one]
    recall(engine)
    engine.rotate(ALICE)
    engine.close()
    engine = home.engine()
    assert recalls(engine, tea) == [1]
    assert engine.verify(ALICE).sound


# -- out and in -----------------------------------------------------------------------------------


def test_a_backup_carries_them_and_an_export_does_not(home: MemoryHome) -> None:
    engine = home.engine()
    retain(engine, "gone")
    tea = retain(engine, "tea")
    recall(engine)
    (counted,) = engine.counters(ALICE, CountersRequest((tea,)))
    backup, _ = engine.backup(ALICE)
    exported = engine.export(ALICE).content
    engine.restore(ALICE, Restore(backup))
    assert recalls(engine, tea) == [1], "what is counted here stands"
    home.store.remove(address(home))
    engine = home.engine()
    engine.restore(ALICE, Restore(backup))
    assert engine.counters(ALICE, CountersRequest((tea,))) == (counted,)
    engine.load(BOB, Load(exported))
    assert engine.counters(BOB, CountersRequest((tea,)))[0].recalls == 0


# -- the idle limit -------------------------------------------------------------------------------


def test_the_idle_limit_counts_from_the_last_recall(home: MemoryHome) -> None:
    engine = home.engine()
    limit = KindLimit(kind=Kind.FACT, idle_days=10)
    engine.set_retention(ALICE, SetRetention(limits=(limit,)))
    tea = retain(engine, "Alice drinks tea")
    retain(engine, "Bob plays chess")
    home.clock.advance(days=9)
    recall(engine, "tea", worded=True)
    home.clock.advance(days=9)
    assert home.engine().purge(ALICE).idle == 1, "another process knows of the recall"
    assert [one.id for one in browse(engine)] == [tea]
    home.clock.advance(days=2)
    assert engine.purge(ALICE).idle == 1
    assert browse(engine) == ()


def test_purge_knows_what_was_recalled_a_moment_ago(home: MemoryHome) -> None:
    engine = home.engine()
    engine.set_retention(ALICE, SetRetention(limits=(KindLimit(kind=Kind.FACT, idle_days=10),)))
    retain(engine, "Alice drinks tea")
    home.clock.advance(days=11)
    recall(engine)
    recall(engine)
    assert engine.purge(ALICE).idle == 0


def test_times_are_whole_seconds_in_utc(home: MemoryHome) -> None:
    engine = home.engine()
    tea = retain(engine, "tea")
    recall(engine)
    engine.close()
    (one,) = home.engine().counters(ALICE, CountersRequest((tea,)))
    assert isinstance(one.recalled_at, datetime)
    assert (one.recalled_at.microsecond, one.recalled_at.tzinfo) == (0, UTC)
