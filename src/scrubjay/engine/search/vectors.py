"""Vectors of memories: a byte per dimension, at rest and while a scope is open.

They are turned into floats a few thousand at a time: for many rows that is faster than keeping
floats, which have to come from memory each time, and takes a quarter of the space.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrubjay.engine.search import arrays

_STEPS = 127
_CHUNK = 2048
"""Rows turned into floats at a time: two megabytes at 256 dimensions, about a cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """One vector per memory, as whole numbers and a scale; zeros where there is none."""

    identity: str
    """Which embedder made them: vectors of two do not compare."""
    steps: NDArray[np.int8]
    scale: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.scale)

    def floats(self) -> NDArray[np.float32]:
        """The vectors as numbers one can calculate with."""
        return self.steps.astype(np.float32) * self.scale[:, None]

    def dot(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The dot product of every vector with the query, or with each column of several."""
        found = np.empty((len(self), *query.shape[1:]), np.float32)
        for rows, floats in self._chunks():
            np.dot(floats, query, out=found[rows])
        found *= self.scale if query.ndim == 1 else self.scale[:, None]
        return found

    def total(self) -> NDArray[np.float32]:
        """The sum of all vectors."""
        found = np.zeros(self.steps.shape[1], np.float32)
        for rows, floats in self._chunks():
            found += self.scale[rows] @ floats
        return found

    def squares(self) -> NDArray[np.float32]:
        """The squared length of every vector."""
        found = np.einsum("ij,ij->i", self.steps, self.steps, dtype=np.int32)
        return np.asarray(found * self.scale**2, np.float32)

    def _chunks(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """The steps as floats, some rows at a time; each time the same floats are written over."""
        buffer = np.empty((min(_CHUNK, len(self)), self.steps.shape[1]), np.float32)
        for first in range(0, len(self), _CHUNK):
            rows = slice(first, min(first + _CHUNK, len(self)))
            floats = buffer[: rows.stop - first]
            floats[...] = self.steps[rows]
            yield rows, floats


def quantize(identity: str, floats: NDArray[np.float32]) -> Vectors:
    """The vectors in a byte per dimension; their directions move by less than half a percent."""
    peak = np.abs(floats).max(axis=1, initial=0.0)
    scale = (peak / _STEPS).astype(np.float32)
    divisor = np.where(scale > 0, scale, 1.0)[:, None]
    steps = np.rint(floats / divisor).astype(np.int8)
    return Vectors(identity=identity, steps=steps, scale=scale)


def join(parts: Sequence[Vectors], keep: Sequence[NDArray[np.bool_]] | None = None) -> Vectors:
    """The vectors of several parts in order; rows outside `keep` are left out."""
    masks = keep or [np.ones(len(part), np.bool_) for part in parts]
    pairs = list(zip(parts, masks, strict=True))
    return Vectors(
        identity=parts[0].identity,
        steps=np.concatenate([part.steps[mask] for part, mask in pairs]),
        scale=np.concatenate([part.scale[mask] for part, mask in pairs]),
    )


def pack(vectors: Vectors) -> bytes:
    """The vectors as bytes."""
    held: dict[str, arrays.Array] = {"steps": vectors.steps, "scale": vectors.scale}
    return arrays.pack(held, note={"identity": vectors.identity})


def unpack(raw: bytes) -> Vectors:
    """The vectors that `pack` wrote; ValueError for anything else."""
    held, note = arrays.unpack(raw)
    return Vectors(identity=note["identity"], steps=held["steps"], scale=held["scale"])
