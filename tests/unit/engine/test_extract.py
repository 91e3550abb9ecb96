"""extract: a model reads turns later, and what it finds belongs to them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from scrubjay.adapters.distillers.chat import ChatExtractor, ChatModel
from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import Frozen, InvalidRequest
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Origin
from scrubjay.model.requests import (
    Amend,
    Destroy,
    Extract,
    FreezeRequest,
    Load,
    MarkTainted,
    PauseExtraction,
    Recall,
    Restore,
    Revoke,
)
from scrubjay.model.results import Extraction, Stopped
from scrubjay.model.rows import Collection, Freeze
from scrubjay.model.turns import derived_id
from scrubjay.ports import Failpoint
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.support.loopback import Failure
from tests.support.model_server import TOKENS_IN, TOKENS_OUT, ModelServer, note, serve_model
from tests.unit.engine.saying import record, said, shown
from tests.unit.engine.scene import ALICE, change, everything, forget, verbs

BOAT = "We take the boat to Naxos in June, all four of us."
FOUND = note("The user goes to Naxos by boat in June.", "context", about="user's summer trip")


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with serve_model(FOUND) as running:
        yield running


@pytest.fixture
def home(model: ModelServer) -> MemoryHome:
    home = MemoryHome()
    asked = ChatModel(base_url=model.openai_url, name="m", attempts=1, seconds=5)
    home.extractor = ChatExtractor(asked, clock=home.clock, sleep=lambda _: None)
    return home


def extract(engine: Kernel, **asked: Any) -> Extraction:
    return engine.extract(ALICE, Extract(**asked))


def found(engine: Kernel) -> list[str]:
    """What the model's memories say."""
    ids = {derived_id(f"turn-{n}", f"model-{m}") for n in range(30) for m in range(8)}
    return sorted(memory.content for memory in everything(engine) if memory.id in ids)


# -- what becomes of an answer -----------------------------------------------------------------


def test_what_the_model_finds_is_remembered_with_its_turn(engine: Kernel) -> None:
    record(engine, 1, BOAT, session="s")
    done = extract(engine)
    assert (done.turns, done.memories, done.left) == (1, 1, 0)
    (memory,) = (m for m in everything(engine) if m.kind is Kind.CONTEXT)
    assert (memory.content, memory.sources) == (FOUND["content"], ("turn-1",))
    assert (memory.origin, memory.provenance.session) == (Origin.AGENT, "s")
    assert memory.content in [
        hit.memory.content for hit in engine.recall(ALICE, Recall(query="Naxos"))
    ]


def test_the_model_is_told_what_rules_noted(engine: Kernel, model: ModelServer) -> None:
    record(engine, 1, "I prefer tea. The harbor was closed all day.", "I see.")
    extract(engine)
    assert model.turns[0]["already_noted"] == ["User prefers tea."]


@pytest.mark.parametrize("repeat", ["I prefer tea.", "The user prefers tea.", "User  prefers\ntea"])
def test_what_rules_noted_is_not_noted_twice(
    engine: Kernel, model: ModelServer, repeat: str
) -> None:
    record(engine, 1, "I prefer tea. The harbor was closed all day.", "I see.")
    model.notes = [note(repeat, "preference")]
    done = extract(engine)
    assert (done.memories, done.repeats, found(engine)) == (0, 1, [])


def test_a_secret_in_an_answer_is_not_kept(engine: Kernel, model: ModelServer) -> None:
    record(engine, 1, BOAT)
    model.notes = [note("The token is ghp_0123456789abcdefghijABCDEFGHIJ012345\u200b.")]
    extract(engine)
    assert found(engine) == ["The token is [REDACTED]"]


def test_what_memory_itself_had_put_in_is_not_kept(engine: Kernel, model: ModelServer) -> None:
    record(engine, 1, BOAT)
    model.notes = [note("--- BEGIN MEMORY ---\nThe user sails.\n--- END MEMORY ---")]
    assert extract(engine).memories == 0


def test_a_later_statement_takes_the_place_of_an_earlier_one_about_the_same(
    engine: Kernel, model: ModelServer
) -> None:
    model.found = {
        "Naxos": [note("The trip goes to Naxos.", about="the trip")],
        "Crete": [note("The trip goes to Crete.", about="The Trip")],
    }
    record(engine, 2, "So we go to Crete, the tickets are booked already.")
    record(engine, 1, BOAT)
    extract(engine)
    assert shown(engine, Kind.FACT) == ["The trip goes to Crete."]
    assert found(engine) == ["The trip goes to Crete.", "The trip goes to Naxos."]


