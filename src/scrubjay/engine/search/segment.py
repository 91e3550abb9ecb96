"""A segment: the index of some memories, immutable, in three parts that are sealed apart.

Columns hold one array for each property of the memories, which is all the brief needs; postings and
vectors are loaded by the first recall.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Any, Final, TypeAlias

import numpy as np
import simsimd
from msgspec import Struct
from numpy.typing import NDArray

from scrubjay.engine.search import vocabulary
from scrubjay.engine.search.analysis import ANALYZER_VERSION, SIGNS_VERSION, Signs
from scrubjay.engine.search.postings import Floats, Mask, Postings
from scrubjay.model.filters import Filter
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.origin import Origin

Array: TypeAlias = NDArray[Any]
Codes: TypeAlias = NDArray[np.int32]

LABELS_VERSION: Final = 1
VERSION: Final = f"{ANALYZER_VERSION}.{SIGNS_VERSION}.{LABELS_VERSION}"
"""Version of the analysis; a segment of another version is rebuilt from the rows."""
NOTHING: Final = -1
"""Code of a missing name, and position of a memory without one."""
KINDS: Final = tuple(Kind)
ORIGINS: Final = (*(one for one in Origin if one is not Origin.QUOTED), Origin.QUOTED)
"""By the codes of segments that are written: a new origin gets the next code."""
TRUSTED: Final = np.array([origin.trusted for origin in ORIGINS])
_KIND_CODES: Final = {kind: code for code, kind in enumerate(KINDS)}
_ORIGIN_CODES: Final = {origin: code for code, origin in enumerate(ORIGINS)}
TRUST: Final = 1 - np.array([0, 1, 2, 3, 4, 5, 6, 3.5], np.float32) / np.float32(6)
"""The share of trust in a ranking, by code: `quoted` stands between `import` and `other_agent`."""
SIGNS: Final = ("timed", "asks", "instructs", "prefers")
"""By their bits in the columns."""
_ID_BYTES: Final = 16
_INSTRUCTING_KINDS: Final = frozenset({Kind.INSTRUCTION, Kind.CORRECTION, Kind.PROCEDURE})
_CODED: Final = ("session", "speaker", "language")


# -- arrays as bytes --------------------------------------------------------------------------

_HEAD = struct.Struct("<4sI")
_MAGIC = b"SJA1"
_ALIGN = 8


def pack_arrays(arrays: Mapping[str, Array], note: Mapping[str, Any]) -> bytes:
    """Named arrays, little-endian and aligned, behind a description; `note` is any small JSON."""
    plain = {
        name: np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        for name, array in arrays.items()
    }
    shapes = [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()]
    described = json.dumps({"arrays": shapes, "note": dict(note)}).encode()
    pieces = [_HEAD.pack(_MAGIC, len(described)) + described]
    pieces += [array.tobytes() for array in plain.values()]
    return b"".join(piece + bytes(-len(piece) % _ALIGN) for piece in pieces)


def unpack_arrays(raw: bytes) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays, sharing the bytes, and the note; ValueError if `pack_arrays` did not write it."""
    if len(raw) < _HEAD.size or raw[:4] != _MAGIC:
        raise ValueError("these bytes are no arrays")
    _, size = _HEAD.unpack_from(raw)
    at = _HEAD.size + size
    described = json.loads(raw[_HEAD.size : at])
    arrays: dict[str, Array] = {}
    for name, kind, shape in described["arrays"]:
        at += -at % _ALIGN
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(raw, kind, count, at).reshape(shape)
        at += count * np.dtype(kind).itemsize
    return arrays, described["note"]


# -- columns ----------------------------------------------------------------------------------


class IndexEntry(Struct, frozen=True, kw_only=True, gc=False):
    """One memory, as it is added to an index."""

    row_id: bytes
    seq: int
    memory: Memory
    vector: Floats | None = None
    """Vector stored with the memory, if its embedder is costly."""

    @property
    def new(self) -> bool:
        """Whether it is its first version: then no index holds an earlier one."""
        return self.seq == self.memory.number


