"""Short forms for tests of recall and of the segments behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.search import manifest
from scrubjay.engine.search.manifest import Manifest, SegmentBlobs
from scrubjay.model.errors import Busy, Full
from scrubjay.model.requests import USER, Caller, Recall
from scrubjay.model.results import Recalled
from scrubjay.model.scope import Scope
from scrubjay.ports import Result, Tx
from tests.acceptance.opening import words_left
from tests.support.engines import LastingStore, MemoryHome
from tests.support.memory_blobs import MemoryBlobs
from tests.unit.engine.scene import ALICE, address, retain

EAGER = Policy(segment_rows=0)
"""Writes a segment at every recall that finds something new."""
UNKEPT = Policy(kept_bytes=0)
"""Opens every memory anew, each time it is told."""
LAZY = Policy(segment_rows=10**9)
"""Writes no segments."""
WORDS = ("amber", "birch", "copper", "dahlia", "ember", "fjord", "garnet", "heron", "indigo")


def ask(
    engine: Kernel,
    query: str,
    *,
    scope: Scope = ALICE,
    caller: Caller = USER,
    local: bool = False,
    also: frozenset[str] = frozenset(),
    **options: Any,
) -> Recalled:
    """The answer to a question."""
    request = Recall(query=query, **options)
    return engine.recall(scope, request, caller, local=local, also=also)


def said(engine: Kernel, query: str, *, scope: Scope = ALICE, **options: Any) -> list[str]:
    """What the hits say, best first."""
    return [hit.memory.content for hit in ask(engine, query, scope=scope, **options)]


def fill(engine: Kernel, count: int, *, first: int = 0, scope: Scope = ALICE) -> list[str]:
    """Write so many memories, each with a word of its own; their ids."""
    return [
        retain(engine, f"note{number} on {WORDS[number % len(WORDS)]}", scope=scope)
        for number in range(first, first + count)
    ]


def rows_alone(home: MemoryHome) -> Kernel:
    """A fresh engine whose index is made from the rows, whatever segments there are."""
    engine = home.engine(LAZY)
    engine._indexed(ALICE).start_over()
    return engine


def listing(home: MemoryHome, scope: Scope = ALICE) -> Manifest | None:
    """The manifest of a scope as a new process reads it."""
    opened = home.engine()._open(scope)
    return opened.read(lambda view: manifest.read(opened, view))


def listed(home: MemoryHome, scope: Scope = ALICE) -> tuple[SegmentBlobs, ...]:
    """The segments on disk, oldest first."""
    found = listing(home, scope)
    return () if found is None else found.segments


def holds(home: MemoryHome, word: str) -> bool:
    """Whether a segment that opens with the keys that are left has a word."""
    return bool(words_left(home.engine(), ALICE, [word]))


def damage_blob(home: MemoryHome, name: str) -> None:
    """Flip a bit in a blob."""
    raw = bytearray(home.blobs.get(address(home), name))
    raw[-1] ^= 1
    home.blobs.put(address(home), name, bytes(raw))


def damage_manifest(home: MemoryHome, at: int = -1) -> None:
    """Flip a bit in the list of segments."""

    def flip(tx: Tx) -> None:
        cell = bytearray(tx.value(manifest.NAME) or b"")
        cell[at] ^= 1
        tx.set_value(manifest.NAME, bytes(cell))

    home.store.write(address(home), flip)


class FullBlobs(MemoryBlobs):
    """Blobs on a disk that takes only so many more."""

    def __init__(self) -> None:
        super().__init__()
        self.room: int | None = None

    def put(self, address: str, name: str, content: bytes) -> None:
        """Write a blob, unless there is no room."""
        if self.room is not None:
            if not self.room:
                raise Full("No space is left.")
            self.room -= 1
        super().put(address, name, content)


class MoodyStore(LastingStore):
    """A store whose writes fail while it is told so."""

    failure: type[Busy] | type[Full] | None = None

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        """Run the work, and then find that it cannot be kept; erasing has its reserve."""

        def failing(tx: Tx) -> Result:
            result = work(tx)
            if self.failure is not None and not erasing:
                raise self.failure("Not now.")
            return result

        return super().write(address, failing, erasing=erasing)
