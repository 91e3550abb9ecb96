"""Every recall that README, docs and demo show answers first what a person would."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import scrubjay
from examples import demo
from scrubjay import bootstrap, settings
from scrubjay.surfaces.clawdapus.routes import Plane

ROOT = Path(__file__).parents[2]
SHOWING = (
    *(ROOT / "README.md", ROOT / "examples" / "demo.py", ROOT / "tools" / "terminal_picture.py"),
    *sorted((ROOT / "docs").glob("*.md")),
)
_ASKED = re.compile(
    r"""recall(?:\(| )"([^"]+)"|\\?"query\\?": \\?"([^"\\]+)|"content": "([^"]+\?)\""""
)


def test_every_question_that_is_shown_is_asked_here() -> None:
    asked = Path(__file__).read_text().lower()
    shown = {
        question
        for page in SHOWING
        for found in _ASKED.findall(page.read_text())
        for question in found
        if question
    }
    assert len(shown) >= 12
    assert [question for question in shown if question.lower() not in asked] == []


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
    assert set(found[:2]) == {turns[0], turns[2]}  # what only asks comes after what tells
    assert found[2] == turns[1]  # and before what has nothing to do with it


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


def test_the_demo_goes_on_with_the_rent_and_without_what_is_forgotten(jay: scrubjay.Jay) -> None:
    _, regret = demo.fill(jay)
    assert "rent" in first(jay, "When is the rent due?")
    assert first(jay, "Is Alice looking for another job?") == demo.SECRET
    jay.forget([regret])
    assert demo.SECRET not in [
        hit.memory.content for hit in jay.recall("Is Alice looking for another job?")
    ]


def test_the_picture_cooks_without_peanuts(jay: scrubjay.Jay) -> None:
    jay.retain("Bob is visiting on Friday", tags=["family"])
    jay.retain("Never book flights before 9", kind="instruction")
    jay.retain("The cello lesson is on Tuesday at six")
    jay.retain("Alice is allergic to peanuts", tags=["health"])
    assert first(jay, "what may I cook for Alice?") == "Alice is allergic to peanuts"


def test_the_command_line_page_and_the_service_know_what_alice_drinks(jay: scrubjay.Jay) -> None:
    jay.retain("Alice is allergic to peanuts")
    jay.retain("Alice prefers green tea", kind="preference")
    assert first(jay, "What does Alice drink?") == "Alice prefers green tea"
    assert first(jay, "what does Alice drink") == "Alice prefers green tea"


def test_the_page_of_carapace_finds_the_dark_mode(jay: scrubjay.Jay) -> None:
    jay.retain("Prefers light rain", kind="preference")
    jay.retain("Prefers dark mode", kind="preference")
    assert first(jay, "dark mode") == "Prefers dark mode"


def test_the_howto_tells_people_apart(tmp_path: Path) -> None:
    with scrubjay.Engine(tmp_path) as engine:
        for person in ("Ann", "Ben"):
            engine.scope(f"people/{person.lower()}").retain(f"The name is {person}", key="name")
        assert first(engine.scope("people/ann"), "What is the name?") == "The name is Ann"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When is tea?", "Tea at four"),
        ("how to make tea", "Green tea, two minutes, 80 degrees"),
    ],
)
def test_the_howto_knows_its_tea(jay: scrubjay.Jay, question: str, answer: str) -> None:
    jay.retain("The office is closed on Fridays")
    jay.retain(answer)
    assert first(jay, question) == answer


def test_the_howto_reads_a_past_state(jay: scrubjay.Jay) -> None:
    lyon = jay.retain("Alice lives in Lyon")
    then = datetime.now(UTC)
    jay.supersede(lyon.id, "Alice lives in Nantes")
    past = jay.recall("Where does Alice live?", as_of=then)
    assert past[0].memory.content == "Alice lives in Lyon"


def test_the_page_of_the_plane_offers_tea(tmp_path: Path) -> None:
    engine = bootstrap.build(settings.at_home(tmp_path))
    plane = Plane(engine)
    entry = {
        "id": "hist1_1",
        "ts": "2026-04-03T14:32:01Z",
        "request_original": {"messages": [{"role": "user", "content": "I prefer tea."}]},
        "response": {"format": "json", "json": {"choices": [{"message": {"content": "Noted."}}]}},
    }
    plane.answer("retain", json.dumps({"agent_id": "a", "entry": entry}).encode())
    asked = {"agent_id": "a", "messages": [{"role": "user", "content": "Tea or coffee?"}]}
    blocks = json.loads(plane.answer("recall", json.dumps(asked).encode()).body)["memories"]
    assert blocks[0]["text"] == "User prefers tea."
    engine.close()
