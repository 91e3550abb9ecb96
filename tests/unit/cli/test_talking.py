"""record, turns, sessions: conversations, told and shown."""

from __future__ import annotations

import re

from tests.unit.cli.conftest import CommandLine


def test_record_prints_the_id_and_nothing_else(cli: CommandLine) -> None:
    done = cli.good("record", "I prefer green tea.", "Noted.")
    assert re.fullmatch(r"turn-[0-9a-f-]{36}\n", done.out)
    assert done.err == ""


def test_what_follows_from_a_turn_is_told_as_json(cli: CommandLine) -> None:
    told = cli.good("record", "I prefer green tea.", "Noted.", "--id", "turn-1", "--json").json
    listed = cli.good("list", "--json").json["data"]
    assert (told["id"], told["outcome"], told["state"]) == ("turn-1", "stored", "kept")
    assert set(told["memories"]) == {memory["id"] for memory in listed}


def test_a_turn_is_recorded_once_and_its_repeat_is_said(cli: CommandLine) -> None:
    cli.good("record", "I prefer green tea.", "--id", "turn-1")
    again = cli.good("record", "I prefer green tea.", "--id", "turn-1")
    assert "recorded already" in again.err
    assert len(cli.good("turns", "--json").json["data"]) == 1


def test_what_was_said_of_a_turn_is_kept(cli: CommandLine) -> None:
    cli.good(
        "record", "-", "Noted.", "--session", "s1", "--at", "2026-05-01T08:30+00:00",
        "--origin", "agent", "--id", "turn-1", stdin="I prefer tea.\n",
    )  # fmt: skip
    (turn,) = cli.good("turns", "--json").json["data"]
    assert turn == {
        "id": "turn-1",
        "at": "2026-05-01T08:30:00Z",
        "user": "I prefer tea.",
        "assistant": "Noted.",
        "session": "s1",
        "origin": "agent",
        "actor": "user",
        "channel": None,
        "key_id": None,
        "metadata": {},
        "model": None,
    }


def test_only_one_side_is_read_from_stdin(cli: CommandLine) -> None:
    assert cli("record", "-", "-", stdin="tea").code == 2


def test_turns_are_chosen_by_session_and_time(cli: CommandLine) -> None:
    for day in (1, 2, 3):
        at = f"2026-05-0{day}T08:00+00:00"
        cli.good("record", f"Tell me of {day}.", "--at", at, "--session", f"s{day % 2}")
    found = cli.good("turns", "--session", "s1", "--before", "2026-05-02", "--json").json["data"]
    assert [turn["user"] for turn in found] == ["Tell me of 1."]
    lines = cli.good("turns", "--limit", "2").out.splitlines()
    assert [line.split("\t")[3] for line in lines] == ["Tell me of 3.", "Tell me of 2."]


def test_sessions_are_listed_with_what_is_kept_of_them(cli: CommandLine) -> None:
    cli.good("record", "Tell me of Rome.", "--session", "s1", "--at", "2026-05-01T08:00+00:00")
    cli.remember("tea", "--session", "s2")
    new, old = cli.good("sessions", "--json").json["data"]
    assert (new["name"], new["memories"], new["turns"]) == ("s2", 1, 0)
    assert old == {
        "name": "s1",
        "first": "2026-05-01T08:00:00Z",
        "last": "2026-05-01T08:00:00Z",
        "memories": 1,
        "turns": 1,
        "tainted": None,
    }
    assert cli.good("sessions").out.splitlines()[1].split("\t")[0] == "s1"
