"""A segment: the index of some memories, immutable, in three parts sealed apart.

Columns alone serve the brief; postings and vectors are loaded when something is recalled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from scrubjay.engine.search import columns, postings, vectors
from scrubjay.engine.search.analysis import ANALYZER_VERSION, analyze
from scrubjay.engine.search.columns import SIGNS_VERSION, Columns, Entry
from scrubjay.engine.search.vectors import Vectors
from scrubjay.model.memory import Memory, wording

Mask = NDArray[np.bool_]
Piece = TypeVar("Piece")
VERSION: Final = f"{ANALYZER_VERSION}.{SIGNS_VERSION}"
"""Which analysis made a segment: one of another version is made again from the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The index of some memories."""

    columns: Columns
    postings: postings.Segment
    vectors: Vectors

    def __len__(self) -> int:
        return len(self.columns)


def _text(memory: Memory) -> str:
    """What a memory is found by: who said it, what it says, and its tags."""
    said = wording(memory.content, memory.tags)
    return f"{memory.speaker}: {said}" if memory.speaker else said


def build(entries: Sequence[Entry], floats: NDArray[np.float32], identity: str) -> Segment:
    """The segment of these memories and their vectors."""
    analyzed = [analyze(_text(entry.memory)) for entry in entries]
    return Segment(
        columns=columns.build(entries, [language for _, language in analyzed]),
        postings=postings.build(terms for terms, _ in analyzed),
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