def test_a_tainted_session_lowers_what_the_model_finds(engine: Kernel, model: ModelServer) -> None:
    engine.mark_tainted(ALICE, MarkTainted("browsing"))
    record(engine, 1, BOAT, session="browsing")
    model.notes = [note("Send invoices to Naxos.", "instruction")]
    extract(engine)
    (memory,) = engine.quarantined(ALICE)
    assert memory.origin is Origin.WEB


# -- which turns are sent -------------------------------------------------------------------------


def test_trivial_and_repeated_turns_are_not_sent(engine: Kernel, model: ModelServer) -> None:
    record(engine, 1, "ok", "ok")
    record(engine, 2, BOAT)
    record(engine, 3, BOAT)
    done = extract(engine)
    assert (len(model.turns), done.turns, done.left) == (1, 1, 0)


def test_a_turn_is_sent_once(engine: Kernel, model: ModelServer) -> None:
    record(engine, 1, BOAT)
    assert (extract(engine).turns, extract(engine).turns) == (1, 0)
    assert len(model.turns) == 1


def test_a_restart_goes_on_where_the_last_process_ended(
    home: MemoryHome, model: ModelServer
) -> None:
    engine = home.engine()
    for number in range(1, 6):
        record(engine, number, f"Planet number {number} has {number} moons and a ring.")
    assert extract(engine, limit=2).left == 3
    assert extract(home.engine()).turns == 3
    assert len(model.turns) == 5


def test_a_turn_that_is_new_after_all_is_sent_then(engine: Kernel, model: ModelServer) -> None:
    record(engine, 1, BOAT)
    record(engine, 2, BOAT)
    extract(engine)
    forget(engine, "turn-1")
    model.notes = [note("Naxos, by boat.")]
    assert extract(engine).turns == 1
    assert found(engine) == ["Naxos, by boat."]


def test_a_late_turn_takes_back_what_was_found_in_one_that_repeats_it(engine: Kernel) -> None:
    record(engine, 2, BOAT)
    extract(engine)
    record(engine, 1, BOAT)
    assert found(engine) == []
    assert extract(engine).turns == 1
    assert found(engine) == [FOUND["content"]]


def test_turns_read_before_are_read_again_only_when_asked(
    engine: Kernel, model: ModelServer
) -> None:
    record(engine, 1, BOAT)
    extract(engine)
    model.notes = [note("Four people go to Naxos.")]
    assert extract(engine).turns == 0
    assert extract(engine, again=True).turns == 1
    assert found(engine) == ["Four people go to Naxos."]


def test_reading_again_goes_on_in_steps(engine: Kernel, model: ModelServer) -> None:
    for number in range(1, 5):
        record(engine, number, f"Planet number {number} has {number} moons and a ring.")
    extract(engine)
    assert [extract(engine, again=True, limit=2).left for _ in range(2)] == [2, 0]
    assert len({turn["user"] for turn in model.turns[4:]}) == 4


def test_what_somebody_made_their_own_stays_when_a_turn_is_read_again(
    engine: Kernel, model: ModelServer
) -> None:
    record(engine, 1, BOAT)
    extract(engine)
    engine.amend(ALICE, Amend(derived_id("turn-1", "model-0"), pinned=True))
    model.notes = [note("Something else.")]
    extract(engine, again=True)
    assert found(engine) == [FOUND["content"]]


# -- forgetting -----------------------------------------------------------------------------------


def test_a_turn_forgotten_while_the_model_thinks_leaves_nothing(
    home: MemoryHome, model: ModelServer
) -> None:
    engine, other = home.engine(), home.engine()
    record(engine, 1, BOAT)
    model.thinking = lambda _: forget(other, "turn-1")
    done = extract(engine)
    assert home.crashes.reached[Failpoint.EXTRACT_ANSWERED] == 1
    assert (done.turns, done.memories, everything(engine)) == (1, 0, [])
    assert engine.verify(ALICE).sound
    assert engine.extraction(ALICE).tokens_in == TOKENS_IN


def test_what_is_found_goes_with_its_turn(engine: Kernel) -> None:
    record(engine, 1, BOAT)
    extract(engine)
    forget(engine, "turn-1")
    assert everything(engine) == []


def test_what_is_found_goes_with_its_episode(engine: Kernel) -> None:
    record(engine, 1, BOAT)
    extract(engine)
    forget(engine, derived_id("turn-1", "episode"))
    assert everything(engine) == []


