"""The open index of a scope: made from segments and rows, and brought up to the head each time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from scrubjay.domain.errors import Busy, Changed, Full, KeyMissing, ScrubjayError, SealBroken
from scrubjay.domain.memory import wording
from scrubjay.domain.rows import Collection, Row
from scrubjay.engine import cells, manifest, segments
from scrubjay.engine.manifest import Manifest
from scrubjay.engine.opened import OpenScope
from scrubjay.index import segment, vectors
from scrubjay.index.columns import ORIGINS, SIGNS, Columns, Entry
from scrubjay.index.scope_index import Floats, ScopeIndex
from scrubjay.ports import Embedder, View
from scrubjay.rank import columns as ranking

_PAGE = 1024
_RARE = 50
"""A language is one of the scope's when at least one memory in this many is written in it."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Center:
    """The scope's mean vector and how far every row is from it."""

    mean: Floats
    distance: Floats
    """0 for a row that has no vector."""


@dataclass(slots=True)
class Indexed:
    """The index of one scope while it is open; used under its lock."""

    opened: OpenScope
    lock: threading.RLock = field(default_factory=threading.RLock)
    index: ScopeIndex | None = None
    base: Manifest | None = None
    """The manifest the index was loaded from, or last wrote."""
    late: bool = False
    """Whether another process wrote segments meanwhile: ours are to be read anew from those."""
    broken: int = 0
    """How many rows could not be opened."""
    _arranged: tuple[int, ranking.Columns] | None = None
    _center: tuple[int, Center] | None = None

    @property
    def size(self) -> int:
        """Roughly how many bytes it takes in memory."""
        if self.index is None:
            return 0
        return self.index.size + (100 * len(self.index) if self._arranged else 0)

    @property
    def ready(self) -> ScopeIndex:
        """The index, once it was caught up."""
        assert self.index is not None
        return self.index

    def arranged(self) -> ranking.Columns:
        """The columns as the ranking wants them; made once per change."""
        if self._arranged is None or self._arranged[0] != self.ready.revision:
            self._arranged = (self.ready.revision, arrange(self.ready.columns()))
        return self._arranged[1]

    def center(self) -> Center:
        """The mean vector and the distances from it; made once per change."""
        if self._center is None or self._center[0] != self.ready.revision:
            mean = self.ready.mean()
            squares = self.ready.lengths()
            spread = squares - 2 * self.ready.dense(mean) + np.float32(mean @ mean)
            distance = np.sqrt(np.maximum(spread, 0)) * (squares > 0)
            self._center = (self.ready.revision, Center(mean, distance))
        return self._center[1]

    def languages(self) -> list[str]:
        """The languages the scope is written in."""
        held = self.ready.columns()
        counts = np.bincount(held.language, minlength=len(held.names))
        return [held.names[code] for code in np.flatnonzero(counts * _RARE >= max(len(held), 1))]

    def reset(self) -> None:
        """Forget everything, to begin anew from the store."""
        self.index = self.base = self._arranged = self._center = None
        self.broken, self.late = 0, False


def arrange(held: Columns) -> ranking.Columns:
    """The columns of an index as the ranking wants them."""
    return ranking.arrange(
        session=held.session,
        # Where nothing says which turn came first, the order of writing does.
        position=np.where(held.position < 0, held.born, held.position).astype(np.int64),
        speaker=held.speaker,
        time=held.said,
        length=held.length.astype(np.float32),
        signs={name: held.shows(name) for name in SIGNS},
        importance=held.importance,
        trust=1 - held.origin.astype(np.float32) / np.float32(len(ORIGINS) - 1),
        pinned=held.pinned,
    )


def catch_up(opened: OpenScope, indexed: Indexed, *, deadline: float | None = None) -> int:
    """Bring the index up to the head; returns how many changes were left at the deadline.

    A segment that does not open costs time: everything is read from the rows then. A row that
    does not open is left out, so that one damaged memory does not take all others along.
    """
    try:
        return opened.read(lambda view: _follow(opened, indexed, view, deadline))
    except (SealBroken, KeyMissing):
        return _start_over(opened, indexed, deadline)


def _start_over(opened: OpenScope, indexed: Indexed, deadline: float | None = None) -> int:
    _log.warning("index.made_from_rows")
    indexed.reset()
    return opened.read(lambda view: _follow(opened, indexed, view, deadline, lenient=True))


