"""Names are found in another spelling, and one name is not taken for another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.engine import Kernel
from scrubjay.engine.search.sounds import distance, heard_as, same_name, sound, sounds
from scrubjay.model.memory import Kind
from tests.unit.engine.asking import said
from tests.unit.engine.scene import retain

SAME = (
    *(("Muhammad", "Muhhamed"), ("Mohamed", "Muhammad"), ("Jon", "John"), ("Sara", "Sarah")),
    *(("Katherine", "Catherine"), ("Stephen", "Steven"), ("Melnaie", "Melanie"), ("Ana", "Anna")),
    *(("Katie", "Katy"), ("Micheal", "Michael"), ("Caroline", "Carolyn"), ("Nebraas", "Nebras")),
)
OTHER = (
    ("John", "Jane"),
    ("Joan", "John"),
    ("Martin", "Marvin"),
    ("Tim", "Tom"),
    ("Anna", "Hanna"),
)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_name_is_the_same_in_another_spelling(one: str, other: str) -> None:
    assert same_name(one, other)
    assert same_name(other, one)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_name_is_another_one(one: str, other: str) -> None:
    assert not same_name(one, other)


@given(st.text("abcdeg", max_size=6), st.text("abcdeg", max_size=6))
def test_the_distance_is_the_same_both_ways_and_at_most_the_longer_length(a: str, b: str) -> None:
    assert distance(a, b) == distance(b, a) <= max(len(a), len(b))
    assert (distance(a, b) == 0) == (a == b)


@pytest.mark.parametrize("other", ["Melani", "Mellanie", "Melanei", "Melxanie", "Malanie"])
def test_each_slip_of_a_letter_counts_once(other: str) -> None:
    assert distance("Melanie", other) == 1


@given(st.text(max_size=30))
def test_any_text_has_sounds(text: str) -> None:
    assert all(term.startswith("~") for term in sounds(text))
    if text:
        assert next(heard_as(text)) == "~" + sound(text)


TALK = (
    ("Muhhamed", "I bought a red bicycle."),
    ("Rita", "I bought a blue bicycle."),
    ("Rita", "We saw Katherine and Deborah at the lake."),
    ("Rita", "Then Katherine swam across, and Deborah sang."),
    ("Rita", "The bus was late."),
)


@pytest.fixture
def talk(engine: Kernel) -> Kernel:
    for position, (speaker, text) in enumerate(TALK):
        retain(engine, text, speaker=speaker, session="s", position=position, kind=Kind.EPISODE)
    return engine


def test_a_speaker_is_found_in_another_spelling(talk: Kernel) -> None:
    assert said(talk, "Which bicycle did Muhammad buy?")[0] == TALK[0][1]
    assert said(talk, "Which bicycle did Ritta buy?")[0] == TALK[1][1]


@pytest.mark.parametrize("name", ["Catherine", "Kathrine", "Katehrine", "Debora", "Debroah"])
def test_people_mentioned_often_are_found_in_another_spelling(talk: Kernel, name: str) -> None:
    assert set(said(talk, f"Where is {name}?", limit=2)) == {TALK[2][1], TALK[3][1]}


def test_a_name_that_is_here_is_taken_as_it_is_spelled(talk: Kernel) -> None:
    retain(talk, "Kathrine is the sister of Ben.")
    assert said(talk, "Who is Kathrine?")[0] == "Kathrine is the sister of Ben."
    retain(talk, "Ritta bought no bicycle.")
    assert said(talk, "Which bicycle did Ritta buy?")[0] == "Ritta bought no bicycle."
