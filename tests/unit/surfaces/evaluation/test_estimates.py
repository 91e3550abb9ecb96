"""A mean comes with an interval that holds what it claims, and the same one every time."""

from __future__ import annotations

from math import sqrt

import pytest

from scrubjay.surfaces.evaluation.report import Estimate, estimate, quantile


def test_a_mean_is_given_in_percent() -> None:
    assert estimate({"R@10": [1.0, 0.0, 0.5, 0.5]})["R@10"].mean == 50


def test_the_interval_is_as_wide_as_statistics_say() -> None:
    """For 400 yes-or-no answers, a fifth of them yes, the normal interval is 1.96 · 2 points."""
    found = estimate({"any@10": [1.0] * 80 + [0.0] * 320})["any@10"]
    half = 100 * 1.96 * sqrt(0.2 * 0.8 / 400)
    assert found.low == pytest.approx(20 - half, abs=0.5)
    assert found.high == pytest.approx(20 + half, abs=0.5)


def test_the_same_answers_give_the_same_interval() -> None:
    column = [index % 3 / 2 for index in range(50)]
    assert estimate({"x": column}) == estimate({"x": column})


def test_another_seed_gives_another_interval() -> None:
    column = [index % 7 / 6 for index in range(50)]
    assert estimate({"x": column}, seed=1) != estimate({"x": column}, seed=2)


def test_every_question_is_drawn_as_often_as_any_other() -> None:
    """Were one place favored, the mean of the resamples would lean to it."""
    for place in (0, 6, 12):
        found = estimate({"x": [float(index == place) for index in range(13)]})["x"]
        assert found.low == 0
        assert found.high == pytest.approx(100 * 3 / 13)


def test_columns_are_resampled_together() -> None:
    column = [0.0, 0.25, 1.0, 0.5, 0.75]
    both = estimate({"a": column, "b": column})
    assert both["a"] == both["b"]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_single_question_has_an_interval_of_no_width(share: float) -> None:
    assert estimate({"x": [share]})["x"] == Estimate(100 * share, 100 * share, 100 * share)


def test_a_quantile_is_a_value_that_was_seen() -> None:
    hundred = [float(value) for value in range(1, 101)]
    assert quantile(hundred, 0.5) == 50
    assert quantile(hundred, 0.95) == 95
    assert quantile([7.0], 0.95) == 7
    assert quantile([3.0, 9.0], 0) == 3
