"""Postings: which rows hold a term, and how well each row answers."""

from __future__ import annotations

import numpy as np
import pytest

from scrubjay.engine.search import postings
from scrubjay.engine.search.analysis import Wanted
from scrubjay.engine.search.postings import Postings

ROWS = [["a", "b"], ["b", "b", "c"], ["d"], [], ["a", "c", "e", "f"]]


def _match(parts: list[Postings], wanted: list[Wanted]) -> postings.Match:
    return postings.Terms.of(parts).match(wanted)


def same(one: Postings, other: Postings) -> bool:
    arrays = ("keys", "starts", "rows", "counts", "lengths")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)


def test_a_segment_finds_rows_and_counts() -> None:
    ((rows, counts),) = Postings.of(ROWS).find(["b"])
    assert rows.tolist() == [0, 1]
    assert counts.tolist() == [1, 2]
    assert Postings.of(ROWS).find(["z"])[0][0].tolist() == []
    assert [rows.tolist() for rows, _ in Postings.of([[]]).find(["a", "b"])] == [[], []]


def test_a_packed_segment_comes_back_the_same() -> None:
    segment = Postings.of([*ROWS, ["中", "中国", "line\nbreak"]])
    assert same(Postings.unpack(segment.pack()), segment)


def test_what_is_no_segment_is_refused() -> None:
    with pytest.raises(ValueError, match="no postings"):
        Postings.unpack(b"junk")


def test_merged_segments_equal_one_built_at_once() -> None:
    parts = [Postings.of(ROWS[:2]), Postings.of(ROWS[2:])]
    keep = [np.ones(2, np.bool_), np.ones(3, np.bool_)]
    assert same(Postings.merge(parts, keep), Postings.of(ROWS))


def test_a_merge_leaves_no_trace_of_rows_not_kept() -> None:
    parts = [Postings.of(ROWS[:3]), Postings.of(ROWS[3:])]
    keep = [np.array([True, False, False]), np.array([True, True])]
    merged = Postings.merge(parts, keep)
    assert same(merged, Postings.of([ROWS[0], ROWS[3], ROWS[4]]))
    assert postings.keys_of(["d"])[0] not in merged.keys


def test_nothing_merges_to_nothing() -> None:
    assert same(Postings.merge([], []), Postings.of([]))


def test_a_term_is_counted_no_higher_than_its_bytes_allow() -> None:
    ((_, counts),) = Postings.of([["a"] * 70_000, ["a"]]).find(["a"])
    assert counts.tolist() == [postings.MOST_COUNTED, 1]


def test_a_segment_holds_no_words() -> None:
    packed = Postings.of([["xylophone", "中国"]]).pack()
    assert b"xylophone" not in packed
    assert "中国".encode() not in packed


def test_the_split_into_segments_does_not_change_scores() -> None:
    wanted = [Wanted("b"), Wanted("c", 0.5, {"e": 0.6})]
    whole = _match([Postings.of(ROWS)], wanted)
    split = _match([Postings.of(ROWS[:3]), Postings.of(ROWS[3:])], wanted)
    assert np.allclose(whole.scores, split.scores)
    assert np.allclose(whole.coverage, split.coverage)


def test_terms_weighed_one_by_one_or_at_once_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [Wanted("b", 1.0, {"d": 0.3}), Wanted("a"), Wanted("c", 0.5, {"e": 0.6, "f": 0.7})]
    at_once = _match([Postings.of(ROWS)], wanted)
    monkeypatch.setattr(postings, "_BATCH", 1)
    one_by_one = _match([Postings.of(ROWS)], wanted)
    for name in ("scores", "coverage", "shared"):
        found, expected = getattr(at_once, name), getattr(one_by_one, name)
        assert found.tolist() == expected.tolist()
        assert found.any()


def test_rare_terms_count_more_and_long_rows_less() -> None:
    scores = _match([Postings.of(ROWS)], [Wanted("a"), Wanted("d")]).scores
    assert scores[2] > scores[0] > scores[4] > scores[3] == 0


def test_a_near_term_counts_less_than_the_term_itself() -> None:
    rows = [["dog", "x"], ["puppy", "x"], ["x", "x"]]
    matched = _match([Postings.of(rows)], [Wanted("dog", 1.0, {"puppy": 0.5})])
    assert matched.scores[0] > matched.scores[1] > matched.scores[2] == 0
    assert matched.coverage.tolist() == [1, 0.5, 0]


def test_what_no_row_holds_is_not_missed() -> None:
    rows = [["dog"], ["x"]]
    matched = _match([Postings.of(rows)], [Wanted("dog"), Wanted("dgo")])
    assert matched.coverage.tolist() == [1, 0]


def test_an_empty_scope_has_no_scores() -> None:
    assert len(_match([], [Wanted("a")]).scores) == 0
    assert _match([Postings.of(ROWS)], []).scores.tolist() == [0] * 5
