"""The ranking: better evidence first, and every score explained."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.engine.search.question import ParsedQuery, Window
from scrubjay.engine.search.ranking import Evidence, RankColumns, Ranked, arrange, best, score

SIGNS = ("timed", "asks", "instructs", "prefers")


def scene(rows: int, **given: Any) -> RankColumns:
    """Rows of one session, 150 characters each, said by nobody at no time."""
    signs = {name: np.array(given.pop(name, [False] * rows), np.bool_) for name in SIGNS}
    defaults = {
        "session": np.zeros(rows, np.int32),
        "position": np.arange(rows, dtype=np.int32),
        "speaker": np.full(rows, -1, np.int32),
        "time": np.full(rows, np.nan),
        "length": np.full(rows, 150, np.float32),
        "importance": np.full(rows, 0.5, np.float32),
        "trust": np.ones(rows, np.float32),
        "pinned": np.zeros(rows, np.bool_),
    }
    chosen = {name: np.array(value, defaults[name].dtype) for name, value in given.items()}
    return arrange(signs=signs, **(defaults | chosen))


def order(query: ParsedQuery, columns: RankColumns, words: list[float] | None = None) -> list[int]:
    return [found.row for found in ranked(query, columns, words)]


def ranked(
    query: ParsedQuery, columns: RankColumns, words: list[float] | None = None, limit: int = 10
) -> list[Ranked]:
    scores = np.array(words if words is not None else [0] * len(columns), np.float32)
    evidence = Evidence(words=scores, coverage=scores / np.float32(10))
    return best(score(query, columns, [evidence]), limit=limit)


def test_more_matching_words_rank_higher() -> None:
    assert order(ParsedQuery(), scene(4, session=[0, 1, 2, 3]), [1, 3, 0, 2]) == [1, 3, 0, 2]


def test_equal_rows_keep_their_order() -> None:
    assert order(ParsedQuery(), scene(5)) == [0, 1, 2, 3, 4]
    assert [found.row for found in ranked(ParsedQuery(), scene(5), limit=2)] == [0, 1]


def test_the_speaker_asked_about_comes_first() -> None:
    query = ParsedQuery(asked=frozenset({1}))
    assert order(query, scene(3, speaker=[0, 1, 0]))[0] == 1


def test_a_turn_that_answers_a_matching_question_rises() -> None:
    columns = scene(4, speaker=[0, 0, 1, 0], asks=[False, True, False, False])
    assert order(ParsedQuery(), columns, [0, 5, 0, 0])[:2] == [1, 2]


def test_long_neighbors_pass_on_little() -> None:
    short = ranked(ParsedQuery(), scene(2), [5, 0])[1].parts["nearby"]
    long = ranked(ParsedQuery(), scene(2, length=[3000, 150]), [5, 0])[1].parts["nearby"]
    assert long < short / 10


def test_neighbors_are_those_of_the_session_wherever_the_rows_are() -> None:
    columns = scene(4, session=[7, 3, 7, 3], position=[1, 0, 0, 1])
    assert columns.previous.tolist() == [2, -1, -1, 1]
    assert columns.following.tolist() == [-1, 3, 0, -1]


def test_rows_without_a_session_have_no_neighbors() -> None:
    columns = scene(3, session=[-1, -1, -1])
    assert columns.previous.tolist() == columns.following.tolist() == [-1, -1, -1]


def test_a_session_with_matches_lifts_its_other_rows() -> None:
    columns = scene(6, session=[0, 0, 0, 0, 1, 1])
    assert order(ParsedQuery(), columns, [5, 0, 0, 0, 0, 0])[-2:] == [4, 5]


def test_several_things_asked_for_are_looked_for_in_several_sessions() -> None:
    columns, words = scene(4, session=[0, 0, 0, 1]), [5, 4.98, 4.97, 4.98]
    assert order(ParsedQuery(), columns, words) == [0, 1, 2, 3]
    assert order(ParsedQuery(many=True), columns, words)[:2] == [0, 3]
    found = ranked(ParsedQuery(many=True), columns, words)
    assert [each.parts.get("again", 0) < 0 for each in found] == [False, False, True, True]
    few = ranked(ParsedQuery(many=True), columns, words, limit=2)
    assert [each.row for each in few] == [each.row for each in found[:2]]


@pytest.mark.parametrize(("length", "third"), [(10, 1), (150, 2)])
def test_a_question_stands_right_behind_a_reply_too_short_to_be_understood(
    length: int, third: int
) -> None:
    columns = scene(
        4,
        session=[0, 0, 0, 1],
        speaker=[0, 1, 0, 0],
        asks=[False, True, False, False],
        length=[150, 12, length, 150],
    )
    found = order(ParsedQuery(), columns, [5, 0, 4, 1])
    assert (found[1], found[2] == third) == (2, third == 1)


def test_meaning_outweighs_a_trivial_match_where_a_row_stands_alone() -> None:
    evidence = Evidence(
        words=np.array([1, 0], np.float32),
        coverage=np.array([0.1, 0], np.float32),
        meaning=np.array([0, 0.5], np.float32),
    )
    for session, first in (([0, 1], 0), ([-1, -1], 1)):
        found = best(score(ParsedQuery(), scene(2, session=session), [evidence]), limit=2)
        assert found[0].row == first


def test_each_row_is_weighed_by_what_it_has() -> None:
    evidence = Evidence(
        words=np.array([2, 2], np.float32), coverage=np.array([0.5, 0.5], np.float32)
    )
    mixed = best(score(ParsedQuery(), scene(2, session=[0, -1]), [evidence]), limit=2)
    parts = {each.row: set(each.parts) for each in mixed}
    assert parts == {0: {"words", "coverage", "session"}, 1: {"holds"}}


def test_each_of_two_questions_in_one_has_its_best_row_first() -> None:
    def match(*coverage: float) -> Evidence:
        held = np.array(coverage, np.float32)
        return Evidence(words=10 * held, coverage=held)

    # The second one is matched less well by any row, and would be drowned by the first one's.
    parts = [match(1, 0.9, 0.8, 0), match(0, 0, 0, 0.9)]
    found = best(score(ParsedQuery(), scene(4, session=[0, 1, 2, 3]), parts), limit=2)
    assert {one.row for one in found} == {0, 3}
    assert sum(found[0].parts.values()) == pytest.approx(found[0].score)


def test_what_answers_one_of_two_questions_gains_where_its_session_answers_the_other_one() -> None:
    def match(row: int) -> Evidence:
        held = np.zeros(3, np.float32)
        held[row] = 1
        return Evidence(words=held, coverage=held, meaning=held - np.float32(0.1))

    columns = scene(3, session=[0, 0, 1])
    together, apart = (score(ParsedQuery(), columns, [match(0), match(row)]) for row in (1, 2))
    assert together.features["session"][0] == 2 * apart.features["session"][0]


def test_rows_of_the_time_asked_about_rise() -> None:
    window = Window(datetime(2023, 5, 1, tzinfo=UTC), datetime(2023, 6, 1, tzinfo=UTC))
    times = [datetime(2023, month, 10, tzinfo=UTC).timestamp() for month in (4, 5, 6)]
    assert order(ParsedQuery(windows=(window,)), scene(3, time=times))[0] == 1


def test_what_was_said_after_the_question_sinks() -> None:
    asked_at = datetime(2023, 5, 1, tzinfo=UTC)
    times = [asked_at.timestamp() + days * 86400 for days in (5, -5, -200)]
    assert order(ParsedQuery(asked_at=asked_at), scene(3, time=times)) == [1, 2, 0]


@pytest.mark.parametrize(
    ("query", "sign"),
    [
        (ParsedQuery(when=True), "timed"),
        (ParsedQuery(advice=True), "instructs"),
        (ParsedQuery(advice=True), "prefers"),
    ],
)
def test_rows_that_show_what_is_asked_for_rise(query: ParsedQuery, sign: str) -> None:
    columns = scene(3, **{sign: [False, False, True]})
    assert order(query, columns, [1, 1, 1])[0] == 2
    assert order(ParsedQuery(), columns, [1, 1, 1])[0] == 0


def test_a_standing_wish_counts_only_where_it_is_about_the_question() -> None:
    columns = scene(2, instructs=[False, True])
    assert order(ParsedQuery(advice=True), columns) == [0, 1]


def test_what_an_assistant_says_is_no_standing_wish() -> None:
    query = ParsedQuery(advice=True, assistants=frozenset({1}))
    columns = scene(2, speaker=[1, 0], instructs=[True, True])
    assert order(query, columns, [1, 1])[0] == 1


def test_very_short_turns_sink() -> None:
    assert order(ParsedQuery(), scene(3, length=[8, 200, 90])) == [1, 2, 0]


def test_age_orders_the_young_and_leaves_the_old_alone() -> None:
    asked_at = datetime(2026, 5, 1, tzinfo=UTC)
    days = [2000, 500, 40, 1]
    times = [asked_at.timestamp() - each * 86400 for each in days]
    found = {
        each.row: each for each in ranked(ParsedQuery(asked_at=asked_at), scene(4, time=times))
    }
    assert [found[row].parts["age"] for row in (0, 1)] == [found[0].parts["age"]] * 2
    assert found[1].parts["age"] < found[2].parts["age"] < found[3].parts["age"] < 0


def test_trust_and_importance_break_ties() -> None:
    assert order(ParsedQuery(), scene(3, trust=[0.2, 1, 1])) == [1, 2, 0]
    assert order(ParsedQuery(), scene(3, importance=[0.5, 0.5, 0.9])) == [2, 0, 1]
    assert order(ParsedQuery(), scene(3, pinned=[False, True, False])) == [1, 0, 2]


def test_only_allowed_rows_are_ranked() -> None:
    allowed = np.array([False, True, False])
    evidence = Evidence(words=np.ones(3, np.float32), coverage=np.ones(3, np.float32))
    found = best(score(ParsedQuery(), scene(3), [evidence]), limit=10, allowed=allowed)
    assert [each.row for each in found] == [1]


def test_an_empty_scope_ranks_nothing() -> None:
    assert order(ParsedQuery(when=True, advice=True), scene(0)) == []


@given(
    words=st.lists(st.floats(0, 60, width=32), min_size=1, max_size=30),
    lengths=st.integers(1, 9000),
    advice=st.booleans(),
)
def test_parts_sum_to_scores_within_bounds_that_never_rise(
    words: list[float], lengths: int, advice: bool
) -> None:
    columns = scene(len(words), length=[lengths] * len(words), instructs=[True] * len(words))
    found = ranked(ParsedQuery(advice=advice, when=True), columns, words, limit=20)
    scores = [each.score for each in found]
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert all(sum(each.parts.values()) == pytest.approx(each.score, abs=1e-12) for each in found)
