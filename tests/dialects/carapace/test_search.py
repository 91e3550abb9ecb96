"""memory_search: by words with a score that means something, by tags and type before the limit."""

from __future__ import annotations

import random
from typing import Any

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.requests import Retain
from scrubjay.surfaces.carapace.memory import Config, Provider
from tests.dialects.carapace.scene import MAIN, Stage, home_without_vectors
from tests.support.engines import MemoryHome

FIELDS = ["id", "type", "content", "behavioral", "tags", "created_at", "relevance_score"]
WORDS = [
    "garden",
    "river",
    "paper",
    "stone",
    "cloud",
    "music",
    "train",
    "coffee",
    "window",
    "north",
]


def fill(engine: Kernel, count: int) -> None:
    """So many entries of words drawn by chance."""
    chance = random.Random(7)
    for number in range(count):
        content = " ".join(chance.choices(WORDS, k=10))
        engine.retain(MAIN, Retain(content=content, session=f"old {number // 20}"))


def scores(results: list[Any]) -> list[float]:
    return [one["relevance_score"] for one in results]


def test_a_result_has_the_seven_fields_and_no_more(stage: Stage) -> None:
    stage.store("Luna", type="preference", tags=["dog"])
    (result,) = stage.search(query="Luna")
    assert list(result) == FIELDS
    assert (result["type"], result["behavioral"], result["tags"]) == ("preference", True, ["dog"])


@pytest.mark.parametrize("query", [{}, {"query": ""}, {"query": "  \n "}])
def test_without_words_and_filter_the_newest_come_first(stage: Stage, query: Any) -> None:
    for number in range(25):
        stage.as_session(f"s{number // 20}").store(f"entry {number}")
    found = stage.search(**query)
    assert [one["content"] for one in found] == [f"entry {n}" for n in range(24, 4, -1)]
    assert scores(found) == [0.0] * 20
    times = [one["created_at"] for one in found]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("don't", "don't call before noon"),
        ("C++", "writes C++ at work"),
        ("what is C++?", "writes C++ at work"),
        ("foo-bar", "the foo-bar service is down"),
        ("mem:", "mem: a note about memory"),
        ("a AND", "mem: a note about memory"),
        ("*", None),
        ('"', None),
        ("NEAR(foo bar)", "the foo-bar service is down"),
        ("content:foo", "the foo-bar service is down"),
        ("SERVICE", "the foo-bar service is down"),
    ],
)
def test_a_query_is_words_and_never_syntax(stage: Stage, query: str, found: str | None) -> None:
    for content in (
        "don't call before noon",
        "writes C++ at work",
        "the foo-bar service is down",
        "mem: a note about memory",
    ):
        stage.store(content)
    results = stage.found(query=query)
    assert found in results if found else results == []


def test_an_entry_is_found_by_its_tags_too(stage: Stage) -> None:
    stage.store("prefers short answers", tags=["style"])
    assert stage.found(query="style") == ["prefers short answers"]


def test_without_vectors_only_what_holds_a_word_is_found(stage: Stage) -> None:
    stage.store("the garden has roses")
    stage.store("the train leaves at nine")
    assert stage.found(query="garden roses") == ["the garden has roses"]


@pytest.mark.parametrize("provider", [Provider.NONE, Provider.LOCAL])
def test_a_perfect_hit_among_three_does_not_vanish(provider: Provider) -> None:
    home = home_without_vectors() if provider is Provider.NONE else MemoryHome()
    stage = Stage(home, config=Config(embedding_provider=provider))
    for content in ("the garden has roses", "the train leaves at nine", "Luna is a dog"):
        stage.store(content)
    (best, *_) = stage.search(query="garden roses")
    assert best["content"] == "the garden has roses"
    assert best["relevance_score"] > 0.3


