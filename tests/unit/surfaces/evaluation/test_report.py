"""The figures of a trial, as values, as JSON, as lines and as tables."""

from __future__ import annotations

import io
import json

import pytest
from msgspec.structs import replace
from rich.console import Console

from scrubjay.surfaces.evaluation.dataset import GoldQuestion
from scrubjay.surfaces.evaluation.report import as_json, curve, report, run_lines, show
from scrubjay.surfaces.evaluation.trial import RankedAnswer, Trial

NAMES = ["R@5", "R@10", "R@20", "any@10", "all@10", "nDCG@10", "MRR"]


def answer(id: str, gold: str, ranked: str, category: str, milliseconds: float = 1) -> RankedAnswer:
    return RankedAnswer(
        question=GoldQuestion(
            id=id, haystack="h", text="?", gold=frozenset(gold), category=category
        ),
        ranked=tuple(ranked),
        scores=tuple(float(len(ranked) - place) for place in range(len(ranked))),
        relevance=tuple((len(ranked) - place) / 10 for place in range(len(ranked))),
        seconds=milliseconds / 1000,
        first=id == "q0",
        degraded=("By words alone: [it] slept.",) if category == "[hard]" else (),
    )


def a_trial(name: str = "orchard") -> Trial:
    return Trial(
        name=name,
        answers=(
            answer("q0", "a", "abc", "easy", 400),
            answer("q1", "ab", "xxxxa", "[hard]", 2),
            answer("q2", "c", "", "[hard]", 30),
        ),
        turns=600,
        retain_seconds=2.0,
        empty=1,
        peak_ram_mib=64,
    )


def test_overall_counts_every_question_alike_and_a_category_its_own() -> None:
    found = report(a_trial(), top=20)
    assert found.overall.figures["R@10"].mean == pytest.approx(100 * (1 + 0.5 + 0) / 3)
    assert found.overall.figures["MRR"].mean == pytest.approx(100 * (1 + 0.2 + 0) / 3)
    means = {group.name: group.figures["R@10"].mean for group in found.categories}
    assert means == {"[hard]": 25, "easy": 100}


def test_the_json_has_each_figure_by_its_name_as_a_plain_number_in_percent() -> None:
    found = json.loads(json.dumps(as_json([report(a_trial(), top=20)], top=20)))
    orchard = found["sets"]["orchard"]
    assert found["unit"] == "percent"
    assert list(orchard["overall"]) == NAMES
    assert orchard["overall"]["R@10"] == 50
    assert orchard["categories"]["[hard]"]["all@10"] == 0
    numbers = [orchard["overall"], *orchard["categories"].values()]
    assert all(isinstance(value, float) for figures in numbers for value in figures.values())


def test_the_json_has_intervals_counts_and_costs_apart_from_the_figures() -> None:
    found = json.loads(json.dumps(as_json([report(a_trial(), top=20)], top=20)))
    orchard = found["sets"]["orchard"]
    low, high = orchard["intervals"]["overall"]["R@10"]
    assert low <= 50 <= high
    assert list(orchard["intervals"]["categories"]["easy"]) == NAMES
    assert orchard["questions"] == {
        "overall": 3, "categories": {"[hard]": 2, "easy": 1}, "degraded": 2,
    }  # fmt: skip
    assert orchard["timing"] == {
        "turns": 600, "empty_turns": 1, "retain_per_second": 300,
        "recall_p50_ms": 2, "recall_p95_ms": 30, "first_recall_ms": 400, "peak_ram_mib": 64,
    }  # fmt: skip


def test_when_every_recall_is_a_first_one_they_are_what_is_timed() -> None:
    trial = a_trial()
    timing = report(replace(trial, answers=trial.answers[:1]), top=20).timing
    assert (timing.recall_p50_ms, timing.recall_p95_ms, timing.first_recall_ms) == (400, 400, 400)


def test_the_mean_of_sets_counts_every_set_alike() -> None:
    small = Trial(
        name="small",
        answers=(answer("q0", "a", "a", "easy"),),
        turns=1, retain_seconds=0, empty=0, peak_ram_mib=1,
    )  # fmt: skip
    reports = [report(trial, top=20) for trial in (a_trial(), small)]
    assert as_json(reports, top=20)["mean"]["R@10"] == 75  # type: ignore[index,call-overload]


