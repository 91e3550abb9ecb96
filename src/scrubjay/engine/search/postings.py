"""Inverted index: which rows hold a term, and how well every row answers weighted terms (BM25).

Postings are immutable and pack into bytes. They know terms by a hash of 64 bits: so they hold no
words, are read without building a table, and are merged without comparing words. Rows are
numbered through all segments in order. Deleted rows stay until a merge leaves them out.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from itertools import accumulate, chain, repeat
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from scrubjay.engine.search.analysis import Wanted
from scrubjay.engine.search.sounds import heard_as
from scrubjay.model.words import WordCache

Floats: TypeAlias = NDArray[np.float32]
Keys: TypeAlias = NDArray[np.uint64]
Rows: TypeAlias = NDArray[np.uint32]
Counts: TypeAlias = NDArray[np.uint16]
Places: TypeAlias = NDArray[np.intp]
"""Row numbers for fancy indexing; intp, because numpy would convert them at every use."""
Mask: TypeAlias = NDArray[np.bool_]
Number = TypeVar("Number", np.uint16, np.uint32, np.uint64)

TermCounts: TypeAlias = tuple[Rows, Counts]
"""The rows that hold a term, and how often each does."""

PRIOR_ROWS = 1000
PRIOR_HOLDING = 2.5
"""Imagined rows, and how many of them hold a term: a small scope says little of what is rare."""
MOST_NATS = 6.0
"""The most information one term counts for: a rare word may be a typing error."""
OFTEN = 2
"""How many rows hold a name that another spelling is taken for."""
ALIKE_SHARE = 0.7
"""Weight of a name that is spelled in another way than the one asked for."""
K1 = 1.0
B = 0.6
MOST_COUNTED = 0xFFFF
_BATCH = 1 << 17
"""Rows of query terms that are weighed at once: a megabyte of numbers."""
_HEAD = struct.Struct("<4sIII")
_MAGIC = b"SJP1"
_NOTHING = (np.empty(0, np.uint32), np.empty(0, np.uint16))


def _key(term: str) -> int:
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest())


_KEYS: Final = WordCache(_key)
key_of: Final = _KEYS.__getitem__
"""The number a term is known by."""


def keys_of(terms: Collection[str]) -> Keys:
    """The numbers terms are known by; two of a hundred thousand share one in 10^9 scopes."""
    return np.fromiter(map(key_of, terms), np.uint64, len(terms))


class TermRows(Protocol):
    """Some rows and the terms they hold; `find` numbers rows from 0 within them."""

    @property
    def lengths(self) -> Rows:
        """How many terms each row holds."""

    def find(self, terms: Collection[str]) -> list[TermCounts]:
        """For each term the rows that hold it, ascending, and how often each does."""


class Postings(Struct, frozen=True, kw_only=True):
    """Rows that no longer change: `rows[starts[i]:starts[i + 1]]` hold the term of `keys[i]`."""

    keys: Keys
    starts: Rows
    rows: Rows
    counts: Counts
    lengths: Rows

    @classmethod
    def of(
        cls, documents: Iterable[Sequence[str]], marks: Iterable[Collection[str]] = repeat(())
    ) -> Postings:
        """The postings of these rows, each given as its terms; `marks` count for no length."""
        found: list[str] = []
        lengths: list[int] = []
        held: list[int] = []
        for terms, marked in zip(documents, marks, strict=False):
            found += chain(terms, marked)
            lengths.append(len(terms))
            held.append(len(terms) + len(marked))
        rows = np.repeat(np.arange(len(lengths), dtype=np.uint32), held)
        return cls.occurring(keys_of(found), rows, np.array(lengths, np.uint32))

    @classmethod
    def occurring(cls, keys: Keys, rows: Rows, lengths: Rows) -> Postings:
        """The postings of these occurrences: each a term's key, in the row beside it."""
        order = np.argsort(rows, kind="stable")
        return cls._gather(keys[order], rows[order], np.ones(len(rows), np.uint16), lengths)

    @classmethod
    def merge(cls, parts: Sequence[Postings], keep: Sequence[Mask]) -> Postings:
        """Merge of several in order; rows outside `keep` leave no trace."""
        keys, rows, counts, base = [np.empty(0, np.uint64)], [], [], 0
        for part, mask in zip(parts, keep, strict=True):
            keys.append(np.repeat(part.keys, np.diff(part.starts)))
            if mask.all():
                rows.append(part.rows + np.uint32(base))
                counts.append(part.counts)
            else:
                alive = mask[part.rows]
                moved = (np.cumsum(mask) - 1 + base).astype(np.uint32)
                keys[-1] = keys[-1][alive]
                rows.append(moved[part.rows[alive]])
                counts.append(part.counts[alive])
            base += int(mask.sum())
        lengths = [part.lengths[mask] for part, mask in zip(parts, keep, strict=True)]
        return cls._gather(_join(keys), _join(rows), _join(counts), _join(lengths))

    @classmethod
    def _gather(cls, keys: Keys, rows: Rows, counts: Counts, lengths: Rows) -> Postings:
        """The postings of these occurrences, whose rows ascend for each key."""
        # Stable, so rows stay in order; and quick, because what is merged is in order by parts.
        order = np.argsort(keys, kind="stable")
        keys, rows, counts = keys[order], rows[order], counts[order]
        other = _differs(keys)
        first = np.flatnonzero(other | _differs(rows))
        summed = np.add.reduceat(counts, first, dtype=np.uint32) if len(first) else counts[:0]
        starts = np.flatnonzero(other[first])
        return cls(
            keys=keys[first][starts],
            starts=np.append(starts, len(first)).astype(np.uint32),
            rows=rows[first],
            counts=np.minimum(summed, MOST_COUNTED).astype(np.uint16),
            lengths=lengths.astype(np.uint32),
        )

    @classmethod
    def unpack(cls, packed: bytes) -> Postings:
        """The postings that `pack` wrote; refuses anything else with ValueError."""
        if len(packed) < _HEAD.size or packed[:4] != _MAGIC:
            raise ValueError("these bytes are no postings")
        _, occurrences, terms, rows = _HEAD.unpack_from(packed)
        held: list[NDArray[Any]] = []
        at = _HEAD.size
        layout = (("<u8", terms), ("<u4", terms + 1), ("<u4", rows), ("<u4", occurrences))
        for kind, count in (*layout, ("<u2", occurrences)):
            held.append(np.frombuffer(packed, kind, count, at))
            at += held[-1].nbytes
        return cls(keys=held[0], starts=held[1], lengths=held[2], rows=held[3], counts=held[4])

    def pack(self) -> bytes:
        """The postings as bytes: a head, then the arrays, little-endian."""
        head = _HEAD.pack(_MAGIC, len(self.rows), len(self.keys), len(self.lengths))
        arrays = (self.starts, self.lengths, self.rows)
        return b"".join(
            (
                head,
                self.keys.astype("<u8").tobytes(),
                *(array.astype("<u4").tobytes() for array in arrays),
                self.counts.astype("<u2").tobytes(),
            )
        )

    @property
    def nbytes(self) -> int:
        """How many bytes it takes in memory."""
        arrays = (self.keys, self.starts, self.rows, self.counts, self.lengths)
        return sum(array.nbytes for array in arrays)

    def find(self, terms: Collection[str]) -> list[TermCounts]:
        """For each term the rows that hold it, ascending, and how often each does."""
        found = [_NOTHING] * len(terms)
        if not len(self.keys):
            return found
        wanted = keys_of(terms)
        places = self.keys.searchsorted(wanted)
        known = np.flatnonzero(self.keys.take(places, mode="clip") == wanted)
        edges = zip(self.starts[places[known]], self.starts[places[known] + 1], strict=True)
        for at, (first, last) in zip(known.tolist(), edges, strict=True):
            found[at] = self.rows[first:last], self.counts[first:last]
        return found


