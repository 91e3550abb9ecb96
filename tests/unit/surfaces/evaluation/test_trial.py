"""A trial retains every turn, asks every question, and leaves nothing behind."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from tempfile import gettempdir

import pytest

from scrubjay.surfaces.evaluation.dataset import Dataset, read_set
from scrubjay.surfaces.evaluation.trial import Trial, attempt, pieces
from tests.unit.surfaces.evaluation.scene import HAYSTACK, QUESTION, TURNS, Opened, write_set

SECOND = {"id": "g", "turns": [{"id": "t0", "text": "A walnut tree."}]}


@pytest.fixture
def opened() -> Opened:
    return Opened()


def tried(dataset: Dataset, opened: Opened, *, top: int = 20) -> Trial:
    return attempt(dataset, top=top, opening=opened.opening, watch=lambda: None)


def test_a_turn_is_retained_with_all_that_is_known_of_it(tmp_path: Path, opened: Opened) -> None:
    tried(read_set(write_set(tmp_path)), opened)
    memory = opened.all[0].memories[2]
    assert (memory.content, memory.kind) == ("The apple harvest was poor.", "episode")
    assert (memory.speaker, memory.position) == ("Ann", 0)
    assert memory.provenance.session == "s1"
    assert memory.provenance.message_id == "t2"
    assert memory.provenance.said_at == datetime(2024, 3, 2, 9, tzinfo=UTC)


def test_a_turn_is_retained_as_the_kind_it_names(tmp_path: Path, opened: Opened) -> None:
    turns = [{"id": "t0", "text": "I prefer tea.", "kind": "preference"}]
    tried(read_set(write_set(tmp_path, haystacks=[{"id": "h", "turns": turns}])), opened)
    assert opened.all[0].memories[0].kind == "preference"


def test_a_question_is_asked_as_of_its_time_and_to_the_depth_wanted(
    tmp_path: Path, opened: Opened
) -> None:
    question = {**QUESTION, "asked_at": "2024-05-01T12:00:00"}
    tried(read_set(write_set(tmp_path, questions=[question])), opened, top=7)
    assert opened.all[0].asked == [("apple trees", 7, datetime(2024, 5, 1, 12, tzinfo=UTC))]


def test_an_answer_has_the_ids_of_the_turns_best_first(tmp_path: Path, opened: Opened) -> None:
    [answer] = tried(read_set(write_set(tmp_path)), opened).answers
    assert (answer.ranked, answer.scores) == (("t0", "t2"), (2.0, 1.0))


def test_haystacks_do_not_see_each_other(tmp_path: Path, opened: Opened) -> None:
    questions = [QUESTION, {**QUESTION, "id": "r", "haystack": "g"}]
    write_set(tmp_path, haystacks=[HAYSTACK, SECOND], questions=questions)
    trial = tried(read_set(tmp_path), opened)
    assert len({memory.home for memory in opened.all}) == 2
    assert [answer.ranked for answer in trial.answers] == [("t0", "t2"), ()]


def test_turns_without_text_are_counted_and_can_only_be_missed(
    tmp_path: Path, opened: Opened
) -> None:
    turns = [*TURNS, {"id": "t3", "text": "  "}]
    question = {**QUESTION, "gold": ["t3"]}
    write_set(tmp_path, haystacks=[{"id": "h", "turns": turns}], questions=[question])
    trial = tried(read_set(tmp_path), opened)
    assert (trial.turns, trial.empty, len(opened.all[0].memories)) == (3, 1, 3)
    assert "t3" not in trial.answers[0].ranked


def test_a_turn_too_long_for_one_memory_is_ranked_once_by_its_best_piece(
    tmp_path: Path, opened: Opened
) -> None:
    turns = [{"id": "t0", "text": "apple trees " * 5_000 + "apple " * 3_000}]
    write_set(tmp_path, haystacks=[{"id": "h", "turns": turns}])
    [answer] = tried(read_set(tmp_path), opened).answers
    assert [len(memory.content) < 65_536 for memory in opened.all[0].memories] == [True, True]
    assert (answer.ranked, answer.scores) == (("t0",), (2.0,))


@pytest.mark.parametrize(
    "text", ["short", "ab cd ef gh ij", "ж漢ж漢ж漢ж漢", "x" * 25, "a" + " " * 30]
)
def test_pieces_fit_and_lose_no_word(text: str) -> None:
    found = list(pieces(text, 10))
    assert all(len(piece.encode()) <= 10 and piece.strip() for piece in found)
    assert "".join(found).replace(" ", "") == text.replace(" ", "")


def test_degraded_answers_are_noted(tmp_path: Path) -> None:
    [answer] = tried(read_set(write_set(tmp_path)), Opened(degraded=("By words alone.",))).answers
    assert answer.degraded == ("By words alone.",)


def test_every_step_is_told(tmp_path: Path, opened: Opened) -> None:
    dataset = read_set(write_set(tmp_path, haystacks=[HAYSTACK, SECOND]))
    steps: list[None] = []
    attempt(dataset, top=20, opening=opened.opening, watch=lambda: steps.append(None))
    assert len(steps) == dataset.steps == 4


def test_the_first_question_of_each_haystack_is_marked(tmp_path: Path, opened: Opened) -> None:
    asked = [("q", "h"), ("r", "g"), ("s", "h")]
    questions = [{**QUESTION, "id": id, "haystack": of} for id, of in asked]
    write_set(tmp_path, haystacks=[HAYSTACK, SECOND], questions=questions)
    trial = tried(read_set(tmp_path), opened)
    found = [(answer.question.id, answer.first) for answer in trial.answers]
    assert found == [("q", True), ("s", False), ("r", True)]


def test_what_it_cost_is_measured(tmp_path: Path, opened: Opened) -> None:
    trial = tried(read_set(write_set(tmp_path)), opened)
    assert trial.retain_seconds > 0
    assert trial.answers[0].seconds > 0
    assert 5 < trial.peak_ram_mib < 100_000


def test_a_home_is_a_temporary_folder_that_is_gone_afterwards(
    tmp_path: Path, opened: Opened
) -> None:
    tried(read_set(write_set(tmp_path)), opened)
    [memory] = opened.all
    assert memory.home.parent == Path(gettempdir())
    assert memory.closed
    assert not memory.home.exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_is_left_when_it_ends_early(
    tmp_path: Path, opened: Opened, error: type[BaseException]
) -> None:
    def stop() -> None:
        raise error

    dataset = read_set(write_set(tmp_path))
    with pytest.raises(error):
        attempt(dataset, top=20, opening=opened.opening, watch=stop)
    [memory] = opened.all
    assert memory.closed
    assert not memory.home.exists()
