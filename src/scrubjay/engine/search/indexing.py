"""The open index of a scope: made from segments and rows, and brought up to the head each time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import numpy as np

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search import manifest, segment, segments, vectors
from scrubjay.engine.search import rank_columns as ranking
from scrubjay.engine.search.columns import ORIGINS, SIGNS, Columns, Entry
from scrubjay.engine.search.manifest import Manifest
from scrubjay.engine.search.scope_index import Floats, ScopeIndex
from scrubjay.engine.search.snapshot import Snapshot
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
from scrubjay.model.rows import Collection, Position, Row
from scrubjay.ports import Result, View

_PAGE = 1024
_MADE_BYTES = 100
"""What is made from an index takes about this much for each of its rows."""
_RARE = 50
"""A language is one of the scope's when at least one memory in this many is written in it."""
_LAST = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()
_log = logging.getLogger(__name__)
Peek = Callable[[bytes], Memory | None]
"""The memory of a row as it is now; None if it is gone or does not open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What a recall reads of one scope: made once after a change, and for any thread."""

    index: Snapshot
    arranged: ranking.Columns
    """The columns as the ranking wants them."""
    languages: tuple[str, ...]
    """The languages the scope is written in."""
    speakers: Mapping[int, str]
    """The names of all speakers by their codes."""
    latest: datetime | None
    """When the latest memory was said."""

    @classmethod
    def of(cls, index: Snapshot) -> Ready:
        """What is made of an index as it is now."""
        held = index.columns
        return cls(
            index=index,
            arranged=arrange(held),
            languages=_languages(held),
            speakers=held.coded(held.speaker),
            latest=_latest(held),
        )


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
    broken: set[bytes] = field(default_factory=set)
    """The rows that could not be opened."""
    bare: int = 0
    """How many memories are without a vector because the embedder failed."""
    _made: Ready | None = None
    """What was made from the index as it was when last recalled."""

    @property
    def size(self) -> int:
        """Roughly how many bytes it takes in memory."""
        if self.index is None:
            return 0
        made = _MADE_BYTES * len(self.index) if self._made else 0
        return self.index.size + made + self.opened.kept.size

    @property
    def ready(self) -> ScopeIndex:
        """The index, once it was caught up."""
        assert self.index is not None
        return self.index

    @property
    def used(self) -> bool:
        """Whether something was recalled from it: then all of it is in memory."""
        return self._made is not None

    def made(self) -> Ready:
        """What a recall reads, of the index as it is now."""
        index = self.ready.snapshot()
        if self._made is None or self._made.index is not index:
            self._made = Ready.of(index)
        return self._made

    def reset(self) -> None:
        """Forget everything, to begin anew from the store."""
        self.index = self.base = None
        self.broken, self.bare, self.late = set(), 0, False
        self._made = None


def _languages(held: Columns) -> tuple[str, ...]:
    counts = np.bincount(held.language, minlength=len(held.names))
    return tuple(held.names[code] for code in np.flatnonzero(counts * _RARE >= max(len(held), 1)))


def _latest(held: Columns) -> datetime | None:
    return moment(held.said.max()) if len(held) else None


def moment(seconds: float) -> datetime:
    """A time of a column."""
    # The last moment there is, as a float, would be one of the year 10000.
    return datetime.fromtimestamp(min(seconds, _LAST), UTC)


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
        return start_over(opened, indexed, deadline)


def start_over(opened: OpenScope, indexed: Indexed, deadline: float | None = None) -> int:
    """Make the index from the rows alone; returns how many changes were left at the deadline."""
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
    if index is None or _slept(index, position) or indexed.late:
        index = _begin(opened, indexed, view, from_rows=lenient)
    while index.seq < position.seq:
        rows = view.changes(Collection.MEMORY, index.seq, _PAGE)
        _take_in(opened, indexed, rows, lenient=lenient)
        # The last changes may be of rows that were dropped since: there is nothing to tell of them.
        index.seq = rows[-1].seq if rows else position.seq
        opened.kept.follow(index.seq, (row.id for row in rows))
        if deadline is not None and opened.ports.clock.monotonic() >= deadline:
            break
    return position.seq - index.seq


def _take_in(opened: OpenScope, indexed: Indexed, rows: Sequence[Row], *, lenient: bool) -> None:
    """Bring changed rows into the index."""
    index = indexed.ready
    entries = _entries(opened, indexed, rows, lenient=lenient)
    erased = [row.id for row in rows if row.erased]
    index.add(entries)
    index.erase(erased)
    indexed.broken.difference_update(erased, (entry.row_id for entry in entries))
    index.foreign += _foreign(opened, rows, entries)


def _slept(index: ScopeIndex, position: Position) -> bool:
    """Whether it missed erasures nobody can tell any more, or is one of rows that were lost.

    What was dropped before the index was begun it never held, however far it has come since.
    """
    return max(index.seq, index.min_seq) < position.min_seq or index.seq > position.seq


