"""A data set is read as it is meant, or refused with the place that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.surfaces.evaluation.dataset import NO_CATEGORY, find_sets, read_set
from tests.unit.surfaces.evaluation.scene import HAYSTACK, QUESTION, TURNS, write_set


def without(fields: Mapping[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in fields.items() if key != name}


def changed(**changes: object) -> dict[str, object]:
    """The haystack with something changed in its second turn."""
    return {"id": "h", "turns": [TURNS[0], {**TURNS[1], **changes}, TURNS[2]]}


def refusal(folder: Path) -> str:
    with pytest.raises(InvalidRequest) as caught:
        read_set(folder)
    return caught.value.message


def test_everything_a_line_says_is_read(tmp_path: Path) -> None:
    question = {**QUESTION, "category": "trees", "asked_at": "2024-04-01T10:00:00+02:00"}
    found = read_set(write_set(tmp_path / "orchard", questions=[question]))
    [(haystack, _)] = found.rounds()
    turn = haystack.turns[2]
    assert (found.name, haystack.id, len(haystack.turns)) == ("orchard", "h", 3)
    assert (turn.id, turn.session, turn.position, turn.speaker) == ("t2", "s1", 0, "Ann")
    assert turn.time == datetime(2024, 3, 2, 9, tzinfo=UTC)
    asked = found.questions[0]
    assert (asked.id, asked.text, asked.gold) == ("q", "apple trees", frozenset({"t0"}))
    assert (asked.category, asked.asked_at) == ("trees", datetime(2024, 4, 1, 8, tzinfo=UTC))


def test_what_is_optional_may_be_missing_null_or_empty(tmp_path: Path) -> None:
    turns = [{"id": "t0", "text": "x", "speaker": "", "session": None, "time": ""}]
    question = {**QUESTION, "category": None, "asked_at": None}
    found = read_set(
        write_set(tmp_path, haystacks=[{"id": "h", "turns": turns}], questions=[question])
    )
    [(haystack, [asked])] = found.rounds()
    [turn] = haystack.turns
    assert (turn.speaker, turn.session, turn.position, turn.time) == (None, None, None, None)
    assert (asked.category, asked.asked_at) == (NO_CATEGORY, None)


def test_blank_lines_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    write_set(tmp_path, questions=["", QUESTION, "  "])
    file = tmp_path / "questions.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert len(read_set(tmp_path).questions) == 1


def test_questions_without_gold_are_asked_too(tmp_path: Path) -> None:
    questions = [
        QUESTION,
        {**QUESTION, "id": "q2", "gold": []},
        {**without(QUESTION, "gold"), "id": "q3"},
    ]
    found = read_set(write_set(tmp_path, questions=questions))
    assert [len(question.gold) for question in found.questions] == [1, 0, 0]


def test_a_turn_may_be_of_any_kind_and_is_an_episode_by_default(tmp_path: Path) -> None:
    write_set(tmp_path, haystacks=[changed(kind="preference")])
    [(haystack, _)] = read_set(tmp_path).rounds()
    assert [turn.kind for turn in haystack.turns] == ["episode", "preference", "episode"]


def test_an_unknown_kind_is_refused_by_its_place(tmp_path: Path) -> None:
    message = refusal(write_set(tmp_path, haystacks=[changed(kind="opinion")]))
    assert "haystacks.jsonl:1, turn 2: 'opinion' is no kind of memory" in message


def test_a_set_with_no_gold_at_all_is_refused(tmp_path: Path) -> None:
    message = refusal(write_set(tmp_path, questions=[{**QUESTION, "gold": []}]))
    assert "questions.jsonl" in message
    assert "gold" in message


def test_the_same_gold_named_twice_counts_once(tmp_path: Path) -> None:
    found = read_set(write_set(tmp_path, questions=[{**QUESTION, "gold": ["t0", "t0"]}]))
    assert found.questions[0].gold == {"t0"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "this is not JSON"),
        ("[" * 100_000, "this is not JSON"),
        ("[1]", "this must be a JSON object"),
        ({**QUESTION, "id": "q"}, "the id 'q' was used before, at"),
        (without(QUESTION, "id"), "id is missing"),
        ({**QUESTION, "id": 7}, "id must be text"),
        ({**QUESTION, "id": " "}, "id is empty"),
        ({**QUESTION, "id": "x" * 513}, "id must have at most 512 characters"),
        (without(QUESTION, "haystack") | {"id": "r"}, "haystack is missing"),
        ({**QUESTION, "id": "r", "haystack": "g"}, "there is no haystack 'g'"),
        (without(QUESTION, "question") | {"id": "r"}, "question is missing"),
        ({**QUESTION, "id": "r", "question": "\n"}, "question is empty"),
        ({**QUESTION, "id": "r", "question": "\ud800"}, "question has half a surrogate pair"),
        ({**QUESTION, "id": "r", "gold": "t0"}, "gold must be a list"),
        ({**QUESTION, "id": "r", "gold": [0]}, "gold must be a list of texts"),
        (
            {**QUESTION, "id": "r", "gold": ["t0", "t9"]},
            "the gold turn 't9' is not in haystack 'h'",
        ),
        ({**QUESTION, "id": "r", "asked_at": "in May"}, "asked_at is not an ISO 8601 time"),
        ({**QUESTION, "id": "r", "asked_at": 1714000000}, "asked_at must be text"),
        ({**QUESTION, "id": "r", "category": 4}, "category must be text"),
    ],
)
def test_a_wrong_question_is_refused_by_file_and_line(
    tmp_path: Path, line: object, problem: str
) -> None:
    message = refusal(write_set(tmp_path, questions=[QUESTION, "", line]))
    assert message.startswith(f"{tmp_path / 'questions.jsonl'}:3: {problem}")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id": None}, "id is missing"),
        ({"id": "t0"}, "the id 't0' was used before, at"),
        ({"text": None}, "text is missing"),
        ({"text": 5}, "text must be text"),
        ({"position": "first"}, "position must be a whole number from 0"),
        ({"position": -1}, "position must be a whole number from 0"),
        ({"time": "2024-13-01"}, "time is not an ISO 8601 time"),
        ({"time": "0001-01-01T00:00:00+14:00"}, "time is not an ISO 8601 time"),
        ({"speaker": ["Ann"]}, "speaker must be text"),
        ({"session": "s" * 513}, "session must have at most 512 characters"),
    ],
)
def test_a_wrong_turn_is_refused_by_file_line_and_number(
    tmp_path: Path, changes: dict[str, object], problem: str
) -> None:
    message = refusal(write_set(tmp_path, haystacks=[changed(**changes)]))
    assert message.startswith(f"{tmp_path / 'haystacks.jsonl'}:1, turn 2: {problem}")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"id": "g"}, "turns is missing"),
        ({"id": "g", "turns": "t0"}, "turns must be a list"),
        (HAYSTACK, "the id 'h' was used before, at"),
    ],
)
def test_a_wrong_haystack_is_refused_by_file_and_line(
    tmp_path: Path, line: object, problem: str
) -> None:
    message = refusal(write_set(tmp_path, haystacks=[HAYSTACK, line]))
    assert message.startswith(f"{tmp_path / 'haystacks.jsonl'}:2: {problem}")


def test_a_turn_that_is_no_object_is_refused(tmp_path: Path) -> None:
    message = refusal(write_set(tmp_path, haystacks=[{"id": "h", "turns": ["hello"]}]))
    assert message.endswith("haystacks.jsonl:1, turn 1: this must be a JSON object.")


def test_bytes_that_are_no_text_are_refused_by_line(tmp_path: Path) -> None:
    write_set(tmp_path)
    with (tmp_path / "questions.jsonl").open("ab") as file:
        file.write(b'{"id": "\xff"}\n')
    assert refusal(tmp_path) == f"{tmp_path / 'questions.jsonl'}:2: this is not UTF-8."


def test_a_set_without_questions_is_not_found(tmp_path: Path) -> None:
    write_set(tmp_path)
    (tmp_path / "questions.jsonl").unlink()
    with pytest.raises(NotFound, match=r"questions\.jsonl"):
        read_set(tmp_path)


def test_a_folder_may_be_a_set_itself(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "mine")
    assert find_sets(folder) == (folder,)
    assert find_sets(folder, ["mine"]) == (folder,)


def test_a_folder_may_hold_several_sets_beside_other_things(tmp_path: Path) -> None:
    for name in ("pears", "apples"):
        write_set(tmp_path / name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "README").touch()
    assert [path.name for path in find_sets(tmp_path)] == ["apples", "pears"]


def test_named_sets_come_once_and_in_the_order_they_are_named(tmp_path: Path) -> None:
    for name in ("pears", "apples", "plums"):
        write_set(tmp_path / name)
    found = find_sets(tmp_path, ["plums", "apples", "plums"])
    assert [path.name for path in found] == ["plums", "apples"]


def test_a_set_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    write_set(tmp_path / "apples")
    with pytest.raises(NotFound, match="figs") as caught:
        find_sets(tmp_path, ["figs"])
    assert caught.value.hint == "It has: apples."


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_a_folder_without_sets_is_not_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match=name):
        find_sets(tmp_path / name)


def test_haystacks_nobody_asks_about_are_no_work(tmp_path: Path) -> None:
    found = read_set(write_set(tmp_path, haystacks=[{**HAYSTACK, "id": "idle"}, HAYSTACK]))
    assert [haystack.id for haystack, _ in found.rounds()] == ["h"]
    assert found.steps == 3 + 1
