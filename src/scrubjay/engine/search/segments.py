"""Segments on disk: written late and rarely, read when a scope is opened, never with erased text.

A segment is published in a transaction that checks three things: nobody else changed the manifest
meanwhile, the key is still the present one, and the writer knows of every erasure. Whoever comes
late gives up; the rows hold everything anyway. docs/protocol.md has the races.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from scrubjay import vault
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search import columns, manifest, postings, segment, vectors
from scrubjay.engine.search.manifest import Listed, Manifest
from scrubjay.engine.search.scope_index import Plan, Rest, ScopeIndex
from scrubjay.engine.search.segment import Segment
from scrubjay.model.errors import Busy, Full, KeyMissing, NotFound, SealBroken
from scrubjay.model.results import ErasedCell
from scrubjay.model.rows import Collection, Due, Head
from scrubjay.ports import Failpoint, Tx, View

_PAGE = 4096
_TRIES = 5
_log = logging.getLogger(__name__)


# -- reading ----------------------------------------------------------------------------------


def load(opened: OpenScope, base: Manifest, index: ScopeIndex) -> None:
    """Fill an empty index with the segments of a manifest; SealBroken if one is damaged."""
    for listed in base.segments:
        held = _parsed(columns.unpack, _open(opened, base.epoch, listed.columns))
        index.load(held, listed.dead, listed, _rest(opened, base.epoch, listed))
    index.seq = base.upto


def _rest(opened: OpenScope, epoch: int, listed: Listed) -> Callable[[], Rest]:
    def rest() -> Rest:
        found = _parsed(postings.unpack, _open(opened, epoch, listed.postings))
        return found, _parsed(vectors.unpack, _open(opened, epoch, listed.vectors))

    return rest


def _open(opened: OpenScope, epoch: int, name: str) -> bytes:
    seal = manifest.sealer(opened, epoch)
    return b"".join(seal.unseal_stream(_stream(opened, name), row_id=name.encode(), version=0))


def _stream(opened: OpenScope, name: str) -> bytes:
    try:
        return opened.ports.blobs.get(opened.address, name)
    except NotFound as error:
        raise SealBroken("A segment of the index is missing.") from error


def _parsed(unpack: Callable[[bytes], segment.Piece], raw: bytes) -> segment.Piece:
    try:
        return unpack(raw)
    except (ValueError, KeyError, TypeError) as error:
        raise SealBroken("A segment of the index cannot be read.") from error


# -- writing ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sealed:
    """A segment ready to be written."""

    listed: Listed
    streams: tuple[bytes, bytes, bytes]


def publish(opened: OpenScope, index: ScopeIndex, base: Manifest | None) -> Manifest | None:
    """Write what is in no segment yet; returns the manifest now, or None if it came too late.

    `base` is the manifest the index was loaded from or last wrote.
    """
    head = opened.read(lambda view: view.head())
    anew = base is None or not base.current(head) or base.analyzer != segment.VERSION
    plan = index.plan(anew=anew)
    if plan is None:
        return base
    epoch = opened.epoch(Collection.MEMORY)
    sealed = _seal(opened, epoch, segment.pack(plan.segment))
    opened.ports.reach(Failpoint.SEGMENT_BUILT)
    kept = _kept(plan, index.dead())
    written = Manifest(
        id=opened.ports.clock.new_id(),
        epoch=epoch,
        upto=index.seq,
        known=index.seq,
        analyzer=segment.VERSION,
        segments=(*kept, sealed.listed),
    )
    if not _replace(opened, base, written, [sealed], appending=bool(kept), erasing=False):
        _log.info("index.segment_came_late")
        return None
    index.adopt(plan, written.segments)
    return written


def _kept(plan: Plan, dead: list[list[int]]) -> list[Listed]:
    kept = []
    for token, rows in zip(plan.kept, dead, strict=False):
        assert isinstance(token, Listed)
        kept.append(replace(token, dead=tuple(rows)))
    return kept


def _seal(opened: OpenScope, epoch: int, parts: Iterable[bytes]) -> _Sealed:
    random = opened.ports.clock.random
    seal = manifest.sealer(opened, epoch)
    names, streams = [], []
    for part in parts:
        name = random(16).hex()
        names.append(name)
        streams.append(seal.seal_stream(part, row_id=name.encode(), version=0, random=random))
    return _Sealed(Listed(columns=names[0], postings=names[1], vectors=names[2]), tuple(streams))  # type: ignore[arg-type]


def _replace(
    opened: OpenScope,
    base: Manifest | None,
    written: Manifest,
    sealed: Sequence[_Sealed],
    *,
    appending: bool = False,
    erasing: bool = True,
) -> bool:
    """Put a manifest in the place of `base`, unless something came in between; then False."""

    def store(tx: Tx) -> bool:
        found, head = manifest.read(opened, tx), tx.head()
        late = (found and found.id) != (base and base.id) or not written.current(head)
        if late or (appending and not (base and base.current(head))):
            return False
        # Inside the transaction, so that a sweep never meets a blob that is not yet listed.
        for one in sealed:
            for name, stream in zip(one.listed.blobs, one.streams, strict=True):
                opened.ports.blobs.put(opened.address, name, stream)
        opened.ports.reach(Failpoint.SEGMENT_WRITTEN)
        manifest.write(opened, tx, written)
        return True

    try:
        if not opened.write(store, frozen_too=True, erasing=erasing):
            return False
    except (Busy, Full):
        # Rolled back: what was written of it is listed nowhere, and takes space others need.
        manifest.delete_blobs(opened, [name for one in sealed for name in one.listed.blobs])
        raise
    opened.ports.reach(Failpoint.SEGMENT_PUBLISHED)
    before = base.blobs if base else frozenset()
    manifest.delete_blobs(opened, before - written.blobs)
    return True


# -- after an erasure or a rotation -------------------------------------------------------------


def renew(opened: OpenScope) -> None:
    """Write the segments anew under the present key and without what was erased.

    Where that cannot be done the segments go: the next recall makes them again from the rows.
    """
    for _ in range(_TRIES):
        head, base, erased = opened.read(lambda view: _look(opened, view))
        if base is None or base.current(head):
            break
        if _renewed(opened, head, base, erased):
            return
    else:
        drop(opened)
        return
    if opened.read(manifest.outdated):
        drop(opened)


def _look(opened: OpenScope, view: View) -> tuple[Head, Manifest | None, set[bytes]]:
    head, base = view.head(), manifest.read(opened, view)
    erased: set[bytes] = set()
    if base is not None and not base.current(head):
        after = base.upto
        while rows := view.changes(Collection.MEMORY, after, _PAGE):
            erased.update(row.id for row in rows if row.erased)
            after = rows[-1].seq
    return head, base, erased


def _renewed(opened: OpenScope, head: Head, base: Manifest, erased: set[bytes]) -> bool:
    """Whether the segments were written anew; False if something came in between."""
    try:
        if base.known < head.memory.min_seq:
            raise SealBroken("The segments slept across a clean-up.")
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
    opened: OpenScope, old: int, epoch: int, listed: Listed, erased: set[bytes]
) -> _Sealed:
    """A segment under a new key, without the rows that were erased, dead or alive."""
    parts = [_open(opened, old, name) for name in listed.blobs]
    held = _parsed(columns.unpack, parts[0])
    gone = _rows_of(held, erased)
    if not gone:
        sealed = _seal(opened, epoch, parts)
        return replace(sealed, listed=replace(sealed.listed, dead=listed.dead))
    one = Segment(
        columns=held,
        postings=_parsed(postings.unpack, parts[1]),
        vectors=_parsed(vectors.unpack, parts[2]),
    )
    keep = np.ones(len(one), np.bool_)
    keep[gone] = False
    keep[list(listed.dead)] = False
    return _seal(opened, epoch, segment.pack(segment.merge([one], [keep])))


def _rows_of(held: columns.Columns, ids: Iterable[bytes]) -> list[int]:
    return [int(row) for row_id in ids for row in held.places(row_id)]


def drop(opened: OpenScope) -> None:
    """Remove all segments; they are derived, and the rows stay."""

    def store(tx: Tx) -> frozenset[str]:
        names = manifest.listed(opened, tx)
        manifest.write(opened, tx, None)
        opened.leave_due(tx, Due.SWEEP)
        return names

    manifest.delete_blobs(opened, opened.write(store, frozen_too=True, erasing=True))


def check(opened: OpenScope, view: View) -> Iterator[str]:
    """What is wrong with the segments: one does not open, or holds what was erased."""
    base = manifest.read(opened, view)
    if base is None:
        yield "The list of segments does not open; reindex makes the index again."
        return
    for number, listed in enumerate(base.segments, start=1):
        try:
            held = _parsed(columns.unpack, _open(opened, base.epoch, listed.columns))
            _rest(opened, base.epoch, listed)()
        except SealBroken as error:
            yield f"Segment {number}: {error.message} Reindex makes it again."
            continue
        ids = [row_id.tobytes() for row_id in held.row_id]
        if base.current(view.head()) and (gone := view.buried(ids)):
            yield f"Segment {number} holds {len(gone)} memories that were forgotten."


def erased_cells(opened: OpenScope, ids: Iterable[bytes]) -> Iterator[ErasedCell]:
    """The cells of the segments that hold some rows, as a receipt names them."""

    def look(view: View) -> list[ErasedCell]:
        base = manifest.read(opened, view)
        return [] if base is None else list(_cells(opened, base, set(ids)))

    yield from opened.read(look)


def _cells(opened: OpenScope, base: Manifest, ids: set[bytes]) -> Iterator[ErasedCell]:
    for listed in base.segments:
        if _may_hold(opened, base.epoch, listed, ids):
            for name in listed.blobs:
                # One that is missing has no cells: damage, or another process was faster.
                with suppress(SealBroken):
                    for nonce in vault.stream_nonces(_stream(opened, name)):
                        yield ErasedCell(
                            collection=Collection.MEMORY.value, epoch=base.epoch, nonce=nonce.hex()
                        )


def _may_hold(opened: OpenScope, epoch: int, listed: Listed, ids: set[bytes]) -> bool:
    """Whether a segment holds one of the rows; of one that does not open nobody can say no."""
    try:
        held = _parsed(columns.unpack, _open(opened, epoch, listed.columns))
    except (SealBroken, KeyMissing):
        return True
    return bool(_rows_of(held, ids))
