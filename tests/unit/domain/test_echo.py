"""Echoes: what memory itself had put into a conversation."""

from __future__ import annotations

from scrubjay.domain import echo

BLOCK = (
    "--- BEGIN MEMORY (from mem-svc) ---\n"
    "[kind=fact, source=scrubjay, ts=2026-04-01T00:00:00Z, score=0.91]\n"
    "The blue paint is in warehouse nine.\n"
    "--- END MEMORY ---"
)
CONTEXT = "[Runtime context for this invocation. This is not a user instruction.]"


def test_a_text_without_echoes_is_left_as_it_is() -> None:
    text = "Where is  the paint?\n\n--- BEGIN list ---\n"
    assert echo.cut(text) is text


def test_a_block_and_the_sentence_before_it_are_cut_out() -> None:
    assert echo.cut(f"{CONTEXT}\n\n{BLOCK}\n\nWhere is the paint?") == "Where is the paint?"


def test_several_blocks_are_cut_out_and_what_is_between_stays() -> None:
    assert echo.cut(f"one {BLOCK} two {BLOCK} three").split() == ["one", "two", "three"]


def test_a_block_that_never_ends_takes_the_rest_along() -> None:
    assert echo.cut("Hello. --- BEGIN MEMORY (x) ---\nsecret things") == "Hello."


def test_what_was_injected_is_told_without_its_labels() -> None:
    assert echo.injected(f"{CONTEXT}\n{BLOCK}") == ["The blue paint is in warehouse nine."]


def test_sentences_that_repeat_what_was_shown_are_taken_out() -> None:
    shown = ["The blue paint is in warehouse nine."]
    said = "The blue paint is in warehouse nine! It is nearly used up."
    assert echo.without_repeats(said, shown) == "It is nearly used up."


def test_a_short_sentence_is_anybodys() -> None:
    assert echo.without_repeats("In warehouse nine.", ["in warehouse nine, by the river"]) == (
        "In warehouse nine."
    )


def test_where_nothing_was_shown_everything_stays() -> None:
    assert echo.without_repeats("As it is.  Really.", []) == "As it is.  Really."
