"""The picture is well-formed, shows every set, and has colors for light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from scrubjay.surfaces.evaluation.report import (
    Calibration,
    Estimate,
    draw,
    draw_calibration,
    wilson,
)

SVG = "{http://www.w3.org/2000/svg}"


def rising(top: int, end: float) -> list[Estimate]:
    means = [end * k / top for k in range(1, top + 1)]
    return [Estimate(mean, mean * 0.9, mean + (100 - mean) * 0.1) for mean in means]


def drawn(curves: dict[str, Sequence[Estimate]]) -> ElementTree.Element:
    return ElementTree.fromstring(draw(curves))


def heights(picture: ElementTree.Element, kind: str) -> list[float]:
    found = [text for text in picture.iter(f"{SVG}text") if kind in text.get("class", "")]
    return [float(text.get("y", "")) for text in found]


def test_every_set_has_a_line_an_interval_and_its_name_with_the_last_figure() -> None:
    picture = drawn({"apples": rising(20, 80), "pears": rising(20, 60)})
    assert len(list(picture.iter(f"{SVG}polyline"))) == 2
    assert len(list(picture.iter(f"{SVG}polygon"))) == 2
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"apples 80.0", "pears 60.0"} <= set(texts)


def test_more_recall_is_higher_and_deeper_is_further_right() -> None:
    [line] = drawn({"apples": rising(20, 80)}).iter(f"{SVG}polyline")
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
    assert len(points) == 20
    assert points == sorted(points, key=lambda point: (point[0], -point[1]))
    assert points[0][1] > points[-1][1]


def test_a_mark_tells_the_figure_and_its_interval() -> None:
    titles = [title.text for title in drawn({"apples": rising(20, 80)}).iter(f"{SVG}title")]
    assert titles[-1] == "apples, R@20: 80.0 (72.0 to 82.0)"
    assert [title.split(":")[0] for title in titles if title] == [
        f"apples, R@{k}" for k in (1, 5, 10, 20)
    ]


def test_names_do_not_lie_on_each_other_and_stay_on_the_page() -> None:
    for end in (0, 50, 100):
        picture = drawn({f"set {number}": rising(20, end) for number in range(8)})
        found = heights(picture, "name")
        assert all(below - above >= 15 for above, below in pairwise(found))
        assert min(found) > 50
        assert max(found) <= 430


def test_it_has_colors_for_light_and_for_dark_pages() -> None:
    light, dark = draw({"apples": rising(5, 50)}).split("@media (prefers-color-scheme: dark)")
    assert ".line.s0 { stroke: #0a67b8; }" in light
    assert ".line.s0 { stroke: #62b0f5; }" in dark


def test_names_with_markup_are_only_names() -> None:
    picture = drawn({"<b>&": rising(5, 50)})
    assert "<b>& 50.0" in [text.text for text in picture.iter(f"{SVG}text")]


@pytest.mark.parametrize("top", [1, 2, 3, 7, 20, 33, 100, 1_000])
def test_any_depth_can_be_drawn(top: int) -> None:
    picture = drawn({"apples": rising(top, 50)})
    places = [
        float(text.get("x", ""))
        for text in picture.iter(f"{SVG}text")
        if text.text and text.text.isdigit() and text.get("class") == "middle"
    ]
    assert places == sorted(places)
    assert 1 <= len(places) <= 12


def test_calibration_is_drawn_beside_the_line_where_relevance_is_the_share_that_answers() -> None:
    bins = ((0.05, 0.04, 900), (0.55, 0.4, 50))
    found = Calibration(error=0.01, first_error=0.1, kept=99.0, bins=bins, trade_off=())
    picture = ElementTree.fromstring(draw_calibration({"apples": found}))
    ideal, apples = (
        [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
        for line in picture.iter(f"{SVG}polyline")
    )
    assert len(apples) == 2
    slope = (ideal[1][1] - ideal[0][1]) / (ideal[1][0] - ideal[0][0])
    # Fewer answer than relevance promises, so the points lie below that line.
    assert all(y > ideal[0][1] + slope * (x - ideal[0][0]) for x, y in apples)
    titles = [title.text for title in picture.iter(f"{SVG}title")]
    assert titles[-1] == "apples: relevance 0.55, 40.0 % of 50 hits answer"


@pytest.mark.parametrize(("share", "count"), [(0.0, 10), (1.0, 10), (0.5, 100), (0.04, 900)])
def test_an_interval_of_a_share_holds_it_and_is_narrower_of_more(share: float, count: int) -> None:
    low, high = wilson(share, count)
    more = wilson(share, 10 * count)
    assert 0 <= low <= share <= high + 1e-12 <= 1 + 1e-9
    assert more[1] - more[0] < high - low