def _follow(
    opened: OpenScope,
    indexed: Indexed,
    view: View,
    deadline: float | None,
    *,
    lenient: bool = False,
) -> int:
    position = view.head().memory
    index = indexed.index
    slept = index is not None and not position.min_seq <= index.seq <= position.seq
    if index is None or slept or indexed.late:
        index = _begin(opened, indexed, view, from_rows=lenient)
    while rows := view.changes(Collection.MEMORY, index.seq, _PAGE):
        index.add(_entries(opened, indexed, rows, lenient=lenient))
        index.erase(row.id for row in rows if row.erased)
        index.seq = rows[-1].seq
        if deadline is not None and opened.ports.clock.monotonic() >= deadline:
            break
    left = position.seq - index.seq if rows else 0
    index.seq = index.seq if left else position.seq
    return left


def _begin(opened: OpenScope, indexed: Indexed, view: View, *, from_rows: bool) -> ScopeIndex:
    """An index as far as the segments go; an empty one if there are none that can be used."""
    indexed.reset()
    embedder = opened.ports.embedder
    index = ScopeIndex(
        identity=embedder.identity,
        dimensions=embedder.dimensions,
        vectorize=partial(_vectorize, opened.ports.embedder),
    )
    base = manifest.read(opened, view)
    indexed.base = base
    if base is not None and not from_rows and _usable(base, view):
        segments.load(opened, base, index)
    indexed.index = index
    return index


def _usable(base: Manifest, view: View) -> bool:
    """Whether what changed since the segments were written can still be told."""
    return base.analyzer == segment.VERSION and base.known >= view.head().memory.min_seq


def _entries(
    opened: OpenScope, indexed: Indexed, rows: Sequence[Row], *, lenient: bool
) -> list[Entry]:
    found = []
    for row in rows:
        if row.erased:
            continue
        try:
            memory, vector = opened.unseal(row), kept_vector(opened, row)
        except (SealBroken, KeyMissing):
            if not lenient:
                raise
            indexed.broken += 1
            continue
        found.append(Entry(row_id=row.id, seq=row.seq, memory=memory, vector=vector))
    return found


def kept_vector(opened: OpenScope, row: Row) -> Floats | None:
    """The vector kept with a row, if the present embedder made it."""
    packed = cells.open_vector(opened, row)
    if packed is None:
        return None
    found = vectors.unpack(packed)
    if found.identity == opened.ports.embedder.identity:
        floats: Floats = found.floats()[0]
        return floats
    if opened.ports.policy.raise_on_embedder_change:
        raise Changed("This scope has vectors of another embedder than the present one.")
    return None


def _vectorize(embedder: Embedder, entries: Sequence[Entry]) -> Floats:
    """The vectors of memories: those that are kept, or made now; zeros for what has none."""
    if not embedder.costly:
        memories = [entry.memory for entry in entries]
        return embedder.embed([wording(memory.content, memory.tags) for memory in memories])
    floats = np.zeros((len(entries), embedder.dimensions), np.float32)
    for place, entry in enumerate(entries):
        if entry.vector is not None:
            floats[place] = entry.vector
    return floats


def settle(opened: OpenScope, indexed: Indexed) -> None:
    """Have everything ready to be recalled, and on disk if there is much that is not."""
    index = indexed.ready
    try:
        index.settle()
    except (SealBroken, KeyMissing):
        # Damaged, or written anew by another process since their columns were loaded.
        _start_over(opened, indexed)
        index = indexed.ready
        index.settle()
    if index.foreign and opened.ports.policy.raise_on_embedder_change:
        raise Changed("The index has vectors of another embedder than the present one.")
    if index.unwritten > opened.ports.policy.segment_rows:
        publish(opened, indexed)


def let_go(evicted: Iterable[Indexed]) -> None:
    """Write what indexes that had to make room hold in memory only, so that they come back fast."""
    for indexed in evicted:
        with indexed.lock:
            index, policy = indexed.index, indexed.opened.ports.policy
            if index is None or index.unwritten <= policy.evicted_rows:
                continue
            try:
                publish(indexed.opened, indexed)
            except ScrubjayError as error:
                # Destroyed meanwhile, say: no concern of whoever needed the room.
                _log.warning("index.segment_not_written", extra={"code": error.code})


def publish(opened: OpenScope, indexed: Indexed) -> None:
    """Write what is in no segment yet; a full disk or a busy scope only puts it off."""
    try:
        written = segments.publish(opened, indexed.ready, indexed.base)
        indexed.late = written is None
        indexed.base = written or indexed.base
    except (Busy, Full) as error:
        _log.warning("index.segment_not_written", extra={"code": error.code})
