"""The index of one scope in memory: segments, the newest memories, and which rows count.

A memory that changes is added anew and its old row no longer counts; one that is erased only
stops counting here, and is left out of every segment that is written from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scrubjay.index import columns, postings, segment
from scrubjay.index.analysis import Wanted
from scrubjay.index.columns import Columns, Entry
from scrubjay.index.postings import Match
from scrubjay.index.segment import Mask, Segment

FRESH_LIMIT: Final = 64
"""How many of the newest memories are kept apart before they become a segment in memory."""
_ROW_BYTES: Final = 400
"""What a row takes besides its vector: columns, postings, its share of the term table."""


@dataclass(slots=True)
class Part:
    """A segment and which of its rows still count."""

    segment: Segment
    alive: Mask
    floats: NDArray[np.float32]


@dataclass(slots=True)
class ScopeIndex:
    """Everything needed to rank the memories of one scope; not safe for several threads."""

    identity: str
    seq: int = 0
    """Up to which change it is complete."""
    min_seq: int = 0
    _parts: list[Part] = field(default_factory=list)
    _fresh: list[Entry] = field(default_factory=list)
    _fresh_vectors: list[NDArray[np.float32]] = field(default_factory=list)
    _places: dict[bytes, tuple[int, int]] | None = None
    _columns: Columns | None = None

    def __len__(self) -> int:
        return sum(len(part.segment) for part in self._parts) + len(self._fresh)

    @property
    def size(self) -> int:
        """Roughly how many bytes it takes in memory."""
        vectors = sum(part.floats.nbytes for part in self._parts)
        return vectors + _ROW_BYTES * len(self)

    # -- taking in ---------------------------------------------------------------------

    def load(self, loaded: Segment) -> None:
        """Take in a segment from disk; what it holds must be newer than all before it."""
        self.settle()
        self._push(loaded)

    def add(self, entries: Sequence[Entry], floats: NDArray[np.float32]) -> None:
        """Take in memories that are new or have changed, with their vectors."""
        for entry, vector in zip(entries, floats, strict=True):
            self.erase([entry.row_id])
            self._fresh.append(entry)
            self._fresh_vectors.append(vector)
            self._columns = None
            if len(self._fresh) >= FRESH_LIMIT:
                self.settle()

    def erase(self, ids: Iterable[bytes]) -> None:
        """Have these memories count no more; unknown ones are fine."""
        for row_id in ids:
            kept = [at for at, entry in enumerate(self._fresh) if entry.row_id != row_id]
            if len(kept) < len(self._fresh):
                self._fresh = [self._fresh[at] for at in kept]
                self._fresh_vectors = [self._fresh_vectors[at] for at in kept]
                self._columns = None
            place = self._find(row_id) if self._parts else None
            if place is not None:
                number, row = place
                self._parts[number].alive[row] = False

    def settle(self) -> None:
        """Make the newest memories a segment in memory, and merge small ones."""
        if self._fresh:
            built = segment.build(self._fresh, np.stack(self._fresh_vectors), self.identity)
            self._fresh, self._fresh_vectors = [], []
            self._push(built)
            self._merge_small()

    def _push(self, one: Segment) -> None:
        alive = np.ones(len(one), np.bool_)
        if self._parts:
            for row_id in one.columns.row_id:
                place = self._find(row_id.tobytes())
                if place is not None:
                    self._parts[place[0]].alive[place[1]] = False
        self._parts.append(Part(one, alive, one.vectors.floats()))
        self._places = None
        self._columns = None

    def _merge_small(self) -> None:
        """Merge neighbors of like size, so that there are never more than a few parts."""
        while len(self._parts) > 1:
            last, before = self._parts[-1], self._parts[-2]
            if len(before.segment) > 2 * len(last.segment):
                return
            merged = segment.merge([before.segment, last.segment], [before.alive, last.alive])
            del self._parts[-2:]
            alive = np.ones(len(merged), np.bool_)
            self._parts.append(Part(merged, alive, merged.vectors.floats()))
            self._places = None

    def _find(self, row_id: bytes) -> tuple[int, int] | None:
        """Where the row of this id is, if it counts."""
        if self._places is None:
            self._places = {
                found.tobytes(): (number, row)
                for number, part in enumerate(self._parts)
                for row, found in enumerate(part.segment.columns.row_id)
                if part.alive[row]
            }
        place = self._places.get(row_id)
        if place is not None and not self._parts[place[0]].alive[place[1]]:
            return None
        return place

    # -- giving out --------------------------------------------------------------------

    def columns(self) -> Columns:
        """The columns of every row, counting or not, numbered like all scores."""
        self.settle()
        if self._columns is None:
            parts = [part.segment.columns for part in self._parts]
            self._columns = columns.join(parts) if parts else columns.build([])
        return self._columns

    def alive(self) -> Mask:
        """Which rows count."""
        self.settle()
        return _concatenated([part.alive for part in self._parts], np.dtype(np.bool_))

    def match(self, wanted: Sequence[Wanted]) -> Match:
        """How well every row answers the wanted terms."""
        self.settle()
        return postings.match([part.segment.postings for part in self._parts], wanted)

    def dense(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The dot product of every row's vector with the query's."""
        self.settle()
        scores = [part.floats @ query for part in self._parts]
        return _concatenated(scores, np.dtype(np.float32))

    def mean(self) -> NDArray[np.float32]:
        """The mean vector of the scope: what all its memories have in common."""
        self.settle()
        total = sum(len(part.floats) for part in self._parts)
        summed = sum(part.floats.sum(axis=0) for part in self._parts)
        return np.asarray(summed / max(total, 1), np.float32)

    def vocabulary(self) -> set[str]:
        """Every term of the scope."""
        self.settle()
        return set().union(*(part.segment.postings.terms for part in self._parts))

    def whole(self) -> Segment | None:
        """Everything that counts as one segment, without a trace of what does not."""
        self.settle()
        if not self._parts:
            return None
        return segment.merge(
            [part.segment for part in self._parts], [part.alive for part in self._parts]
        )


def _concatenated(pieces: Sequence[NDArray], kind: np.dtype) -> NDArray:  # type: ignore[type-arg]
    return np.concatenate(pieces) if pieces else np.empty(0, kind)
