"""What everybody is given is the same, and can be looked up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bench.peers import canary, material
from bench.peers.vectors import DIMENSIONS, Vectors


def write_set(folder: Path, texts: Sequence[str], gold: Sequence[Sequence[str]]) -> Path:
    """A set of one conversation, with one question per list of gold turns."""
    turns = [
        {"id": f"t{n}", "session": "s", "position": n, "speaker": "Ann", "time": None, "text": text}
        for n, text in enumerate(texts)
    ]
    questions = [
        {"id": f"q{n}", "haystack": "h", "question": f"what {n}?", "asked_at": None, "gold": own}
        for n, own in enumerate(gold)
    ]
    (folder / "haystacks.jsonl").write_text(json.dumps({"id": "h", "turns": turns}) + "\n")
    (folder / "questions.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    return folder


def test_a_shorter_run_asks_only_what_its_turns_can_answer(tmp_path: Path) -> None:
    folder = write_set(tmp_path, ["a", "b", "c"], [["t0"], ["t0", "t2"], ["t2"]])

    given = material.read(folder, turns=2)

    assert [turn.id for turn in given.turns] == ["t0", "t1"]
    assert [question.id for question in given.questions] == ["q0"]


def test_turns_that_say_nothing_and_questions_without_an_answer_are_left_out(
    tmp_path: Path,
) -> None:
    given = material.read(write_set(tmp_path, ["a", "  "], [["t0"], []]))

    assert [turn.id for turn in given.turns] == ["t0"]
    assert [question.id for question in given.questions] == ["q0"]


def test_the_texts_are_all_lines_and_all_questions(tmp_path: Path) -> None:
    given = material.read(write_set(tmp_path, ["a", "a"], [["t0"]]))

    assert set(given.texts) == {"Ann: a", "a", "what 0?"}
    assert len(given.texts) == 3


def test_a_text_that_was_not_embedded_has_no_vector() -> None:
    vectors = Vectors(["known"], np.ones((1, DIMENSIONS), np.float32))

    assert vectors.row("known")[0] == 1
    with pytest.raises(KeyError):
        vectors.row("unknown")


def test_a_canary_always_has_the_same_vector_of_length_1() -> None:
    vectors = Vectors([], np.empty((0, DIMENSIONS), np.float32))
    one, other = canary.hatch("one", 2)

    assert vectors.list(one.line) == vectors.list(one.line) != vectors.list(other.line)
    assert np.linalg.norm(vectors.row(one.line)) == pytest.approx(1)
