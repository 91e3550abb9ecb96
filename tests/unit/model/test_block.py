"""The block: memories for a prompt, one line each, which cannot end it or pass for another."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from scrubjay.model import block, echo
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.origin import Origin
from scrubjay.model.results import Hit, Recalled
from scrubjay.model.scope import Scope
from scrubjay.model.text import tokens
from tests.strategies import texts

DAY = datetime(2026, 5, 1, 8, 30, tzinfo=UTC)


def memory(content: str, **more: Any) -> Memory:
    known: dict[str, Any] = {"id": "mem-1", "kind": Kind.FACT, "recorded_at": DAY}
    return Memory(content=content, **(known | more))


def answer(*memories: Memory) -> Recalled:
    scope = Scope("local", "alice")
    return Recalled(hits=tuple(Hit(memory=one, score=0.5, why={}, scope=scope) for one in memories))


def lines(markdown: str) -> list[str]:
    return [one for one in markdown.splitlines() if one.startswith("- [")]


def test_a_line_has_kind_origin_and_the_day_it_was_said() -> None:
    said = memory(
        "Alice is vegan.", provenance=Provenance(said_at=datetime(2025, 1, 2, tzinfo=UTC))
    )
    noted = memory("The site says so.", origin=Origin.WEB)
    assert lines(answer(said, noted).markdown()) == [
        "- [fact, user, 2025-01-02] Alice is vegan.",
    ]
    assert lines(answer(noted).markdown()) == ["- [fact, web, 2026-05-01] The site says so."]


TURN = {"kind": Kind.EPISODE, "origin": Origin.AGENT}


@pytest.mark.parametrize(
    ("content", "more", "told"),
    [
        ("I like tea.", {}, "User: I like tea."),
        ("I'm vegan.", {"speaker": "Alice"}, "Alice: I'm vegan."),
        ("My dog is Luna.", {"origin": Origin.AGENT}, "Agent: My dog is Luna."),
        ("Ich mag Tee.", {}, "User: Ich mag Tee."),
        ("In May she left.", {}, "In May she left."),
        ("User likes tea.", {}, "User likes tea."),
        ("My dog is Luna.\n→ Nice!", TURN, "User: My dog is Luna. → Nice!"),
        ("Rain today?\n→ No.", TURN | {"speaker": "Ann"}, "Ann: Rain today? → No."),
        ("My dog is Luna.", TURN, "Agent: My dog is Luna."),
    ],
)
def test_the_first_person_has_a_name(content: str, more: dict[str, Any], told: str) -> None:
    assert block.line(memory(content, **more)).endswith(f"] {told}\n")


def test_an_answer_without_hits_is_no_block() -> None:
    assert answer().markdown() == ""
    assert answer(memory("x" * 4000)).markdown(max_tokens=100) == ""


def test_a_block_keeps_to_its_tokens_and_later_lines_may_still_fit() -> None:
    found = answer(memory("short one"), memory("long " * 400), memory("short two"))
    markdown = found.markdown(max_tokens=120)
    assert [one.rpartition("] ")[2] for one in lines(markdown)] == ["short one", "short two"]
    assert tokens(markdown) <= 120


def test_untrusted_lines_have_at_most_their_share_beside_trusted_ones() -> None:
    web = [memory("From the web: " + "x" * 100, origin=Origin.WEB) for _ in range(3)]
    markdown = answer(*web, memory("Said by the user " + "y" * 100)).markdown()
    assert ["web" in one for one in lines(markdown)] == [False]


@given(texts())
def test_no_memory_ends_its_block_and_the_block_is_cut_out_of_a_turn(content: str) -> None:
    markdown = answer(memory(content)).markdown()
    assert len(markdown.splitlines()) == 4
    assert echo.cut(f"before\n{markdown}after") == "before\n\nafter"