class Columns(Struct, frozen=True, kw_only=True):
    """The properties of some memories; the i-th item of every array belongs to the i-th one.

    Times are seconds since 1970, infinite where there is none. `session`, `speaker`, `language`
    and `tags` are codes into `names`; the tags of row i are those between `tag_starts[i]` and
    `tag_starts[i + 1]`. `labels` are hashes of what is filtered by besides: the metadata, the
    channel and the beginning of the id; they have `label_starts` like the tags.
    """

    row_id: NDArray[np.uint8]
    born: NDArray[np.int64]
    session: Codes
    speaker: Codes
    language: Codes
    position: Codes
    said: NDArray[np.float64]
    recorded: NDArray[np.float64]
    retired: NDArray[np.float64]
    expires: NDArray[np.float64]
    kind: NDArray[np.uint8]
    origin: NDArray[np.uint8]
    importance: Floats
    pinned: Mask
    approved: Mask
    length: Codes
    signs: NDArray[np.uint8]
    """Signs of the text: a bit for each of SIGNS."""
    tags: Codes
    tag_starts: Codes
    labels: NDArray[np.uint64]
    label_starts: Codes
    names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        entries: Sequence[IndexEntry],
        languages: Sequence[str] | None = None,
        signs: Sequence[Signs] | None = None,
    ) -> Columns:
        """The columns of these memories, in their order; languages and signs are for questions."""
        unread = len(entries)
        codes: dict[str, int] = {}
        memories = [entry.memory for entry in entries]
        ids = b"".join(entry.row_id for entry in entries)
        # Codes are given in this order: it is that of the names in the bytes.
        tags = [[_code(codes, tag) for tag in memory.tags] for memory in memories]
        session = [_code(codes, memory.provenance.session) for memory in memories]
        speaker = [_code(codes, memory.speaker) for memory in memories]
        labels = [[_hash(one) for one in memory.labels] for memory in memories]
        position = [
            NOTHING if memory.position is None else min(memory.position, 2**31 - 1)
            for memory in memories
        ]
        return cls(
            row_id=np.frombuffer(ids, np.uint8).reshape(-1, _ID_BYTES),
            born=np.array([memory.number for memory in memories], np.int64),
            session=np.array(session, np.int32),
            speaker=np.array(speaker, np.int32),
            language=np.array([_code(codes, one) for one in languages or [""] * unread], np.int32),
            position=np.array(position, np.int32),
            said=np.array([memory.said_at.timestamp() for memory in memories], np.float64),
            recorded=np.array([memory.recorded_at.timestamp() for memory in memories], np.float64),
            retired=np.array([_seconds(memory.retired_at) for memory in memories], np.float64),
            expires=np.array([_seconds(memory.expires_at) for memory in memories], np.float64),
            kind=np.array([_KIND_CODES[memory.kind] for memory in memories], np.uint8),
            origin=np.array([_ORIGIN_CODES[memory.origin] for memory in memories], np.uint8),
            importance=np.array([memory.importance for memory in memories], np.float32),
            pinned=np.array([memory.pinned for memory in memories], np.bool_),
            approved=np.array([memory.approved is not None for memory in memories], np.bool_),
            length=np.array([len(memory.content) for memory in memories], np.int32),
            signs=np.array(list(map(_sign_bits, memories, signs or [Signs()] * unread)), np.uint8),
            tags=np.array([code for some in tags for code in some], np.int32),
            tag_starts=_starts([len(some) for some in tags]),
            labels=np.array([one for some in labels for one in some], np.uint64),
            label_starts=_starts([len(some) for some in labels]),
            names=tuple(codes),
        )

    @classmethod
    def join(cls, parts: Sequence[Columns], keep: Sequence[Mask] | None = None) -> Columns:
        """The columns of several parts in order; rows outside `keep` are left out."""
        kept = [part.pick(mask) for part, mask in zip(parts, keep, strict=True)] if keep else parts
        if len(kept) == 1:
            return kept[0]
        codes = {name: code for code, name in enumerate(kept[0].names)}
        # The first part keeps its codes; those of the others are looked up.
        maps = [
            np.array([_code(codes, n) for n in p.names] + [NOTHING], np.int32) for p in kept[1:]
        ]
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in kept])
            for name in _ARRAYS
            if name not in {*_CODED, "tags", *_STARTS}
        }
        for name in (*_CODED, "tags"):
            pieces = [m[getattr(p, name)] for m, p in zip(maps, kept[1:], strict=True)]
            joined[name] = np.concatenate([getattr(kept[0], name), *pieces])
        for name in _STARTS:
            joined[name] = _starts(np.concatenate([np.diff(getattr(part, name)) for part in kept]))
        return cls(**joined, names=tuple(codes))

    def pick(self, mask: Mask) -> Columns:
        """The rows in the mask; names that no row has any more are removed."""
        if mask.all():
            return self
        chosen = {
            name: getattr(self, name)[mask] for name in _ARRAYS if name not in {*_LISTED, *_STARTS}
        }
        for name, start in zip(_LISTED, _STARTS, strict=True):
            sizes = np.diff(getattr(self, start))
            chosen[name] = getattr(self, name)[np.repeat(mask, sizes)]
            chosen[start] = _starts(sizes[mask])
        tags = chosen.pop("tags")
        used = np.unique(np.concatenate([*(chosen[name] for name in _CODED), tags]))
        used = used[used != NOTHING]
        fresh = np.full(len(self.names) + 1, NOTHING, np.int32)
        fresh[used] = np.arange(len(used), dtype=np.int32)
        for name in _CODED:
            chosen[name] = fresh[chosen[name]]
        names = tuple(self.names[code] for code in used)
        return Columns(**chosen, tags=fresh[tags], names=names)

    @classmethod
    def unpack(cls, raw: bytes) -> Columns:
        """The columns that `pack` wrote; ValueError for anything else."""
        held, note = unpack_arrays(raw)
        if "labels" not in held:  # of an earlier version: verified, never searched
            bare = np.zeros(len(held["born"]) + 1, np.int32)
            held |= {"labels": np.zeros(0, np.uint64), "label_starts": bare}
        return cls(**held, names=tuple(note["names"]))

    def pack(self) -> bytes:
        """The columns as bytes."""
        held = {name: getattr(self, name) for name in _ARRAYS}
        return pack_arrays(held, {"names": list(self.names)})

    def __len__(self) -> int:
        return len(self.born)

    def code(self, name: str) -> int:
        """The code of a name; NOTHING if no memory has it."""
        return self.names.index(name) if name in self.names else NOTHING

    def coded(self, codes: Codes) -> dict[int, str]:
        """The names of the codes in one of the columns."""
        counts = np.bincount(codes[codes != NOTHING], minlength=1)
        return {int(code): self.names[code] for code in np.flatnonzero(counts)}

    def shows(self, sign: str) -> Mask:
        """Mask of the memories with one of SIGNS."""
        return np.asarray((self.signs >> SIGNS.index(sign)) & 1, np.bool_)

    def places(self, row_id: bytes) -> NDArray[np.intp]:
        """The rows of one id."""
        first, second = np.frombuffer(row_id, np.uint64)
        halves = self.row_id.view(np.uint64)
        return np.flatnonzero((halves[:, 0] == first) & (halves[:, 1] == second))

    def tagged(self, tags: Iterable[str]) -> Mask:
        """Mask of the memories that have all of these tags."""
        return self._having(self.tags, self.tag_starts, map(self.code, tags))

    def labeled(self, labels: Iterable[str]) -> Mask:
        """Mask of the memories that have all of these labels."""
        return self._having(self.labels, self.label_starts, map(_hash, labels))

    def _having(self, values: Array, starts: Codes, wanted: Iterable[int]) -> Mask:
        mask = np.ones(len(self), np.bool_)
        owners = np.repeat(np.arange(len(self)), np.diff(starts))
        for one in wanted:
            has = np.zeros(len(self), np.bool_)
            has[owners[values == one]] = True
            mask &= has
        return mask

    def accepted(self, request: Filter, now: datetime) -> Mask:
        """Mask of the memories a filter accepts, as `Filter.accepts` does."""
        mask: Mask
        if request.as_of is not None:
            moment = request.as_of.timestamp()
            mask = (self.recorded <= moment) & (self.retired > moment) & (self.expires > moment)
        else:
            mask = self.expires > now.timestamp()
            if not request.superseded:
                mask &= np.isinf(self.retired)
        if request.kinds:
            mask &= np.isin(self.kind, [KINDS.index(Kind(kind)) for kind in request.kinds])
        if tags := request.wanted_tags:
            mask &= self.tagged(tags)
        if request.origins:
            mask &= np.isin(self.origin, [ORIGINS.index(Origin(one)) for one in request.origins])
        if request.session is not None:
            mask &= (self.session == self.code(request.session)) & (self.session >= 0)
        if request.since is not None:
            mask &= self.said >= request.since.timestamp()
        if request.before is not None:
            mask &= self.said < request.before.timestamp()
        return mask & self.labeled(request.labels) if request.labels else mask


