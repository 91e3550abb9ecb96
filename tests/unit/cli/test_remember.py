"""remember, correct, pin: what a person tells, and what is printed for it."""

from __future__ import annotations

import re

import pytest

from tests.unit.cli.conftest import CommandLine


def test_remember_prints_the_id_and_nothing_else(cli: CommandLine) -> None:
    done = cli.good("remember", "Alice lives in Lyon")
    assert re.fullmatch(r"mem-[0-9a-f-]{36}\n", done.out)
    assert done.err == ""


def test_remember_says_which_kind_it_inferred(cli: CommandLine) -> None:
    done = cli.good("remember", "Alice prefers green tea")
    assert "Stored as a preference" in done.err
    assert cli.good("remember", "Alice prefers tea", "--kind", "fact").err == ""
    told = cli.good("remember", "Always answer in one sentence", "--json").json
    assert told["inferred"] == "instruction"


def test_remember_as_json_is_an_object_with_the_id(cli: CommandLine) -> None:
    told = cli.good("remember", "tea", "--json").json
    assert told["id"].startswith("mem-")
    assert told["outcome"] == "stored"


def test_what_was_said_of_a_memory_is_kept(cli: CommandLine) -> None:
    id = cli.remember(
        "tea", "--kind", "preference", "--tag", "food", "--tag", "home", "--importance", "0.9",
        "--pin", "--session", "s1", "--origin", "agent", "--expires", "2w",
    )  # fmt: skip
    found = cli.good("get", id, "--json").json
    assert (found["kind"], found["tags"], found["importance"]) == (
        "preference",
        ["food", "home"],
        0.9,
    )
    assert (found["pinned"], found["origin"]) == (True, "agent")
    assert found["provenance"]["session"] == "s1"
    assert found["expires_at"] > found["recorded_at"]


def test_a_dash_reads_stdin_with_its_line_breaks(cli: CommandLine) -> None:
    id = cli.good("remember", "-", stdin="one\ntwo\n").words
    assert cli.good("get", id, "--json").json["content"] == "one\ntwo"


def test_a_text_needs_no_quotes_and_a_pipe_no_dash(cli: CommandLine) -> None:
    told = cli.good("remember", "Alice", "likes", "tea", "--tag", "food").words
    piped = cli.good("remember", stdin="Bob likes coffee\n").words
    newer = cli.good("correct", told, "Alice", "likes", "white", "tea").words
    found = {one: cli.good("get", one, "--json").json["content"] for one in (told, piped, newer)}
    assert [*found.values()] == ["Alice likes tea", "Bob likes coffee", "Alice likes white tea"]


def test_a_question_needs_no_quotes_and_a_pipe_no_dash(cli: CommandLine) -> None:
    cli.good("remember", "Alice likes tea")
    for asked, stdin in ((["what", "does", "Alice", "like"], ""), ([], "what does Alice like\n")):
        assert "Alice likes tea" in cli.good("recall", *asked, "--limit", 1, stdin=stdin).out


def test_without_a_text_and_a_pipe_it_is_told_what_is_missing(cli: CommandLine) -> None:
    for command, missing in (("remember", "TEXT"), ("recall", "QUERY")):
        done = cli(command)
        assert done.code == 2
        assert f"Missing argument {missing}." in done.err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("retain", "remember"),
        ("search", "recall"),
        ("ls", "list"),
        ("rm", "forget"),
        ("serch", "recall"),
        ("delte", "forget"),
        ("brows", "list"),
    ],
)
def test_the_words_of_other_programs_lead_to_ours(cli: CommandLine, typed: str, meant: str) -> None:
    done = cli(typed, "tea")
    assert done.code == 2
    assert f"There is no command {typed}; did you mean {meant}?" in done.err


def test_stdin_that_is_not_text_is_refused(cli: CommandLine) -> None:
    assert cli("remember", "-", stdin=b"\xff\xfe").code == 2