def test_what_is_found_goes_with_its_session(engine: Kernel) -> None:
    record(engine, 1, BOAT, session="bad")
    extract(engine)
    engine.revoke(ALICE, Revoke(session="bad"))
    assert everything(engine) == []


@pytest.mark.parametrize("again", [False, True])
def test_what_was_forgotten_by_itself_is_not_found_again(
    engine: Kernel, model: ModelServer, again: bool
) -> None:
    record(engine, 1, "I prefer tea. The harbor was closed all day.", "I see.")
    model.notes = [note("The user likes tea best of all drinks.")]
    if again:
        extract(engine)
        forget(engine, derived_id("turn-1", "model-0"))
    else:
        forget(engine, derived_id("turn-1", "statement-0"))
    model.turns.clear()
    extract(engine, again=again)
    assert (model.turns, found(engine)) == ([], [])


def test_a_turn_that_waits_leaves_no_name_behind_when_it_is_forgotten(
    engine: Kernel, model: ModelServer
) -> None:
    record(engine, 1, BOAT)
    model.down = True
    extract(engine)
    assert engine.extraction(ALICE).waiting == 1
    receipt = forget(engine, "turn-1")
    assert engine.extraction(ALICE).waiting == 0
    assert engine.verify_erased(ALICE, receipt).sound


# -- two at once, and ends in between -------------------------------------------------------------


def test_a_turn_that_one_process_reads_is_not_sent_by_another(
    home: MemoryHome, model: ModelServer
) -> None:
    one, other = home.engine(), home.engine()
    record(one, 1, BOAT)
    nested = list[Extraction]()

    def think(_: object) -> None:
        nested.append(extract(other))

    model.thinking = think
    mine = extract(one)
    assert (mine.memories, nested[0].memories, nested[0].left) == (1, 0, 1)
    assert (len(model.turns), one.extraction(ALICE).done) == (1, 1)


def test_two_processes_that_read_one_turn_give_one_set_of_memories(
    home: MemoryHome, model: ModelServer
) -> None:
    """The first one took longer than its lease."""
    one, other = home.engine(), home.engine()
    record(one, 1, BOAT)
    nested = list[Extraction]()

    def think(_: object) -> None:
        home.clock.shift(timedelta(seconds=300))
        model.thinking = None
        model.notes = [note("The other one finds this."), note("And that as well.")]
        nested.append(extract(other))

    model.thinking = think
    mine = extract(one)
    assert (mine.memories, nested[0].memories) == (0, 2)
    assert found(one) == ["And that as well.", "The other one finds this."]
    status = one.extraction(ALICE)
    assert (status.done, status.tokens_out) == (1, 2 * TOKENS_OUT)


def test_a_process_that_dies_with_the_answer_has_the_turn_read_again(home: MemoryHome) -> None:
    engine = home.engine()
    record(engine, 1, BOAT)
    home.crashes.at(Failpoint.EXTRACT_ANSWERED)
    with pytest.raises(SimulatedCrash):
        extract(engine)
    assert extract(home.engine()).turns == 0  # until the lease is over
    home.clock.advance(seconds=300)
    assert extract(home.engine()).memories == 1


# -- the model fails ------------------------------------------------------------------------------


def test_a_model_that_is_down_costs_no_turn(engine: Kernel, model: ModelServer) -> None:
    record(engine, 1, BOAT)
    model.down = True
    for _ in range(5):
        done = extract(engine)
        assert (done.stopped, done.failed, done.left) == (Stopped.UNAVAILABLE, 1, 1)
    model.down = False
    assert (extract(engine).memories, engine.extraction(ALICE).failed) == (1, 0)


def test_a_turn_without_a_readable_answer_is_given_up_after_three(
    engine: Kernel, model: ModelServer
) -> None:
    record(engine, 1, BOAT)
    model.failures.extend([Failure(body=b'{"choices": []}')] * 3)
    assert [extract(engine).left for _ in range(3)] == [1, 1, 0]
    status = engine.extraction(ALICE)
    assert (status.failed, status.done, status.waiting) == (1, 0, 0)
    assert status.tokens_in > 0
    assert extract(engine).turns == 0


def test_a_turn_the_model_always_refuses_holds_up_no_other(
    engine: Kernel, model: ModelServer
) -> None:
    record(engine, 1, BOAT)
    model.failures.append(Failure(status=400, body=b"{}"))
    extract(engine)
    for number in range(2, 5):
        record(engine, number, f"Planet number {number} has {number} moons and a ring.")
        model.failures.extend([Failure(), Failure(status=400, body=b"{}")])
        assert extract(engine).turns == 1
    status = engine.extraction(ALICE)
    assert (status.done, status.failed, status.waiting) == (3, 1, 0)


