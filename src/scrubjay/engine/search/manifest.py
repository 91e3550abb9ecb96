"""The manifest: the list of the segments of a scope, and the segments, sealed on disk.

The manifest is one sealed value that changes only inside a transaction, beside the head: so what
it lists is always an index of the rows as they were at its `upto`, without anything that was erased
up to its `known`. Segments are written late and rarely, read when a scope is opened. One is
published by compare-and-set in a transaction that checks three things: the manifest has not
changed, the key is still the present one, and the writer knows of every erasure. A late writer
gives up; the rows hold everything anyway. docs/protocol.md has the races.

Most verbs only check whether there is a manifest, so numpy is imported where a segment is opened.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.scope import pending_blobs
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import Busy, Full, KeyMissing, NotFound, SealBroken
from scrubjay.model.results import ErasedCell
from scrubjay.model.rows import Collection, Due, Head
from scrubjay.ports import Failpoint, Tx, View
from scrubjay.vault import Purpose, Sealer

if TYPE_CHECKING:
    from scrubjay.engine.search.scope_index import Rest, ScopeIndex
    from scrubjay.engine.search.segment import Columns

NAME = "segments"
_PLACE = b"segments"
_PAGE = 4096
_TRIES = 5
_log = logging.getLogger(__name__)
Packed = TypeVar("Packed")
Unpacked = TypeVar("Unpacked")


class SegmentBlobs(Struct, frozen=True, kw_only=True):
    """One segment: the blobs of its three parts, and its deleted rows."""

    columns: str
    postings: str
    vectors: str
    dead: tuple[int, ...] = ()

    @property
    def blobs(self) -> tuple[str, str, str]:
        """The names of its blobs."""
        return self.columns, self.postings, self.vectors


class Manifest(Struct, frozen=True, kw_only=True):
    """The segments of a scope, oldest first."""

    id: str
    """New with every change, so that concurrent writers detect each other (compare-and-set)."""
    epoch: int
    upto: int
    """The last change that is in the segments."""
    known: int
    """No row that was erased up to this change is in the segments."""
    analyzer: str
    """Version of the analysis that made them."""
    segments: tuple[SegmentBlobs, ...] = ()

    @property
    def blobs(self) -> frozenset[str]:
        """The names of all its blobs."""
        return frozenset(name for listed in self.segments for name in listed.blobs)

    def current(self, head: Head) -> bool:
        """Whether it is sealed under the present key and holds nothing that was erased."""
        position = head.memory
        return self.epoch == position.epoch and self.known >= position.erased_seq


# -- reading ----------------------------------------------------------------------------------


def read(opened: OpenScope, view: View) -> Manifest | None:
    """The manifest of this state; None if there is none, or none that opens."""
    cell = view.value(NAME)
    if cell is None:
        return None
    try:
        raw = sealer(opened, vault.epoch_of(cell)).unseal(cell, row_id=_PLACE, version=0)
    except (SealBroken, KeyMissing):
        # The index can be made again from the rows, so damage to it costs time, not memories. An
        # old view whose key a rotation has deleted looks the same; its rows will not open either.
        _log.warning("index.manifest_damaged")
        return None
    found = json.loads(raw)
    found["segments"] = tuple(
        SegmentBlobs(**{**listed, "dead": tuple(listed["dead"])}) for listed in found["segments"]
    )
    return Manifest(**found)


def sealer(opened: OpenScope, epoch: int) -> Sealer:
    """The sealer of segments and of their manifest."""
    return opened.sealer(Collection.MEMORY, Purpose.SEGMENT, epoch)


def listed(opened: OpenScope, view: View) -> frozenset[str]:
    """The blobs that the manifest lists; none if it cannot be read."""
    found = read(opened, view)
    return frozenset() if found is None else found.blobs


def load(opened: OpenScope, base: Manifest, index: ScopeIndex) -> None:
    """Fill an empty index with the segments of a manifest; SealBroken if one is damaged."""
    for one in base.segments:
        held = _columns(opened, base.epoch, one)
        index.load(held, one.dead, one, partial(_rest, opened, base.epoch, one))
    index.seq = base.upto


def _columns(opened: OpenScope, epoch: int, one: SegmentBlobs) -> Columns:
    from scrubjay.engine.search.segment import Columns

    return _parsed(Columns.unpack, _open(opened, epoch, one.columns))


def _rest(opened: OpenScope, epoch: int, one: SegmentBlobs) -> Rest:
    from scrubjay.engine.search.postings import Postings
    from scrubjay.engine.search.segment import Vectors

    postings = _parsed(Postings.unpack, _open(opened, epoch, one.postings))
    return postings, _parsed(Vectors.unpack, _open(opened, epoch, one.vectors))


def _open(opened: OpenScope, epoch: int, name: str) -> bytes:
    stream = _stream(opened, name)
    cells = sealer(opened, epoch).unseal_stream(stream, row_id=name.encode(), version=0)
    return b"".join(cells)


def _stream(opened: OpenScope, name: str) -> bytes:
    try:
        return opened.ports.blobs.get(opened.address, name)
    except NotFound as error:
        raise SealBroken("A segment of the index is missing.") from error


def _parsed(unpack: Callable[[Packed], Unpacked], raw: Packed) -> Unpacked:
    try:
        return unpack(raw)
    except (ValueError, KeyError, TypeError) as error:
        raise SealBroken("A segment of the index cannot be read.") from error


# -- writing ----------------------------------------------------------------------------------


def write(opened: OpenScope, tx: Tx, manifest: Manifest | None) -> None:
    """Replace the manifest; None removes it."""
    if manifest is None:
        tx.set_value(NAME, None)
        return
    nonce = opened.ports.clock.random(vault.NONCE_BYTES)
    raw = json.dumps(to_builtins(manifest)).encode()
    seal = sealer(opened, manifest.epoch)
    tx.set_value(NAME, seal.seal(raw, row_id=_PLACE, version=0, nonce=nonce))


class _SealedSegment(Struct, frozen=True):
    """A segment, sealed and ready to be written."""

    listed: SegmentBlobs
    streams: Sequence[bytes]


def publish(opened: OpenScope, index: ScopeIndex, base: Manifest | None) -> Manifest | None:
    """Write the rows that are in no segment; returns the new manifest, or None if it lost the race.

    `base` is the manifest the index was loaded from or last wrote.
    """
    from scrubjay.engine.search.segment import VERSION

    head = opened.head()
    anew = base is None or not base.current(head) or base.analyzer != VERSION
    plan = index.plan(anew=anew)
    if plan is None:
        return base
    epoch = opened.epoch(Collection.MEMORY)
    sealed = _seal(opened, epoch, plan.segment.pack())
    opened.ports.reach(Failpoint.SEGMENT_BUILT)
    kept = []
    for token, rows in zip(plan.kept, index.dead(), strict=False):
        assert isinstance(token, SegmentBlobs)
        kept.append(replace(token, dead=tuple(rows)))
    written = Manifest(
        id=opened.ports.clock.new_id(),
        epoch=epoch,
        upto=index.seq,
        known=index.seq,
        analyzer=VERSION,
        segments=(*kept, sealed.listed),
    )
    if not _replace(opened, base, written, [sealed], appending=bool(kept), erasing=False):
        _log.info("index.segment_came_late")
        return None
    index.adopt(plan, written.segments)
    return written


def _seal(opened: OpenScope, epoch: int, parts: Sequence[bytes]) -> _SealedSegment:
    random = opened.ports.clock.random
    seal = sealer(opened, epoch)
    names, streams = [], []
    for part in parts:
        name = random(16).hex()
        names.append(name)
        streams.append(seal.seal_stream(part, row_id=name.encode(), version=0, random=random))
    columns, postings, vectors = names
    blobs = SegmentBlobs(columns=columns, postings=postings, vectors=vectors)
    return _SealedSegment(blobs, streams)


def _replace(
    opened: OpenScope,
    base: Manifest | None,
    written: Manifest,
    sealed: Sequence[_SealedSegment],
    *,
    appending: bool = False,
    erasing: bool = True,
) -> bool:
    """Replace the manifest `base` (compare-and-set); False if it lost the race."""

    def store(tx: Tx) -> bool:
        found, head = read(opened, tx), tx.head()
        late = (found and found.id) != (base and base.id) or not written.current(head)
        if late or (appending and not (base and base.current(head))):
            return False
        if pending_blobs.claim(tx, streams):
            return False  # it took so long that a sweep took them for those of a dead process
        write(opened, tx, written)
        return True

    streams = {
        name: stream
        for one in sealed
        for name, stream in zip(one.listed.blobs, one.streams, strict=True)
    }
    try:
        opened.put_blobs(streams, erasing=erasing)
        opened.ports.reach(Failpoint.SEGMENT_WRITTEN)
        published = opened.write(store, frozen_too=True, erasing=erasing)
    except (Busy, Full):
        # Rolled back: what was written of it is listed nowhere, and takes space others need.
        _delete_blobs(opened, streams)
        raise
    if not published:
        _delete_blobs(opened, streams)
        return False
    opened.ports.reach(Failpoint.SEGMENT_PUBLISHED)
    before = base.blobs if base else frozenset()
    _delete_blobs(opened, before - written.blobs)
    return True


def drop(opened: OpenScope) -> None:
    """Remove all segments; they are derived, and the rows stay."""

    def store(tx: Tx) -> frozenset[str]:
        names = listed(opened, tx)
        write(opened, tx, None)
        opened.leave_due(tx, Due.SWEEP)
        return names

    _delete_blobs(opened, opened.write(store, frozen_too=True, erasing=True))


def _delete_blobs(opened: OpenScope, names: Iterable[str]) -> None:
    """Delete blobs that no manifest lists any more."""
    for name in names:
        opened.ports.blobs.delete(opened.address, name)


# -- after an erasure or a rotation -------------------------------------------------------------


def outdated(view: View) -> bool:
    """Whether there is a manifest under a key that is to be deleted."""
    cell = view.value(NAME)
    return cell is not None and vault.epoch_of(cell) < view.head().memory.epoch


def renew(opened: OpenScope) -> None:
    """Rewrite the segments if they are under an old key or hold erased rows.

    If that fails, the segments are deleted: the next recall rebuilds them from the rows.
    """

    def look(view: View) -> tuple[Head, Manifest | None, set[bytes]]:
        head, base = view.head(), read(opened, view)
        erased: set[bytes] = set()
        if base is not None and not base.current(head):
            after = base.upto
            while rows := view.changes(Collection.MEMORY, after, _PAGE):
                erased.update(row.id for row in rows if row.erased)
                after = rows[-1].seq
        return head, base, erased

    for _ in range(_TRIES):
        head, base, erased = opened.read(look)
        if base is None or base.current(head):
            break
        if _renewed(opened, head, base, erased):
            return
    else:
        drop(opened)
        return
    if opened.read(outdated):
        drop(opened)


def _renewed(opened: OpenScope, head: Head, base: Manifest, erased: set[bytes]) -> bool:
    """Whether the segments were rewritten; False if it lost the race."""
    try:
        if base.known < head.memory.min_seq:
            raise SealBroken("The segments are older than the last purge.")
        epoch = head.memory.epoch
        sealed = [_cleansed(opened, base.epoch, epoch, one, erased) for one in base.segments]
        written = replace(
            base,
            id=opened.ports.clock.new_id(),
            epoch=epoch,
            known=head.memory.seq,
            segments=tuple(one.listed for one in sealed),
        )
        opened.ports.reach(Failpoint.SEGMENT_BUILT)
        return _replace(opened, base, written, sealed)
    except (SealBroken, KeyMissing, Full) as error:
        _log.warning("index.segments_dropped", extra={"code": error.code})
        drop(opened)
        return True


def _cleansed(
    opened: OpenScope, old: int, epoch: int, listed: SegmentBlobs, erased: set[bytes]
) -> _SealedSegment:
    """A segment under a new key, without erased rows."""
    import numpy as np

    from scrubjay.engine.search.segment import Columns, Segment

    parts: Sequence[bytes] = [_open(opened, old, name) for name in listed.blobs]
    gone = _rows_of(_parsed(Columns.unpack, parts[0]), erased)
    if not gone:
        sealed = _seal(opened, epoch, parts)
        return replace(sealed, listed=replace(sealed.listed, dead=listed.dead))
    one = _parsed(Segment.unpack, parts)
    keep = np.ones(len(one), np.bool_)
    keep[gone] = False
    keep[list(listed.dead)] = False
    return _seal(opened, epoch, Segment.merge([one], [keep]).pack())


def _rows_of(held: Columns, ids: Iterable[bytes]) -> list[int]:
    return [int(row) for row_id in ids for row in held.places(row_id)]


def check(opened: OpenScope, view: View) -> list[str]:
    """Problems of the segments, one sentence each: damage, or erased rows in them."""
    if view.value(NAME) is None:
        return []
    base = read(opened, view)
    if base is None:
        return ["The list of segments does not open; reindex makes the index again."]
    problems = []
    for number, one in enumerate(base.segments, start=1):
        try:
            held = _columns(opened, base.epoch, one)
            _rest(opened, base.epoch, one)
        except SealBroken as error:
            problems.append(f"Segment {number}: {error.message} Reindex makes it again.")
            continue
        ids = [row_id.tobytes() for row_id in held.row_id]
        if base.current(view.head()) and (gone := view.buried(ids)):
            problems.append(f"Segment {number} holds {len(gone)} memories that were forgotten.")
    return problems


def erased_cells(opened: OpenScope, ids: Iterable[bytes]) -> list[ErasedCell]:
    """Cells of the segments that hold some of the rows, as a receipt names them."""
    wanted = set(ids)

    def look(view: View) -> list[ErasedCell]:
        base = read(opened, view)
        if base is None:
            return []
        cells: list[ErasedCell] = []
        holding: list[str] = []
        for one in base.segments:
            # Of a segment that does not open nobody can say that it holds none of the rows.
            with suppress(SealBroken, KeyMissing):
                if not _rows_of(_columns(opened, base.epoch, one), wanted):
                    continue
            holding += one.blobs
        for name in holding:
            # One that is missing has no cells: damage, or another process was faster.
            with suppress(SealBroken):
                for nonce in vault.stream_nonces(_stream(opened, name)):
                    cells.append(
                        ErasedCell(
                            collection=Collection.MEMORY.value, epoch=base.epoch, nonce=nonce.hex()
                        )
                    )
        return cells

    return opened.read(look)
