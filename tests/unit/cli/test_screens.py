"""Golden screens: what a terminal of 44, 60, 80 and 120 columns shows.

A screen that is missing is written, and its test fails once: so a change is renewed and looked at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scrubjay.cli import maintenance, render
from scrubjay.cli.app import run
from scrubjay.cli.maintenance import Finding
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.results import Hit
from scrubjay.model.scope import Scope

SCREENS = Path(__file__).with_name("screens")
WIDTHS = (44, 60, 80, 120)
AT = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
SHELLFISH = "Alice is allergic to peanuts and to shellfish: no shrimp on Saturday evening, please."
MEMORIES = [
    Memory(
        id=f"mem-3f0c9a1{number}-82a1-4357-a695-3f42d4f2ca82",
        content=text,
        kind=kind,
        recorded_at=AT,
        pinned=number == 1,
        tags=("health",) if number == 0 else (),
    )
    for number, (text, kind) in enumerate(
        [(SHELLFISH, Kind.FACT), ("Always answer in one sentence.", Kind.INSTRUCTION),
         ("爱丽丝喜欢绿茶 不喜欢咖啡。", Kind.PREFERENCE)]
    )
]  # fmt: skip
FINDINGS = [
    Finding("versions", "scrubjay 0.1.0, python 3.11.7, sqlite 3.54.1"),
    Finding("keys", "Others than you may open /home/alice/memory/keys, and 3 more.",
            "Take their rights: chmod -R go= /home/alice/memory/keys"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A terminal in a room where the clock shows UTC."""
    with monkeypatch.context() as patch:
        for name, value in (("TZ", "UTC"), ("NO_COLOR", "1"), ("TERM", "dumb")):
            patch.setenv(name, value)
        patch.setenv("SCRUBJAY_HOME", "/home/alice/memory")
        patch.setattr(render, "on_terminal", lambda: True)
        patch.setattr(maintenance, "examine", lambda *_: iter(FINDINGS))
        time.tzset()
        yield
    time.tzset()


def shown() -> None:
    """The screens one after another, each under what was typed."""
    scope = Scope.parse("alice")
    hits = [Hit(memory=one, score=0.4, why={"words": 0.4}, scope=scope) for one in MEMORIES]
    render.line("$ scrubjay list")
    render.memories(MEMORIES)
    render.line("\n$ scrubjay recall shellfish")
    render.hits(hits)
    for words in ("doctor", "config show"):
        render.line(f"\n$ scrubjay {words}")
        run(words.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_a_screen_is_as_wide_as_the_terminal_and_drops_no_text(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown()
    found = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
    golden = SCREENS / f"{width}.txt"
    if not golden.exists():
        golden.write_text(found, "utf-8")
        pytest.fail(f"{golden.name} was missing and is written: look at it")
    assert found == golden.read_text("utf-8")
    joined = " ".join(found.split())
    assert "chmod -R go= /home/alice/memory/keys" in joined
    assert "on Saturday evening, please." in joined
    assert "mem-3f0c9a10 " in joined
