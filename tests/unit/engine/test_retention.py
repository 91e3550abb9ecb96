"""Retention: caps and ages retire with the write, purge erases; off unless somebody sets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scrubjay.engine import Kernel
from scrubjay.engine.scope.counters_and_retention import RETENTION
from scrubjay.model.batches import RetainMany
from scrubjay.model.conversations import Append, Branch, ReadConversation
from scrubjay.model.errors import Frozen, InvalidRequest, NotFound
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import (
    Amend,
    AuditRequest,
    BriefRequest,
    Caller,
    FreezeRequest,
    Get,
    History,
    LineageRequest,
    Load,
    Purge,
    Recall,
    Restore,
    Retain,
    Revoke,
    TurnsRequest,
)
from scrubjay.model.results import Outcome
from scrubjay.model.retention import Duplicates, KindLimit, Limit, Retention, SetRetention
from scrubjay.model.turns import Record
from scrubjay.ports import Failpoint
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.unit.engine.scene import ALICE, BOB, address, contents, forget, retain, supersede


def limit(engine: Kernel, kind: Kind = Kind.FACT, **fields: Any) -> None:
    engine.set_retention(ALICE, SetRetention(limits=(KindLimit(kind=kind, **fields),)))


def recalled(engine: Kernel, query: str = "memory") -> list[str]:
    hits = engine.recall(ALICE, Recall(query, limit=100)).hits
    return sorted(hit.memory.content for hit in hits)


def briefed(engine: Kernel) -> list[str]:
    return [one.content for one in engine.brief(ALICE, BriefRequest()).entries]


def write(engine: Kernel, number: int, **fields: Any) -> list[str]:
    return [retain(engine, f"memory {at}", **fields) for at in range(number)]


# -- caps -----------------------------------------------------------------------------------------


def test_past_a_number_the_oldest_of_the_kind_are_out_of_sight_everywhere(engine: Kernel) -> None:
    limit(engine, number=2)
    context = retain(engine, "memory of another kind", kind=Kind.CONTEXT)
    write(engine, 4)
    assert contents(engine) == ["memory 3", "memory 2", "memory of another kind"]
    assert recalled(engine) == ["memory 2", "memory 3", "memory of another kind"]
    assert sorted(briefed(engine)) == ["memory 2", "memory 3", "memory of another kind"]
    assert engine.get(ALICE, Get(context)).current
    assert (engine.count(ALICE), engine.statistics(ALICE).live) == (3, 3)


def test_past_a_number_a_memory_is_called_retired_by_every_verb_that_tells_what_it_is(
    engine: Kernel,
) -> None:
    """Those that are asked for it by its id, or for another one; the feed of changes tells rows."""
    note = retain(engine, "context", kind=Kind.CONTEXT)
    limit(engine, number=2)
    oldest = retain(engine, "memory of a context", sources=(note,))
    made = retain(engine, "memory of a memory", sources=(oldest,))
    write(engine, 3)
    told = {
        "get": engine.get(ALICE, Get(oldest)),
        "history": engine.history(ALICE, History(oldest))[0],
        "lineage": engine.lineage(ALICE, LineageRequest(oldest)).memory,
        "source": engine.lineage(ALICE, LineageRequest(made)).sources[0].memory,
        "derived": engine.lineage(ALICE, LineageRequest(note)).derived[0].memory,
    }
    assert {verb for verb, memory in told.items() if memory and memory.retired_at} == set(told)
    feed = {
        change.memory.id: change.memory for change in engine.follow(ALICE).changes if change.memory
    }
    assert feed[oldest].retired_at is None


@pytest.mark.parametrize("indexed", [False, True])
def test_past_a_number_a_memory_counts_in_no_session(engine: Kernel, *, indexed: bool) -> None:
    write(engine, 2, session="old")
    write(engine, 2, session="new")
    if indexed:
        engine.rotate(ALICE)  # what was written goes to a segment
        assert len(recalled(engine)) == 4
    limit(engine, number=3)
    assert {one.name: one.memories for one in engine.sessions(ALICE)} == {"old": 1, "new": 2}
    limit(engine, number=2)
    assert [one.name for one in engine.sessions(ALICE)] == ["new"]


COUNTS: dict[str, Callable[[Kernel], int]] = {
    "count": lambda engine: engine.count(ALICE),
    "statistics": lambda engine: engine.statistics(ALICE).live,
    "brief": lambda engine: len(briefed(engine)) + engine.brief(ALICE, BriefRequest()).omitted,
    "recall": lambda engine: len(recalled(engine)),
    "browse": lambda engine: len(contents(engine)),
}


@pytest.mark.parametrize("verb", COUNTS)
def test_a_cap_holds_for_the_first_question_of_a_process(home: MemoryHome, verb: str) -> None:
    """Its index is loaded by that question, and the limits with it."""
    engine = home.engine()
    limit(engine, number=2)
    write(engine, 4)
    engine.close()
    assert COUNTS[verb](home.engine()) == 2


def test_an_index_that_is_open_follows_the_cap_without_a_change_of_rows(engine: Kernel) -> None:
    limit(engine, number=2)
    write(engine, 2)
    assert recalled(engine) == ["memory 0", "memory 1"]
    before = engine.head(ALICE).memory.seq
    retain(engine, "memory 2")
    assert recalled(engine) == ["memory 1", "memory 2"]
    assert engine.head(ALICE).memory.seq == before + 1, "a retired row is not written again"


def test_a_cap_holds_in_the_process_that_set_it_whatever_form_its_kind_was_given_in(
    engine: Kernel,
) -> None:
    """The state it keeps is compared by kinds; a text in its place would match none."""
    given: Any = "fact"
    engine.set_retention(ALICE, SetRetention(limits=[KindLimit(kind=given, number=2)]))
    write(engine, 4)
    assert contents(engine) == ["memory 3", "memory 2"]


def test_pinned_memories_are_exempt_and_count_for_nothing(engine: Kernel) -> None:
    limit(engine, number=2)
    pinned = retain(engine, "memory pinned", pinned=True)
    later = write(engine, 3)
    assert contents(engine) == ["memory 2", "memory 1", "memory pinned"]
    engine.amend(ALICE, Amend(pinned, pinned=False))
    assert contents(engine) == ["memory 2", "memory 1"], "unpinned, it is past the number"
    engine.amend(ALICE, Amend(later[1], pinned=True))
    retain(engine, "memory 3")
    assert contents(engine) == ["memory 3", "memory 2", "memory 1"]


def test_what_is_forgotten_or_superseded_makes_room(engine: Kernel) -> None:
    limit(engine, number=3)
    ids = write(engine, 3)
    forget(engine, ids[1])
    supersede(engine, ids[2], "memory 2b")
    retain(engine, "memory 3")
    assert contents(engine) == ["memory 3", "memory 2b", "memory 0"]


@pytest.mark.parametrize("origin", [one for one in Origin if not one.trusted])
def test_a_flood_of_untrusted_memories_pushes_out_nothing_that_is_trusted(
    engine: Kernel, origin: Origin
) -> None:
    limit(engine, number=3)
    own = [retain(engine, f"memory {at}") for at in range(3)]
    noted = retain(engine, "memory heard", origin=origin)
    for at in range(8):
        retain(engine, f"memory flooded {at}", origin=origin)
    assert contents(engine)[3:] == ["memory 2", "memory 1", "memory 0"]
    engine.purge(ALICE)
    assert all(engine.get(ALICE, Get(one)).current for one in own)
    assert not engine.get(ALICE, Get(noted)).current
    assert {f"memory {at}" for at in range(3)} <= set(recalled(engine))
    assert engine.verify(ALICE).sound


def test_a_cap_that_is_set_later_counts_what_is_there_already(engine: Kernel) -> None:
    write(engine, 5)
    limit(engine, number=2)
    assert contents(engine) == ["memory 4", "memory 3"]
    retain(engine, "memory 5")
    assert contents(engine) == ["memory 5", "memory 4"]


def test_a_batch_and_a_load_are_held_to_the_cap(engine: Kernel) -> None:
    limit(engine, number=2)
    engine.retain_many(ALICE, RetainMany(f"memory {at}" for at in range(5)))
    assert contents(engine) == ["memory 4", "memory 3"]
    exported = engine.export(ALICE)
    engine.load(BOB, Load(exported.content))
    engine.set_retention(BOB, SetRetention(limits=(KindLimit(kind=Kind.FACT, number=1),)))
    assert contents(engine, scope=BOB) == ["memory 4"]


def test_two_processes_share_one_cap(home: MemoryHome) -> None:
    one, other = home.engine(), home.engine()
    limit(one, number=2)
    for at in range(6):
        retain((one, other)[at % 2], f"memory {at}")
    for engine in (one, other):
        assert contents(engine) == recalled(engine)[::-1] == ["memory 5", "memory 4"]


def test_a_write_that_dies_before_its_commit_moves_no_cap(home: MemoryHome) -> None:
    engine = home.engine()
    limit(engine, number=2)
    write(engine, 2)
    home.crashes.at(Failpoint.STORE_BEFORE_COMMIT)
    with pytest.raises(SimulatedCrash):
        retain(engine, "memory 2")
    assert contents(home.engine()) == ["memory 1", "memory 0"]


# -- ages -----------------------------------------------------------------------------------------


def test_past_its_age_a_memory_is_out_of_sight(home: MemoryHome) -> None:
    engine = home.engine()
    limit(engine, days=30)
    write(engine, 1)
    retain(engine, "memory pinned", pinned=True)
    home.clock.advance(days=29)
    retain(engine, "memory new")
    assert recalled(engine) == ["memory 0", "memory new", "memory pinned"]
    home.clock.advance(days=1)
    assert contents(engine) == ["memory new", "memory pinned"]
    assert recalled(engine) == ["memory new", "memory pinned"]
    assert sorted(briefed(engine)) == ["memory new", "memory pinned"]


# -- purge ----------------------------------------------------------------------------------------


def test_purge_erases_retired_memories_within_a_day_or_when_they_are_many(
    home: MemoryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = home.engine()
    limit(engine, number=1)
    ids = write(engine, 3)
    assert engine.purge(ALICE).retired == 0, "they are few, and retired a moment ago"
    assert engine.get(ALICE, Get(ids[0])).retired_at is not None
    home.clock.advance(days=1)
    assert engine.purge(ALICE).retired == 2
    with pytest.raises(NotFound):
        engine.get(ALICE, Get(ids[0]))
    monkeypatch.setattr("scrubjay.engine.memories.retention.BATCH", 3)
    write(engine, 3)
    assert engine.purge(ALICE).retired == 3
    assert engine.verify(ALICE).sound


@pytest.mark.parametrize("actor", [Actor.USER, Actor.OPERATOR])
def test_a_person_who_purges_need_not_wait(engine: Kernel, actor: Actor) -> None:
    limit(engine, number=1)
    write(engine, 3)
    assert engine.purge(ALICE, Purge(), Caller(actor=actor)).retired == 2
    limit(engine, number=9)
    assert contents(engine) == ["memory 2"]


def test_what_was_purged_for_a_limit_may_be_told_again_by_its_key_but_not_by_its_id(
    home: MemoryHome,
) -> None:
    engine = home.engine()
    limit(engine, number=1)
    retain(engine, "tea", key="k", id="note-1")
    write(engine, 1)
    home.clock.advance(days=1)
    assert engine.purge(ALICE).retired == 1
    again = engine.retain_many(ALICE, RetainMany([{"content": "tea", "id": "note-1"}]))
    assert again[0].retained is not None
    assert again[0].retained.outcome is Outcome.FORGOTTEN
    told = engine.retain_many(ALICE, RetainMany([{"content": "tea", "key": "k"}]))
    assert told.stored == 1


def test_what_is_retired_and_not_purged_yet_may_be_told_again_by_its_key(engine: Kernel) -> None:
    limit(engine, number=1)
    first = retain(engine, "tea", key="k")
    write(engine, 1)
    again = retain(engine, "tea", key="k")
    assert again != first
    assert contents(engine) == ["tea"]
    assert engine.verify(ALICE).sound


@pytest.mark.parametrize("id", ["note-1", "note-2"])
def test_what_is_retired_is_not_told_again_under_an_id_that_is_taken(
    engine: Kernel, id: str
) -> None:
    """Neither over its own row, whose id would be buried, nor over another memory."""
    limit(engine, number=2)
    retain(engine, "tea", id="note-1", key="k")
    retain(engine, "precious", id="note-2")
    write(engine, 1)
    again = engine.retain(ALICE, Retain("tea", id=id, key="k"))
    assert again.outcome is Outcome.KNOWN
    assert again.id == "note-1"
    assert contents(engine) == ["memory 0", "precious"]
    assert engine.verify(ALICE).sound


def test_purge_erases_what_was_idle_for_too_long(home: MemoryHome) -> None:
    engine = home.engine()
    limit(engine, idle_days=10)
    write(engine, 1)
    retain(engine, "memory pinned", pinned=True)
    home.clock.advance(days=10)
    retain(engine, "memory new")
    assert engine.purge(ALICE).idle == 1
    assert contents(engine) == ["memory new", "memory pinned"]


def test_purge_erases_turns_past_their_number_or_age_with_their_episodes(home: MemoryHome) -> None:
    engine = home.engine()
    engine.set_retention(ALICE, SetRetention(turns=Limit(number=2, days=5)))
    for at in range(4):
        engine.record(ALICE, Record(id=f"t{at}", user=f"The planet {at} is far.", session="s"))
        home.clock.advance(seconds=60)
    assert engine.purge(ALICE).turns == 2
    assert [turn.id for turn in engine.turns(ALICE, TurnsRequest())] == ["t3", "t2"]
    assert not [one for one in contents(engine) if "planet 0" in one or "planet 1" in one]
    home.clock.advance(days=5)
    assert engine.purge(ALICE).turns == 2
    assert engine.verify(ALICE).sound


def test_purge_deletes_conversations_past_their_number_or_age(home: MemoryHome) -> None:
    engine = home.engine()
    engine.set_retention(ALICE, SetRetention(conversations=Limit(number=2, days=5)))
    for name in ("a", "b", "c"):
        engine.append(ALICE, Append(name, ({"body": f"shared by {name}"}, {"body": "last"})))
        home.clock.advance(seconds=60)
    engine.branch(ALICE, Branch("a", into="d", at=1))
    engine.append(ALICE, Append("b", ({"body": "written to again"},)))
    assert engine.purge(ALICE).conversations == 2
    assert sorted(one.name for one in engine.conversations(ALICE)) == ["b", "d"]
    (shared,) = engine.conversation(ALICE, ReadConversation("d")).entries
    assert shared.body == "shared by a"
    with pytest.raises(NotFound):
        engine.conversation(ALICE, ReadConversation("a"))
    assert engine.verify(ALICE).sound
    home.clock.advance(days=5)
    assert engine.purge(ALICE).conversations == 2
    assert engine.verify(ALICE).sound
    engine.append(ALICE, Append("a", ({"body": "its name may be used again"},)))
    assert len(engine.conversation(ALICE, ReadConversation("a")).entries) == 1


def test_a_purge_that_dies_goes_on_the_next_time(home: MemoryHome) -> None:
    engine = home.engine()
    limit(engine, number=1)
    write(engine, 3)
    home.clock.advance(days=1)
    home.crashes.at(Failpoint.PURGE_COMMITTED)
    with pytest.raises(SimulatedCrash):
        engine.purge(ALICE)
    engine = home.engine()
    engine.purge(ALICE)
    assert contents(engine, superseded=True) == ["memory 2"]
    assert engine.verify(ALICE).sound


# -- the policy -----------------------------------------------------------------------------------


def test_nothing_is_limited_unless_somebody_sets_it(home: MemoryHome) -> None:
    engine = home.engine()
    write(engine, 3)
    assert engine.retention(ALICE) == Retention()
    home.clock.advance(days=10_000)
    before = contents(engine)
    assert engine.purge(ALICE, Purge(superseded_days=0)).retired == 0
    assert contents(engine) == before


def test_a_retention_is_read_as_it_was_set_and_lifted_by_an_empty_one(engine: Kernel) -> None:
    write(engine, 3)
    fact = KindLimit(kind=Kind.FACT, number=1, days=3)
    engine.set_retention(ALICE, SetRetention(limits=(fact,), turns=Limit(days=9)))
    assert engine.retention(ALICE) == Retention(limits=(fact,), turns=Limit(days=9))
    assert contents(engine) == ["memory 2"]
    engine.set_retention(ALICE, SetRetention())
    assert engine.retention(ALICE) == Retention()
    assert len(contents(engine)) == 3
    verbs = [one.verb for one in engine.audit(ALICE, AuditRequest())]
    assert verbs.count("set_retention") == 2


def test_a_retention_outlives_the_process_a_rotation_and_a_restore(home: MemoryHome) -> None:
    engine = home.engine()
    limit(engine, number=2)
    write(engine, 4)
    raw, receipt = engine.backup(ALICE)
    engine.rotate(ALICE)
    assert contents(home.engine()) == ["memory 3", "memory 2"]
    other = MemoryHome("other")
    there = other.engine()
    there.restore(ALICE, Restore(raw, key=receipt.key))
    assert there.retention(ALICE) == engine.retention(ALICE)
    assert contents(there) == ["memory 3", "memory 2"]
    assert there.verify(ALICE).sound


def test_a_frozen_scope_keeps_its_retention(engine: Kernel) -> None:
    write(engine, 1)
    engine.freeze(ALICE, FreezeRequest())
    with pytest.raises(Frozen):
        limit(engine, number=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"limits": [{"kind": "fact", "number": 0}]},
        {"limits": [{"kind": "fact", "number": 10_001}]},
        {"limits": [{"kind": "fact", "days": 0}]},
        {"limits": [{"kind": "whim", "days": 1}]},
        {"limits": [{"kind": "fact", "days": 1}, {"kind": "fact", "number": 1}]},
        {"turns": {"idle_days": 1}},
        {"conversations": {"idle_days": 1}},
        {"conversations": {"number": 0}},
        {"duplicates": "none"},
    ],
)
def test_a_retention_beyond_the_limits_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        SetRetention(**wrong)


def test_a_damaged_retention_stops_no_write_and_verify_names_it(home: MemoryHome) -> None:
    engine = home.engine()
    limit(engine, number=1)
    write(engine, 2)

    def damage(tx: Any) -> None:
        tx.set_value(RETENTION, tx.value(RETENTION)[:-1] + b"x")

    home.store.write(address(home), damage)
    retain(engine, "memory 2")
    (problem,) = engine.verify(ALICE).problems
    assert "retention" in problem


# -- duplicates -----------------------------------------------------------------------------------


def test_the_latest_of_two_that_say_the_same_takes_the_place_of_the_other(engine: Kernel) -> None:
    engine.set_retention(ALICE, SetRetention(duplicates=Duplicates.LATEST))
    first = retain(engine, "Alice likes green tea.", pinned=True)
    second = retain(engine, "alice likes  GREEN tea")
    assert contents(engine) == ["alice likes  GREEN tea"]
    old, new = (engine.get(ALICE, Get(one)) for one in (first, second))
    assert (old.superseded_by, new.supersedes, new.pinned) == (second, first, True)
    retain(engine, "Alice likes green tea", kind=Kind.PREFERENCE)
    assert len(contents(engine)) == 2, "one of another kind says something else"
    assert engine.verify(ALICE).sound


def test_what_was_there_before_the_policy_is_known_too(engine: Kernel) -> None:
    retain(engine, "Alice likes green tea.")
    engine.set_retention(ALICE, SetRetention(duplicates=Duplicates.LATEST))
    retain(engine, "Alice likes green tea!")
    assert contents(engine) == ["Alice likes green tea!"]


def test_both_are_kept_unless_the_policy_says_otherwise(engine: Kernel) -> None:
    retain(engine, "Alice likes green tea.")
    retain(engine, "Alice likes green tea.")
    assert len(contents(engine)) == 2


def test_a_copy_that_is_trusted_less_replaces_nothing(engine: Kernel) -> None:
    engine.set_retention(ALICE, SetRetention(duplicates=Duplicates.LATEST))
    first = retain(engine, "Alice likes green tea.")
    retain(engine, "Alice likes green tea.", origin=Origin.WEB)
    assert engine.get(ALICE, Get(first)).current


def test_one_that_something_was_derived_from_stays(engine: Kernel) -> None:
    engine.set_retention(ALICE, SetRetention(duplicates=Duplicates.LATEST))
    first = retain(engine, "Alice likes green tea.")
    retain(engine, "A summary", kind=Kind.SUMMARY, sources=(first,))
    retain(engine, "Alice likes green tea.")
    assert engine.get(ALICE, Get(first)).current
    assert "A summary" in contents(engine)


def test_a_repeat_that_is_revoked_gives_its_place_back(engine: Kernel) -> None:
    engine.set_retention(ALICE, SetRetention(duplicates=Duplicates.LATEST))
    first = retain(engine, "Alice likes green tea.")
    retain(engine, "Alice likes green tea.", session="bad")
    engine.revoke(ALICE, Revoke(session="bad"))
    assert engine.get(ALICE, Get(first)).current
    assert len(contents(engine)) == 1


def test_what_was_forgotten_is_no_duplicate_of_what_is_told_again(engine: Kernel) -> None:
    engine.set_retention(ALICE, SetRetention(duplicates=Duplicates.LATEST))
    forget(engine, retain(engine, "Alice likes green tea."))
    again = retain(engine, "Alice likes green tea.")
    assert engine.get(ALICE, Get(again)).supersedes is None
    assert engine.verify(ALICE).sound
