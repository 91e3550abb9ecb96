"""A segment: the index of a stretch of changes, immutable, in three parts sealed apart.

Columns alone serve the brief; postings and vectors are loaded when something is recalled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrubjay.index import columns, postings, vectors
from scrubjay.index.analysis import ANALYZER_VERSION, terms
from scrubjay.index.columns import Columns, Entry
from scrubjay.index.vectors import Vectors

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The index of the memories that changed between two seqs."""

    columns: Columns
    postings: postings.Segment
    vectors: Vectors

    def __len__(self) -> int:
        return len(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Which changes a segment covers, and up to which seq it knows what was erased."""

    after: int
    upto: int
    known: int
    analyzer: int = ANALYZER_VERSION

    def may_hold(self, born: int, seq: int) -> bool:
        """Whether a row of this birth and seq, or an earlier state of it, can be inside."""
        return self.after < seq and born <= self.upto


def words_of(entry: Entry) -> list[str]:
    """The terms a memory is found by: who said it, what it says, and its tags."""
    memory = entry.memory
    text = " ".join((memory.speaker or "", memory.content, *memory.tags))
    return terms(text)


def build(entries: Sequence[Entry], floats: NDArray[np.float32], identity: str) -> Segment:
    """The segment of these memories and their vectors."""
    return Segment(
        columns=columns.build(entries),
        postings=postings.build(words_of(entry) for entry in entries),
        vectors=vectors.quantize(identity, floats),
    )


def merge(segments: Sequence[Segment], keep: Sequence[Mask]) -> Segment:
    """One segment of several, without the rows outside `keep`: nothing of those is left in it."""
    return Segment(
        columns=columns.join([one.columns for one in segments], keep),
        postings=postings.merge([one.postings for one in segments], keep),
        vectors=vectors.join([one.vectors for one in segments], keep),
    )


def pack(segment: Segment) -> tuple[bytes, bytes, bytes]:
    """Columns, postings and vectors as bytes."""
    return (
        columns.pack(segment.columns),
        postings.pack(segment.postings),
        vectors.pack(segment.vectors),
    )


def unpack(parts: Sequence[bytes]) -> Segment:
    """The segment that `pack` wrote; ValueError for anything else."""
    first, second, third = parts
    return Segment(
        columns=columns.unpack(first),
        postings=postings.unpack(second),
        vectors=vectors.unpack(third),
    )
