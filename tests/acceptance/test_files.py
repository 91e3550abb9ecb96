"""`scrubjay files sync` as a person runs it: the command, its questions, and --watch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

SCRUBJAY = Path(sysconfig.get_path("scripts")) / "scrubjay"


class Owner:
    """A home and a folder of files."""

    def __init__(self, folder: Path) -> None:
        known = {"PATH", "LANG", "TMPDIR"}
        self.env = {name: value for name, value in os.environ.items() if name in known}
        self.env |= {"SCRUBJAY_HOME": str(folder / "home"), "HOME": str(folder)}
        self.root = folder / "memory"
        self.notes = self.root / "acme" / "alice" / "CLAUDE.md"
        self.notes.parent.mkdir(parents=True)

    def command(self, *words: str) -> list[str]:
        return [str(SCRUBJAY), *words, "--scope", "acme/alice"]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            env=self.env,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def sync(self, *options: str) -> dict[str, Any]:
        done = self.run("files", "sync", str(self.root), "--json", *options)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


def test_a_person_keeps_notes_in_a_file_and_a_scope_in_step(owner: Owner) -> None:
    owner.notes.write_text("- Alice lives in Lyon\n- Alice drinks tea\n")
    assert owner.sync()["added"] == 2
    assert "Lyon" in owner.run("recall", "Where does Alice live?").stdout
    owner.run("remember", "Alice has a dog")
    assert owner.sync()["written"] == 1
    assert owner.notes.read_text().splitlines()[-1] == "- Alice has a dog"
    owner.notes.write_text("- Alice drinks tea\n- Alice has a dog\n")
    assert owner.sync()["forgotten"] == 1
    assert "Lyon" not in owner.run("recall", "Where does Alice live?").stdout


def test_without_a_terminal_nothing_is_forgotten_that_somebody_should_be_asked_about(
    owner: Owner,
) -> None:
    owner.notes.write_text("- one\n- two\n")
    owner.sync()
    owner.notes.unlink()
    done = owner.run("files", "sync", str(owner.root))
    assert done.returncode == 0
    assert "repeat with --yes" in done.stderr
    assert owner.sync("--yes")["forgotten"] == 2


def test_watch_syncs_what_changes_until_it_is_interrupted(owner: Owner) -> None:
    owner.notes.write_text("- one\n")
    watching = subprocess.Popen(
        owner.command("files", "sync", str(owner.root), "--watch"),
        env=owner.env,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    try:
        assert watching.stderr is not None
        assert watching.stderr.readline().startswith("Learned 1")
        owner.notes.write_text("- one\n- two\n")
        assert watching.stderr.readline().startswith("Learned 1")
    finally:
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    assert sorted(line for line in owner.run("list").stdout.split() if line in ("one", "two")) == [
        "one",
        "two",
    ]