@pytest.mark.parametrize("provider", [Provider.NONE, Provider.LOCAL])
def test_among_a_thousand_scores_are_not_cut_off_and_never_rise(provider: Provider) -> None:
    home = home_without_vectors() if provider is Provider.NONE else MemoryHome()
    stage = Stage(home, config=Config(embedding_provider=provider))
    fill(stage.engine, 1_000)
    stage.store("the zeppelin floats over the garden and the river")
    found = stage.search(query="zeppelin garden river", limit=100)
    assert "zeppelin" in found[0]["content"]
    assert scores(found) == sorted(scores(found), reverse=True)
    assert all(0 <= score < 1 for score in scores(found))
    assert len(set(scores(found))) > 20
    assert scores(found)[0] > 1.2 * scores(found)[1]


def test_scores_compare_from_one_search_to_the_next(stage: Stage) -> None:
    fill(stage.engine, 300)
    stage.store("the zeppelin floats over the garden")
    whole = stage.search(query="zeppelin garden")[0]["relevance_score"]
    part = stage.search(query="zeppelin submarine garden river stone music")[0]["relevance_score"]
    assert whole > part


def test_repeating_a_word_does_not_lift_a_score_above_one(stage: Stage) -> None:
    stage.store("garden " * 250)
    stage.store("garden")
    assert all(score <= 1 for score in scores(stage.search(query="garden " * 60)))


def test_tags_are_anded_before_the_limit(stage: Stage) -> None:
    stage.store("wanted garden", tags=["a", "b"])
    for number in range(19):
        stage.store(f"garden {number}", tags=["a"])
    assert stage.found(query="garden", tags=["a", "b"], limit=1) == ["wanted garden"]
    assert stage.found(tags=["a", "b"], limit=1) == ["wanted garden"]
    assert stage.found(tags=["a", "b", "c"]) == []


def test_the_type_filters_before_the_limit(stage: Stage) -> None:
    stage.store("garden rule", type="instruction")
    for number in range(19):
        stage.store(f"garden {number}")
    assert stage.found(query="garden", type="instruction", limit=1) == ["garden rule"]
    assert stage.found(type="instruction") == ["garden rule"]


def test_superseded_entries_are_found_by_words_only_if_asked_for(stage: Stage) -> None:
    old = stage.store("garden in Bern")
    stage.store("garden in Basel", supersedes=old)
    assert stage.found(query="garden") == ["garden in Basel"]
    assert len(stage.found(query="garden", include_superseded=True)) == 2


def test_a_hundred_is_the_most_and_one_the_least(stage: Stage) -> None:
    fill(stage.engine, 120)
    assert len(stage.search(limit=100)) == 100
    assert stage.fail("memory_search", limit=101)["field"] == "limit"
    for limit in (0, -1):
        assert "from 1 to 100" in stage.fail("memory_search", limit=limit)["message"]


def test_a_whole_number_may_be_written_with_a_point(stage: Stage) -> None:
    stage.store("x")
    assert stage.found(limit=1.0) == ["x"]
    assert stage.fail("memory_search", limit=1.5)["field"] == "limit"


def test_five_hundred_characters_may_be_asked_and_not_more(stage: Stage) -> None:
    stage.search(query="x" * 500)
    assert stage.fail("memory_search", query="x" * 501)["field"] == "query"


def test_with_vectors_an_entry_is_found_by_its_meaning() -> None:
    stage = Stage(MemoryHome(), config=Config(embedding_provider=Provider.LOCAL))
    for content in ("My puppy sleeps on the sofa", "The train leaves at nine", "Paris is far"):
        stage.store(content)
    assert stage.found(query="dog")[0] == "My puppy sleeps on the sofa"


def test_a_write_of_another_process_is_found_at_once(stage: Stage) -> None:
    stage.store("garden one")
    assert stage.found(query="garden") == ["garden one"]
    other = Stage(stage.home, session="s2")
    other.store("garden two")
    assert sorted(stage.found(query="garden")) == ["garden one", "garden two"]