def _hash(label: str) -> int:
    """Hash of a label: eight bytes, however long the value is."""
    return int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest(), "little")


_LISTED: Final = ("tags", "labels")
_STARTS: Final = ("tag_starts", "label_starts")
_ARRAYS: Final = tuple(name for name in Columns.__struct_fields__ if name != "names")


def _code(codes: dict[str, int], name: str | None) -> int:
    return NOTHING if name is None else codes.setdefault(name, len(codes))


def _seconds(time: datetime | None) -> float:
    return inf if time is None else time.timestamp()


def _starts(sizes: Sequence[int] | Codes) -> Codes:
    starts = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _sign_bits(memory: Memory, shown: Signs) -> int:
    """Signs of a memory, a bit for each of SIGNS, from its text or its kind."""
    instructs = shown.instructs or memory.kind in _INSTRUCTING_KINDS
    prefers = shown.prefers or memory.kind is Kind.PREFERENCE
    return shown.timed | shown.asks << 1 | instructs << 2 | prefers << 3


# -- vectors ----------------------------------------------------------------------------------

_STEPS = 127
_CHUNK = 2048
"""Rows added up at a time: 2 MB of floats at 256 dimensions, about a CPU cache."""


class Vectors(Struct, frozen=True, kw_only=True):
    """One vector per memory, quantized to a byte per dimension; zeros where there is none.

    They are multiplied as bytes, by an instruction of the processor for it, and not by BLAS, which
    would start threads in the process of whoever uses this library.
    """

    identity: str
    """Embedder that made them: vectors of two embedders cannot be compared."""
    steps: NDArray[np.int8]
    scale: Floats

    @classmethod
    def quantize(cls, identity: str, floats: Floats) -> Vectors:
        """Vectors in a byte per dimension; their directions move by less than half a percent."""
        peak = np.maximum.reduce(np.abs(floats), axis=1, initial=0.0)
        scale = (peak / _STEPS).astype(np.float32, copy=False)
        divisor = np.where(scale > 0, scale, np.float32(1))[:, None]
        steps = np.rint(floats / divisor).astype(np.int8)
        return cls(identity=identity, steps=steps, scale=scale)

    @classmethod
    def join(cls, parts: Sequence[Vectors], keep: Sequence[Mask]) -> Vectors:
        """The vectors of several parts in order; rows outside `keep` are left out."""
        pairs = list(zip(parts, keep, strict=True))
        return cls(
            identity=parts[0].identity,
            steps=np.concatenate([part.steps[mask] for part, mask in pairs]),
            scale=np.concatenate([part.scale[mask] for part, mask in pairs]),
        )

    @classmethod
    def unpack(cls, raw: bytes) -> Vectors:
        """The vectors that `pack` wrote; ValueError for anything else."""
        held, note = unpack_arrays(raw)
        return cls(identity=note["identity"], steps=held["steps"], scale=held["scale"])

    def pack(self) -> bytes:
        """The vectors as bytes."""
        return pack_arrays({"steps": self.steps, "scale": self.scale}, {"identity": self.identity})

    def __len__(self) -> int:
        return len(self.scale)

    def floats(self) -> Floats:
        """The vectors as floats."""
        return self.steps.astype(np.float32) * self.scale[:, None]

    def dot(self, query: Floats) -> Floats:
        """The dot product of every vector with the query.

        The query is a sum of two vectors in bytes, the second of what the first leaves: so it loses
        about as little as floats do.
        """
        if not len(self):
            return np.zeros(0, np.float32)
        steps, scales = np.empty((2, len(query)), np.int8), []
        for row in steps:
            scales.append(np.maximum.reduce(np.abs(query)) / np.float32(_STEPS))
            np.rint(query / (scales[-1] or np.float32(1)), out=row, casting="unsafe")
            query = query - row * scales[-1]
        # Whole numbers below 2**24, which a float of 32 bits holds as they are.
        dots = np.asarray(simsimd.cdist(steps, self.steps, "dot", out_dtype="float32"))
        found: Floats = dots[0] * scales[0] + dots[1] * scales[1]
        return found * self.scale

    def total(self) -> Floats:
        """The sum of all vectors."""
        found = np.zeros(self.steps.shape[1], np.float32)
        for first in range(0, len(self), _CHUNK):
            rows = slice(first, first + _CHUNK)
            found += np.add.reduce(self.steps[rows] * self.scale[rows, None])
        return found

    def squares(self) -> Floats:
        """The squared length of every vector."""
        found = np.einsum("ij,ij->i", self.steps, self.steps, dtype=np.int32)
        return np.asarray(found * self.scale**2, np.float32)


