"""Which rows hold a term, and how well every row answers weighted terms (BM25).

A segment is immutable and packs into bytes; the tail takes rows one at a time. Rows are numbered
through all segments in order, the tail last. Deleted rows stay until a merge leaves them out.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from scrubjay.index.analysis import Wanted

Floats: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.uint32]
Counts: TypeAlias = NDArray[np.uint16]
Mask: TypeAlias = NDArray[np.bool_]
Number = TypeVar("Number", np.uint16, np.uint32)

K1 = 1.0
B = 0.6
MOST_COUNTED = 0xFFFF
_HEAD = struct.Struct("<4sIII")
_MAGIC = b"SJP1"
_NOTHING = (np.empty(0, np.uint32), np.empty(0, np.uint16))


class Part(Protocol):
    """Some rows and the terms they hold; `find` numbers rows from 0 within the part."""

    @property
    def lengths(self) -> Rows:
        """How many terms each row holds."""

    def find(self, term: str) -> tuple[Rows, Counts]:
        """The rows that hold the term, ascending, and how often each does."""


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


def _join(arrays: Sequence[NDArray[Number]]) -> NDArray[Number]:
    """All of them in a row; of none, an empty one that fits any."""
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


@dataclass(frozen=True, slots=True)
class Match:
    """How well every row answers: BM25, and the share of the wanted information it holds.

    Information no row holds is left out of the share: a typing error or a pair of characters that
    is no word takes nothing from what the rows do hold.
    """

    scores: Floats
    coverage: Floats


def match(parts: Sequence[Part], wanted: Sequence[Wanted]) -> Match:
    """Match every row of all parts with the wanted terms.

    A near term counts instead of the wanted one where it gives more, damped by its nearness and
    never as rarer than the wanted one, so that near words cannot outweigh the word itself.
    """
    shelf = _Shelf.of(parts)
    scores, coverage = np.zeros(shelf.rows, np.float32), np.zeros(shelf.rows, np.float32)
    known = {item.term for item in wanted}
    whole = 0.0
    for item in wanted:
        found = shelf.find(item.term)
        rarity = shelf.rarity(len(found[0]))
        near = [(term, share) for term, share in item.near.items() if term not in known]
        best, held = shelf.weigh(found, near, rarity)
        whole += item.weight * rarity * bool(held.any())
        scores += np.float32(item.weight) * best
        coverage += np.float32(item.weight * rarity) * held
    return Match(scores, coverage / np.float32(whole) if whole else coverage)


@dataclass(frozen=True, slots=True)
class _Shelf:
    """All parts of one scope, their rows numbered through."""

    parts: Sequence[Part]
    bases: Sequence[int]
    norms: Floats

    @classmethod
    def of(cls, parts: Sequence[Part]) -> _Shelf:
        lengths = [part.lengths for part in parts]
        joined = _join(lengths)
        mean = max(float(joined.mean()), 1.0) if len(joined) else 1.0
        norms = np.float32(K1 * (1 - B)) + joined.astype(np.float32) * np.float32(K1 * B / mean)
        return cls(parts, [0, *np.cumsum([len(each) for each in lengths])], norms)

    @property
    def rows(self) -> int:
        return len(self.norms)

    def find(self, term: str) -> tuple[Rows, Counts]:
        if len(self.parts) == 1:
            return self.parts[0].find(term)
        found = [part.find(term) for part in self.parts]
        rows = [rows + np.uint32(base) for (rows, _), base in zip(found, self.bases, strict=False)]
        return _join(rows), _join([counts for _, counts in found])

    def rarity(self, holding: int) -> float:
        return math.log1p((self.rows - holding + 0.5) / (holding + 0.5))

    def weigh(
        self, found: tuple[Rows, Counts], near: Sequence[tuple[str, float]], rarity: float
    ) -> tuple[Floats, Floats]:
        """BM25 of one wanted term for every row, and how much of the term each row holds."""
        best, held = np.zeros(self.rows, np.float32), np.zeros(self.rows, np.float32)
        rows, counts = found
        best[rows] = np.float32(rarity) * self._saturate(rows, counts)
        held[rows] = 1
        for term, share in near:
            rows, counts = self.find(term)
            if len(rows):
                worth = np.float32(share * min(rarity, self.rarity(len(rows))))
                best[rows] = np.maximum(best[rows], worth * self._saturate(rows, counts))
                held[rows] = np.maximum(held[rows], np.float32(share))
        return best, held

    def _saturate(self, rows: Rows, counts: Counts) -> Floats:
        times = counts.astype(np.float32)
        saturated: Floats = np.float32(K1 + 1) * times / (times + self.norms[rows])
        return saturated
