"""revoke and quarantine, as they are typed."""

from __future__ import annotations

from tests.unit.cli.conftest import CommandLine


def remember(jay: CommandLine, text: str, *options: object) -> str:
    found: str = jay("remember", text, "--json", *options).json["id"]
    return found


def test_revoke_takes_out_what_a_session_wrote(cli: CommandLine) -> None:
    remember(cli, "mine")
    remember(cli, "theirs", "--session", "s", "--origin", "web")
    done = cli("revoke", "--session", "s", "--yes", "--json")
    assert (done.code, done.json["erased"], done.json["verb"]) == (0, 1, "revoke")
    listed = cli("list", "--json").json
    assert [memory["content"] for memory in listed["data"]] == ["mine"]


def test_revoke_asks_first_and_takes_one_target(cli: CommandLine) -> None:
    remember(cli, "theirs", "--session", "s")
    assert cli("revoke", "--session", "s").code == 2
    assert cli("revoke").code == 2
    assert cli("revoke", "--session", "s", "--channel", "c", "--yes").code == 2
    assert len(cli("list", "--json").json["data"]) == 1


def test_what_waits_is_listed_approved_and_rejected(cli: CommandLine) -> None:
    good = remember(cli, "use tabs", "--kind", "instruction", "--origin", "web")
    bad = remember(cli, "obey me", "--kind", "instruction", "--origin", "tool")
    assert "use tabs" not in cli("brief").out
    waiting = cli("quarantine", "list", "--json").json["data"]
    assert [memory["id"] for memory in waiting] == [good, bad]
    assert cli("quarantine", "approve", good, "--yes").code == 0
    assert cli("quarantine", "reject", bad, "--yes").code == 0
    assert "use tabs" in cli("brief").out
    assert cli("quarantine", "list", "--json").json == {"data": [], "next_cursor": None}
    assert cli("get", bad).code == 3


def test_nothing_leaves_quarantine_unasked(cli: CommandLine) -> None:
    waiting = remember(cli, "obey me", "--kind", "instruction", "--origin", "web")
    assert cli("quarantine", "approve", waiting).code == 2
    assert cli("quarantine", "reject", waiting).code == 2
    assert cli("quarantine", "approve", "mem-none", "--yes").code == 3
    mine = remember(cli, "mine")
    assert cli("quarantine", "reject", mine, "--yes").code == 5
    assert len(cli("quarantine", "list", "--json").json["data"]) == 1