# -- the three of them ------------------------------------------------------------------------


class Segment(Struct, frozen=True, kw_only=True):
    """The index of some memories."""

    columns: Columns
    postings: Postings
    vectors: Vectors

    @classmethod
    def of(cls, entries: Sequence[IndexEntry], floats: Floats, identity: str) -> Segment:
        """The segment of these memories and their vectors.

        The terms of a memory are those of its speaker, its text and its tags, and the sounds of the
        names in it.
        """
        analyzed = vocabulary.analyze([entry.memory for entry in entries])
        return cls(
            columns=Columns.of(entries, analyzed.languages, analyzed.signs),
            postings=Postings.occurring(analyzed.keys, analyzed.rows, analyzed.lengths),
            vectors=Vectors.quantize(identity, floats),
        )

    @classmethod
    def merge(cls, segments: Sequence[Segment], keep: Sequence[Mask]) -> Segment:
        """One segment of several; nothing of the rows outside `keep` is left in it."""
        return cls(
            columns=Columns.join([one.columns for one in segments], keep),
            postings=Postings.merge([one.postings for one in segments], keep),
            vectors=Vectors.join([one.vectors for one in segments], keep),
        )

    @classmethod
    def unpack(cls, parts: Sequence[bytes]) -> Segment:
        """The segment that `pack` wrote; ValueError for anything else."""
        columns, postings, vectors = parts
        return cls(
            columns=Columns.unpack(columns),
            postings=Postings.unpack(postings),
            vectors=Vectors.unpack(vectors),
        )

    def pack(self) -> tuple[bytes, bytes, bytes]:
        """Columns, postings and vectors as bytes."""
        return self.columns.pack(), self.postings.pack(), self.vectors.pack()

    def __len__(self) -> int:
        return len(self.columns)
