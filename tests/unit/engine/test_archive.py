"""Archive: out of search, brief and lists, but kept, and erased like everything else."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import (
    Conflict,
    Frozen,
    InvalidRequest,
    LimitReached,
    NotFound,
    Stale,
)
from scrubjay.model.filters import Filter
from scrubjay.model.jobs import JobKind, Work
from scrubjay.model.memory import Kind
from scrubjay.model.requests import (
    Amend,
    BriefRequest,
    Destroy,
    FreezeRequest,
    Get,
    History,
    Load,
    Recall,
    Restore,
)
from scrubjay.model.retention import Duplicates, KindLimit, SetRetention
from scrubjay.model.turns import Record
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    address,
    browse,
    contents,
    forget,
    retain,
    supersede,
    verbs,
)


def archive(engine: Kernel, public_id: str, *, archived: bool = True) -> None:
    engine.amend(ALICE, Amend(public_id, archived=archived))


def recalled(engine: Kernel) -> list[str]:
    return sorted(hit.memory.content for hit in engine.recall(ALICE, Recall("tea")))


def briefed(engine: Kernel) -> list[str]:
    return [one.content for one in engine.brief(ALICE, BriefRequest())]


@pytest.fixture
def home() -> MemoryHome:
    return MemoryHome()


# -- out of sight, and kept -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Policy(), Policy(segment_rows=0)])
def test_an_archived_memory_is_neither_searched_listed_nor_in_the_brief(
    home: MemoryHome, policy: Policy
) -> None:
    engine = home.engine(policy)
    old, new = retain(engine, "old tea", pinned=True), retain(engine, "new tea")
    assert recalled(engine) == ["new tea", "old tea"]
    archive(engine, old)
    for one in (engine, home.engine(policy)):
        assert recalled(one) == contents(one) == briefed(one) == ["new tea"]
        assert one.count(ALICE) == one.statistics(ALICE).live == 1
    archive(engine, old, archived=False)
    for one in (engine, home.engine(policy)):
        assert recalled(one) == ["new tea", "old tea"]
        assert briefed(one) == ["old tea", "new tea"]
    archive(engine, new)
    assert recalled(engine) == ["old tea"]


def test_it_is_kept_for_a_look_the_history_the_export_and_verify(engine: Kernel) -> None:
    tea = retain(engine, "tea")
    archive(engine, tea)
    assert engine.get(ALICE, Get(tea)).archived_at is not None
    assert [one.id for one in engine.history(ALICE, History(tea))] == [tea]
    (exported,) = json.loads(engine.export(ALICE).content)["memories"]
    assert exported["archived_at"].endswith("Z")
    assert (engine.verify(ALICE).sound, engine.verify(ALICE).checked > 0) == (True, True)


def test_the_filter_finds_them_alone_or_with_all_others(engine: Kernel) -> None:
    old = retain(engine, "old", tags=["drink"])
    retain(engine, "new", tags=["drink"])
    archive(engine, old)
    assert contents(engine, archived=True) == ["old"]
    assert contents(engine, archived=None, tags=["drink"]) == ["new", "old"]
    assert engine.count(ALICE, Filter(archived=True)) == 1
    assert engine.count(ALICE, Filter(archived=None)) == 2


def test_a_search_of_the_archive_is_refused() -> None:
    for archived in (True, None):
        with pytest.raises(InvalidRequest, match="archived"):
            Recall("tea", archived=archived)


def test_export_and_load_and_backup_and_restore_keep_what_is_archived(home: MemoryHome) -> None:
    engine = home.engine()
    tea = retain(engine, "tea")
    retain(engine, "wine")
    archive(engine, tea)
    exported, (backup, _) = engine.export(ALICE).content, engine.backup(ALICE)
    engine.load(BOB, Load(exported))
    assert contents(engine, scope=BOB, archived=True) == ["tea"]
    assert [one.memory.content for one in engine.recall(BOB, Recall("tea"))] != ["tea"]
    home.store.remove(address(home))
    engine = home.engine()
    engine.restore(ALICE, Restore(backup))
    assert (contents(engine), contents(engine, archived=True)) == (["wine"], ["tea"])
    assert recalled(engine) == [] or "tea" not in recalled(engine)


def test_it_is_forgotten_like_any_other(engine: Kernel) -> None:
    tea = retain(engine, "tea")
    archive(engine, tea)
    assert forget(engine, tea).erased == 1
    assert contents(engine, archived=None) == []
    assert engine.verify(ALICE).sound


def test_a_correction_of_it_is_in_sight_again(engine: Kernel) -> None:
    tea = retain(engine, "old tea")
    archive(engine, tea)
    supersede(engine, tea, "new tea")
    assert recalled(engine) == contents(engine) == ["new tea"]


def test_what_was_derived_from_it_stays(engine: Kernel) -> None:
    tea = retain(engine, "an episode about tea", kind=Kind.EPISODE)
    summary = retain(engine, "a summary of tea", kind=Kind.SUMMARY, sources=(tea,))
    archive(engine, tea)
    retain(engine, "another summary of tea", kind=Kind.SUMMARY, sources=(tea,))
    assert engine.get(ALICE, Get(summary)).current
    assert recalled(engine) == ["a summary of tea", "another summary of tea"]


def test_a_turn_that_is_read_again_leaves_its_archived_memory_alone(engine: Kernel) -> None:
    engine.record(
        ALICE, Record(id="b", user="My name is Alice.", at=datetime(2026, 5, 2, tzinfo=UTC))
    )
    (fact,) = [one for one in browse(engine) if one.kind is Kind.FACT]
    archive(engine, fact.id)
    engine.record(
        ALICE, Record(id="a", user="My name is Alice.", at=datetime(2026, 5, 1, tzinfo=UTC))
    )
    assert fact.id in [one.id for one in browse(engine, archived=True)]


def test_archived_episodes_are_not_consolidated(engine: Kernel) -> None:
    episode = retain(engine, "Alice said: I live in Lyon.", kind=Kind.EPISODE)
    archive(engine, episode)
    assert engine.work(ALICE, Work(kinds=[JobKind.CONSOLIDATION])).memories == 0


# -- retention ------------------------------------------------------------------------------------


def test_it_does_not_count_below_a_cap_and_is_not_purged_for_it(engine: Kernel) -> None:
    engine.set_retention(ALICE, SetRetention(limits=(KindLimit(kind=Kind.FACT, number=2),)))
    first = retain(engine, "first")
    archive(engine, first)
    for at in range(400):
        retain(engine, f"memory {at}")
    assert contents(engine) == ["memory 399", "memory 398"]
    engine.purge(ALICE)
    assert contents(engine, archived=True) == ["first"]


def test_it_is_erased_when_its_time_is_over(home: MemoryHome) -> None:
    engine = home.engine()
    engine.set_retention(ALICE, SetRetention(limits=(KindLimit(kind=Kind.FACT, days=5),)))
    archive(engine, retain(engine, "tea"))
    home.clock.advance(days=7)
    assert engine.purge(ALICE).retired == 1
    assert contents(engine, archived=None) == []


def test_the_same_text_again_does_not_take_the_place_of_an_archived_one(engine: Kernel) -> None:
    engine.set_retention(ALICE, SetRetention(duplicates=Duplicates.LATEST))
    tea = retain(engine, "Alice drinks tea")
    archive(engine, tea)
    retain(engine, "Alice drinks tea")
    assert engine.get(ALICE, Get(tea)).live
    assert len(browse(engine)) == 1


# -- errors ---------------------------------------------------------------------------------------


def test_archiving_twice_changes_nothing(engine: Kernel) -> None:
    tea = retain(engine, "tea")
    archive(engine, tea)
    once = engine.get(ALICE, Get(tea))
    archive(engine, tea)
    assert engine.get(ALICE, Get(tea)) == once
    archive(engine, tea, archived=False)
    assert [one for one in verbs(engine) if "archive" in one] == ["archive", "unarchive"]


def test_an_unknown_memory_cannot_be_archived(engine: Kernel) -> None:
    with pytest.raises(NotFound):
        archive(engine, "mem-unknown")


def test_a_superseded_memory_cannot_be_archived(engine: Kernel) -> None:
    old = retain(engine, "old")
    supersede(engine, old, "new")
    with pytest.raises(Conflict, match="superseded"):
        archive(engine, old)


def test_a_frozen_scope_archives_nothing(engine: Kernel) -> None:
    tea = retain(engine, "tea")
    engine.freeze(ALICE, FreezeRequest())
    with pytest.raises(Frozen):
        archive(engine, tea)


def test_a_memory_that_changed_meanwhile_is_not_archived(engine: Kernel) -> None:
    tea = retain(engine, "tea")
    edition = engine.get(ALICE, Get(tea)).edition
    engine.amend(ALICE, Amend(tea, pinned=True))
    with pytest.raises(Stale):
        engine.amend(ALICE, Amend(tea, archived=True), expected=frozenset({edition}))


def test_a_memory_that_is_past_a_limit_by_now_is_not_taken_back(engine: Kernel) -> None:
    engine.set_retention(ALICE, SetRetention(limits=(KindLimit(kind=Kind.FACT, number=1),)))
    tea = retain(engine, "tea")
    archive(engine, tea)
    retain(engine, "wine")
    retain(engine, "water")
    with pytest.raises(LimitReached):
        archive(engine, tea, archived=False)
    engine.amend(ALICE, Amend(tea, archived=False, pinned=True))
    assert contents(engine) == ["water", "tea"]


def test_an_archived_memory_is_found_by_the_beginning_of_its_id(home: MemoryHome) -> None:
    """Also after a rotation, a load and a restore, and no more once it is forgotten."""
    engine = home.engine()
    public_id = retain(engine, "tea")
    archive(engine, public_id)
    begin = public_id[:8]
    assert engine.get(ALICE, Get(begin)).content == "tea"
    assert [one.content for one in engine.history(ALICE, History(begin))] == ["tea"]
    engine.rotate(ALICE)
    raw, made = engine.backup(ALICE)
    exported = engine.export(ALICE).content
    engine.load(BOB, Load(exported))
    assert home.engine().get(BOB, Get(begin)).archived_at is not None
    engine.destroy(ALICE, Destroy(confirm="local/alice"))
    engine.open(ALICE, anew=True)
    engine.restore(ALICE, Restore(raw, key=made.key))
    assert engine.get(ALICE, Get(begin)).content == "tea"
    archive(engine, public_id, archived=False)
    assert engine.get(ALICE, Get(begin)).content == "tea"
    archive(engine, public_id)
    forget(engine, public_id)
    with pytest.raises(NotFound):
        engine.get(ALICE, Get(begin))
    assert engine.verify(ALICE).sound
