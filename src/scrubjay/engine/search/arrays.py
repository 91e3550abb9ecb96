"""Named arrays as one byte string and back: what a part of a segment is made of."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
_HEAD = struct.Struct("<4sI")
_MAGIC = b"SJA1"
_ALIGN = 8


def pack(arrays: Mapping[str, Array], *, note: Mapping[str, Any] | None = None) -> bytes:
    """The arrays, little-endian and aligned, behind a description; `note` is any small JSON."""
    plain = {name: np.ascontiguousarray(_little(array)) for name, array in arrays.items()}
    shapes = [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()]
    described = json.dumps({"arrays": shapes, "note": dict(note or {})}).encode()
    pieces = [_padded(_HEAD.pack(_MAGIC, len(described)) + described)]
    pieces += [_padded(array.tobytes()) for array in plain.values()]
    return b"".join(pieces)


def unpack(raw: bytes) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays, sharing the bytes, and the note; ValueError if `pack` did not write this."""
    if len(raw) < _HEAD.size or raw[:4] != _MAGIC:
        raise ValueError("these bytes are no arrays")
    _, size = _HEAD.unpack_from(raw)
    described = json.loads(raw[_HEAD.size : _HEAD.size + size])
    at = _aligned(_HEAD.size + size)
    arrays: dict[str, Array] = {}
    for name, kind, shape in described["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(raw, kind, count, at).reshape(shape)
        at = _aligned(at + count * np.dtype(kind).itemsize)
    return arrays, described["note"]


def _little(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _padded(raw: bytes) -> bytes:
    return raw + bytes(_aligned(len(raw)) - len(raw))
