"""The command line, run within this process on a home of its own."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scrubjay.cli.app import run


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)

    @property
    def words(self) -> str:
        """The one line it printed."""
        (line,) = self.out.splitlines()
        return line


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Runs commands on one home; no terminal is there."""

    home: Path
    patch: pytest.MonkeyPatch
    captured: pytest.CaptureFixture[str]

    def __call__(self, *arguments: object, stdin: str | bytes = "") -> Done:
        """Run a command, whatever comes of it."""
        raw = stdin.encode() if isinstance(stdin, str) else stdin
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), "utf-8"))
        self.captured.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = self.captured.readouterr()
        return Done(int(code), out, err)

    def good(self, *arguments: object, stdin: str | bytes = "") -> Done:
        """Run a command that has to succeed."""
        done = self(*arguments, stdin=stdin)
        assert done.code == 0, done.err
        return done

    def remember(self, text: str, *arguments: object) -> str:
        """Remember a text; its id."""
        return self.good("remember", text, *arguments).words

    def files(self) -> dict[Path, bytes]:
        """Every file of the home with its bytes."""
        return {path: path.read_bytes() for path in self.home.rglob("*") if path.is_file()}


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    """The command line on an empty home."""
    home = tmp_path / "home"
    for name in ("SCRUBJAY_PASSPHRASE", "SCRUBJAY_CONFIG", "SCRUBJAY_SCOPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SCRUBJAY_HOME", str(home))
    return CommandLine(home, monkeypatch, capsys)
