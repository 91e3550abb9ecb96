"""A trial writes everything, asks everything, and deletes what it came to delete."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench.peers import canary, trial
from bench.peers.material import Material, Question, Turn
from bench.peers.vectors import DIMENSIONS, Vectors


class Forgetful:
    """A subject of one file, whose delete leaves the text where it was when told to."""

    def __init__(self, folder: Path, *, forgets: bool) -> None:
        self._file = folder / "file"
        self._forgets = forgets
        self.lines: list[str] = []
        self.order: list[str] = []

    def version(self) -> str:
        return "forgetful 1"

    def write(self, turn: Turn) -> object:
        self.order.append(turn.id)
        self.lines.append(turn.line)
        self._file.write_text("\n".join(self.lines))
        return turn.line

    def search(self, question: Question, limit: int) -> list[str]:
        return [turn for turn in self.order if turn in question.text][:limit]

    def delete(self, turn: Turn, handle: object) -> None:
        assert handle == turn.line
        if self._forgets:
            self.lines.remove(turn.line)
            self._file.write_text("\n".join(self.lines))

    def close(self) -> None:
        self._file = Path("closed")


def turn(number: int) -> Turn:
    return Turn(
        owner="h", id=f"t{number}", session="s", position=number, speaker="Ann", time=None, text="x"
    )


def go_on() -> None:
    """Wait for nobody."""


@pytest.fixture
def given() -> Material:
    asked = Question(owner="h", id="q", text="where is t3?", asked_at=None, gold=("t3",))
    return Material(turns=tuple(map(turn, range(20))), questions=(asked,))


@pytest.mark.parametrize(("forgets", "left"), [(True, 0), (False, trial.CANARIES)])
def test_copies_left_by_a_delete_are_told(
    tmp_path: Path, given: Material, forgets: bool, left: int
) -> None:
    result = trial.perform(
        Forgetful(tmp_path, forgets=forgets), given, tmp_path, before=0, pause=go_on
    )

    assert result.copies_written == trial.CANARIES
    assert result.copies_deleted == left


def test_every_turn_is_written_in_order_with_canaries_spread_among_them(
    tmp_path: Path, given: Material
) -> None:
    subject = Forgetful(tmp_path, forgets=True)

    result = trial.perform(subject, given, tmp_path, before=0, pause=go_on)

    turns = [written for written in subject.order if not written.startswith(canary.MARK)]
    birds = [n for n, written in enumerate(subject.order) if written.startswith(canary.MARK)]
    assert turns == [turn.id for turn in given.turns]
    assert len(result.writes) == len(turns)
    assert len(birds) == trial.CANARIES
    assert min(later - sooner for sooner, later in pairwise(birds)) > 2


def test_what_was_found_is_noted_per_question(tmp_path: Path, given: Material) -> None:
    result = trial.perform(
        Forgetful(tmp_path, forgets=True), given, tmp_path, before=0, pause=go_on
    )

    assert result.ranked == {"q": ["t3"]}


def test_vectors_come_back_from_disk_as_they_were(tmp_path: Path) -> None:
    rows = np.arange(2 * DIMENSIONS, dtype=np.float32).reshape(2, DIMENSIONS)
    np.save(tmp_path / "rows.npy", rows)
    (tmp_path / "texts.json").write_text('["one", "two"]')

    assert Vectors.load(tmp_path).list("two") == rows[1].tolist()


def test_the_work_is_done_in_equal_shares_with_a_pause_before_each(
    tmp_path: Path, given: Material
) -> None:
    subject = Forgetful(tmp_path, forgets=True)
    written: list[int] = []

    trial.perform(
        subject, given, tmp_path, before=0, pause=lambda: written.append(len(subject.order))
    )

    writing, asking = written[: trial.SHARES], written[trial.SHARES :]
    assert writing[0] == 0
    assert max(later - sooner for sooner, later in pairwise(writing)) <= 2
    assert len(asking) == min(trial.SHARES, len(given.questions))
