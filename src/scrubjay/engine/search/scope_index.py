"""The index of one scope in memory: segments, the newest memories, and which rows count.

A memory that changes is added anew and its old row no longer counts; one that is erased only
stops counting here, and is left out of every segment that is written from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scrubjay.engine.search import columns, postings, segment, vectors
from scrubjay.engine.search.columns import Columns, Entry
from scrubjay.engine.search.postings import Part as Terms
from scrubjay.engine.search.segment import Mask, Segment
from scrubjay.engine.search.snapshot import Dense, Snapshot
from scrubjay.engine.search.vectors import Vectors

Floats = NDArray[np.float32]
Vectorize = Callable[[Sequence[Entry]], Floats]
Rest = tuple[postings.Segment, Vectors]
_ROW_BYTES: Final = 110
_ENTRY_BYTES: Final = 2_000
_HOLLOW: Final = 0.5
"""A segment of which fewer rows than this share count is worth writing anew."""
_GROWTH: Final = 2
"""How much larger than the new rows a segment must be not to be merged with them."""


@dataclass(slots=True)
class Part:
    """A segment in memory, and which of its rows still count."""

    columns: Columns
    alive: Mask
    load: Callable[[], Rest] | None = None
    """How to get at the rest of the segment, until something is recalled."""
    token: object | None = None
    """What the segment is on disk; None if it is only in memory."""
    postings: postings.Segment | None = None
    vectors: Vectors | None = None
    _total: Floats | None = None
    _squares: Floats | None = None
    _counting: _Counting | None = None

    @property
    def size(self) -> int:
        """Roughly how many bytes it takes."""
        size = _ROW_BYTES * len(self.columns)
        if self.vectors is not None and self.postings is not None:
            size += self.vectors.steps.nbytes + self.postings.nbytes
        return size

    def erase(self, row_id: bytes) -> None:
        """Have the rows of one id count no more."""
        rows = self.columns.places(row_id)
        if len(rows):
            # On a copy: a snapshot that somebody still ranks by goes on counting them.
            self.alive = self.alive.copy()
            self.alive[rows] = False
            self._total = self._counting = None

    @property
    def whole(self) -> bool:
        """Whether every row counts."""
        return bool(self.alive.all())

    def dense(self) -> Dense:
        """Its vectors, and which of them count."""
        assert self.vectors is not None
        return self.vectors, None if self.whole else self.alive

    def terms(self) -> Terms:
        """Its postings without the rows that count no more."""
        assert self.postings is not None
        if self.whole:
            return self.postings
        if self._counting is None:
            self._counting = _Counting.of(self.postings, self.alive)
        return self._counting

    def total(self) -> Floats:
        """The sum of the vectors of the rows that count; made once."""
        assert self.vectors is not None
        if self._total is None:
            held = self.vectors
            self._total = (held if self.whole else vectors.join([held], [self.alive])).total()
        return self._total

    def squares(self) -> Floats:
        """The squared lengths of its vectors; made once."""
        assert self.vectors is not None
        if self._squares is None:
            self._squares = self.vectors.squares()
        return self._squares


@dataclass(frozen=True, slots=True)
class _Counting:
    """Postings without the rows that count no more; those that do are numbered through."""

    held: postings.Segment
    alive: Mask
    lengths: postings.Rows
    _numbers: postings.Rows

    @classmethod
    def of(cls, held: postings.Segment, alive: Mask) -> _Counting:
        numbers = (np.cumsum(alive) - 1).astype(np.uint32)
        return cls(held, alive, held.lengths[alive], numbers)

    def find(self, term: str) -> tuple[postings.Rows, postings.Counts]:
        """The rows that hold the term, ascending, and how often each does."""
        rows, counts = self.held.find(term)
        kept = self.alive[rows]
        return self._numbers[rows[kept]], counts[kept]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to write to disk: one new segment in place of some, beside those that stay."""

    kept: tuple[object, ...]
    segment: Segment
    first: int
    """The place of the first part the new segment stands for."""


