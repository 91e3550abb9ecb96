"""Any order of arrival is the live order: what is derived follows from the set of turns."""

from __future__ import annotations

from itertools import permutations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from scrubjay.engine import Kernel
from scrubjay.model.pages import Paged
from scrubjay.model.requests import Amend, Forget
from scrubjay.model.turns import Record, State
from tests.support.engines import MemoryHome
from tests.unit.engine.saying import record, recorded, said, shown, state
from tests.unit.engine.scene import ALICE

WORDS = (
    "Read me the report of today.", "Read me the report of today!", "My dentist is Dr. Wu.",
    "My dentist is Dr. Lee.", "I prefer tea.", "I prefer tea!", "heartbeat", "ok",
    "Where is the museum of trains?", "From now on, be brief.", "Actually, my dentist is Dr. Hu.",
    "My account number for the rent is 1111, and I will need it for the form of the new landlord.",
    "My account number for the rent is 2222, and I will need it for the form of the new landlord.",
    "The appointment with the tall dentist by the old river bridge is on Monday morning at nine.",
    "The appointment with the tall dentist by the old river bridge is on Tuesday morning at nine.",
)  # fmt: skip
TURNS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(WORDS)), min_size=1, max_size=16)


def test_every_order_of_four_turns_gives_the_same() -> None:
    turns = [
        said(1, "Read me the report of today.", "It is dry."),
        said(2, "My dentist is Dr. Wu."),
        said(3, "Read me the report of today!", "It is dry."),
        said(4, "Actually, my dentist is Dr. Hu."),
    ]
    expected = state(recorded(turns))
    assert all(state(recorded(order)) == expected for order in permutations(turns))


@given(turns=TURNS, seed=st.integers(0, 2**16), gone=st.sets(st.integers(0, 15), max_size=4))
def test_any_order_and_any_forgetting_gives_what_the_surviving_turns_give(
    turns: list[tuple[int, str]], seed: int, gone: set[int]
) -> None:
    """Turns arrive in any order, some are forgotten on the way: what is left counts, alone."""
    made = [
        Record(id=f"t{number}", at=said(minute, "").at, user=words, assistant="I see.")
        for number, (minute, words) in enumerate(turns)
    ]
    shuffled = Random(seed).sample(made, len(made))
    lost = [one for number, one in enumerate(shuffled) if number in gone]
    home = MemoryHome()
    engine = recorded(shuffled, home)
    for one in lost:
        engine.forget(ALICE, Forget(ids=(str(one.id),)))
    kept = sorted((one for one in made if one not in lost), key=lambda one: (one.at, one.id))
    assert state(engine) == state(recorded(kept))
    assert engine.verify(ALICE).sound


def test_a_late_turn_makes_its_follower_a_repetition(engine: Kernel) -> None:
    record(engine, 2, "Read me the report of today.", "It is dry.")
    assert len(shown(engine)) == 1
    record(engine, 1, "Read me the report of today.", "It is dry.")
    states = [moment.state for moment in engine.timeline(ALICE, Paged(10)).moments]
    assert states == [State.KEPT, State.REPEATED]
    assert len(shown(engine)) == 1


def test_a_pinned_memory_is_not_taken_back_when_its_turn_becomes_a_repetition(
    engine: Kernel,
) -> None:
    receipt = record(engine, 2, "Read me the report of today.", "It is dry.")
    engine.amend(ALICE, Amend(receipt.memories[0], pinned=True))
    record(engine, 1, "Read me the report of today.", "It is dry.")
    assert len(shown(engine)) == 2


def test_the_work_of_a_late_turn_is_bounded() -> None:
    """Before two hundred turns it changes as many rows as before thirty, but for a split leaf."""

    def changed(count: int) -> int:
        engine = recorded(said(n, f"Tell me of city {n}.") for n in range(1, count))
        before = engine.head(ALICE)
        record(engine, 0, "Tell me of the first city.")
        after = engine.head(ALICE)
        return sum(
            getattr(after, name).seq - getattr(before, name).seq
            for name in ("memory", "turn", "session")
        )

    assert changed(250) <= changed(30) + 1


def test_turns_of_the_same_second_have_one_order(engine: Kernel) -> None:
    same = [
        Record(id=f"t{n}", at=said(0, "").at, user=f"My dentist is Dr. {name}.")
        for n, name in enumerate(("Wu", "Lee", "Hu", "Smith"))
    ]
    expected = state(recorded(same))
    assert all(state(recorded(order)) == expected for order in permutations(same))


def test_the_timeline_is_whole_through_many_leaves(engine: Kernel) -> None:
    order = Random(7).sample(range(400), 400)
    for number in order:
        record(engine, number, "ok", "ok")
    moments = engine.timeline(ALICE, Paged(1_000)).moments
    assert [moment.id for moment in moments] == [f"turn-{number}" for number in range(400)]
    latest = engine.timeline(ALICE, Paged(10))
    assert [moment.id for moment in latest.moments] == [f"turn-{n}" for n in range(390, 400)]
    assert (latest.earlier, latest.since) == (390, said(0, "").at)
    assert engine.verify(ALICE).sound


def test_a_thing_said_of_very_often_is_one_chain_in_any_order() -> None:
    turns = [said(n, f"My tea of the day is number {n}.") for n in range(150)]
    live, shuffled = recorded(turns), recorded(Random(5).sample(turns, len(turns)))
    assert state(shuffled) == state(live)
    assert live.verify(ALICE).sound
