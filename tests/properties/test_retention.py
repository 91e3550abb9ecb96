"""A cap on two engines of one store, with crashes, shows what a plain list would."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.engine import Kernel
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Origin
from scrubjay.model.requests import Amend, Browse, Forget, Recall, Retain, Supersede
from scrubjay.model.retention import KindLimit, SetRetention
from scrubjay.model.scope import Scope
from scrubjay.ports import Failpoint
from tests.properties.worlds import RAM_DISK
from tests.support.engines import MemoryHome, SimulatedCrash, SqliteHome

ALICE = Scope("local", "alice")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "retain",
                "retain",
                "hear",
                "pin",
                "unpin",
                "forget",
                "supersede",
                "cap",
                "die",
                "purge",
            )
        ),
        st.integers(0, 1),
        st.integers(0, 30),
    ),
    max_size=40,
)


@dataclass
class PlainList:
    """What is in sight, told without numbers and queues."""

    cap: int = 3
    shown: list[str] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)
    pinned: set[str] = field(default_factory=set)
    order: list[str] = field(default_factory=list)
    heard: set[str] = field(default_factory=set)
    """Those that are not trusted, which have a cap of their own."""
    lines: dict[bool, int] = field(default_factory=lambda: {True: -1, False: -1})
    """How old one must not be: as old as the youngest that was retired, of those like it."""

    def add(self, one: str, *, heard: bool = False) -> None:
        if heard:
            self.heard.add(one)
        self.order.append(one)
        self.shown.append(one)
        self.trim()

    def trim(self) -> None:
        """Retire the oldest beyond the cap, and all that are older than these."""
        for heard in (True, False):
            alike = [one for one in self.shown if (one in self.heard) is heard]
            loose = [one for one in alike if one not in self.pinned]
            for one in loose[: max(0, len(loose) - self.cap)]:
                self.retire(one)

    def retire(self, one: str) -> None:
        self.shown.remove(one)
        self.retired.append(one)
        heard = one in self.heard
        self.lines[heard] = max(self.lines[heard], self.order.index(one))

    def unpin(self, one: str) -> None:
        self.pinned.discard(one)
        if self.order.index(one) < self.lines[one in self.heard]:
            self.retire(one)
        self.trim()

    def remove(self, one: str) -> None:
        self.shown.remove(one)
        self.pinned.discard(one)


def seen(engine: Kernel) -> list[str]:
    page = engine.browse(ALICE, Browse(limit=1000))
    hits = engine.recall(ALICE, Recall("memory", limit=1000, untrusted=True)).hits
    assert {hit.memory.id for hit in hits} == {memory.id for memory in page}
    return [memory.id for memory in reversed(page.data)]


def play(home: MemoryHome | SqliteHome, steps: list[tuple[str, int, int]]) -> None:
    engines, model = [home.engine(), home.engine()], PlainList()
    engines[0].set_retention(ALICE, capped(model.cap))
    for number, (what, which, pick) in enumerate(steps):
        engine = engines[which]
        one = model.shown[pick % len(model.shown)] if model.shown else None
        if what == "retain":
            model.add(engine.retain(ALICE, Retain(content=f"memory {number}")).id)
        elif what == "hear":
            told = Retain(content=f"memory {number}", origin=Origin.WEB)
            model.add(engine.retain(ALICE, told).id, heard=True)
        elif what == "die":
            home.crashes.at(Failpoint.STORE_BEFORE_COMMIT)
            with pytest.raises(SimulatedCrash):
                engine.retain(ALICE, Retain(content=f"memory {number}"))
            engine.close()
            engines[which] = home.engine()
        elif what == "cap":
            everything_is_shown_that_was_retired(model)
            model.cap = 1 + pick % 4
            engine.set_retention(ALICE, capped(model.cap))
            model.trim()
        elif what == "purge":
            home.clock.advance(days=1)
            engine.purge(ALICE)
            model.retired = []
        elif one is not None:
            change(engine, model, what, one, number)
        assert seen(engines[0]) == seen(engines[1]) == sorted(model.shown, key=model.order.index)
    assert engines[0].verify(ALICE).sound
    for engine in engines:
        engine.close()


def everything_is_shown_that_was_retired(model: PlainList) -> None:
    """A new retention counts from the beginning: what no purge has erased yet is in sight again."""
    model.shown = sorted({*model.shown, *model.retired}, key=model.order.index)
    model.retired, model.lines = [], {True: -1, False: -1}


def change(engine: Kernel, model: PlainList, what: str, one: str, number: int) -> None:
    if what == "pin":
        engine.amend(ALICE, Amend(one, pinned=True))
        model.pinned.add(one)
    elif what == "unpin":
        engine.amend(ALICE, Amend(one, pinned=False))
        model.unpin(one) if one in model.pinned else None
    elif what == "forget":
        engine.forget(ALICE, Forget(ids=(one,)))
        model.remove(one)
    elif what == "supersede":
        pinned = one in model.pinned
        new = engine.supersede(ALICE, Supersede(one, f"memory {number}")).id
        model.remove(one)
        if pinned:
            model.pinned.add(new)
        model.add(new)


def capped(number: int) -> SetRetention:
    return SetRetention(limits=(KindLimit(kind=Kind.FACT, number=number),))


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_a_cap_in_memory_shows_what_a_plain_list_would(steps: list[tuple[str, int, int]]) -> None:
    play(MemoryHome(), steps)


@given(STEPS)
@settings(max_examples=20, deadline=None)
def test_a_cap_on_files_shows_what_a_plain_list_would(steps: list[tuple[str, int, int]]) -> None:
    with TemporaryDirectory(dir=RAM_DISK if RAM_DISK.is_dir() else None) as folder:
        play(SqliteHome(Path(folder)), steps)