@dataclass(slots=True)
class ScopeIndex:
    """Everything needed to rank the memories of one scope; not safe for several threads."""

    identity: str
    dimensions: int
    vectorize: Vectorize
    """Vectors for new memories; called when something is recalled, not before."""
    seq: int = 0
    """Up to which change it is complete."""
    min_seq: int = 0
    foreign: int = 0
    """How many rows were loaded with vectors of another embedder, which count as none."""
    _parts: list[Part] = field(default_factory=list)
    _fresh: dict[bytes, Entry] = field(default_factory=dict)
    _columns: Columns | None = None
    _snapshot: Snapshot | None = None

    def __len__(self) -> int:
        return sum(len(part.columns) for part in self._parts) + len(self._fresh)

    @property
    def size(self) -> int:
        """Roughly how many bytes it takes in memory."""
        joined = 0 if self._columns is None else _ROW_BYTES * len(self)
        return sum(part.size for part in self._parts) + _ENTRY_BYTES * len(self._fresh) + joined

    @property
    def unwritten(self) -> int:
        """How many rows are in no segment on disk."""
        loose = (len(part.columns) for part in self._parts if part.token is None)
        return sum(loose) + len(self._fresh)

    # -- taking in ---------------------------------------------------------------------

    def load(
        self, loaded: Columns, dead: Sequence[int], token: object, rest: Callable[[], Rest]
    ) -> None:
        """Take in a segment from disk, newer than all before it, without its dead rows."""
        alive = np.ones(len(loaded), np.bool_)
        alive[list(dead)] = False
        self._parts.append(Part(loaded, alive, rest, token))
        self._changed()

    def add(self, entries: Iterable[Entry]) -> None:
        """Take in memories that are new or have changed."""
        for entry in entries:
            if not entry.new:
                self.erase([entry.row_id])
            self._fresh[entry.row_id] = entry
        self._changed()

    def erase(self, ids: Iterable[bytes]) -> None:
        """Have these memories count no more; unknown ones are fine."""
        for row_id in ids:
            self._fresh.pop(row_id, None)
            for part in self._parts:
                part.erase(row_id)
        self._changed()

    def settle(self) -> None:
        """Bring everything to where it can be recalled: the newest as a segment in memory."""
        for part in self._parts:
            self._complete(part)
        if self._fresh:
            entries = list(self._fresh.values())
            self._push(segment.build(entries, self.vectorize(entries), self.identity))
            self._fresh = {}
            self._merge_small()

    def _complete(self, part: Part) -> None:
        if part.load is not None:
            part.postings, made = part.load()
            part.vectors = self._comparable(made)
            part.load = None

    def _comparable(self, made: Vectors) -> Vectors:
        """The vectors; those of another embedder compare with none of ours and count as none."""
        if made.identity == self.identity:
            return made
        self.foreign += len(made)
        none = np.zeros((len(made), self.dimensions), np.float32)
        return vectors.quantize(self.identity, none)

    def _push(self, one: Segment) -> None:
        alive = np.ones(len(one), np.bool_)
        self._parts.append(Part(one.columns, alive, None, None, one.postings, one.vectors))
        self._columns = self._snapshot = None

    def _merge_small(self) -> None:
        """Merge neighbors of like size that are only in memory, so that there are few parts."""
        while len(self._parts) > 1:
            before, last = self._parts[-2:]
            if before.token is not None or len(before.columns) > _GROWTH * len(last.columns):
                return
            merged = self._merged([before, last])
            del self._parts[-2:]
            self._push(merged)

    def _merged(self, parts: Sequence[Part]) -> Segment:
        return segment.merge([self._segment(part) for part in parts], [p.alive for p in parts])

    def _segment(self, part: Part) -> Segment:
        self._complete(part)
        assert part.postings is not None
        assert part.vectors is not None
        return Segment(columns=part.columns, postings=part.postings, vectors=part.vectors)

    def _changed(self) -> None:
        self._columns = self._snapshot = None

    # -- giving out --------------------------------------------------------------------

    def fresh(self) -> list[Entry]:
        """The newest memories, which are in no segment yet."""
        return list(self._fresh.values())

    def columns(self) -> Columns:
        """The columns of every row in a segment that counts, numbered like all scores."""
        if self._columns is None:
            parts = self._parts
            counting = [p.columns if p.whole else columns.pick(p.columns, p.alive) for p in parts]
            self._columns = columns.join(counting) if parts else columns.build([], [])
        return self._columns

    def snapshot(self) -> Snapshot:
        """Everything a question is ranked by, as it is now; the same one until a change."""
        self.settle()
        if self._snapshot is None:
            self._snapshot = Snapshot(
                columns=self.columns(),
                terms=postings.Terms.of([part.terms() for part in self._parts]),
                vectors=[part.dense() for part in self._parts],
                squares=[part.squares() for part in self._parts],
                mean=self._mean(),
            )
        return self._snapshot

    def _mean(self) -> Floats:
        """The mean vector of the rows that have one: what all memories have in common."""
        total, count = np.zeros(self.dimensions, np.float32), 0
        for part in self._parts:
            total += part.total()
            squares = part.squares() if part.whole else part.squares()[part.alive]
            count += int(np.count_nonzero(squares))
        return total / np.float32(max(count, 1))

    # -- to disk -----------------------------------------------------------------------

    def plan(self, *, anew: bool = False) -> Plan | None:
        """What is to be written so that everything is on disk; with `anew`, all in one segment.

        Segments that are not much larger than what is new, or of which little counts, are merged
        with it: so there are never more than a few, and each row is written a few times.
        """
        self.settle()
        loose = [place for place, part in enumerate(self._parts) if part.token is None]
        first = loose[0] if loose else len(self._parts)
        size = sum(int(part.alive.sum()) for part in self._parts[first:])
        while first and (anew or self._joins(self._parts[first - 1], size)):
            first -= 1
            size += int(self._parts[first].alive.sum())
        if first == len(self._parts):
            return None
        kept = tuple(part.token for part in self._parts[:first])
        return Plan(kept=kept, segment=self._merged(self._parts[first:]), first=first)

    def _joins(self, part: Part, size: int) -> bool:
        counting = int(part.alive.sum())
        return counting <= _GROWTH * size or counting < _HOLLOW * len(part.columns)

    def dead(self) -> list[list[int]]:
        """For every part, the rows that count no more."""
        return [np.flatnonzero(~part.alive).tolist() for part in self._parts]

    def adopt(self, plan: Plan, tokens: Sequence[object]) -> None:
        """Take in that a plan was carried out: `tokens` are the segments on disk now."""
        del self._parts[plan.first :]
        self._push(plan.segment)
        for part, token in zip(self._parts, tokens, strict=True):
            part.token = token
        self._changed()
