"""rotate: a new key for every cell, after which no copy of the old bytes opens again.

new slot durable → head.epoch raised → rows sealed anew in batches → segments written anew →
nothing left under old keys → old slots deleted → due mark cleared. A process may die at any
arrow; `finish` goes on from there.
"""

from __future__ import annotations

from msgspec.structs import replace

from scrubjay.engine.scope import cells, due
from scrubjay.engine.scope.open_scope import OpenScope, slot
from scrubjay.engine.search import manifest
from scrubjay.engine.transfer import audit
from scrubjay.model.errors import SealBroken
from scrubjay.model.origin import Actor
from scrubjay.model.results import Rotated
from scrubjay.model.rows import Collection, Due, Head, Row
from scrubjay.ports import Failpoint, Tx, View
from scrubjay.vault import KEY_BYTES

_BATCH = 128


def rotate(opened: OpenScope, *, actor: Actor = Actor.USER) -> Rotated:
    """Give every collection a new epoch key and delete the old ones."""

    def store(tx: Tx) -> None:
        for collection in Collection:
            raise_epoch(opened, tx, collection)
        due.leave(opened, tx, Due.ROTATE)
        opened.trail.record(tx, "rotate", actor)

    opened.write(store, frozen_too=True, erasing=True)
    opened.ports.reach(Failpoint.ROTATE_EPOCH_RAISED)
    resealed = finish(opened)
    opened.ports.store.settle(opened.address)
    audit.copy_head(opened)
    epochs = {collection.value: opened.epoch(collection) for collection in Collection}
    return Rotated(resealed=resealed, epochs=epochs)


def raise_epoch(
    opened: OpenScope, tx: Tx, collection: Collection, epoch: int | None = None
) -> None:
    """Move a collection to a new epoch: from this transaction on nobody seals under the old.

    The new key is durable before the head names it; one that an interrupted attempt left in the
    slot was never used and serves as well.
    """
    head = tx.head()
    position = head.at(collection)
    epoch = epoch or position.epoch + 1
    key = opened.ports.clock.random(KEY_BYTES)
    opened.ports.keyring.add(opened.address, slot(collection, epoch), key)
    opened.ports.reach(Failpoint.ROTATE_SLOT_ADDED)
    tx.set_head(head.moved(collection, replace(position, epoch=epoch)))


def finish(opened: OpenScope, *, seconds: float | None = None) -> int:
    """Seal anew what is left of a rotation and delete the old keys, or stop after `seconds`.

    Returns how many rows were sealed anew. Two processes may finish one rotation together.
    """
    clock = opened.ports.clock
    deadline = None if seconds is None else clock.monotonic() + seconds
    resealed = 0
    # Where to go on depends on the present epoch, which the caller may just have raised.
    opened.read(lambda view: view.head())
    for collection in Collection:
        after = opened.resume_at(collection)
        while after >= 0:
            after, count = _reseal_batch(opened, collection, after)
            opened.note_progress(collection, after)
            resealed += count
            if count and deadline is not None and clock.monotonic() >= deadline:
                return resealed
    manifest.renew(opened)
    opened.ports.reach(Failpoint.ROTATE_RESEALED)
    _delete_old_slots(opened)
    return resealed


def _reseal_batch(opened: OpenScope, collection: Collection, after: int) -> tuple[int, int]:
    """Seal one batch anew; returns where to go on, -1 for nowhere, and how many there were."""

    def store(tx: Tx) -> tuple[int, int, list[str]]:
        rows = tx.stale(collection, after, _BATCH)
        epoch = tx.head().at(collection).epoch
        left = [_reseal(opened, tx, collection, row, epoch) for row in rows]
        last = rows[-1].seq if len(rows) == _BATCH else -1
        return last, len(rows), [blob for blob in left if blob is not None]

    if not opened.read(lambda view: view.stale(collection, after, 1)):
        return -1, 0
    last, count, blobs = opened.write(store, frozen_too=True, erasing=True)
    opened.ports.reach(Failpoint.ROTATE_BATCH_SEALED)
    for blob in blobs:
        opened.ports.blobs.delete(opened.address, blob)
    return last, count


def _reseal(opened: OpenScope, tx: Tx, collection: Collection, row: Row, epoch: int) -> str | None:
    """Seal one row anew; returns the blob that nothing points to any more."""
    try:
        sealed = cells.reseal(opened, collection, row, epoch)
    except SealBroken:
        # Damage must not keep the key of erased cells alive: the row moves on as it is, and
        # opens as little as before.
        tx.reseal(collection, replace(row, epoch=epoch))
        return None
    cells.write_blob(opened, sealed)
    tx.reseal(collection, sealed.row)
    return row.blob


def _head_if_done(view: View) -> Head | None:
    """The head of a state in which nothing is sealed under an old key."""
    left = any(view.stale(collection, 0, 1) for collection in Collection)
    return None if left or manifest.outdated(view) else view.head()


def _delete_old_slots(opened: OpenScope) -> None:
    """Delete the keys of epochs nothing is sealed under; nothing can be again, so this is safe."""
    head = opened.read(_head_if_done)
    if head is None:
        return
    for collection in Collection:
        epoch = head.at(collection).epoch
        for old in opened.slots(collection):
            if old < epoch:
                opened.ports.keyring.delete(opened.address, slot(collection, old))
        opened.drop_sealers(collection, epoch)
    opened.ports.reach(Failpoint.ROTATE_SLOT_DELETED)
    due.clear(opened, Due.ROTATE, head)
