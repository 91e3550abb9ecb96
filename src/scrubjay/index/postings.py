"""Which rows hold a term, and how well every row answers weighted terms (BM25).

A segment is immutable and packs into bytes; the tail takes rows one at a time. Rows are numbered
through all segments in order, the tail last. Deleted rows stay until a merge leaves them out.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.uint32]
Counts: TypeAlias = NDArray[np.uint16]
Mask: TypeAlias = NDArray[np.bool_]

K1 = 1.2
B = 0.75
MOST_COUNTED = 0xFFFF
_HEAD = struct.Struct("<4sIII")
_MAGIC = b"SJP1"
_NOTHING = (np.empty(0, np.uint32), np.empty(0, np.uint16))


class Part(Protocol):
    """Some rows and the terms they hold; `find` numbers rows from 0 within the part."""

    @property
    def lengths(self) -> Rows: ...

    def find(self, term: str) -> tuple[Rows, Counts]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Rows that no longer change: `rows[starts[i]:starts[i + 1]]` hold the i-th term."""

    terms: dict[str, int]
    starts: Rows
    rows: Rows
    counts: Counts
    lengths: Rows

    def find(self, term: str) -> tuple[Rows, Counts]:
        """The rows that hold the term, ascending, and how often each does."""
        place = self.terms.get(term)
        if place is None:
            return _NOTHING
        first, last = self.starts[place], self.starts[place + 1]
        return self.rows[first:last], self.counts[first:last]


@dataclass(slots=True)
class Tail:
    """The newest rows, still growing."""

    _found: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    _lengths: list[int] = field(default_factory=list)

    @property
    def lengths(self) -> Rows:
        """How many terms each row holds."""
        return np.array(self._lengths, np.uint32)

    def add(self, terms: Sequence[str]) -> int:
        """Take one more row; returns its number within the tail."""
        row = len(self._lengths)
        self._lengths.append(len(terms))
        for term, count in Counter(terms).items():
            rows, counts = self._found.setdefault(term, ([], []))
            rows.append(row)
            counts.append(min(count, MOST_COUNTED))
        return row

    def find(self, term: str) -> tuple[Rows, Counts]:
        """The rows that hold the term, ascending, and how often each does."""
        rows, counts = self._found.get(term, ((), ()))
        return np.array(rows, np.uint32), np.array(counts, np.uint16)

    def freeze(self) -> Segment:
        """The same rows as a segment."""
        terms = sorted(self._found)
        found = [self._found[term] for term in terms]
        starts = np.zeros(len(terms) + 1, np.uint32)
        np.cumsum([len(rows) for rows, _ in found], out=starts[1:])
        return Segment(
            terms={term: place for place, term in enumerate(terms)},
            starts=starts,
            rows=np.array([row for rows, _ in found for row in rows], np.uint32),
            counts=np.array([count for _, counts in found for count in counts], np.uint16),
            lengths=self.lengths,
        )


def build(documents: Iterable[Sequence[str]]) -> Segment:
    """The segment of these rows, each given as its terms."""
    tail = Tail()
    for terms in documents:
        tail.add(terms)
    return tail.freeze()


def merge(segments: Sequence[Segment], keep: Sequence[Mask] | None = None) -> Segment:
    """One segment of several in order; rows outside `keep` are left out and leave no trace."""
    kept = list(keep) if keep else [np.ones(len(part.lengths), np.bool_) for part in segments]
    terms = sorted(set().union(*(part.terms for part in segments)))
    places = {term: place for place, term in enumerate(terms)}
    whose, rows, counts, base = [], [], [], 0
    for part, mask in zip(segments, kept, strict=True):
        place = np.fromiter((places[term] for term in part.terms), np.uint32, len(part.terms))
        alive = mask[part.rows]
        moved = (np.cumsum(mask) - 1 + base).astype(np.uint32)
        whose.append(np.repeat(place, np.diff(part.starts))[alive])
        rows.append(moved[part.rows[alive]])
        counts.append(part.counts[alive])
        base += int(mask.sum())
    lengths = [part.lengths[mask] for part, mask in zip(segments, kept, strict=True)]
    return _sorted_segment(terms, _join(whose), _join(rows), _join(counts), _join(lengths))


def _sorted_segment(
    terms: list[str], whose: Rows, rows: Rows, counts: Counts, lengths: Rows
) -> Segment:
    order = np.lexsort((rows, whose))
    held = np.bincount(whose, minlength=len(terms))
    names = [term for term, count in zip(terms, held, strict=True) if count]
    starts = np.zeros(len(names) + 1, np.uint32)
    np.cumsum(held[held > 0], out=starts[1:])
    return Segment(
        terms={term: place for place, term in enumerate(names)},
        starts=starts,
        rows=rows[order],
        counts=counts[order],
        lengths=lengths,
    )


def _join(arrays: list[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    return np.concatenate(arrays) if arrays else np.empty(0, np.uint32)


def pack(segment: Segment) -> bytes:
    """The segment as bytes: a head, the terms, then the arrays, little-endian."""
    names = json.dumps(list(segment.terms), ensure_ascii=False, separators=(",", ":")).encode()
    head = _HEAD.pack(_MAGIC, len(names), len(segment.terms), len(segment.lengths))
    arrays = (segment.starts, segment.lengths, segment.rows)
    body = b"".join(array.astype("<u4").tobytes() for array in arrays)
    return b"".join((head, names, body, segment.counts.astype("<u2").tobytes()))


def unpack(packed: bytes) -> Segment:
    """The segment that `pack` wrote; refuses anything else with ValueError."""
    if len(packed) < _HEAD.size or packed[:4] != _MAGIC:
        raise ValueError("these bytes are no postings")
    _, named, n_terms, n_rows = _HEAD.unpack_from(packed)
    at = _HEAD.size + named
    names = json.loads(packed[_HEAD.size : at])
    starts, at = _take(packed, at, n_terms + 1)
    lengths, at = _take(packed, at, n_rows)
    rows, at = _take(packed, at, int(starts[-1]))
    counts = np.frombuffer(packed, "<u2", int(starts[-1]), at)
    terms = {term: place for place, term in enumerate(names)}
    return Segment(terms=terms, starts=starts, rows=rows, counts=counts, lengths=lengths)


def _take(packed: bytes, at: int, count: int) -> tuple[Rows, int]:
    return np.frombuffer(packed, "<u4", count, at), at + 4 * count


def score(parts: Sequence[Part], wanted: Mapping[str, float]) -> Floats:
    """BM25 of every row of all parts for the wanted terms, each weighed as given."""
    lengths = [part.lengths for part in parts]
    total = sum(map(len, lengths))
    scores = np.zeros(total, np.float32)
    if not total:
        return scores
    all_lengths = np.concatenate(lengths)
    mean = max(float(all_lengths.mean()), 1.0)
    norms = (K1 * (1 - B) + all_lengths * np.float32(K1 * B / mean)).astype(np.float32)
    bases = np.cumsum([0, *map(len, lengths)])
    for term, weight in wanted.items():
        found = [part.find(term) for part in parts]
        holding = sum(len(rows) for rows, _ in found)
        idf = weight * float(np.log1p((total - holding + 0.5) / (holding + 0.5)))
        for (rows, counts), base in zip(found, bases, strict=False):
            places = rows + np.uint32(base)
            times = counts.astype(np.float32)
            scores[places] += np.float32(idf * (K1 + 1)) * times / (times + norms[places])
    return scores
