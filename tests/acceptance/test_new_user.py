"""A new user's path: the wheel, an empty environment, a terminal, and every step typed."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import sysconfig
import termios
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds until a command that does not end, or does not ask, is given up."""
ID = re.compile(r"mem-[0-9a-f]{8}(?:-[0-9a-f-]{27})?")
COLOR = re.compile(r"\x1b\[[0-9;]*3[0-7]m")
STYLE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command showed on the screen, and how it ended."""

    raw: str
    code: int

    @property
    def text(self) -> str:
        """Without colors, and with plain line breaks."""
        return STYLE.sub("", self.raw).replace("\r\n", "\n")


@dataclass(frozen=True, slots=True)
class Terminal:
    """A pseudo-terminal of 160 columns in which commands are typed, one after the other."""

    folder: Path
    env: dict[str, str]

    def __call__(self, *command: str | Path, answers: Sequence[tuple[str, str]] = ()) -> Shown:
        """Run a command; each answer is typed once its question stands there."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        running = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.folder,
            env=self.env,
            start_new_session=True,  # away from the terminal of whoever runs the tests
        )
        os.close(theirs)
        try:
            raw = _dialogue(ours, list(answers))
            return Shown(raw, running.wait(PATIENCE))
        finally:
            running.kill()
            running.wait()
            os.close(ours)

    def good(self, *command: str | Path, answers: Sequence[tuple[str, str]] = ()) -> Shown:
        """Run a command that has to succeed."""
        shown = self(*command, answers=answers)
        assert shown.code == 0, shown.text
        return shown


def _dialogue(ours: int, answers: list[tuple[str, str]]) -> str:
    """Read until the other side hangs up, answering what it asks."""
    raw, seen = b"", 0
    while select.select([ours], [], [], PATIENCE)[0]:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # how Linux says that nobody has the other end open any more
            break
        if not piece:
            break
        raw += piece
        if answers and answers[0][0].encode() in raw[seen:]:
            seen = len(raw)
            os.write(ours, f"{answers.pop(0)[1]}\n".encode())
    assert not answers, f"never asked: {answers[0][0]}"
    return raw.decode()


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A terminal whose environment has nothing of ours but an empty home directory."""
    return opened(tmp_path)


def opened(folder: Path) -> Terminal:
    """A terminal in a folder."""
    (folder / "user").mkdir()
    env = {"HOME": str(folder / "user"), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    return Terminal(folder, env)


@pytest.fixture(scope="module")
def jay(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, installed from the wheel into an environment that had nothing."""
    terminal = opened(tmp_path_factory.mktemp("fresh"))
    folder = terminal.folder / "env"
    venv.create(folder, symlinks=True)
    fresh = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(fresh), "install", "--quiet"]
    terminal.good(*pip, "--no-index", "--no-deps", wheel)
    (site,) = folder.glob("lib/python*/site-packages")
    paths = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (site / "dependencies.pth").write_text("\n".join(sorted(paths)))
    return folder / "bin" / "scrubjay"


def test_a_new_user_goes_from_install_to_destroy(jay: Path, terminal: Terminal) -> None:
    told = terminal.good(jay, "remember", "Alice prefers green tea", "--kind", "preference")
    (tea,) = ID.findall(told.text)
    terminal.good(jay, "remember", "Alice works in Lyon")

    found = terminal.good(jay, "recall", "what does Alice like to drink").text
    assert found.splitlines()[0].split() == ["score", "id", "said", "memory"]
    assert found.splitlines()[1].split()[1] == tea
    assert "score" in terminal.good(jay, "recall", "tea", "--limit", "1", "--explain").text

    told = terminal.good(jay, "correct", tea, "Alice prefers white tea", "--reason", "she said so")
    (white,) = ID.findall(told.text)
    assert "] Alice prefers white tea\n" in terminal.good(jay, "brief").text

    receipt = terminal.folder / "receipt.json"
    forget: list[str | Path] = [jay, "forget", "--query", "white tea", "--receipt", receipt]
    declined = terminal(*forget, answers=[("Type yes to go ahead: ", "no")])
    assert declined.code == 1
    assert "Nothing was done." in declined.text
    shown = terminal.good(*forget, answers=[("Type yes to go ahead: ", "yes")]).text
    assert white in shown
    assert "Erased 2 memories, 1 of them derived or earlier versions." in shown
    assert "tea" not in terminal.good(jay, "list", "--superseded").text

    assert "Sound" in terminal.good(jay, "verify").text
    assert "Sound" in terminal.good(jay, "verify", "--erased", receipt).text

    copy = terminal.folder / "copy.json"
    terminal.good(jay, "export", "-o", copy)
    (left,) = json.loads(copy.read_text())["memories"]
    assert left["content"] == "Alice works in Lyon"

    asked = "Type local/default to go ahead: "
    assert terminal(jay, "destroy", answers=[(asked, "yes")]).code == 1
    terminal.good(jay, "destroy", answers=[(asked, "local/default")])
    gone = terminal(jay, "list")
    assert gone.code == 5
    assert gone.text.startswith("error: The scope local/default was destroyed.\nhint: ")


def test_a_terminal_gets_colors_unless_it_asks_for_none(jay: Path, terminal: Terminal) -> None:
    assert COLOR.search(terminal(jay, "list").raw)
    plain = Terminal(terminal.folder, {**terminal.env, "NO_COLOR": "1"})
    failed = plain(jay, "list")
    assert (failed.code, COLOR.search(failed.raw)) == (3, None)
    assert failed.text.startswith("error: There is no scope local/default.\n")
    keys, data = (terminal.folder / "user" / one for one in (".config", ".local"))
    assert not keys.exists()
    assert not data.exists()


def test_a_passphrase_is_asked_for_on_the_terminal_and_not_shown(
    jay: Path, terminal: Terminal
) -> None:
    terminal.good(jay, "remember", "Alice works in Lyon")
    steps = [
        ("Type yes to go ahead: ", "yes"),
        ("New passphrase: ", "open sesame"),
        ("Once more: ", "open sesame"),
    ]
    locked = terminal.good(jay, "vault", "passphrase", answers=steps).text
    assert "sesame" not in locked
    assert re.search(r"^([A-Z2-7]{5}-){7}[A-Z2-7]{5}$", locked, re.MULTILINE)
    assert "Lyon" in terminal.good(jay, "list", answers=[("Passphrase: ", "open sesame")]).text
    assert terminal(jay, "list", answers=[("Passphrase: ", "something else")]).code == 7