def test_what_the_depth_cannot_tell_is_left_out() -> None:
    found = report(a_trial(), top=5)
    assert list(found.overall.figures) == ["R@5", "MRR"]


def test_the_curve_goes_from_one_to_the_depth() -> None:
    means = [point.mean for point in curve(a_trial(), top=5)]
    assert means == pytest.approx([100 / 3] * 4 + [50])


def test_a_run_line_has_what_was_recalled_for_one_question() -> None:
    lines = [json.loads(line) for line in run_lines([a_trial()]).decode().splitlines()]
    assert len(lines) == 3
    assert lines[0] == {
        "set": "orchard", "question": "q0", "haystack": "h", "category": "easy", "gold": ["a"],
        "ranked": ["a", "b", "c"], "scores": [3.0, 2.0, 1.0], "relevance": [0.3, 0.2, 0.1],
        "degraded": [],
    }  # fmt: skip


def shown(*trials: Trial) -> str:
    page = io.StringIO()
    console = Console(file=page, width=110)
    show(console, [report(trial, top=20) for trial in trials])
    return page.getvalue()


def test_the_table_names_every_figure_category_and_cost() -> None:
    page = shown(a_trial())
    assert all(word in page for word in (*NAMES, "overall", "easy", "[hard]"))
    assert "600 turns retained, 300 a second; peak RAM 64 MiB" in page
    assert "recall 2.0 ms (p50), 30.0 ms (p95), 400 ms the first time" in page
    assert "1 turns without text were not retained" in page
    assert "2 answers were degraded, so these figures could be better:" in page
    assert page.count("By words alone: [it] slept.") == 1


def test_questions_nothing_answers_are_told_apart_by_their_relevance() -> None:
    trial = a_trial()
    foreign = [answer("n0", "", "x", "foreign"), answer("n1", "", "xxxxyz", "foreign")]
    found = report(replace(trial, answers=(*trial.answers, *foreign)), top=20)
    assert found.overall == report(trial, top=20).overall
    # First scores 3, 5 and 0 of those with an answer; 1 and 6 of those without.
    [group] = found.nothing
    assert (group.name, group.questions) == ("foreign", 2)
    assert group.auroc == pytest.approx(100 * 2 / 6)
    nothing = as_json([found], top=20)["sets"]["orchard"]["nothing"]  # type: ignore[index,call-overload]
    assert nothing == {"foreign": {"questions": 2, "AUROC": 33.33, "silent": 0.0}}


def test_relevance_is_compared_with_what_answers() -> None:
    found = report(a_trial(), top=20).calibration
    # Eight hits of relevance 0.1 to 0.5; those of 0.3 and 0.1 answer.
    assert sum(size for *_, size in found.bins) == 8
    assert found.kept == 100
    assert found.first_error == pytest.approx((abs(0.3 - 1) + abs(0.5 - 0)) / 2)
    assert [kept for _, kept, _ in found.trade_off] == [100, 100, 100, 100, 100, 50]
    assert {silent for *_, silent in found.trade_off} == {None}


def test_the_page_has_the_reliability_table_and_what_each_threshold_costs() -> None:
    trial = a_trial()
    foreign = [answer("n0", "", "x", "foreign"), answer("n1", "", "", "foreign")]
    told = replace(trial, answers=(*trial.answers, *foreign))
    kept = report(told, top=20).calibration.trade_off
    assert [silent for *_, silent in kept] == [50, 50, 50, 50, 50, 100]
    page = shown(told)
    for word in ("relevance from", "answers, %", "threshold", "evidence kept, %", "silent, %"):
        assert word in page
    assert "silent, %" not in shown(trial)


def test_several_sets_are_shown_side_by_side_at_the_end() -> None:
    page = shown(a_trial("orchard"), a_trial("garden"))
    assert "mean of sets" in page.split("all sets")[1]
    assert "mean of sets" not in shown(a_trial())
