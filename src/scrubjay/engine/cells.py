"""Between a memory and its sealed row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from scrubjay import vault
from scrubjay.domain.errors import KeyMissing
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
    row_id = opened.row_id(memory.id)
    body = seal_body(
        opened,
        Collection.MEMORY,
        encode(memory),
        row_id=row_id,
        version=memory.version,
        epoch=epoch,
    )
    row = Row(
        id=row_id,
        version=memory.version,
        epoch=epoch,
        cell=body.cell,
        blob=body.blob,
        session=opened.session_hash(memory.provenance.session),
        key=opened.key_hash(memory.key),
        expiry=None if memory.expires_at is None else day(memory.expires_at),
    )
    return Sealed(row, body.stream)


def seal_ahead(opened: OpenScope, memory: Memory) -> Sealed | None:
    """The memory sealed before its transaction begins, in the epoch as last seen.

    None if another process rotated that epoch's key away since; then only the head can tell.
    """
    try:
        return seal(opened, memory, opened.epoch(Collection.MEMORY))
    except KeyMissing:
        return None


def reseal(opened: OpenScope, collection: Collection, row: Row, epoch: int) -> Sealed:
    """The same row, sealed in another epoch."""
    plaintext = opened.open_body(collection, row)
    body = seal_body(opened, collection, plaintext, row_id=row.id, version=row.version, epoch=epoch)
    return Sealed(replace(row, epoch=epoch, cell=body.cell, blob=body.blob), body.stream)


@dataclass(frozen=True, slots=True)
class Body:
    """A sealed body: its cell, and the blob the cell points to if it is a long one."""

    cell: bytes
    blob: str | None = None
    stream: bytes | None = None


def seal_body(
    opened: OpenScope,
    collection: Collection,
    body: bytes,
    *,
    row_id: bytes,
    version: int,
    epoch: int,
) -> Body:
    """Seal a body at its place, in a cell or, if it is long, in a blob the cell names."""
    random = opened.ports.clock.random
    name, stream = None, None
    if len(body) > CELL_BYTES:
        name = random(16).hex()
        sealer = opened.sealer(collection, Purpose.BLOB, epoch)
        place = vault.join(row_id, name)
        stream = sealer.seal_stream(body, row_id=place, version=version, random=random)
        body = name.encode()
    nonce = random(vault.NONCE_BYTES)
    sealer = opened.sealer(collection, Purpose.CELL, epoch)
    cell = sealer.seal(vault.pad(body), row_id=row_id, version=version, nonce=nonce)
    return Body(cell, name, stream)


def current(opened: OpenScope, tx: Tx, memory: Memory, sealed: Sealed | None) -> Sealed:
    """The memory as a row, sealed anew if the epoch moved on since it was sealed."""
    epoch = tx.head().memory.epoch
    if sealed is None or sealed.row.epoch != epoch:
        return seal(opened, memory, epoch)
    return sealed


def put(opened: OpenScope, tx: Tx, memory: Memory) -> Row:
    """Seal a memory in the present epoch and write it."""
    if memory.version > 1:
        _leave_blob(opened, tx, opened.row_id(memory.id))
    return write(opened, tx, current(opened, tx, memory, None))


def write(opened: OpenScope, tx: Tx, sealed: Sealed) -> Row:
    """Write a row that is sealed in the present epoch."""
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
