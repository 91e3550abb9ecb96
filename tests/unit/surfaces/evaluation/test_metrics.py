"""The figures are what their names say, by examples worked out by hand."""

from __future__ import annotations

from math import log2

import pytest

from scrubjay.surfaces.evaluation import report

RANKED = tuple("abcdefghijklmnopqrst")


def judged(name: str, ranked: tuple[str, ...], gold: str) -> float:
    [measure] = [measure for measure in report.measures(20) if measure.name == name]
    return measure.judge(ranked, frozenset(gold))


@pytest.mark.parametrize(("name", "expected"), [("R@5", 1 / 4), ("R@10", 2 / 4), ("R@20", 3 / 4)])
def test_recall_is_the_share_of_the_gold_among_the_first_k(name: str, expected: float) -> None:
    assert judged(name, RANKED, "bjtZ") == expected


def test_the_kth_place_counts_and_the_next_does_not() -> None:
    assert judged("R@5", RANKED, "e") == 1
    assert judged("R@5", RANKED, "f") == 0


def test_recall_is_not_capped_when_there_is_more_gold_than_places() -> None:
    assert judged("R@5", RANKED, "abcdefghij") == 1 / 2


def test_any_asks_for_one_of_the_gold_and_all_for_every_one() -> None:
    assert (judged("any@10", RANKED, "jt"), judged("all@10", RANKED, "jt")) == (1, 0)
    assert (judged("any@10", RANKED, "aj"), judged("all@10", RANKED, "aj")) == (1, 1)
    assert (judged("any@10", RANKED, "kt"), judged("all@10", RANKED, "kt")) == (0, 0)


def test_ndcg_is_one_when_the_gold_comes_first_in_any_order() -> None:
    assert judged("nDCG@10", ("b", "a", "x"), "ab") == 1


def test_ndcg_discounts_by_the_logarithm_of_the_rank() -> None:
    # Gold at ranks 2 and 4: 1/log2(3) + 1/log2(5), over the best, 1/log2(2) + 1/log2(3).
    expected = (0.6309297535714575 + 0.43067655807339306) / (1 + 0.6309297535714575)
    assert judged("nDCG@10", ("x", "a", "y", "b"), "ab") == pytest.approx(expected)


def test_ndcg_compares_with_ten_places_when_there_is_more_gold() -> None:
    assert judged("nDCG@10", RANKED, "abcdefghijklm") == pytest.approx(1)


def test_ndcg_sees_nothing_beyond_ten() -> None:
    assert judged("nDCG@10", RANKED, "k") == 0
    assert judged("nDCG@10", RANKED, "j") == pytest.approx(1 / log2(11))


def test_the_reciprocal_rank_is_that_of_the_first_gold_turn() -> None:
    assert judged("MRR", RANKED, "td") == 1 / 4
    assert judged("MRR", RANKED, "Z") == 0


def test_an_empty_answer_scores_nothing_anywhere() -> None:
    assert {m.judge((), frozenset("a")) for m in report.measures(20)} == {0}


def test_a_figure_deeper_than_what_was_recalled_is_not_given() -> None:
    assert [m.name for m in report.measures(10)] == [
        "R@5", "R@10", "any@10", "all@10", "nDCG@10", "MRR",
    ]  # fmt: skip
    assert [m.name for m in report.measures(4)] == ["MRR"]


def test_the_curve_has_recall_at_every_depth() -> None:
    curve = [m.judge(RANKED, frozenset("bd")) for m in report.recall_curve(5)]
    assert curve == [0, 0.5, 0.5, 1, 1]
