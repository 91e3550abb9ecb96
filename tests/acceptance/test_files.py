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

import scrubjay
from tests.acceptance import needles

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


def test_words_are_in_the_files_that_were_asked_for_only_and_in_none_once_forgotten(
    owner: Owner, tmp_path: Path
) -> None:
    """Compaction, sync, export, a hook with its copy, and a transcript that was put back."""
    words = needles.make(7, 400)

    def said_in(folder: Path) -> set[str]:
        files = [path for path in folder.rglob("*") if path.is_file()]
        hits = [one for path in files for one in needles.hits(path.read_bytes(), words)]
        return {one.split()[0] for one in hits}

    with scrubjay.open("acme/alice", home=tmp_path / "home") as jay:
        for number in range(150):
            jay.retain(
                f"My {words[number]} neighbor fixed boats in harbor{number} with {words[-number]}.",
                kind="episode",
                session=f"s{number // 50}",
                position=number,
            )
        assert jay.compact(tokens=1).outcome == "applied"
    owner.notes.write_text("".join(f"- the {word} is blue\n" for word in words[200:210]))
    owner.notes.with_name("preferences.json").write_text(json.dumps({"style": words[210]}))
    turns = [("user", f"I live in {words[211]}"), ("assistant", f"So in {words[212]}.")]
    lines = [{"type": role, "message": {"content": text}} for role, text in turns]
    talk = tmp_path / "abc.jsonl"
    talk.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    told = json.dumps({"session_id": "abc", "transcript_path": str(talk)})
    hook = [str(SCRUBJAY.with_name("scrubjay-hook")), "precompact", "--scope", "acme/alice"]
    copies = tmp_path / "copies"
    subprocess.run(
        [*hook, "--markdown", str(copies)], env=owner.env, input=told, text=True, check=True
    )
    owner.run("sessions", "resume", "abc", "--transcripts", str(copies))
    owner.sync("--export")
    assert not said_in(tmp_path / "home")
    assert words[211] in said_in(copies)
    assert words[210] in said_in(owner.root)

    with scrubjay.open("acme/alice", home=tmp_path / "home") as jay:
        for session in ("abc", "s0", "s1", "s2"):
            jay.forget(session=session)
        jay.forget([one.id for one in jay.browse(limit=500)])
    owner.sync()
    hook[1] = "tidy"
    subprocess.run(hook, env=owner.env, check=True)
    assert not said_in(tmp_path / "home") | said_in(owner.root) | said_in(copies)
