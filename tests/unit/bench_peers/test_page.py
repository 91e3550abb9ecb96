"""The page and the picture say what was measured, and what was not."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

import pytest

from bench.peers import environments, plot, report
from bench.peers.figures import Absence, Row, Times, row
from bench.peers.material import Material, Question
from bench.peers.roster import ENTRANTS, Entrant
from bench.peers.trial import Result

OURS, PEER = ENTRANTS[0], ENTRANTS[-1]
QUESTIONS = (
    Question(owner="h", id="q0", text="?", asked_at=None, gold=("t0",)),
    Question(owner="h", id="q1", text="?", asked_at=None, gold=("t1", "t2")),
)


def figures(
    entrant: Entrant,
    *,
    ranked: Sequence[Sequence[str]] = (("t0",), ("t1",)),
    writes: Sequence[float] = (0.001,) * 20,
    ended: int = 0,
) -> Row:
    """A row made from the least a trial can have seen."""
    result = Result(
        version="some 1.0",
        writes=list(writes),
        writes_cpu=list(writes),
        searches=[0.002, 0.004],
        searches_cpu=0.002,
        deletes=[0.003],
        ranked={f"q{number}": list(ids) for number, ids in enumerate(ranked)},
        ram=50_000_000,
        canaries=[],
        copies_written=5,
        copies_deleted=5,
    )
    return row(entrant, result, QUESTIONS, ended=ended)


def page(*outcomes: Row | Absence) -> str:
    occasion = report.Occasion(
        command="make bench-peers",
        dataset="some set",
        material=Material(turns=(), questions=QUESTIONS),
        seconds=60,
        load="0.10 / 0.10 / 0.10",
        was_busy=False,
        secure_delete=True,
    )
    return report.render(outcomes, occasion, picture="peers.svg")


def test_recall_is_a_mean_of_shares_and_complete_counts_whole_answers() -> None:
    half = figures(PEER)

    assert half.recall.mean == pytest.approx(75)
    assert half.complete.mean == pytest.approx(50)


def test_only_the_first_ten_results_count() -> None:
    others = [f"x{number}" for number in range(10)]

    assert figures(PEER, ranked=[[*others, "t0"], []]).recall.mean == 0


def test_growth_compares_the_last_tenth_with_the_first() -> None:
    times = Times.of([*[0.001] * 10, *[0.5] * 80, *[0.004] * 10])

    assert times.growth == pytest.approx(4)
    assert times.p50 == pytest.approx(500)


def test_a_store_in_memory_has_no_copies_on_disk() -> None:
    (in_memory,) = [entrant for entrant in ENTRANTS if not entrant.on_disk]

    assert figures(in_memory).remains is None
    assert "not on disk" in page(figures(in_memory))


def test_the_page_names_who_is_ahead_of_ours_and_in_what() -> None:
    better = figures(PEER, ranked=[["t0"], ["t1", "t2"]])

    text = page(figures(OURS), better)

    assert f"| R@10 | behind {PEER.name} (100) |" in text
    assert f"| RAM MB | level with {PEER.name} |" in text


def test_the_page_says_where_ours_is_ahead_of_each() -> None:
    slower = figures(PEER, writes=[0.009] * 20)

    assert "| write ms | ahead of each |" in page(figures(OURS), slower)


def test_where_ours_is_behind_the_page_says_why_and_only_there() -> None:
    faster = figures(PEER, writes=[0.0001] * 20)

    text = page(figures(OURS), faster)

    assert "- write ms: a retain seals" in text
    assert "- RAM MB: " not in text


def test_who_could_not_be_measured_is_named_with_the_reason() -> None:
    text = page(figures(OURS), Absence(entrant=PEER, reason="it does not install: no such thing"))

    assert f"- {PEER.name}: it does not install: no such thing" in text


def test_a_reason_does_not_tell_where_packages_come_from() -> None:
    said = "error: no file at https://packages.invalid/some/thing\nnor in '/home/me/env'"

    assert environments.shorten(said) == "error: no file at … nor in …"


def test_the_picture_names_every_entrant_and_is_fit_for_dark_pages() -> None:
    drawn = plot.draw([figures(OURS), figures(PEER, ended=7)], title="a & b")

    texts = {node.text for node in ET.fromstring(drawn).iter() if node.tag.endswith("text")}
    assert {OURS.name, PEER.name, "7", "a & b"} <= texts
    assert "prefers-color-scheme: dark" in drawn


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 3.0])
def test_the_picture_can_be_drawn_of_any_times(seconds: float) -> None:
    drawn = plot.draw([figures(OURS, writes=[seconds] * 20)], title="any")

    assert "nan" not in drawn
    assert ET.fromstring(drawn) is not None
