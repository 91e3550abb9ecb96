"""API keys, as they are typed."""

from __future__ import annotations

from tests.unit.cli.conftest import CommandLine


def test_a_key_gets_grants_of_its_own_in_each_scope(cli: CommandLine) -> None:
    made = cli.good(
        "keys", "create", "both", "--scope", "me/alice", "--by-scope", "team/x=read,export",
        "--by-scope", "team/y=read", "--json",
    ).json["key"]  # fmt: skip
    assert made["by_scope"] == {"team/x": ["read", "export"], "team/y": ["read"]}
    assert made["grants"] == ["read", "write"]
    assert "team/x=read,export team/y=read" in cli.good("keys", "list").out


def test_a_key_may_be_for_scopes_with_their_own_grants_alone(cli: CommandLine) -> None:
    made = cli.good("keys", "create", "one", "--by-scope", "team/x=read", "--json").json["key"]
    assert (made["scopes"], made["grants"]) == ([], [])


def test_a_key_for_no_scope_or_with_an_unknown_grant_is_refused(cli: CommandLine) -> None:
    assert cli("keys", "create", "none").code == 2
    assert cli("keys", "create", "wrong", "--by-scope", "team/x=rule").code == 2
    assert cli("keys", "create", "wrong", "--by-scope", "team/x").code == 2