def _foreign(opened: OpenScope, rows: Sequence[Row], entries: Sequence[Entry]) -> int:
    """How many of these memories are kept with a vector that the present embedder cannot use."""
    if not opened.ports.embedder.costly:
        return 0
    kept = {row.id for row in rows if row.vector is not None}
    return sum(entry.vector is None and entry.row_id in kept for entry in entries)


def _begin(opened: OpenScope, indexed: Indexed, view: View, *, from_rows: bool) -> ScopeIndex:
    """An index as far as the segments go; an empty one if there are none that can be used."""
    indexed.reset()
    opened.kept.clear()  # what has changed since is not told row by row
    embedder = opened.ports.embedder
    index = ScopeIndex(
        identity=embedder.identity,
        dimensions=embedder.dimensions,
        vectorize=partial(_vectorize, indexed),
        min_seq=view.head().memory.min_seq,
    )
    base = manifest.read(opened, view)
    indexed.base = base
    if base is not None and not from_rows and _usable(base, view):
        segments.load(opened, base, index)
    indexed.index = index
    opened.kept.follow(index.seq, ())
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
            indexed.broken.add(row.id)
            continue
        found.append(Entry(row_id=row.id, seq=row.seq, memory=memory, vector=vector))
    return found


def kept_vector(opened: OpenScope, row: Row) -> Floats | None:
    """The vector kept with a row, if the present embedder made it and does not make it anew."""
    packed = opened.sound_vector(row) if opened.ports.embedder.costly else None
    if packed is None:
        return None
    found = vectors.unpack(packed)
    if found.identity == opened.ports.embedder.identity:
        floats: Floats = found.floats()[0]
        return floats
    if opened.ports.policy.raise_on_embedder_change:
        raise Changed("This scope has vectors of another embedder than the present one.")
    return None


def _vectorize(indexed: Indexed, entries: Sequence[Entry]) -> Floats:
    """The vectors of memories: those that are kept, or made now; zeros for what has none."""
    embedder = indexed.opened.ports.embedder
    if not embedder.costly:
        memories = [entry.memory for entry in entries]
        try:
            return embedder.embed([wording(memory.content, memory.tags) for memory in memories])
        except EmbedderError as error:
            # They are found by their words until the next process asks for them again.
            _log.warning("index.without_vectors", extra={"code": error.code})
            indexed.bare += len(entries)
    floats = np.zeros((len(entries), embedder.dimensions), np.float32)
    for place, entry in enumerate(entries):
        if entry.vector is not None:
            floats[place] = entry.vector
    return floats


def settle(opened: OpenScope, indexed: Indexed, *, write: bool = True) -> None:
    """Have everything ready to be recalled, and on disk if there is much that is not."""
    index = indexed.ready
    try:
        index.settle()
    except (SealBroken, KeyMissing):
        # Damaged, or written anew by another process since their columns were loaded.
        start_over(opened, indexed)
        index = indexed.ready
        index.settle()
    if index.foreign and opened.ports.policy.raise_on_embedder_change:
        raise Changed("The index has vectors of another embedder than the present one.")
    if write and index.unwritten > opened.ports.policy.segment_rows:
        publish(opened, indexed)


def read(indexed: Indexed, look: Callable[[Peek], Result]) -> Result:
    """Run `look` on one state of the rows; one that does not open is left out, and noted."""
    try:
        return indexed.opened.read(lambda view: look(_peeking(indexed, view)))
    except (SealBroken, KeyMissing):
        return indexed.opened.read(lambda view: look(_peeking(indexed, view, lenient=True)))


def _peeking(indexed: Indexed, view: View, *, lenient: bool = False) -> Peek:
    """What gives the memories of one state: those that were opened lately without the store."""
    kept, seq = indexed.opened.kept, view.head().memory.seq

    def peek(row_id: bytes) -> Memory | None:
        memory = kept.get(row_id, seq)
        if memory is None:
            memory = _peek(indexed, view, row_id, lenient=lenient)
            if memory is not None:
                kept.put(row_id, memory, seq)
        return memory

    return peek


def _peek(indexed: Indexed, view: View, row_id: bytes, *, lenient: bool) -> Memory | None:
    row = view.row(Collection.MEMORY, row_id)
    if row is None or row.erased or row_id in indexed.broken:
        return None
    try:
        return indexed.opened.unseal(row)
    except (SealBroken, KeyMissing):
        if not lenient:
            raise
        indexed.broken.add(row_id)
        return None


def let_go(evicted: Iterable[Indexed]) -> None:
    """Write what indexes that had to make room hold in memory only, so that they come back fast."""
    for indexed in evicted:
        indexed.opened.kept.clear()
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
    """Write what is in no segment yet; a full disk or a busy scope only puts it off.

    What lacks vectors is not written: in a segment nobody could tell any more that it does.
    """
    if indexed.bare or indexed.ready.foreign:
        return
    try:
        written = segments.publish(opened, indexed.ready, indexed.base)
        indexed.late = written is None
        indexed.base = written or indexed.base
    except KeyMissing:
        # A rotation came in between, and has written the segments anew.
        indexed.late = True
    except (Busy, Full) as error:
        _log.warning("index.segment_not_written", extra={"code": error.code})
