"""vault: putting the keys under a passphrase, changing it, and getting back in."""

from __future__ import annotations

import subprocess

import pytest

from tests.unit.cli.conftest import CommandLine


@pytest.fixture
def locked(cli: CommandLine) -> tuple[CommandLine, str]:
    """A home with one memory, locked by a passphrase; and its recovery key."""
    cli.remember("tea")
    done = cli.good("vault", "passphrase", "--yes", stdin="open sesame\n")
    return cli, done.words


def test_the_state_of_the_keys_is_told(cli: CommandLine) -> None:
    assert cli.good("vault", "status", "--json").json["kind"] == "none yet"
    assert not cli.home.exists()
    cli.remember("tea")
    told = cli.good("vault", "status", "--json").json
    assert (told["kind"], told["opens"]) == ("key file", "yes")


def test_a_passphrase_is_not_set_unasked(cli: CommandLine) -> None:
    cli.remember("tea")
    assert cli("vault", "passphrase", stdin="open sesame\n").code == 2
    assert cli.good("vault", "status", "--json").json["kind"] == "key file"


def test_locked_keys_open_with_the_passphrase_alone(
    locked: tuple[CommandLine, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli, recovery = locked
    assert len(recovery.split("-")) == 8
    done = cli("list")
    assert (done.code, done.out) == (7, "")
    assert "SCRUBJAY_PASSPHRASE" in done.err
    assert cli.good("vault", "status", "--json").json["opens"].startswith("no")
    monkeypatch.setenv("SCRUBJAY_PASSPHRASE", "wrong")
    assert cli("list").code == 7
    monkeypatch.setenv("SCRUBJAY_PASSPHRASE", "open sesame")
    assert "tea" in cli.good("list").out


def test_a_changed_passphrase_takes_the_place_of_the_old_one(
    locked: tuple[CommandLine, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli, _ = locked
    assert cli("vault", "passphrase", "--yes", stdin="new\n").code == 7
    monkeypatch.setenv("SCRUBJAY_PASSPHRASE", "open sesame")
    assert cli("vault", "passphrase", "--yes", stdin="\n").code == 2
    assert cli.good("vault", "passphrase", "--yes", stdin="new\n").out == ""
    assert cli("list").code == 7
    monkeypatch.setenv("SCRUBJAY_PASSPHRASE", "new")
    cli.good("list")


def test_the_recovery_key_sets_a_new_passphrase(
    locked: tuple[CommandLine, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli, recovery = locked
    assert cli("vault", "recover", "--yes", stdin="nonsense\nnew\n").code == 2
    words = cli.good(
        "vault", "recover", "--renew-recovery", "--yes", stdin=f"{recovery}\nnew\n"
    ).words
    assert words != recovery
    assert cli("vault", "recover", "--yes", stdin=f"{recovery}\nother\n").code == 7
    monkeypatch.setenv("SCRUBJAY_PASSPHRASE", "new")
    assert "tea" in cli.good("list").out


def test_unlock_prints_what_a_shell_evaluates_only_if_it_opens(
    locked: tuple[CommandLine, str],
) -> None:
    cli, _ = locked
    assert cli("vault", "unlock", stdin="wrong\n").out == ""
    line = cli.good("vault", "unlock", stdin="open sesame\n").out
    shell = subprocess.run(
        ["/bin/sh", "-c", f'{line} echo "$SCRUBJAY_PASSPHRASE"'.replace("\n", ";")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shell.stdout == "open sesame\n"
    assert cli.good("vault", "lock").out == "unset SCRUBJAY_PASSPHRASE\n"


def test_where_there_is_no_passphrase_there_is_nothing_to_unlock(cli: CommandLine) -> None:
    cli.remember("tea")
    assert cli("vault", "unlock").code == 3
    assert cli("vault", "recover", "--yes").code == 3