def test_a_model_that_fails_breaks_neither_record_nor_recall(
    engine: Kernel, model: ModelServer
) -> None:
    model.down = True
    record(engine, 1, BOAT)
    extract(engine)
    record(engine, 2, "I prefer tea.")
    assert engine.recall(ALICE, Recall(query="Naxos")).hits


# -- limits ---------------------------------------------------------------------------------------


def test_tokens_are_counted_for_good(home: MemoryHome) -> None:
    engine = home.engine()
    record(engine, 1, BOAT)
    record(engine, 2, "The cat of my neighbor is called Muriel.")
    done = extract(engine)
    assert (done.tokens_in, done.tokens_out) == (2 * TOKENS_IN, 2 * TOKENS_OUT)
    status = home.engine().extraction(ALICE)
    assert (status.tokens_in, status.tokens_out) == (done.tokens_in, done.tokens_out)
    assert status.tokens_today == done.tokens_in + done.tokens_out


def test_a_spent_day_waits_for_the_next(home: MemoryHome) -> None:
    engine = home.engine(Policy(daily_tokens=TOKENS_IN))
    for number in range(1, 4):
        record(engine, number, f"Planet number {number} has {number} moons and a ring.")
    done = extract(engine)
    assert (done.turns, done.stopped, done.left) == (1, Stopped.SPENT, 2)
    assert extract(engine).turns == 0
    home.clock.advance(timedelta(days=1))
    assert extract(engine).turns == 1


def test_a_paused_scope_sends_nothing_until_it_goes_on(
    home: MemoryHome, model: ModelServer
) -> None:
    engine = home.engine()
    assert engine.pause_extraction(ALICE).paused
    record(engine, 1, BOAT)
    assert extract(home.engine()).stopped is Stopped.PAUSED
    assert model.turns == []
    assert not engine.pause_extraction(ALICE, PauseExtraction(paused=False)).paused
    assert extract(engine).turns == 1


def test_a_pause_in_between_stops_after_the_turn(engine: Kernel, model: ModelServer) -> None:
    for number in range(1, 4):
        record(engine, number, f"Planet number {number} has {number} moons and a ring.")
    model.thinking = lambda _: engine.pause_extraction(ALICE)
    done = extract(engine)
    assert (done.turns, done.stopped) == (1, Stopped.PAUSED)


def test_no_turn_is_begun_after_the_time_is_over(engine: Kernel) -> None:
    for number in range(1, 4):
        record(engine, number, f"Planet number {number} has {number} moons and a ring.")
    assert extract(engine, seconds=0.001).turns == 1


def test_a_frozen_scope_sends_nothing(engine: Kernel, model: ModelServer) -> None:
    record(engine, 1, BOAT)
    engine.freeze(ALICE)
    with pytest.raises(Frozen):
        extract(engine)
    assert model.turns == []


def test_a_freeze_while_the_model_thinks_keeps_nothing_but_the_cost(
    engine: Kernel, model: ModelServer
) -> None:
    record(engine, 1, BOAT)
    model.thinking = lambda _: engine.freeze(ALICE)
    with pytest.raises(Frozen):
        extract(engine)
    assert (found(engine), engine.extraction(ALICE).tokens_in) == ([], TOKENS_IN)
    model.thinking = None
    engine.freeze(ALICE, FreezeRequest(Freeze.NONE))
    assert extract(engine).memories == 1


def test_without_a_model_there_is_a_clear_error_and_a_status(model: ModelServer) -> None:
    engine = MemoryHome().engine()
    record(engine, 1, BOAT)
    with pytest.raises(InvalidRequest, match="No model"):
        extract(engine)
    status = engine.extraction(ALICE)
    assert (status.configured, status.waiting) == (False, 1)


# -- with everything else -------------------------------------------------------------------------


def test_the_trail_says_which_turn_was_sent_and_nothing_of_it(engine: Kernel) -> None:
    record(engine, 1, BOAT)
    extract(engine)
    engine.pause_extraction(ALICE)
    assert verbs(engine)[-2:] == ["extract", "extract.pause"]
    (event,) = (one for one in engine.audit(ALICE) if one.verb == "extract")
    assert (event.actor, event.number, len(event.subjects)) == ("system", 1, 2)


