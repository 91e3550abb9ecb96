"""Between a memory and its sealed row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from scrubjay import vault
from scrubjay.domain.memory import Memory
from scrubjay.domain.records import encode
from scrubjay.domain.results import ErasedCell
from scrubjay.domain.rows import Collection, Due, Row
from scrubjay.engine import due
from scrubjay.engine.opened import OpenScope, day
from scrubjay.ports import Failpoint, Tx
from scrubjay.vault import Purpose

CELL_BYTES = 64 * 1024
"""A body longer than this goes to a blob, in chunks."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A row ready to be written, and the blob that goes with it, if any."""

    row: Row
    stream: bytes | None = None


def seal(opened: OpenScope, memory: Memory, epoch: int) -> Sealed:
    """The memory as a row sealed in an epoch."""
    row = Row(
        id=opened.row_id(memory.id),
        version=memory.version,
        epoch=epoch,
        cell=None,
        session=opened.session_hash(memory.provenance.session),
        key=opened.key_hash(memory.key),
        expiry=None if memory.expires_at is None else day(memory.expires_at),
    )
    return seal_body(opened, Collection.MEMORY, row, encode(memory))


def seal_body(opened: OpenScope, collection: Collection, row: Row, body: bytes) -> Sealed:
    """The row with its body sealed in the row's epoch, in its cell or in a new blob."""
    random = opened.ports.clock.random
    name, stream = None, None
    if len(body) > CELL_BYTES:
        name = random(16).hex()
        sealer = opened.sealer(collection, Purpose.BLOB, row.epoch)
        stream = sealer.seal_stream(body, row_id=row.id, version=row.version, random=random)
        body = name.encode()
    cell = opened.sealer(collection, Purpose.CELL, row.epoch).seal(
        vault.pad(body), row_id=row.id, version=row.version, nonce=random(vault.NONCE_BYTES)
    )
    return Sealed(replace(row, cell=cell, blob=name), stream)


def put(opened: OpenScope, tx: Tx, memory: Memory, sealed: Sealed | None = None) -> Row:
    """Write a memory, sealed anew if the epoch moved on since it was sealed."""
    epoch = tx.head().memory.epoch
    if sealed is None or sealed.row.epoch != epoch:
        sealed = seal(opened, memory, epoch)
    if memory.version > 1:
        _leave_blob(opened, tx, sealed.row.id)
    write_blob(opened, sealed)
    return tx.put(Collection.MEMORY, sealed.row)


def _leave_blob(opened: OpenScope, tx: Tx, row_id: bytes) -> None:
    """Have the blob of the version that is replaced swept once the new one is durable."""
    old = tx.row(Collection.MEMORY, row_id)
    if old is not None and old.blob is not None:
        due.leave(opened, tx, Due.SWEEP)


def write_blob(opened: OpenScope, sealed: Sealed) -> None:
    """Make the blob durable before the row that points to it.

    It happens inside the transaction, so that a sweep, which runs in one too, never sees a blob
    whose row is still to come.
    """
    if sealed.stream is not None:
        assert sealed.row.blob is not None
        opened.ports.blobs.put(opened.address, sealed.row.blob, sealed.stream)
        opened.ports.reach(Failpoint.BLOB_WRITTEN)


def erased_cells(opened: OpenScope, collection: Collection, row: Row) -> Iterator[ErasedCell]:
    """The cells of a row, as a receipt names them."""
    for cell in (row.cell, row.vector):
        if cell is not None:
            yield _erased(collection, row, vault.nonce_of(cell))
    if row.blob is not None and row.blob in opened.ports.blobs.names(opened.address):
        stream = opened.ports.blobs.get(opened.address, row.blob)
        for nonce in vault.stream_nonces(stream):
            yield _erased(collection, row, nonce)


def _erased(collection: Collection, row: Row, nonce: bytes) -> ErasedCell:
    return ErasedCell(collection=collection.value, epoch=row.epoch, nonce=nonce.hex())
