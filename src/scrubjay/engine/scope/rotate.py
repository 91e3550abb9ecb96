"""rotate: re-encrypt every cell under a new key and delete the old one.

new slot durable → head.epoch raised → rows re-encrypted in batches → segments rewritten → nothing
left under old keys → old slots deleted → due mark cleared. A process may die at any arrow; `finish`
continues from there.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.scope import pending_blobs
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.provisions import LongBody
from scrubjay.engine.scope.scope_keys import slot
from scrubjay.engine.search import manifest
from scrubjay.model.errors import SealBroken
from scrubjay.model.origin import Actor
from scrubjay.model.results import Rotated
from scrubjay.model.rows import Collection, Due, Head, Row
from scrubjay.ports import Failpoint, Progress, Tx, View, no_progress
from scrubjay.vault import Purpose

_BATCH = 1024
_SLICE = 128
"""The same within a slice of due work, which another verb waits for."""
_BATCH_BYTES = 8 * 1024 * 1024
"""How much text of a batch is held in memory at once, beyond which it is cut short."""


def rotate(
    opened: OpenScope, *, actor: Actor = Actor.USER, progress: Progress = no_progress
) -> Rotated:
    """Give every collection a new epoch key and delete the old ones."""
    head = opened.head()
    # A collection that was never used has no key; one that was, and has none, lost it.
    used = [one for one in Collection if head.at(one).seq or opened.slots(one)]

    def store(tx: Tx) -> None:
        for collection in used:
            opened.raise_epoch(tx, collection)
        opened.leave_due(tx, Due.ROTATE)
        opened.trail.record(tx, "rotate", actor)

    opened.write(store, frozen_too=True, erasing=True)
    opened.ports.reach(Failpoint.ROTATE_EPOCH_RAISED)
    resealed = finish(opened, progress=progress)
    opened.ports.store.settle(opened.address)
    opened.copy_audit_head()
    return Rotated(resealed=resealed, epochs={one.value: opened.epoch(one) for one in used})


def finish(
    opened: OpenScope, *, seconds: float | None = None, progress: Progress = no_progress
) -> int:
    """Re-encrypt the remaining rows of a rotation and delete the old keys; stop after `seconds`.

    Returns how many rows were re-encrypted. Two processes may finish one rotation together; one
    that finds a later rotation begun leaves it to that one, and it stays due in the head.
    """
    clock = opened.ports.clock
    deadline = None if seconds is None else clock.monotonic() + seconds
    resealed, limit = 0, _BATCH if seconds is None else min(_BATCH, _SLICE)
    # Where to go on depends on the present epoch, which the caller may just have raised.
    begun, passed = opened.head(), 0
    total = sum(begun.at(one).seq for one in Collection)
    for collection in Collection:
        after = opened.resume_at(collection)
        while after >= 0:
            after, count = _reseal_batch(opened, collection, after, limit)
            opened.note_progress(collection, after)
            resealed += count
            if after >= 0:
                progress(min(passed + after, total), total)
            if count and deadline is not None and clock.monotonic() >= deadline:
                return resealed
        passed += begun.at(collection).seq
        progress(passed, total)
    manifest.renew(opened)
    if opened.read(opened.counters.outdated):
        opened.write(opened.counters.renew, frozen_too=True, erasing=True)
    opened.ports.reach(Failpoint.ROTATE_RESEALED)
    if (head := opened.read(partial(_head_if_done, opened))) is None:
        return resealed
    if not opened.ports.store.lasting(opened.address):
        return resealed  # an older copy of the rows may yet take over, and needs the old keys
    # Nothing is sealed under a past epoch, and nothing can be again: its key may go.
    old = [
        slot(collection, epoch)
        for collection in Collection
        for epoch in opened.slots(collection)
        if epoch < head.at(collection).epoch
    ]
    beside = opened.keys.beside_rows
    if not beside:
        opened.ports.keyring.delete(opened.address, *old)
    for collection in Collection:
        opened.keys.drop(collection, head.at(collection).epoch)
    opened.ports.reach(Failpoint.ROTATE_SLOT_DELETED)
    opened.clear_due(Due.ROTATE, head, old_slots=old if beside else ())
    return resealed


def _reseal_batch(
    opened: OpenScope, collection: Collection, after: int, limit: int
) -> tuple[int, int]:
    """Re-encrypt one batch; returns the seq to continue from (-1 at the end) and the count.

    A later rotation that was begun meanwhile ends it: whoever began that has the same rows to do.

    It is read and sealed outside of the transaction, which exchanges what is still as it was read:
    a row that was written or erased meanwhile has no need of it.
    """

    def look(view: View) -> tuple[list[tuple[Row, Row]], dict[str, bytes], bool]:
        rows, size, epoch = (
            view.stale(collection, after, limit),
            0,
            view.head().at(collection).epoch,
        )
        resealed, streams = list[tuple[Row, Row]](), dict[str, bytes]()
        for row in rows:
            resealed.append((row, _resealed(opened, collection, row, epoch, streams)))
            size += sum(map(len, streams.values())) or len(row.cell or b"")
            if size > _BATCH_BYTES:
                break
        return resealed, streams, len(rows) == limit or len(resealed) < len(rows)

    resealed, streams, more = opened.read(look)
    if not resealed:
        return -1, 0
    epoch = resealed[0][1].epoch
    if streams:
        opened.put_blobs(streams, erasing=True)
        opened.ports.reach(Failpoint.BLOB_WRITTEN)

    def store(tx: Tx) -> tuple[bool, frozenset[bytes]]:
        late = tx.head().at(collection).epoch != epoch
        if late or pending_blobs.claim(tx, streams):
            return late, frozenset()  # the next batch, if any, begins where this one did
        return late, tx.reseal(collection, resealed)

    late, done = opened.write(store, frozen_too=True, erasing=True)
    opened.ports.reach(Failpoint.ROTATE_BATCH_SEALED)
    for row, new in resealed:
        if row.blob is not None and row.blob != new.blob:
            orphan = row.blob if row.id in done else new.blob
            opened.ports.blobs.delete(opened.address, str(orphan))
    if not done:
        return -1 if late else after, 0
    return (resealed[-1][0].seq if more else -1), len(done)


def _resealed(
    opened: OpenScope, collection: Collection, row: Row, epoch: int, streams: dict[str, bytes]
) -> Row:
    """A row as it is in another epoch; its blob, if it has one, gets into `streams`."""
    assert row.cell is not None
    vector, name = row.vector, row.blob
    here = opened.sealer(collection, Purpose.CELL, row.epoch)
    there = opened.sealer(collection, Purpose.CELL, epoch)
    # Damage must not keep the key of erased cells alive: the row moves on as it is, and opens as
    # little as before.
    try:
        if row.blob is None:
            padded = here.unseal(row.cell, row_id=row.id, version=row.version)
        else:
            body = opened.open_body(collection, row)
            name = opened.ports.clock.random(16).hex()
            long = LongBody(collection, row.id, row.version, epoch, body)
            streams[name], padded = opened.seal_stream(long, name), vault.pad(name.encode())
    except SealBroken:
        return replace(row, epoch=epoch)
    if vector is not None:
        vector = opened.seal_vector(opened.sound_vector(row), row.id, epoch)
    nonce = opened.ports.clock.random(vault.NONCE_BYTES)
    cell = there.seal(padded, row_id=row.id, version=row.version, nonce=nonce)
    return replace(row, epoch=epoch, cell=cell, vector=vector, blob=name)


def _head_if_done(opened: OpenScope, view: View) -> Head | None:
    """The head, if nothing is left under an old key."""
    left = any(view.stale(collection, 0, 1) for collection in Collection)
    left = left or manifest.outdated(view) or opened.counters.outdated(view)
    return None if left else view.head()