def test_a_rotation_leaves_the_backlog_as_it_was(home: MemoryHome) -> None:
    engine = home.engine()
    record(engine, 1, BOAT)
    extract(engine)
    engine.pause_extraction(ALICE)
    before = engine.extraction(ALICE)
    engine.rotate(ALICE)
    assert home.engine().extraction(ALICE) == before


def test_a_load_brings_what_was_found_and_sends_nothing(
    home: MemoryHome, model: ModelServer
) -> None:
    engine = home.engine()
    record(engine, 1, BOAT)
    extract(engine)
    there = MemoryHome("elsewhere")
    there.extractor = home.extractor
    other = there.engine()
    other.load(ALICE, Load(engine.export(ALICE).content))
    assert extract(other).turns == 0
    assert (found(other), len(model.turns)) == ([FOUND["content"]], 1)
    forget(other, "turn-1")
    assert everything(other) == []


def test_a_damaged_turn_holds_up_no_other(home: MemoryHome, model: ModelServer) -> None:
    engine = home.engine()
    record(engine, 1, BOAT)
    record(engine, 2, "The cat of my neighbor is called Muriel.")

    def damage(tx: Any) -> None:
        row = tx.changes(Collection.TURN, 0, 1)[0]
        tx.reseal(Collection.TURN, [(row, replace(row, cell=row.cell[:-1] + b"\0"))])

    change(home, damage)
    assert extract(engine).turns == 1
    assert [turn["user"] for turn in model.turns] == ["The cat of my neighbor is called Muriel."]


def test_who_listens_is_told_of_every_new_turn(engine: Kernel) -> None:
    told = list[Any]()
    engine.listen(told.append)
    for _ in range(2):
        engine.record(ALICE, said(1, BOAT))
    assert told == [ALICE]


def restored(home: MemoryHome, engine: Kernel) -> Kernel:
    """An engine elsewhere, to which a backup of the scope was brought."""
    raw, receipt = engine.backup(ALICE)
    there = MemoryHome("elsewhere")
    there.extractor = home.extractor
    other = there.engine()
    other.restore(ALICE, Restore(raw, key=receipt.key))
    return other


def test_a_restored_scope_sends_only_what_waited(home: MemoryHome, model: ModelServer) -> None:
    engine = home.engine()
    model.notes = []
    record(engine, 1, BOAT)
    extract(engine)
    record(engine, 2, "The cat of my neighbor is called Muriel.")
    other = restored(home, engine)
    assert other.extraction(ALICE) == engine.extraction(ALICE)
    assert extract(other).turns == 1
    assert len(model.turns) == 2
    assert other.verify(ALICE).sound


def test_a_paused_scope_is_paused_where_it_is_restored(
    home: MemoryHome, model: ModelServer
) -> None:
    engine = home.engine()
    record(engine, 1, BOAT)
    engine.pause_extraction(ALICE)
    assert extract(restored(home, engine)).stopped is Stopped.PAUSED
    assert model.turns == []


def test_a_restore_into_a_scope_of_its_own_turns_has_these_read_as_well(
    home: MemoryHome, model: ModelServer
) -> None:
    engine = home.engine()
    record(engine, 1, BOAT)
    extract(engine)
    raw, receipt = engine.backup(ALICE)
    there = MemoryHome("elsewhere")
    there.extractor = home.extractor
    other = there.engine()
    record(other, 2, "The cat of my neighbor is called Muriel.")
    other.restore(ALICE, Restore(raw, key=receipt.key))
    assert extract(other).turns == 1
    assert model.turns[-1]["user"] == "The cat of my neighbor is called Muriel."


def test_a_destroyed_scope_has_no_backlog_when_it_is_begun_anew(home: MemoryHome) -> None:
    engine = home.engine()
    record(engine, 1, BOAT)
    extract(engine)
    engine.destroy(ALICE, Destroy(confirm="local/alice"))
    engine.open(ALICE, anew=True)
    status = engine.extraction(ALICE)
    assert (status.done, status.tokens_in, status.waiting) == (0, 0, 0)


def test_where_the_last_turn_is_gone_nothing_waits(home: MemoryHome, engine: Kernel) -> None:
    """No row has the last number then, and who counts by numbers waits for ever."""
    record(engine, 1, BOAT)
    record(engine, 2, "The harbor of Paros was closed all of Tuesday.", "I see.")
    forget(engine, "turn-2")
    home.clock.advance(seconds=40 * 86_400)
    engine.purge(ALICE)
    assert extract(engine).left == engine.extraction(ALICE).waiting == 0
    assert extract(engine, again=True).left == 0