def test_a_key_makes_a_second_time_harmless(cli: CommandLine) -> None:
    first = cli.remember("tea", "--key", "k")
    again = cli.good("remember", "tea", "--key", "k")
    assert again.words == first
    assert "nothing changed" in again.err


def test_a_memory_takes_the_place_of_another(cli: CommandLine) -> None:
    old = cli.remember("tea", "--kind", "preference", "--tag", "food")
    new = cli.remember("coffee", "--supersedes", old, "--pin", "--expires", "7d")
    (found,) = cli.good("list", "--json").json["data"]
    assert (found["id"], found["supersedes"], found["kind"]) == (new, old, "preference")
    assert (found["tags"], found["pinned"]) == (["food"], True)
    assert "expires_at" in found
    verbs = [event["verb"] for event in cli.good("audit", "--json").json["data"]]
    assert verbs[:2] == ["retain", "supersede"]
    assert not {"pin", "expire"} & set(verbs)


def test_a_correction_keeps_the_history_and_its_reason(cli: CommandLine) -> None:
    old = cli.remember("Alice lives in Rome")
    cli.good("correct", old, "Alice lives in Turin", "--reason", "moved")
    versions = cli.good("history", old, "--json").json["data"]
    assert [one["content"] for one in versions] == ["Alice lives in Rome", "Alice lives in Turin"]
    assert versions[1]["provenance"]["reason"] == "moved"
    assert "moved" in cli.good("history", old).out


def test_a_pin_is_put_on_and_taken_off(cli: CommandLine) -> None:
    id = cli.remember("tea")
    assert cli.good("pin", id, "--json").json["pinned"]
    assert "pinned" not in cli.good("unpin", id, "--json").json  # a default is left out


def test_an_owner_alone_is_of_the_local_tenant(cli: CommandLine) -> None:
    cli.remember("tea", "--scope", "alice")
    cli.remember("coffee", "--scope", "acme/alice")
    cli.remember("water")
    told = cli.good("scopes", "--json").json
    assert told == {"data": ["acme/alice", "local/alice", "local/default"], "next_cursor": None}
    (found,) = cli.good("list", "--scope", "local/alice", "--json").json["data"]
    assert found["content"] == "tea"


def test_the_default_scope_can_be_set(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRUBJAY_SCOPE", "alice")
    cli.remember("tea")
    assert cli.good("scopes", "--json").json == {"data": ["local/alice"], "next_cursor": None}


def test_a_secret_that_is_left_out_is_said(cli: CommandLine) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    done = cli.good("remember", f"my token is {token}")
    assert done.err.startswith("Stored without a secret (github token): my token is [REDACTED")
    assert token not in cli.good("list").out


def test_a_note_of_another_day_is_found_by_its_day(cli: CommandLine) -> None:
    cli.remember("Bought a ladder")
    yesterday = cli.remember("Called Anna", "--said-at", "1d")
    (first, *_) = cli.good("recall", "what did I do yesterday", "--json").json["hits"]
    assert first["memory"]["id"] == yesterday


@pytest.mark.parametrize(
    "typed", [("correct", "ID", "white tea"), ("remember", "white tea", "--supersedes", "ID")]
)
def test_a_correction_may_be_of_another_day(cli: CommandLine, typed: tuple[str, ...]) -> None:
    tea = cli.remember("green tea", "--said-at", "2026-01-01")
    words = [tea if word == "ID" else word for word in typed]
    white = cli.good(*words, "--said-at", "2026-01-05").words
    found = cli.good("get", white, "--json").json
    assert found["provenance"]["said_at"].startswith("2026-01-0")
    assert found["supersedes"] == tea


def test_a_list_shows_the_day_of_recording_it_is_ordered_by_and_the_day_of_what_was_said(
    cli: CommandLine,
) -> None:
    cli.remember("green tea")
    cli.remember("white tea", "--said-at", "2020-01-05T12:00Z")
    later, earlier = (line.split("\t") for line in cli.good("list").out.splitlines())
    assert later[1] == earlier[1] != "2020-01-05"
    assert later[3].startswith("(said 2020-01-05) white tea")
    assert earlier[3] == "green tea"
