"""Two editors, a person and an agent, the engine, and a second machine, on one folder."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scrubjay.model.memory import Kind
from scrubjay.model.origin import Origin
from scrubjay.model.requests import Amend, MarkTainted
from scrubjay.surfaces.files.lines import items
from scrubjay.surfaces.files.sync import NOTES, Folder
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, everything, forget, retain

NUMBERS = st.integers(0, 40)
NOW = st.booleans()


class Sync(RuleBasedStateMachine):
    """What was added and not removed is in both memories; what was removed, in neither."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=Path.home())  # of nobody else, as asked for
        self.path = Path(self.folder.name)
        self.engines = [MemoryHome().engine(), MemoryHome().engine()]
        for engine in self.engines:
            engine.open(ALICE)
            engine.mark_tainted(ALICE, MarkTainted("misled", origin=Origin.WEB))
        self.wanted: set[str] = set()
        self.unwanted: set[str] = set()
        self.poison: set[str] = set()
        self.count = 0
        self.synced = True

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def _text(self, sort: str) -> str:
        self.count += 1
        return f"{sort} number {self.count} was told"

    @property
    def _lines(self) -> list[str]:
        path = self.path / NOTES
        return path.read_text().splitlines() if path.exists() else []

    def _save(self, lines: list[str]) -> None:
        (self.path / NOTES).write_text("".join(f"{line}\n" for line in lines))

    def _sync(self, **how: Any) -> None:
        for _ in range(3):  # A writes, B reads and writes, A reads
            for engine in self.engines:
                Folder(engine, ALICE, self.path, confirmed=True, **how).sync()
        self.synced = True

    def _settle(self) -> None:
        """What a person has written until now is the person's."""
        if not self.synced:
            self._sync(owner_only=True)

    def _later(self, *, now: bool) -> None:
        """A sync by the owner for what was changed; or none yet, so that it meets other changes."""
        self.synced = False
        if now:
            self._sync(owner_only=True)

    @rule(at=NUMBERS, now=NOW)
    def a_person_adds_a_line(self, at: int, now: bool) -> None:
        lines = self._lines
        text = self._text("line")
        lines.insert(at % (len(lines) + 1), f"- {text}")
        self._save(lines)
        self.wanted.add(text)
        self._later(now=now)

    @rule()
    def a_misled_agent_adds_a_line(self) -> None:
        self._settle()
        text = self._text("poison")
        self._save([*self._lines, f"- {text}"])
        self.wanted.add(text)
        self.poison.add(text)
        self._sync(session="misled")

    @rule(which=st.integers(0, 1), now=NOW)
    def an_engine_is_told(self, which: int, now: bool) -> None:
        text = self._text("fact")
        retain(self.engines[which], text, origin=Origin.AGENT)
        self.wanted.add(text)
        self._later(now=now)

    @precondition(lambda self: self._told)
    @rule(number=NUMBERS, now=NOW)
    def a_person_removes_a_line(self, number: int, now: bool) -> None:
        text = self._told[number % len(self._told)]
        self._save([line for line in self._lines if not line.endswith(f" {text}")])
        self._gone(text)
        self._later(now=now)

    @precondition(lambda self: self.wanted)
    @rule(number=NUMBERS, which=st.integers(0, 1))
    def an_engine_forgets(self, number: int, which: int) -> None:
        self._settle()
        text = sorted(self.wanted)[number % len(self.wanted)]
        engine = self.engines[which]
        forget(engine, *(one.id for one in everything(engine) if one.content == text))
        self._gone(text)
        self._sync_from(which)

    @precondition(lambda self: self.wanted)
    @rule(number=NUMBERS, which=st.integers(0, 1))
    def an_engine_archives(self, number: int, which: int) -> None:
        self._settle()
        text = sorted(self.wanted)[number % len(self.wanted)]
        engine = self.engines[which]
        for one in everything(engine):
            if one.content == text and one.current:
                engine.amend(ALICE, Amend(one.id, archived=True))
        self._sync_from(which)

    @precondition(lambda self: self.wanted)
    @rule(number=NUMBERS)
    def a_person_rewrites_a_line(self, number: int) -> None:
        self._settle()
        wanted = sorted(self.wanted)
        text = wanted[number % len(wanted)]
        new = self._text("rewritten")
        self._save([f"- {new}" if line.endswith(f" {text}") else line for line in self._lines])
        misled = text in self.poison
        self._gone(text)
        self.wanted.add(new)
        # What is written over poison is told by the same hand; a person's own words by the person.
        self._sync(**{"session": "misled"} if misled else {"owner_only": True})

    @rule()
    def a_heading_is_added(self) -> None:
        self._save(["# Heading", "", *self._lines])
        self._later(now=True)

    @property
    def _told(self) -> list[str]:
        """What the file says, as far as it was synced."""
        path = self.path / NOTES
        lines = items(path.read_text()) if path.exists() else []
        return sorted({one.text for one in lines} & self.wanted)

    def _gone(self, text: str) -> None:
        self.wanted.discard(text)
        self.poison.discard(text)
        self.unwanted.add(text)

    def _sync_from(self, which: int) -> None:
        if which:
            self.engines.reverse()
        self._sync()
        if which:
            self.engines.reverse()

    @invariant()
    def both_memories_and_the_file_say_the_same(self) -> None:
        if not hasattr(self, "engines") or not self.synced:
            return
        path = self.path / NOTES
        told = {one.text for one in items(path.read_text())} if path.exists() else set()
        assert told == self.wanted
        for engine in self.engines:
            shown = [one for one in everything(engine) if one.current]
            kept = {one.content for one in shown if one.kind is not Kind.EPISODE}
            assert kept == self.wanted
            assert not {one.content for one in everything(engine)} & self.unwanted - self._history()
            assert not any(one.origin is Origin.USER for one in shown if "poison" in one.content)

    def _history(self) -> set[str]:
        """What was rewritten stays as the version before."""
        return {
            one.content
            for engine in self.engines
            for one in everything(engine)
            if one.superseded_by is not None
        }


def test_two_editors_two_machines_and_a_scope_stay_in_step() -> None:
    steps = settings(max_examples=20, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(Sync, settings=steps)
