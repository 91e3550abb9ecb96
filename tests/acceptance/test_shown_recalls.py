"""Every recall that README, docs and demo show answers first what a person would."""

from __future__ import annotations

from pathlib import Path

import pytest

import scrubjay
from examples import demo


@pytest.fixture
def jay(tmp_path: Path) -> scrubjay.Jay:
    return scrubjay.open("alice", home=tmp_path)


def first(jay: scrubjay.Jay, question: str) -> str:
    return jay.recall(question)[0].memory.content


def test_the_readme_cooks_without_peanuts(jay: scrubjay.Jay) -> None:
    jay.retain("Alice is allergic to peanuts", kind="fact", tags=["health"])
    tea = jay.retain("Alice prefers green tea", kind="preference")
    jay.supersede(tea.id, "Alice prefers white tea", reason="she said so")
    assert first(jay, "What may I cook for Alice?") == "Alice is allergic to peanuts"


def test_the_command_line_of_the_readme_cooks_without_peanuts(jay: scrubjay.Jay) -> None:
    jay.retain("Alice is allergic to peanuts", tags=["health"])
    jay.retain("Always answer in one sentence", kind="instruction", pinned=True)
    assert first(jay, "what may I cook?") == "Alice is allergic to peanuts"


def test_the_quickstart_finds_when_the_cello_began(jay: scrubjay.Jay) -> None:
    jay.retain("Alice's dentist is Dr. Wu in Lyon", tags=["health"], key="dentist")
    turns = ("I am learning to play the cello.", "Since when?", "Since May.")
    for position, text in enumerate(turns):
        speaker = ("Alice", "Bob")[position % 2]
        jay.retain(text, kind="episode", speaker=speaker, session="monday", position=position)
    found = [hit.memory.content for hit in jay.recall("When did Alice begin to play the cello?")]
    assert found[0] in {turns[0], turns[2]}
    assert set(found[:3]) == set(turns)


def test_the_quickstart_finds_the_manual(jay: scrubjay.Jay) -> None:
    jay.retain("The router's manual is in the blue folder", tags=["home"])
    jay.retain("Never book flights before 9", kind="instruction")
    found = first(jay, "where is the manual of the router")
    assert found == "The router's manual is in the blue folder"


def test_the_howto_asks_two_scopes(jay: scrubjay.Jay, tmp_path: Path) -> None:
    with scrubjay.open("team", home=tmp_path) as team:
        team.retain("The office is closed on Fridays")
    jay.retain("My desk is on the third floor")
    found = jay.recall("When is the office closed?", scopes=["team"])[0].memory.content
    assert found == "The office is closed on Fridays"


def test_the_howto_knows_where_alice_lives(jay: scrubjay.Jay) -> None:
    lyon = jay.retain("Alice lives in Lyon")
    jay.supersede(lyon.id, "Alice lives in Nantes")
    assert first(jay, "Where does Alice live?") == "Alice lives in Nantes"


DEMO = (
    "Alice's daughter Mia is allergic to peanuts",
    "I am learning to play the cello.",
    "Alice prefers white tea",
)


def test_the_demo_answers_as_a_person_would(jay: scrubjay.Jay) -> None:
    tea, _ = demo.fill(jay)
    jay.supersede(tea, "Alice prefers white tea", reason="her doctor spoke of caffeine")
    assert tuple(first(jay, question) for question in demo.QUESTIONS) == DEMO
