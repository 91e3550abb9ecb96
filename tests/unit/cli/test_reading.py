"""recall, list, get, brief: what is shown, and in which shape."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scrubjay.cli import render
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.results import Hit
from scrubjay.model.scope import Scope
from tests.unit.cli.conftest import CommandLine


def test_recall_as_json_has_hits_best_first_and_what_was_degraded(cli: CommandLine) -> None:
    tea = cli.remember("Alice prefers green tea", "--kind", "preference")
    cli.remember("The garage door is blue")
    told = cli.good("recall", "what tea does Alice like", "--json").json
    assert set(told) == {"hits", "degraded", "searched", "milliseconds"}
    best = told["hits"][0]
    assert (best["memory"]["id"], best["memory"]["content"], best["scope"]) == (
        tea,
        "Alice prefers green tea",
        "local/default",
    )
    assert [hit["score"] for hit in told["hits"]] == sorted(
        (hit["score"] for hit in told["hits"]), reverse=True
    )
    assert told["degraded"] == []


def test_the_parts_an_explanation_shows_sum_to_the_score(cli: CommandLine) -> None:
    cli.remember("Alice prefers green tea")
    (hit,) = cli.good("recall", "green tea", "--json").json["hits"]
    assert sum(hit["why"].values()) == pytest.approx(hit["score"], abs=1e-6)
    lines = cli.good("recall", "green tea", "--explain").out.splitlines()
    end = next(at for at, line in enumerate(lines) if "─" in line)
    parts = [float(line.split()[0]) for line in lines[1:end]]
    total, label = lines[end + 1].split()
    assert label == "score"
    assert sum(parts) == pytest.approx(float(total), abs=5e-4)


def test_recall_says_that_no_hit_is_likely_to_answer(cli: CommandLine) -> None:
    cli.remember("Alice drinks green tea in the morning")
    cli.remember("The boiler was repaired")
    asked = ("what does Alice drink", "who won the chess final")
    told, strange = (cli.good("recall", question) for question in asked)
    assert told.err == ""
    assert strange.err.startswith("note: No hit is likely to answer")
    assert cli.good("recall", asked[1], "--min-relevance", "0.02").err == "Nothing was found.\n"


def test_recall_looks_where_it_is_told(cli: CommandLine) -> None:
    cli.remember("green tea", "--scope", "alice", "--kind", "fact", "--tag", "x", "--session", "s")
    cli.remember("green tea of the team", "--scope", "team", "--kind", "context")
    found = cli.good("recall", "tea", "--scope", "alice", "--also", "team", "--json").json["hits"]
    assert {hit["scope"] for hit in found} == {"local/alice", "local/team"}
    for wrong in (
        ["--kind", "episode"],
        ["--tag", "y"],
        ["--session", "t"],
        ["--before", "7d"],
        ["--as-of", "7d"],
    ):
        done = cli.good("recall", "tea", "--scope", "alice", *wrong)
        assert done.out == ""
        assert done.err == "Nothing was found.\n"
    assert cli.good("recall", "tea", "--scope", "alice", "--since", "7d", "--kind", "fact").out


def test_a_list_is_newest_first_and_goes_on_at_its_cursor(cli: CommandLine) -> None:
    ids = [cli.remember(text) for text in ("one", "two", "three")]
    page = cli.good("list", "--limit", 2, "--json").json
    assert [memory["id"] for memory in page["data"]] == [ids[2], ids[1]]
    rest = cli.good("list", "--cursor", page["next_cursor"], "--json").json
    assert [memory["id"] for memory in rest["data"]] == [ids[0]]
    assert rest["next_cursor"] is None


def test_a_list_that_is_piped_is_lines_with_tabs(cli: CommandLine) -> None:
    id = cli.remember("one\ttwo\nthree", "--tag", "food")
    (line,) = cli.good("list").out.splitlines()
    fields = line.split("\t")
    assert fields[0] == id
    assert fields[2:] == ["fact", "one two three #food"]


def test_superseded_memories_are_shown_when_asked_for(cli: CommandLine) -> None:
    cli.good("correct", cli.remember("tea"), "coffee")
    assert "tea" not in cli.good("list").out
    assert "tea" in cli.good("list", "--superseded").out


def test_a_memory_cannot_write_escape_sequences_to_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jtea\u202e"
    now = datetime(2026, 5, 1, tzinfo=UTC)
    memory = Memory(id="m", kind=Kind.FACT, content=evil, recorded_at=now, tags=(evil,))
    hit = Hit(memory=memory, score=0.5, why={"words": 0.5}, scope=Scope("local", "a"))
    render.memory(memory)
    render.memories([memory])
    render.hits([hit])
    render.arithmetic([hit])
    render.say(evil)
    told = capsys.readouterr()
    assert "tea" in told.out
    assert "tea" in told.err
    assert not set("\x1b\x07\u202e") & set(told.out + told.err)


def test_get_shows_the_text_and_what_is_known_of_it(cli: CommandLine) -> None:
    id = cli.remember("Alice prefers green tea", "--session", "s1")
    lines = cli.good("get", id).out.splitlines()
    assert lines[0] == "Alice prefers green tea"
    assert any(line.split() == ["session", "s1"] for line in lines)


def test_the_brief_is_markdown_and_as_json_has_its_entries(cli: CommandLine) -> None:
    cli.remember("Alice prefers green tea", "--kind", "preference")
    text = cli.good("brief").out
    assert "- [preference, user, " in text
    assert "] Alice prefers green tea\n" in text
    told = cli.good("brief", "--json").json
    assert told["markdown"] == text
    assert [entry["content"] for entry in told["entries"]] == ["Alice prefers green tea"]
    assert told["omitted"] == 0


@pytest.mark.parametrize(
    "words",
    [["get"], ["history"], ["lineage"], ["counters"], ["pin"], ["unpin"], ["archive"],
     ["unarchive"], ["correct", "white tea"], ["forget", "--yes"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_a_command_takes_the_beginning_of_an_id(cli: CommandLine, words: list[str]) -> None:
    id = cli.remember("Alice prefers green tea")
    if words == ["unarchive"]:
        cli.good("archive", id)
    name, *rest = words
    cli.good(name, id[:12], *rest)


def test_an_empty_listing_is_a_sentence_on_a_terminal_and_nothing_in_a_pipe(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.remember("green tea")
    for command in (["list", "--tag", "x"], ["turns"], ["receipts"], ["recall", "tea", "-t", "x"]):
        piped = cli.good(*command)
        with monkeypatch.context() as patch:
            patch.setattr(render, "on_terminal", lambda: True)
            shown = cli.good(*command)
        assert (piped.out, shown.out, shown.err) == ("", "", "Nothing was found.\n"), command


def test_a_table_of_names_in_a_record_is_shown_in_words(cli: CommandLine) -> None:
    cli.remember("green tea")
    assert "extraction 0" in cli.good("jobs").out
    assert "{" not in cli.good("jobs").out
