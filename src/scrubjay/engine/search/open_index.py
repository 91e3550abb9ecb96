"""The open index of a scope: built from segments and rows, caught up with the head each time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

import numpy as np

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search import manifest, segment
from scrubjay.engine.search.manifest import Manifest
from scrubjay.engine.search.postings import Floats, Mask
from scrubjay.engine.search.scope_index import ScopeIndex, Snapshot
from scrubjay.engine.search.segment import KINDS, TRUSTED, Columns, IndexEntry, Vectors
from scrubjay.model.errors import (
    Busy,
    Changed,
    EmbedderError,
    Full,
    KeyMissing,
    ScrubjayError,
    SealBroken,
)
from scrubjay.model.memory import Memory, wording
from scrubjay.model.retention import RetentionState
from scrubjay.model.rows import Collection, Head, Row
from scrubjay.ports import Result, View

_PAGE = 1024
_SNAPSHOT_BYTES = 100
"""Approximate bytes of a snapshot per row."""
_log = logging.getLogger(__name__)
Peek = Callable[[bytes], Memory | None]
"""The memory of a row as it is now; None if it is gone or does not open."""


class OpenIndex:
    """The index of one scope while it is open; used under its lock."""

    def __init__(self, opened: OpenScope) -> None:
        self.opened = opened
        self.lock = threading.RLock()
        self.used = False
        """Whether a recall used it: then all of it is in memory."""
        self.seen: Head | None = None
        self.reset()

    def reset(self) -> None:
        """Drop everything, to rebuild from the store."""
        self.index: ScopeIndex | None = None
        self.base: Manifest | None = None
        """The manifest the index was loaded from, or last wrote."""
        self.late = False
        """Whether another process wrote segments since: they are to be loaded instead of ours."""
        self.broken: set[bytes] = set()
        """The rows that could not be opened."""
        self.bare = 0
        """How many memories are without a vector because the embedder failed."""
        self.used = False
        self.limits: RetentionState | None = None
        """The retention of the scope, as of the last catch-up."""
        self._reached: Head | None = None
        """The head up to which it is caught up."""

    @property
    def size(self) -> int:
        """Roughly how many bytes it takes in memory."""
        if self.index is None:
            return 0
        made = _SNAPSHOT_BYTES * len(self.index) if self.used else 0
        return self.index.size + made + self.opened.kept.size

    @property
    def ready(self) -> ScopeIndex:
        """The index, after a catch-up."""
        assert self.index is not None
        return self.index

    def snapshot(self) -> Snapshot:
        """Immutable snapshot of the index, for a recall."""
        self.used = True
        return self.ready.snapshot()

    # -- up to the head ----------------------------------------------------------------

    def catch_up(self, *, deadline: float | None = None) -> int:
        """Bring the index up to the head; returns how many changes were left at the deadline.

        The head is not read again if whoever holds the lock has just seen it (`seen`).

        A segment that does not open costs time: everything is read from the rows then. A row that
        does not open is left out, so that one damaged memory does not take all others along.
        """
        seen, self.seen = self.seen, None
        if seen is not None and seen == self._reached and not self.late:
            return 0
        try:
            return self.opened.read(lambda view: self._follow(view, deadline))
        except (SealBroken, KeyMissing):
            return self.start_over(deadline)

    def start_over(self, deadline: float | None = None) -> int:
        """Rebuild the index from the rows; returns how many changes were left undone."""
        _log.warning("index.made_from_rows")
        self.reset()
        return self.opened.read(lambda view: self._follow(view, deadline, lenient=True))

    def _follow(self, view: View, deadline: float | None, *, lenient: bool = False) -> int:
        self._reached, index = None, self.index
        position = (head := view.head()).memory
        # It may have missed erasures nobody can tell any more, or be one of rows that were lost.
        # What was dropped before the index was begun it never held, however far it has come since.
        if (
            index is None
            or max(index.seq, index.min_seq) < position.min_seq
            or index.seq > position.seq
            or index.dimensions != self.opened.ports.embedder.dimensions
            or self.late
        ):
            index = self._begin(view, from_rows=lenient)
        self.limits = self.opened.limits.read(view)  # after a new begin, which knows none
        while index.seq < position.seq:
            rows = view.changes(Collection.MEMORY, index.seq, _PAGE)
            self._take_in(index, rows, lenient=lenient)
            # The last changes may be of rows that were dropped since: nothing tells of them.
            index.seq = rows[-1].seq if rows else position.seq
            self.opened.kept.follow(index.seq, (row.id for row in rows))
            if deadline is not None and self.opened.ports.clock.monotonic() >= deadline:
                break
        if index.seq == position.seq:
            self._reached = head
        return position.seq - index.seq

    def _begin(self, view: View, *, from_rows: bool) -> ScopeIndex:
        """An index of the segments; an empty one if none can be used."""
        self.reset()
        self.opened.kept.clear()  # what has changed since is not told row by row
        min_seq = view.head().memory.min_seq
        index = self._empty(min_seq)
        base = self.base = manifest.read(self.opened, view)
        # What changed since the segments were written must still be told.
        usable = base is not None and base.analyzer == segment.VERSION and base.known >= min_seq
        if base is not None and usable and not from_rows:
            manifest.load(self.opened, base, index)
        self.index = index
        self.opened.kept.follow(index.seq, ())
        return index

    def _empty(self, min_seq: int = 0) -> ScopeIndex:
        embedder = self.opened.ports.embedder
        return ScopeIndex(
            identity=embedder.identity,
            dimensions=embedder.dimensions,
            known=embedder.languages,
            vectorize=self._vectorize,
            min_seq=min_seq,
        )

    @classmethod
    def imagined(cls, opened: OpenScope, entries: Iterable[IndexEntry]) -> OpenIndex:
        """An index of memories as they might be, in no store: it is not caught up."""
        made = cls(opened)
        made.index = made._empty()
        made.index.add(entries)
        return made

    def _take_in(self, index: ScopeIndex, rows: Sequence[Row], *, lenient: bool) -> None:
        """Index changed rows; archived ones are in no index."""
        entries, gone = [], [row.id for row in rows if row.erased]
        embedder = self.opened.ports.embedder
        usable = embedder.costly and embedder.dimensions > 0
        for row in rows:
            if row.erased:
                continue
            try:
                memory, vector = self.opened.unseal(row), kept_vector(self.opened, row)
            except (SealBroken, KeyMissing):
                if not lenient:
                    raise
                self.broken.add(row.id)
                continue
            if memory.archived_at is not None:
                gone.append(row.id)
                continue
            # One that is kept with a vector the present embedder cannot use counts as foreign.
            index.foreign += usable and vector is None and row.vector is not None
            entries.append(IndexEntry(row_id=row.id, seq=row.seq, memory=memory, vector=vector))
        index.add(entries)
        index.erase(gone)
        self.broken.difference_update(gone, (entry.row_id for entry in entries))

    def _vectorize(self, entries: Sequence[IndexEntry]) -> Floats:
        """Vectors of memories: stored ones, or computed now; zeros if there is none."""
        embedder = self.opened.ports.embedder
        if not embedder.costly:
            memories = [entry.memory for entry in entries]
            try:
                return embedder.embed([wording(memory.content, memory.tags) for memory in memories])
            except EmbedderError as error:
                # They are found by their words until the next process asks for them again.
                _log.warning("index.without_vectors", extra={"code": error.code})
                self.bare += len(entries)
        floats = np.zeros((len(entries), embedder.dimensions), np.float32)
        for place, entry in enumerate(entries):
            if entry.vector is not None:
                floats[place] = entry.vector
        return floats

    # -- ready to be recalled, and on disk ---------------------------------------------

    def settle(self, *, write: bool = True) -> None:
        """Prepare everything for recall, and write a segment if many rows are in none."""
        policy = self.opened.ports.policy
        try:
            self.ready.settle()
        except (SealBroken, KeyMissing):
            # Damaged, or written anew by another process since their columns were loaded.
            self.start_over()
            self.ready.settle()
        if self.ready.foreign and policy.raise_on_embedder_change:
            raise Changed("The index has vectors of another embedder than the present one.")
        if write and self.ready.unwritten > policy.segment_rows:
            self.publish()

    def publish(self) -> None:
        """Write the rows that are in no segment; a full disk or a busy scope only delays it.

        Rows without vectors are not written: in a segment this would no longer be known.
        """
        embedder = self.opened.ports.embedder
        unknown = embedder.costly and not self.ready.dimensions
        if self.bare or self.ready.foreign or unknown:
            return
        try:
            written = manifest.publish(self.opened, self.ready, self.base)
            self.late = written is None
            self.base = written or self.base
        except KeyMissing:
            # A rotation came in between, and has written the segments anew.
            self.late = True
        except (Busy, Full) as error:
            _log.warning("index.segment_not_written", extra={"code": error.code})

    # -- the rows behind it ------------------------------------------------------------

    def read(self, look: Callable[[Peek], Result], ids: Sequence[bytes] = ()) -> Result:
        """Run `look` on one state of the rows; one that does not open is left out, and noted.

        Those of `ids` that are not cached are read in one statement.
        """
        try:
            return self.opened.read(lambda view: look(self._peeking(view, ids)))
        except (SealBroken, KeyMissing):
            return self.opened.read(lambda view: look(self._peeking(view, ids, lenient=True)))

    def _peeking(self, view: View, ids: Sequence[bytes], *, lenient: bool = False) -> Peek:
        """Reader of the memories of one state, through the plaintext cache."""
        kept, seq = self.opened.kept, view.head().memory.seq
        limits = self.opened.limits
        limited = limits.read(view) is not None
        held = {row_id: memory for row_id in ids if (memory := kept.get(row_id, seq)) is not None}
        rows = view.rows(Collection.MEMORY, [row_id for row_id in ids if row_id not in held])

        def peek(row_id: bytes) -> Memory | None:
            memory = held.get(row_id) or kept.get(row_id, seq)
            if memory is None:
                row = rows.get(row_id) or view.row(Collection.MEMORY, row_id)
                if row is None or row.erased or row_id in self.broken:
                    return None
                try:
                    memory = self.opened.unseal(row)
                except (SealBroken, KeyMissing):
                    if not lenient:
                        raise
                    self.broken.add(row_id)
                    return None
                kept.put(row_id, memory, seq)
            return limits.seen(view, memory) if limited else memory

        return peek


def past_limits(held: Columns, limits: RetentionState, now: datetime) -> Mask:
    """Mask of the rows that are past the number or the age of their kind."""
    mask: Mask = np.zeros(len(held), np.bool_)
    for limit in limits.policy.limits:
        lines = [limits.before(limit.kind, trusted=one) for one in (False, True)]
        past = held.born < np.array(lines)[TRUSTED[held.origin].astype(np.intp)]
        if limit.days is not None:
            past |= held.recorded <= (now - timedelta(days=limit.days)).timestamp()
        mask |= past & (held.kind == KINDS.index(limit.kind))
    return mask & ~held.pinned


def kept_vector(opened: OpenScope, row: Row) -> Floats | None:
    """Stored vector of a row, if the present embedder made it and is costly."""
    packed = opened.sound_vector(row) if opened.ports.embedder.costly else None
    if packed is None:
        return None
    found = Vectors.unpack(packed)
    if not (width := opened.ports.embedder.dimensions):
        return None  # it has not answered yet
    if (found.identity, found.steps.shape[1]) == (opened.ports.embedder.identity, width):
        floats: Floats = found.floats()[0]
        return floats
    if opened.ports.policy.raise_on_embedder_change:
        raise Changed("This scope has vectors of another embedder than the present one.")
    return None


def let_go(evicted: Iterable[OpenIndex]) -> None:
    """Write the unwritten rows of evicted indexes, so that they load fast again."""
    for indexed in evicted:
        indexed.opened.kept.clear()
        with indexed.lock:
            index, policy = indexed.index, indexed.opened.ports.policy
            if index is None or index.unwritten <= policy.evicted_rows:
                continue
            try:
                indexed.publish()
            except ScrubjayError as error:
                # Destroyed meanwhile, say: no concern of whoever needed the room.
                _log.warning("index.segment_not_written", extra={"code": error.code})
