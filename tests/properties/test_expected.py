"""Several engines change one memory, each only as it has seen it: no change is lost.

Each seed is an interleaving, one call of a port at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from scrubjay.adapters.embedders.static import NoEmbedder
from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import Stale
from scrubjay.model.requests import Amend, Get, Retain
from scrubjay.model.scope import Scope
from tests.properties import baton
from tests.properties.baton import Baton
from tests.support.engines import MemoryHome

ALICE = Scope("local", "alice")
NOTE = "note-1"
ENGINES, CHANGES = 3, 4


class Scene:
    """One interleaving of engines that turn a pin over, each until it has done so often enough."""

    def __init__(self, seed: str) -> None:
        self.home = MemoryHome(seed)
        self.home.embedder = NoEmbedder()
        self.home.engine().retain(ALICE, Retain(content="green tea", id=NOTE))
        self.made: list[int] = []
        """The version each acknowledged change was made on."""
        self.refused = 0
        self.baton = Baton(Random(seed), risk=0)
        for number in range(ENGINES):
            engine = baton.engine(self.home, self.baton, Policy())
            self.baton.add(f"engine {number}", partial(self.turn_over, engine))

    def turn_over(self, engine: Kernel) -> None:
        done = 0
        while done < CHANGES:
            seen = engine.get(ALICE, Get(NOTE))
            expected = frozenset({seen.edition})
            try:
                engine.amend(ALICE, Amend(id=NOTE, pinned=not seen.pinned), expected=expected)
            except Stale:
                self.refused += 1
            else:
                done += 1
                self.made.append(seen.version)


def test_of_all_who_change_what_they_have_read_none_overwrites_another(
    more: bool, seed: int, record_property: Callable[..., None]
) -> None:
    """Every change that is acknowledged was made on a state nobody else made one on."""
    refused = 0
    for number in range(1_000 if more else 60):
        scene = Scene(f"{seed}/{number}")
        scene.baton.run(lambda: None)
        assert sorted(scene.made) == list(range(1, ENGINES * CHANGES + 1)), f"{seed}/{number}"
        refused += scene.refused
    record_property("refused", refused)
    assert refused > 0