def _differs(values: NDArray[Number]) -> Mask:
    """Mask of the values that differ from the one before; the first always does."""
    other = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=other[1:])
    return other


def _join(arrays: Sequence[NDArray[Number]]) -> NDArray[Number]:
    """Concatenation; of none, an empty array of any type."""
    return np.concatenate(arrays) if arrays else np.empty(0, np.uint32)


class Match(Struct, frozen=True):
    """Match of every row with a query: BM25, and coverage, the share of its information.

    Terms that no row holds are left out of the coverage, so that a typing error does not lower it.
    """

    scores: Floats
    coverage: Floats
    shared: Floats
    """How many of the terms each row holds, by how much they tell; not divided by the question."""
    terms: int = 0
    """How many terms were wanted."""
    nats: float = 0.0
    """Information of the wanted terms that some row holds, whatever the size of the scope."""
    topical: bool = True
    """Whether any of the terms is more than small talk."""
    strange: frozenset[str] = frozenset()
    """The names no row holds as they are spelled."""


class _AskedTerm(Struct, frozen=True):
    """A wanted term, the rows that hold it, and those that hold a similar one, by similarity."""

    item: Wanted
    own: TermCounts
    near: Sequence[tuple[TermCounts, float]]
    rarity: float


class Terms(Struct, frozen=True):
    """All parts of one scope, their rows numbered through; made once, for many questions."""

    parts: Sequence[TermRows]
    bases: Sequence[int]
    norms: Floats

    @classmethod
    def of(cls, parts: Sequence[TermRows]) -> Terms:
        """The terms of these parts."""
        lengths = [part.lengths for part in parts]
        joined = _join(lengths)
        mean = max(float(joined.mean()), 1.0) if len(joined) else 1.0
        norms = np.float32(K1 * (1 - B)) + joined.astype(np.float32) * np.float32(K1 * B / mean)
        return cls(parts, list(accumulate(map(len, lengths), initial=0)), norms)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.norms)

    def match(self, wanted: Sequence[Wanted]) -> Match:
        """Match every row with the wanted terms.

        A similar term replaces the wanted one where it scores more. It is damped by its similarity
        and never counts as rarer than the wanted one, so it cannot outweigh the word itself.
        """
        asked_for = list[_AskedTerm]()
        known = dict.fromkeys(item.term for item in wanted)
        asked = known | dict.fromkeys(term for item in wanted for term in item.near)
        found = self.find(asked)
        whole = nats = 0.0
        strange = set[str]()
        for item in wanted:
            own = found[item.term]
            rarity = self.rarity(len(own[0]))
            near = [
                (found[term], share)
                for term, share in item.near.items()
                if term not in known and len(found[term][0])
            ]
            if item.name and not len(own[0]):
                strange.add(item.name)
                near += self._alike(item.name)
            if not near and not len(own[0]):
                continue
            asked_for.append(_AskedTerm(item, own, near, rarity))
            whole += item.weight * rarity
            expected = math.log((self.rows + PRIOR_ROWS) / (len(own[0]) + PRIOR_HOLDING))
            nats += min(expected, MOST_NATS)
        sums = np.zeros((3, self.rows), np.float32)
        many = max(_BATCH // max(self.rows, 1), 1)
        for first in range(0, len(asked_for), many):
            self._add(sums, asked_for[first : first + many])
        scores, coverage, shared = sums
        coverage = coverage / np.float32(whole) if whole else coverage
        topical = any(item.telling == 1 for item in wanted)
        return Match(scores, coverage, shared, len(wanted), nats, topical, frozenset(strange))

    def _alike(self, name: str) -> list[tuple[TermCounts, float]]:
        """The rows of the names most like one that no row holds; a name held once is none."""
        found = self.find(dict.fromkeys(heard_as(name)))
        often = [held for held in found.values() if len(held[0]) >= OFTEN]
        return [(held, ALIKE_SHARE) for held in often[:1]]

    def find(self, terms: Collection[str]) -> dict[str, TermCounts]:
        """By term the rows that hold it, ascending, and how often each does."""
        found = dict.fromkeys(terms, _NOTHING)
        for part, base in zip(self.parts, self.bases, strict=False):
            for term, (rows, counts) in zip(terms, part.find(terms), strict=True):
                if not len(rows):
                    continue
                moved = rows + np.uint32(base) if base else rows
                held = found[term]
                if len(held[0]):
                    found[term] = np.append(held[0], moved), np.append(held[1], counts)
                else:
                    found[term] = moved, counts
        return found

    def rarity(self, holding: int) -> float:
        """Inverse document frequency of a term that so many rows hold."""
        return math.log1p((self.rows - holding + 0.5) / (holding + 0.5))

    def _add(self, sums: Floats, terms: Sequence[_AskedTerm]) -> None:
        """Add the BM25, coverage and worth of some query terms to those of the rows.

        All terms at once, each with a place for every row, because a small scope costs as many
        calls of numpy as a large one.
        """
        best, held = np.zeros((2, len(terms) * self.rows), np.float32)
        first = np.arange(len(terms)) * self.rows
        sizes = [len(one.own[0]) for one in terms]
        rows = np.concatenate([one.own[0] for one in terms], dtype=np.intp)
        rarity = np.array([one.rarity for one in terms], np.float32)
        saturated = self._saturate(rows, np.concatenate([one.own[1] for one in terms]))
        places = rows + np.repeat(first, sizes)
        best[places] = np.repeat(rarity, sizes) * saturated
        held[places] = 1
        near = [
            (at, one.rarity, *pair)
            for at, one in zip(first, terms, strict=True)
            for pair in one.near
        ]
        if near:
            # The most that one similar word gives does not depend on their order.
            sizes = [len(found) for _, _, (found, _), _ in near]
            rows = np.concatenate([found for _, _, (found, _), _ in near], dtype=np.intp)
            shares = np.array([share for *_, share in near])
            limits = [
                min(rarity, self.rarity(size))
                for (_, rarity, _, _), size in zip(near, sizes, strict=True)
            ]
            worth = (shares * limits).astype(np.float32)
            saturated = self._saturate(
                rows, np.concatenate([counts for _, _, (_, counts), _ in near])
            )
            places = rows + np.repeat([at for at, *_ in near], sizes)
            np.maximum.at(best, places, np.repeat(worth, sizes) * saturated)
            np.maximum.at(held, places, np.repeat(shares.astype(np.float32), sizes))
        places = np.flatnonzero(held)
        found = np.diff(places.searchsorted(np.arange(len(terms) + 1) * self.rows))
        rows = places - np.repeat(first, found)
        items = [(one.item.weight, one.item.weight * one.rarity, one.item.telling) for one in terms]
        counts = np.array(items, np.float32).T
        for total, count, values in zip(sums, counts, (best, held, held), strict=True):
            # Term after term, as a sum in order.
            np.add.at(total, rows, np.repeat(count, found) * values[places])

    def _saturate(self, rows: Places, counts: Counts) -> Floats:
        times = counts.astype(np.float32)
        saturated: Floats = np.float32(K1 + 1) * times / (times + self.norms.take(rows))
        return saturated
