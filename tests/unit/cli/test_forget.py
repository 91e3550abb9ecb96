"""forget, destroy, purge, rotate: nothing goes unasked, and every erasure is proved."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import CommandLine

BULK = [["--tag", "food"], ["--session", "s"], ["--query", "tea"], ["--before", "2100-01-01"]]


@pytest.fixture
def tea(cli: CommandLine) -> str:
    """A memory that every kind of target covers."""
    return cli.remember("green tea", "--tag", "food", "--session", "s")


def contents(cli: CommandLine) -> list[str]:
    return [memory["content"] for memory in cli.good("list", "--json").json["data"]]


def test_ids_are_forgotten_at_once(cli: CommandLine, tea: str) -> None:
    cli.remember("coffee")
    done = cli.good("forget", tea)
    assert done.err == "Erased 1 memory.\n"
    assert contents(cli) == ["coffee"]


@pytest.mark.parametrize("target", BULK)
def test_a_target_that_is_not_an_id_is_refused_without_a_terminal(
    cli: CommandLine, tea: str, target: list[str]
) -> None:
    done = cli("forget", *target)
    assert done.code == 2
    assert tea in done.err
    assert "--yes" in done.err
    assert contents(cli) == ["green tea"]


@pytest.mark.parametrize("target", BULK)
def test_a_dry_run_shows_what_would_go_and_takes_nothing(
    cli: CommandLine, tea: str, target: list[str]
) -> None:
    told = cli.good("forget", *target, "--dry-run", "--json").json
    assert [memory["id"] for memory in told["memories"]] == [tea]
    assert contents(cli) == ["green tea"]


@pytest.mark.parametrize("target", BULK)
def test_yes_goes_ahead(cli: CommandLine, tea: str, target: list[str]) -> None:
    told = cli.good("forget", *target, "--yes", "--json").json
    assert (told["verb"], told["erased"]) == ("forget", 1)
    assert contents(cli) == []


def test_a_forget_of_nothing_says_what_can_be_named(cli: CommandLine, tea: str) -> None:
    done = cli("forget")
    assert done.code == 2
    assert "--query WORDS" in done.err
    assert cli.good("count").out == "1\n"


def test_a_query_means_what_holds_all_its_words(cli: CommandLine) -> None:
    for text in ("green tea", "black tea", "green paint"):
        cli.remember(text)
    cli.good("forget", "--query", "green tea", "--yes")
    assert contents(cli) == ["green paint", "black tea"]


def test_a_preview_shows_what_goes_with_it(cli: CommandLine, tea: str) -> None:
    cli.good("correct", tea, "white tea")
    told = cli.good("forget", "--query", "white tea", "--dry-run", "--json").json
    assert [memory["content"] for memory in told["memories"]] == ["white tea"]
    assert [memory["id"] for memory in told["others"]] == [tea]


def test_an_erasure_is_proved_by_its_receipt_also_after_destroy(cli: CommandLine, tea: str) -> None:
    receipt = cli.home / "receipt.json"
    cli.good("forget", tea, "--receipt", receipt)
    told = cli.good("verify", "--erased", receipt, "--json").json
    assert told["problems"] == []
    assert told["checked"] > 0
    destroyed = cli.home / "destroyed.json"
    cli.good("destroy", "--yes", "--receipt", destroyed)
    assert cli.good("verify", "--erased", receipt).out.startswith("Sound")
    assert cli.good("verify", "--erased", destroyed).out.startswith("Sound")


def test_destroy_is_refused_without_a_terminal(cli: CommandLine, tea: str) -> None:
    assert cli("destroy").code == 2
    assert cli.good("destroy", "--dry-run", "--json").json == {"would_destroy": "local/default"}
    assert contents(cli) == ["green tea"]


def test_a_second_destroy_hands_out_the_same_receipt(cli: CommandLine, tea: str) -> None:
    first = cli.good("destroy", "--yes", "--json").json
    assert cli.good("destroy", "--json").json == first
    assert first["verb"] == "destroy"


def test_purge_leaves_what_was_superseded_as_long_as_it_is_told(cli: CommandLine, tea: str) -> None:
    cli.good("correct", tea, "coffee")
    assert cli.good("purge", "--json").json["superseded"] == 0
    assert cli.good("purge", "--superseded-days", 0, "--json").json["superseded"] == 1


def test_purge_heeds_the_settings(
    cli: CommandLine, tea: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.good("correct", tea, "coffee")
    monkeypatch.setenv("SCRUBJAY_SUPERSEDED_DAYS", "0")
    assert cli.good("purge", "--json").json["superseded"] == 1


def test_rotate_says_how_much_was_sealed_anew(cli: CommandLine, tea: str) -> None:
    assert cli.good("rotate", "--json").json["resealed"] == 1
    assert contents(cli) == ["green tea"]


def test_verify_fails_when_something_is_wrong(cli: CommandLine, tea: str) -> None:
    receipt = json.loads(cli.good("forget", tea, "--json").out)
    receipt["cells"].append({"collection": "memory", "epoch": 2, "nonce": "00" * 12})
    forged = cli.home / "forged.json"
    forged.write_text(json.dumps(receipt))
    done = cli("verify", "--erased", forged, "--json")
    assert done.code == 1
    assert done.json["problems"]


def test_copies_go_along_and_the_receipt_counts_them(cli: CommandLine) -> None:
    fact = cli.remember("The dentist of Alice is Doctor Ames")
    cli.remember("the dentist of Alice is Doctor Ames!")
    cli.good("record", "Who is it, please?", "The dentist of Alice is Doctor Ames. Until tomorrow.")
    told = cli.good("forget", fact, "--copies", "--dry-run", "--json").json
    assert (len(told["copies"]), len(told["sentences"])) == (1, 1)
    done = cli.good("forget", fact, "--copies", "--yes")
    assert "2 of them were copies, or had one cut out." in done.err
    assert "Ames" not in "".join(contents(cli)) + cli.good("turns", "--json").out
