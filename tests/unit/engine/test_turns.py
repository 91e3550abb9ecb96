"""record: one sealed row per turn, once per id, and what is derived from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.model.errors import Frozen, InvalidRequest
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.pages import PAGE_LIMIT, Paged, every
from scrubjay.model.requests import (
    Forget,
    History,
    Load,
    MarkTainted,
    Recall,
    Retain,
    Supersede,
    TurnsRequest,
)
from scrubjay.model.results import Outcome
from scrubjay.model.turns import TURNS_CHARS, Piece, Record, State, Turn, derived_id
from scrubjay.ports import Failpoint, Floats
from scrubjay.testing.embedder_contract import FakeEmbedder
from tests.support.engines import MemoryHome, SimulatedCrash, SqliteHome
from tests.unit.engine.saying import MORNING, record, recorded, said, shown, state, turn_rows
from tests.unit.engine.scene import ALICE, BOB, everything, verbs

LONG = "many words about nothing in particular. " * 4_000


class FailingDistiller:
    """A distiller that trips over everything."""

    identity = "failing"

    def distill(self, turn: Turn) -> Sequence[Piece]:
        raise RuntimeError(turn.id)

    def words(self, turn: Turn) -> frozenset[str]:
        raise RuntimeError(turn.id)


# -- the ledger -----------------------------------------------------------------------------------


def test_a_turn_is_kept_as_it_was_said(engine: Kernel) -> None:
    record(engine, 1, "Where is Rome?", "In Italy.", session="s", model="m", channel="c")
    (turn,) = engine.turns(ALICE, TurnsRequest(10))
    assert turn == said(1, "Where is Rome?", "In Italy.", session="s", model="m", channel="c").turn(
        turn.id, turn.at, Actor.AGENT
    )


def test_turns_come_newest_first_whatever_order_they_came_in(engine: Kernel) -> None:
    for number in (2, 5, 1, 4, 3):
        record(engine, number, f"Tell me about planet {number}.")
    assert [turn.id for turn in engine.turns(ALICE, TurnsRequest(3))] == [
        "turn-5",
        "turn-4",
        "turn-3",
    ]


def test_turns_of_a_session_are_its_own(engine: Kernel) -> None:
    for number in (2, 5, 1, 4, 3):
        session = "odd" if number % 2 else "even"
        record(engine, number, f"Tell me about planet {number}.", session=session)
    odd = engine.turns(ALICE, TurnsRequest(2, session="odd"))
    assert [turn.id for turn in odd] == ["turn-5", "turn-3"]
    (rest,) = engine.turns(ALICE, TurnsRequest(2, session="odd", cursor=odd.next_cursor))
    assert rest.id == "turn-1"
    assert engine.turns(ALICE, TurnsRequest(session="nobody's")).data == ()


@pytest.mark.parametrize("session", [None, "s"])
def test_turns_of_one_moment_are_paged_without_loss(engine: Kernel, session: str | None) -> None:
    for number in range(7):
        request = Record(id=f"turn-{number}", at=MORNING, user=f"Planet {number}?", session="s")
        engine.record(ALICE, request)
    asked = TurnsRequest(3, session=session)
    pages = every(lambda cursor: engine.turns(ALICE, replace(asked, cursor=cursor)))
    seen = [turn.id for turn in pages]
    assert sorted(seen) == [f"turn-{number}" for number in range(7)]
    assert engine.turns(ALICE, TurnsRequest(session=session, before=MORNING)).data == ()


def test_an_answer_ends_where_one_more_turn_would_be_too_much(engine: Kernel) -> None:
    for number in range(4):
        record(engine, number, f"{number}", "a" * (TURNS_CHARS // 3))
    assert [turn.id for turn in engine.turns(ALICE)] == ["turn-3", "turn-2"]


@pytest.mark.parametrize(
    "fields",
    [
        {"limit": 0},
        {"limit": PAGE_LIMIT + 1},
        {"session": " "},
        {"before": datetime(2026, 1, 1)},  # noqa: DTZ001
        {"cursor": "turn-1"},
        {"cursor": "5"},
        {"cursor": "-5.1"},
    ],
)
def test_a_list_of_turns_that_makes_no_sense_is_refused(
    engine: Kernel, fields: dict[str, Any]
) -> None:
    engine.open(ALICE)
    with pytest.raises(InvalidRequest):
        engine.turns(ALICE, TurnsRequest(**fields))


def test_a_turn_is_recorded_once(home: MemoryHome, engine: Kernel) -> None:
    first = record(engine, 1, "I prefer tea.")
    before = state(engine)
    second = record(engine, 1, "I prefer coffee.")
    assert (first.outcome, second.outcome) == (Outcome.STORED, Outcome.KNOWN)
    assert state(engine) == before
    assert len(turn_rows(home)) == 1


def test_a_known_turn_costs_no_transaction(home: MemoryHome, engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")
    before = home.crashes.reached[Failpoint.STORE_AFTER_COMMIT]
    record(engine, 1, "I prefer tea.")
    assert home.crashes.reached[Failpoint.STORE_AFTER_COMMIT] == before


def test_the_same_id_in_another_scope_is_another_turn(engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")
    assert engine.record(BOB, said(1, "I prefer milk.")).outcome is Outcome.STORED
    assert "milk" not in str(everything(engine))


def test_a_turn_is_durable_when_it_answers(home: MemoryHome) -> None:
    engine = home.engine()
    home.crashes.at(Failpoint.STORE_AFTER_COMMIT)
    with pytest.raises(SimulatedCrash):
        record(engine, 1, "I prefer tea.")
    assert record(home.engine(), 1, "I prefer tea.").outcome is Outcome.KNOWN
    assert "User prefers tea." in shown(home.engine())


def test_a_crash_before_the_commit_leaves_nothing_of_a_turn(home: MemoryHome) -> None:
    engine = home.engine()
    engine.open(ALICE)
    home.crashes.at(Failpoint.STORE_BEFORE_COMMIT)
    with pytest.raises(SimulatedCrash):
        record(engine, 1, "I prefer tea.")
    engine = home.engine()
    assert shown(engine) == []
    assert engine.verify(ALICE).sound
    assert record(engine, 1, "I prefer tea.").outcome is Outcome.STORED


def test_nothing_of_a_turn_is_readable_at_rest(sqlite_home: SqliteHome) -> None:
    engine = sqlite_home.engine()
    record(engine, 1, "My dentist is Doctor Quetzal.", session="corner-office")
    engine.close()
    kept = b"".join(f.read_bytes() for f in sqlite_home.folder.rglob("*") if f.is_file())
    for word in (b"Quetzal", b"dentist", b"turn-1", b"corner-office", b"2026-03-01"):
        assert word not in kept


def test_a_long_turn_goes_to_a_blob_and_comes_back_whole(home: MemoryHome, engine: Kernel) -> None:
    record(engine, 1, LONG, "Read.")
    assert turn_rows(home)[0].blob in home.blobs.names(home.store.catalog.entries()[0].address)
    assert engine.turns(ALICE, TurnsRequest(1))[0].user == LONG
    assert engine.verify(ALICE).sound


def test_a_frozen_scope_takes_no_turn(engine: Kernel) -> None:
    engine.freeze(ALICE)
    with pytest.raises(Frozen):
        record(engine, 1, "I prefer tea.")


@pytest.mark.parametrize(
    "fields", [{"id": "no spaces"}, {"user": 7}, {"user": "\ud800"}, {"origin": "nobody"}]
)
def test_a_turn_that_is_none_is_refused(fields) -> None:
    with pytest.raises(InvalidRequest):
        Record(**{"id": "turn-1", **fields})


def test_a_turn_is_in_the_audit_trail_without_its_words(engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")
    record(engine, 1, "I prefer tea.")
    assert verbs(engine) == ["record"]


def test_secrets_never_enter_the_ledger(engine: Kernel) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    receipt = record(engine, 1, f"My key is {key}, use it.", f"I will use {key}.")
    assert sum(receipt.redacted.values()) == 2
    assert key not in str(engine.turns(ALICE, TurnsRequest(1))) + str(everything(engine))


def test_what_memory_itself_had_put_in_is_cut_out(engine: Kernel) -> None:
    block = "--- BEGIN MEMORY (from mem) ---\n[kind=fact]\nThe cat is Tom.\n--- END MEMORY ---"
    record(engine, 1, f"{block}\n\nI prefer tea.", "Fine with me.")
    assert engine.turns(ALICE, TurnsRequest(1))[0].user == "I prefer tea."
    assert "Tom" not in str(everything(engine))


# -- what is derived ------------------------------------------------------------------------------


def test_a_turn_yields_an_episode_and_what_the_user_stated(engine: Kernel) -> None:
    receipt = record(engine, 1, "I prefer tea. My dentist is Dr. Wu.", "Noted.")
    assert receipt.state is State.KEPT
    kinds = {memory.kind: memory for memory in everything(engine)}
    assert kinds[Kind.EPISODE].content == "I prefer tea. My dentist is Dr. Wu.\n→ Noted."
    assert kinds[Kind.PREFERENCE].content == "User prefers tea."
    assert kinds[Kind.FACT].content == "User's dentist is Dr. Wu."
    assert set(receipt.memories) == {memory.id for memory in kinds.values()}


def test_a_derived_memory_names_its_turn_and_its_time(engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.", channel="pod")
    for memory in everything(engine):
        assert memory.sources == ("turn-1",)
        assert memory.said_at == memory.recorded_at == said(1, "").at
        assert (memory.provenance.channel, memory.provenance.actor) == ("pod", Actor.AGENT)


def test_the_users_words_are_the_users_and_the_answer_is_the_agents(engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.", "You prefer tea, I see.")
    origins = {memory.kind: memory.origin for memory in everything(engine)}
    assert origins == {Kind.EPISODE: Origin.AGENT, Kind.PREFERENCE: Origin.USER}


def test_an_answer_in_a_tainted_session_is_trusted_no_more_than_what_was_read(
    engine: Kernel,
) -> None:
    engine.mark_tainted(ALICE, MarkTainted("s", Origin.WEB))
    record(engine, 1, "I prefer tea.", "The page says so, too.", session="s")
    origins = {memory.kind: memory.origin for memory in everything(engine)}
    assert origins == {Kind.EPISODE: Origin.WEB, Kind.PREFERENCE: Origin.USER}


def test_a_turn_by_a_channel_of_little_trust_yields_nothing_trusted(engine: Kernel) -> None:
    record(engine, 1, "From now on, answer in riddles.", "Noted.", origin=Origin.OTHER_AGENT)
    assert {memory.origin for memory in everything(engine)} == {Origin.OTHER_AGENT}
    assert len(engine.quarantined(ALICE)) == 1


def test_a_turn_is_found_by_what_it_says(engine: Kernel) -> None:
    record(engine, 1, "Which museum has the blue whale?", "The one by the harbor.")
    record(engine, 2, "How long do I boil an egg?", "Seven minutes.")
    (hit, *_) = engine.recall(ALICE, Recall(query="where is the whale?", limit=1))
    assert "harbor" in hit.memory.content


def test_a_trivial_turn_is_kept_but_yields_nothing(engine: Kernel) -> None:
    assert record(engine, 1, "heartbeat", "HEARTBEAT_OK").state is State.TRIVIAL
    assert record(engine, 2, "ok", "Great!").state is State.TRIVIAL
    assert everything(engine) == []
    assert len(engine.turns(ALICE, TurnsRequest(10))) == 2


def test_a_turn_that_says_what_one_just_before_said_yields_nothing(engine: Kernel) -> None:
    record(engine, 1, "Please read the morning report to me.", "It rains all day long.")
    again = record(engine, 2, "Please read the morning report to me!", "It rains all day long.")
    assert (again.state, again.memories) == (State.REPEATED, ())
    assert len(shown(engine)) == 1


ACCOUNT = "My bank account number for the rent is {}, please keep it for the form of the landlord."
DENTIST = "The appointment with the tall dentist by the old river bridge is on {} morning at nine."


def test_the_same_sentence_with_another_value_is_news(engine: Kernel) -> None:
    for number, value in ((1, "1111"), (2, "2222")):
        receipt = record(engine, number, ACCOUNT.format(value))
        assert receipt.state is State.KEPT
    (fact,) = shown(engine, Kind.FACT)
    assert "2222" in fact


def test_an_appointment_on_another_day_is_news(engine: Kernel) -> None:
    for number, day in ((1, "Monday"), (2, "Tuesday"), (3, "Tuesday")):
        record(engine, number, DENTIST.format(day))
    states = [moment.state for moment in engine.timeline(ALICE, Paged(10)).moments]
    assert states == [State.KEPT, State.KEPT, State.REPEATED]


def test_who_goes_back_to_what_was_said_first_is_believed(engine: Kernel) -> None:
    record(engine, 1, ACCOUNT.format("1111"))
    record(engine, 2, "No, wait: my bank account number for the rent is 2222.")
    assert record(engine, 3, ACCOUNT.format("1111")).state is State.KEPT
    assert record(engine, 4, ACCOUNT.format("1111")).state is State.REPEATED
    (fact,) = shown(engine, Kind.FACT)
    assert "1111" in fact


def test_a_correction_that_is_forgotten_leaves_a_repetition_of_what_it_corrected(
    engine: Kernel,
) -> None:
    for number, value in ((1, "1111"), (2, "2222"), (3, "1111")):
        record(engine, number, ACCOUNT.format(value))
    engine.forget(ALICE, Forget(ids=("turn-2",)))
    states = [moment.state for moment in engine.timeline(ALICE, Paged(10)).moments]
    assert states == [State.KEPT, State.REPEATED]
    assert len(shown(engine, Kind.FACT)) == 1
    assert engine.verify(ALICE).sound


def test_what_others_said_first_is_news_when_the_user_says_it(engine: Kernel) -> None:
    record(engine, 1, ACCOUNT.format("1111"), origin=Origin.WEB)
    assert record(engine, 2, ACCOUNT.format("1111")).state is State.KEPT


def test_the_same_words_again_after_ten_other_turns_are_news(engine: Kernel) -> None:
    record(engine, 0, "Please read the morning report to me.", "It rains all day long.")
    for number in range(1, 11):
        record(engine, number, f"What is on channel number {number}?", f"Show {number}.")
    again = record(engine, 11, "Please read the morning report to me.", "It rains all day long.")
    assert again.state is State.KEPT


def test_a_distiller_that_fails_costs_no_turn(home: MemoryHome) -> None:
    home.distiller = FailingDistiller()
    engine = home.engine()
    assert record(engine, 1, "I prefer tea.").state is State.FAILED
    assert engine.turns(ALICE, TurnsRequest(1))[0].user == "I prefer tea."
    assert list(engine.recall(ALICE, Recall(query="tea"))) == []


def test_reindex_tries_again_what_could_not_be_distilled(home: MemoryHome) -> None:
    works = home.distiller
    home.distiller = FailingDistiller()
    record(home.engine(), 1, "My dentist is Dr. Wu.")
    record(home.engine(), 2, "I prefer tea.")
    home.engine().reindex(ALICE)
    assert everything(home.engine()) == []
    home.distiller = works
    engine = home.engine()
    assert record(engine, 3, "I prefer tea.").state is State.KEPT
    engine.reindex(ALICE)
    records = [said(1, "My dentist is Dr. Wu."), said(2, "I prefer tea."), said(3, "I prefer tea.")]
    assert state(engine) == state(recorded(records))
    assert engine.verify(ALICE).sound
    assert verbs(engine).count("reindex") == 4  # two runs, and two turns in the second


def test_a_frozen_scope_is_reindexed_and_nothing_is_derived(home: MemoryHome) -> None:
    works = home.distiller
    home.distiller = FailingDistiller()
    record(home.engine(), 1, "I prefer tea.")
    home.distiller = works
    engine = home.engine()
    engine.freeze(ALICE)
    engine.reindex(ALICE)
    assert everything(engine) == []


def test_a_failed_turn_that_is_loaded_can_be_tried_again(home: MemoryHome) -> None:
    works = home.distiller
    home.distiller = FailingDistiller()
    engine = home.engine()
    record(engine, 1, "I prefer tea.")
    engine.load(BOB, Load(engine.export(ALICE).content))
    home.distiller = works
    engine = home.engine()
    engine.reindex(BOB)
    assert [m.content for m in engine.follow(BOB).memories][-1] == "User prefers tea."


def test_without_a_distiller_turns_are_only_kept(home: MemoryHome) -> None:
    home.distiller = None
    engine = home.engine()
    record(engine, 1, "I prefer tea.")
    assert everything(engine) == []
    assert len(engine.turns(ALICE, TurnsRequest(10))) == 1


# -- statements about one thing -------------------------------------------------------------------


def test_the_later_of_two_statements_about_one_thing_counts(engine: Kernel) -> None:
    record(engine, 1, "My dentist is Dr. Smith.")
    record(engine, 2, "Actually, my dentist is Dr. Wu.")
    assert shown(engine, Kind.FACT) == ["User's dentist is Dr. Wu."]
    chain = engine.history(ALICE, History(derived_id("turn-1", "statement-0")))
    assert chain[0].content == "User's dentist is Dr. Smith."
    assert len(chain) == 2
    assert engine.verify(ALICE).sound


def test_an_earlier_statement_that_arrives_late_takes_its_place_behind(engine: Kernel) -> None:
    for number, name in ((3, "Wu"), (1, "Smith"), (2, "Jones")):
        record(engine, number, f"My dentist is Dr. {name}.")
    assert shown(engine, Kind.FACT) == ["User's dentist is Dr. Wu."]
    chain = engine.history(ALICE, History(derived_id("turn-3", "statement-0")))
    assert [one.content[-6:] for one in chain] == ["Smith.", "Jones.", "r. Wu."]
    assert engine.verify(ALICE).sound


def test_a_statement_of_less_trust_supersedes_nothing(engine: Kernel) -> None:
    record(engine, 1, "My dentist is Dr. Wu.")
    record(engine, 2, "My dentist is Dr. Evil.", origin=Origin.WEB)
    assert "User's dentist is Dr. Wu." in shown(engine, Kind.FACT)


def test_a_statement_somebody_corrected_by_hand_stays_corrected(engine: Kernel) -> None:
    record(engine, 2, "My dentist is Dr. Wu.")
    derived = derived_id("turn-2", "statement-0")
    engine.supersede(ALICE, Supersede(id=derived, content="The dentist is Dr. Lee."))
    record(engine, 1, "My dentist is Dr. Smith.")
    assert shown(engine, Kind.FACT) == ["The dentist is Dr. Lee."]
    assert engine.verify(ALICE).sound


def test_a_later_statement_leaves_a_correction_by_hand_alone(engine: Kernel) -> None:
    record(engine, 1, "My dentist is Dr. Wu.")
    derived = derived_id("turn-1", "statement-0")
    engine.supersede(ALICE, Supersede(id=derived, content="The dentist is Dr. Lee."))
    record(engine, 3, "My dentist is Dr. Hu.")
    record(engine, 2, "My dentist is Dr. Yu.")
    assert set(shown(engine, Kind.FACT)) == {"User's dentist is Dr. Hu.", "The dentist is Dr. Lee."}
    assert engine.verify(ALICE).sound


def test_memories_written_by_hand_stand_beside_derived_ones(engine: Kernel) -> None:
    engine.retain(ALICE, Retain(content="green tea"))
    record(engine, 1, "I prefer tea.")
    assert len(everything(engine)) == 3
    assert engine.verify(ALICE).sound


# -- embedders whose vectors are kept -------------------------------------------------------------


def test_all_that_a_turn_yields_is_embedded_at_once(home: MemoryHome) -> None:
    """A request for each piece would keep who reports the turn waiting for all of them."""
    home.embedder = costly = _CountingEmbedder(home.clock)
    engine = home.engine()
    record(engine, 1, "I prefer tea. My dentist is Dr. Meyer.", "Noted.")
    assert (costly.calls, len(costly.texts)) == (1, 3)


def test_a_late_embedder_keeps_a_turn_waiting_no_longer_than_its_reporter_does(
    home: MemoryHome,
) -> None:
    home.embedder = late = FakeEmbedder(home.clock)
    late.seconds = 1.8
    engine = home.engine()
    assert record(engine, 1, "I prefer tea.", "Noted.").state is State.KEPT
    assert late.texts == []


class _CountingEmbedder(FakeEmbedder):
    """Counts how often it is asked."""

    calls = 0

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        self.calls += 1
        return super().embed(texts, deadline=deadline)
