"""rotate: re-encrypt every cell under a new key and delete the old one.

new slot durable → head.epoch raised → rows re-encrypted in batches → segments rewritten → nothing
left under old keys → old slots deleted → due mark cleared. A process may die at any arrow; `finish`
continues from there.
"""

from __future__ import annotations

from msgspec.structs import replace

from scrubjay.engine.scope.open_scope import OpenScope, Sealed, slot
from scrubjay.engine.search import manifest
from scrubjay.model.errors import SealBroken
from scrubjay.model.origin import Actor
from scrubjay.model.results import Rotated
from scrubjay.model.rows import Collection, Due, Head
from scrubjay.ports import Failpoint, Tx, View

_BATCH = 128


def rotate(opened: OpenScope, *, actor: Actor = Actor.USER) -> Rotated:
    """Give every collection a new epoch key and delete the old ones."""

    def store(tx: Tx) -> None:
        for collection in Collection:
            # One that was never used has no key; one that was, and has none, lost it.
            if opened.slots(collection) or tx.head().at(collection).seq:
                opened.raise_epoch(tx, collection)
        opened.leave_due(tx, Due.ROTATE)
        opened.trail.record(tx, "rotate", actor)

    opened.write(store, frozen_too=True, erasing=True)
    opened.ports.reach(Failpoint.ROTATE_EPOCH_RAISED)
    resealed = finish(opened)
    opened.ports.store.settle(opened.address)
    opened.copy_audit_head()
    used = [collection for collection in Collection if opened.slots(collection)]
    return Rotated(resealed=resealed, epochs={one.value: opened.epoch(one) for one in used})


def finish(opened: OpenScope, *, seconds: float | None = None) -> int:
    """Re-encrypt the remaining rows of a rotation and delete the old keys; stop after `seconds`.

    Returns how many rows were re-encrypted. Two processes may finish one rotation together.
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
    if (head := opened.read(_head_if_done)) is None:
        return resealed
    # Nothing is sealed under a past epoch, and nothing can be again: its key may go.
    for collection in Collection:
        epoch = head.at(collection).epoch
        for old in opened.slots(collection):
            if old < epoch:
                opened.ports.keyring.delete(opened.address, slot(collection, old))
        opened.drop_sealers(collection, epoch)
    opened.ports.reach(Failpoint.ROTATE_SLOT_DELETED)
    opened.clear_due(Due.ROTATE, head)
    return resealed


def _reseal_batch(opened: OpenScope, collection: Collection, after: int) -> tuple[int, int]:
    """Re-encrypt one batch; returns the seq to continue from (-1 at the end) and the count."""

    def store(tx: Tx) -> tuple[int, int, list[str]]:
        rows = tx.stale(collection, after, _BATCH)
        epoch = tx.head().at(collection).epoch
        orphans = []
        for row in rows:
            try:
                body, vector = opened.open_body(collection, row), opened.sound_vector(row)
            except SealBroken:
                # Damage must not keep the key of erased cells alive: the row moves on as it is,
                # and opens as little as before.
                tx.reseal(collection, replace(row, epoch=epoch))
                continue
            sealed = opened.seal_body(collection, replace(row, epoch=epoch), body)
            cell = opened.seal_vector(vector, row.id, epoch)
            sealed = Sealed(replace(sealed.row, vector=cell), sealed.stream)
            opened.write_blob(sealed)
            tx.reseal(collection, sealed.row)
            if row.blob is not None:
                orphans.append(row.blob)
        last = rows[-1].seq if len(rows) == _BATCH else -1
        return last, len(rows), orphans

    if not opened.read(lambda view: view.stale(collection, after, 1)):
        return -1, 0
    last, count, orphans = opened.write(store, frozen_too=True, erasing=True)
    opened.ports.reach(Failpoint.ROTATE_BATCH_SEALED)
    for blob in orphans:
        opened.ports.blobs.delete(opened.address, blob)
    return last, count


def _head_if_done(view: View) -> Head | None:
    """The head, if no row is left under an old key."""
    left = any(view.stale(collection, 0, 1) for collection in Collection)
    return None if left or manifest.outdated(view) else view.head()
