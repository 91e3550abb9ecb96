"""Turns take part in everything that erases, copies or checks a scope."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import NotFound
from scrubjay.model.memory import Kind
from scrubjay.model.pages import Paged
from scrubjay.model.requests import (
    Amend,
    Destroy,
    Export,
    Forget,
    Get,
    Load,
    Restore,
    Retain,
    Revoke,
    TurnsRequest,
)
from scrubjay.model.results import Outcome
from scrubjay.model.rows import Collection, Due
from scrubjay.model.turns import Record, State, derived_id
from tests.support.engines import MemoryHome, SqliteHome
from tests.unit.engine.saying import MORNING, record, recorded, said, shown, state, turn_rows
from tests.unit.engine.scene import ALICE, BOB, address, change, everything, forget, head, slots

LONG = "at length and in detail, again and again. " * 4_000


def episode(number: int) -> str:
    return derived_id(f"turn-{number}", "episode")


# -- forget ---------------------------------------------------------------------------------------


def test_forgetting_a_turn_erases_it_and_all_that_was_derived_from_it(
    home: MemoryHome, engine: Kernel
) -> None:
    record(engine, 1, "I prefer tea. My dentist is Dr. Wu.")
    receipt = forget(engine, "turn-1")
    assert (receipt.erased, receipt.derived) == (4, 3)
    assert everything(engine) == []
    assert engine.turns(ALICE, TurnsRequest(10)).data == ()
    assert all(row.erased and row.cell is None for row in turn_rows(home))


def test_a_forgotten_turn_stays_out(engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")
    forget(engine, "turn-1")
    assert record(engine, 1, "I prefer tea.").outcome is Outcome.FORGOTTEN
    assert everything(engine) == []


def test_a_turn_forgotten_before_it_was_ever_seen_stays_out(engine: Kernel) -> None:
    forget(engine, "turn-1", unseen=True)
    assert record(engine, 1, "I prefer tea.").outcome is Outcome.FORGOTTEN
    assert forget(engine, "turn-1", unseen=True).already == 1


def test_an_unknown_id_is_refused_unless_unseen_ones_are_wanted(engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")
    with pytest.raises(NotFound):
        forget(engine, "turn-2")


def test_a_repetition_speaks_for_itself_when_what_it_repeated_is_forgotten(engine: Kernel) -> None:
    record(engine, 1, "Read me the report of today.", "It is dry.")
    record(engine, 2, "Read me the report of today!", "It is dry.")
    forget(engine, "turn-1")
    assert shown(engine) == ["Read me the report of today!\n→ It is dry."]


def test_an_earlier_statement_counts_again_when_the_later_turn_is_forgotten(
    engine: Kernel,
) -> None:
    record(engine, 1, "My dentist is Dr. Smith.")
    record(engine, 2, "My dentist is Dr. Wu.")
    forget(engine, "turn-2")
    assert shown(engine, Kind.FACT) == ["User's dentist is Dr. Smith."]
    (fact,) = (m for m in everything(engine) if m.kind is Kind.FACT)
    assert (fact.superseded_by, fact.retired_at) == (None, None)


def test_forgetting_the_middle_statement_joins_its_neighbors(engine: Kernel) -> None:
    for number, name in enumerate(("Smith", "Wu", "Lee")):
        record(engine, number, f"My dentist is Dr. {name}.")
    forget(engine, "turn-1")
    expected = recorded([said(0, "My dentist is Dr. Smith."), said(2, "My dentist is Dr. Lee.")])
    assert state(engine) == state(expected)


def test_forgetting_an_episode_takes_its_turn_along_and_what_only_repeated_it(
    home: MemoryHome, engine: Kernel
) -> None:
    """The ledger is out of sight: it must not keep what somebody asked to be forgotten."""
    record(engine, 1, "I prefer tea.", "Good.")
    record(engine, 2, "I prefer tea!", "Good.")
    forget(engine, episode(1))
    assert everything(engine) == []
    assert engine.turns(ALICE, TurnsRequest(10)).data == ()
    assert record(engine, 2, "I prefer tea!").outcome is Outcome.FORGOTTEN


def test_forgetting_a_fact_leaves_the_episode_that_anybody_can_see_and_forget(
    engine: Kernel,
) -> None:
    record(engine, 1, "I prefer tea.")
    forget(engine, derived_id("turn-1", "statement-0"))
    assert [memory.kind for memory in everything(engine)] == [Kind.EPISODE]


def test_a_fact_that_was_forgotten_by_itself_is_not_derived_again(engine: Kernel) -> None:
    record(engine, 2, "I prefer tea.", "Good.")
    forget(engine, derived_id("turn-2", "statement-0"))
    record(engine, 1, "I prefer tea.", "Good.")  # turn 2 is a repetition now
    forget(engine, "turn-1")  # and speaks for itself again
    assert [memory.kind for memory in everything(engine)] == [Kind.EPISODE]


def test_a_memory_that_was_taken_back_can_be_forgotten_by_its_id(engine: Kernel) -> None:
    record(engine, 2, "I prefer tea.", "Good.")
    record(engine, 1, "I prefer tea.", "Good.")
    forget(engine, derived_id("turn-2", "statement-0"))
    forget(engine, "turn-1")
    assert [memory.kind for memory in everything(engine)] == [Kind.EPISODE]


def test_what_others_made_of_a_derived_memory_goes_with_the_turn(engine: Kernel) -> None:
    record(engine, 2, "I prefer tea.", "Good.")
    engine.retain(ALICE, Retain(content="likes hot drinks", sources=(episode(2),)))
    record(engine, 1, "I prefer tea.", "Good.")  # takes the episode of turn 2 back
    assert "likes hot drinks" in shown(engine)
    forget(engine, "turn-2")
    assert "likes hot drinks" not in shown(engine)


@pytest.mark.parametrize(
    "target",
    [{"session": "s"}, {"before": MORNING + timedelta(minutes=5)}],
    ids=["session", "before"],
)
def test_turns_are_reached_by_session_and_by_age(engine: Kernel, target) -> None:
    record(engine, 1, "heartbeat", "HEARTBEAT_OK", session="s")
    record(engine, 2, "I prefer tea.", session="s")
    record(engine, 9, "I prefer milk.", session="other")
    engine.forget(ALICE, Forget(**target))
    assert [turn.id for turn in engine.turns(ALICE, TurnsRequest(10))] == ["turn-9"]


def test_forgetting_by_words_reaches_turns_nothing_was_derived_from(engine: Kernel) -> None:
    record(engine, 1, "Read me the report of today.", "It is dry.")
    record(engine, 2, "Read me the report of today!", "It is dry.")
    token = engine.preview(ALICE, Forget(query="report")).token
    engine.forget(ALICE, Forget(query="report", confirm=token))
    assert engine.turns(ALICE, TurnsRequest(10)).data == ()
    assert everything(engine) == []


def test_revoking_a_session_takes_its_turns_and_what_they_superseded_counts_again(
    engine: Kernel,
) -> None:
    record(engine, 1, "My dentist is Dr. Smith.", session="good")
    record(engine, 2, "My dentist is Dr. Evil.", session="bad")
    engine.revoke(ALICE, Revoke(session="bad"))
    assert shown(engine, Kind.FACT) == ["User's dentist is Dr. Smith."]
    assert [turn.id for turn in engine.turns(ALICE, TurnsRequest(10))] == ["turn-1"]
    assert engine.verify(ALICE).sound


def test_revoking_a_channel_takes_its_turns(engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.", channel="pod")
    record(engine, 2, "ok", "ok", channel="pod")
    engine.revoke(ALICE, Revoke(channel="pod"))
    assert engine.turns(ALICE, TurnsRequest(10)).data == ()
    assert everything(engine) == []


def test_a_damaged_turn_can_still_be_forgotten(home: MemoryHome, engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")

    def damage(tx) -> None:
        (row,) = tx.changes(Collection.TURN, 0, 10)
        tx.reseal(
            Collection.TURN, [(row, replace(row, cell=row.cell[:-1] + bytes([row.cell[-1] ^ 1])))]
        )

    change(home, damage)
    assert not engine.verify(ALICE).sound
    forget(engine, "turn-1")
    assert engine.verify(ALICE).sound
    assert everything(engine) == []


# -- keys -----------------------------------------------------------------------------------------


def test_the_receipt_names_every_cell_that_held_the_turn_and_no_key_opens_one(
    sqlite_home: SqliteHome,
) -> None:
    engine = sqlite_home.engine()
    record(engine, 1, "I prefer tea.")
    record(engine, 2, LONG)
    receipt = forget(engine, "turn-1", "turn-2")
    collections = {cell.collection for cell in receipt.cells}
    assert collections == {"memory", "turn", "session"}
    assert receipt.rotated
    assert engine.verify_erased(ALICE, receipt).sound
    engine.close()


def test_forgetting_a_turn_rotates_every_key_that_opened_something_of_it(
    home: MemoryHome, engine: Kernel
) -> None:
    record(engine, 1, "I prefer tea.")
    record(engine, 2, "I prefer milk.")
    forget(engine, "turn-1")
    assert slots(home) == ["memory.2", "session.2", "turn.2"]
    assert engine.turns(ALICE, TurnsRequest(1))[0].user == "I prefer milk."


def test_forgetting_a_turn_that_yielded_nothing_leaves_the_memories_key_alone(
    home: MemoryHome, engine: Kernel
) -> None:
    record(engine, 1, "ok", "ok")
    forget(engine, "turn-1")
    assert slots(home) == ["memory.1", "session.2", "turn.2"]


def test_a_large_scope_leaves_the_rotation_due_and_the_next_verbs_do_it(home: MemoryHome) -> None:
    engine = home.engine(Policy(rotate_below=0))
    record(engine, 1, "I prefer tea.")
    record(engine, 2, "I prefer milk.")
    assert not forget(engine, "turn-1").rotated
    engine.finish_due(ALICE)
    assert slots(home) == ["memory.2", "session.2", "turn.2"]
    assert head(home).due is Due.NOTHING


def test_rotate_seals_turns_and_timeline_anew(home: MemoryHome, engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")
    record(engine, 2, LONG)
    before = state(engine)
    engine.rotate(ALICE)
    assert state(engine) == before
    assert record(engine, 3, "I prefer milk.").outcome is Outcome.STORED
    assert engine.verify(ALICE).sound


# -- purge, copies, the end -----------------------------------------------------------------------


def test_purge_drops_the_empty_rows_of_forgotten_turns_and_keeps_their_tombstones(
    home: MemoryHome, engine: Kernel
) -> None:
    record(engine, 1, "I prefer tea.")
    forget(engine, "turn-1")
    home.clock.advance(days=31)
    engine.purge(ALICE)
    assert turn_rows(home) == []
    assert record(engine, 1, "I prefer tea.").outcome is Outcome.FORGOTTEN


def test_an_episode_that_expires_takes_its_turn_along(home: MemoryHome, engine: Kernel) -> None:
    record(engine, 1, "Where is the museum?")
    engine.amend(ALICE, Amend(episode(1), expires_at=home.clock.now()))
    engine.purge(ALICE)
    assert engine.turns(ALICE, TurnsRequest(10)).data == ()
    assert engine.verify(ALICE).sound


def test_an_export_carries_the_turns_and_loads_as_it_was(engine: Kernel) -> None:
    for number, words in enumerate(
        ("I prefer tea.", "ok", "My dentist is Dr. Wu.", "I prefer tea.")
    ):
        record(engine, number, words)
    forget(engine, derived_id("turn-2", "statement-0"))
    copy = MemoryHome().engine()
    for sealed in (False, True):
        exported = engine.export(ALICE, Export(sealed=sealed))
        copy.load(ALICE, Load(exported.content, key=exported.key))
        assert state(copy) == state(engine)
        assert copy.turns(ALICE, TurnsRequest(10)) == engine.turns(ALICE, TurnsRequest(10))
        assert copy.verify(ALICE).sound


def test_after_a_load_turns_go_on_as_if_they_had_been_told_here(engine: Kernel) -> None:
    record(engine, 1, "My dentist is Dr. Smith.")
    copy = MemoryHome().engine()
    copy.load(ALICE, Load(engine.export(ALICE).content))
    for one in (engine, copy):
        record(one, 3, "My dentist is Dr. Wu.")
        record(one, 2, "My dentist is Dr. Lee.")
        forget(one, "turn-3")
    assert state(copy) == state(engine)


def test_a_load_brings_back_no_forgotten_turn(engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")
    exported = engine.export(ALICE).content
    forget(engine, "turn-1")
    engine.load(ALICE, Load(exported))
    assert engine.turns(ALICE, TurnsRequest(10)).data == ()
    assert everything(engine) == []


def test_a_backup_restores_turns_but_none_forgotten_since(home: MemoryHome, engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")
    record(engine, 2, "I prefer milk.")
    raw, made = engine.backup(ALICE)
    forget(engine, "turn-1")
    engine.close()
    home.store.remove(address(home))
    engine = home.engine()
    engine.restore(ALICE, Restore(raw, key=made.key))
    assert [turn.id for turn in engine.turns(ALICE, TurnsRequest(10))] == ["turn-2"]
    assert record(engine, 1, "I prefer tea.").outcome is Outcome.FORGOTTEN
    assert engine.verify(ALICE).sound


def test_destroy_leaves_no_turn(home: MemoryHome, engine: Kernel) -> None:
    record(engine, 1, LONG)
    where = address(home)
    receipt = engine.destroy(ALICE, Destroy(confirm="local/alice"))
    assert receipt.erased > 0
    assert home.blobs.names(where) == []
    assert engine.verify_erased(ALICE, receipt).sound


def test_verify_finds_a_turn_that_is_not_in_the_timeline(home: MemoryHome, engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")
    record(engine, 2, "I prefer milk.")
    assert engine.verify(ALICE).sound
    gone = turn_rows(home)[0].id
    change(home, lambda tx: tx.erase(Collection.TURN, gone, drop_day=0))
    assert any("timeline" in problem for problem in engine.verify(ALICE).problems)


def test_another_scope_is_not_touched(engine: Kernel) -> None:
    engine.record(BOB, said(1, "I prefer tea."))
    record(engine, 1, "I prefer tea.")
    forget(engine, "turn-1")
    assert len(engine.turns(BOB, TurnsRequest(10))) == 1


def test_a_repetition_is_shown_as_such_in_the_timeline(engine: Kernel) -> None:
    record(engine, 1, "Read me the report of today.", "It is dry.")
    record(engine, 2, "Read me the report of today!", "It is dry.")
    record(engine, 3, "ok", "ok")
    states = [moment.state for moment in engine.timeline(ALICE, Paged(10)).moments]
    assert states == [State.KEPT, State.REPEATED, State.TRIVIAL]


def test_ids_of_turns_reach_no_memory_that_came_otherwise(engine: Kernel) -> None:
    kept = engine.retain(ALICE, Retain(content="by hand", id="note-1")).id
    record(engine, 1, "I prefer tea.")
    done = engine.forget(
        ALICE, Forget(ids=("note-1", "turn-1", "unseen"), unseen=True), turns_only=True
    )
    assert done.erased > 1
    assert engine.get(ALICE, Get(kept)).content == "by hand"
    assert engine.turns(ALICE, TurnsRequest(10)).data == ()
    assert engine.record(ALICE, Record("Hello", id="unseen")).outcome is Outcome.FORGOTTEN
    assert engine.verify(ALICE).sound
