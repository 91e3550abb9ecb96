"""Between a memory and its sealed row."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.scope import due
from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.model.errors import KeyMissing, SealBroken
from scrubjay.model.memory import Memory
from scrubjay.model.records import encode
from scrubjay.model.results import ErasedCell
from scrubjay.model.rows import Collection, Due, Row
from scrubjay.ports import Failpoint, Tx
from scrubjay.vault import Purpose

_log = logging.getLogger(__name__)
CELL_BYTES = 64 * 1024
"""A body longer than this goes to a blob, in chunks."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A row ready to be written, and the blob that goes with it, if any."""

    row: Row
    stream: bytes | None = None


def seal(opened: OpenScope, memory: Memory, epoch: int, vector: bytes | None = None) -> Sealed:
    """The memory, with its packed vector if it is kept, as a row sealed in an epoch."""
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
        vector=seal_vector(opened, vector, row_id, epoch),
        blob=body.blob,
        session=opened.session_hash(memory.provenance.session),
        key=opened.key_hash(memory.key),
        expiry=None if memory.expires_at is None else day(memory.expires_at),
    )
    return Sealed(row, body.stream)


def seal_ahead(opened: OpenScope, memory: Memory, vector: bytes | None = None) -> Sealed | None:
    """The memory sealed before its transaction begins, in the epoch as last seen.

    None if another process rotated that epoch's key away since; then only the head can tell.
    """
    try:
        return seal(opened, memory, opened.epoch(Collection.MEMORY), vector)
    except KeyMissing:
        return None


def reseal(opened: OpenScope, collection: Collection, row: Row, epoch: int) -> Sealed:
    """The same row, sealed in another epoch."""
    plaintext = opened.open_body(collection, row)
    body = seal_body(opened, collection, plaintext, row_id=row.id, version=row.version, epoch=epoch)
    vector = seal_vector(opened, sound_vector(opened, row), row.id, epoch)
    sealed = replace(row, epoch=epoch, cell=body.cell, vector=vector, blob=body.blob)
    return Sealed(sealed, body.stream)


def seal_vector(opened: OpenScope, packed: bytes | None, row_id: bytes, epoch: int) -> bytes | None:
    """A packed vector as the cell beside the body of its memory; None stays None.

    It is bound to the id alone: what a memory says never changes, only what is noted of it.
    """
    if packed is None:
        return None
    nonce = opened.ports.clock.random(vault.NONCE_BYTES)
    sealer = opened.sealer(Collection.MEMORY, Purpose.VECTOR, epoch)
    return sealer.seal(packed, row_id=row_id, version=0, nonce=nonce)


def open_vector(opened: OpenScope, row: Row) -> bytes | None:
    """The packed vector kept with a memory; None if there is none."""
    if row.vector is None:
        return None
    sealer = opened.sealer(Collection.MEMORY, Purpose.VECTOR, row.epoch)
    return sealer.unseal(row.vector, row_id=row.id, version=0)


def sound_vector(opened: OpenScope, row: Row) -> bytes | None:
    """The packed vector kept with a memory; None also for a damaged one, which costs no memory."""
    try:
        return open_vector(opened, row)
    except SealBroken as error:
        _log.warning("vector.damaged", extra={"code": error.code})
        return None


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


def current(
    opened: OpenScope,
    tx: Tx,
    memory: Memory,
    sealed: Sealed | None,
    vector: bytes | None = None,
) -> Sealed:
    """The memory as a row, sealed anew if the epoch moved on since it was sealed."""
    epoch = tx.head().memory.epoch
    if sealed is None or sealed.row.epoch != epoch:
        return seal(opened, memory, epoch, vector)
    return sealed


def put(opened: OpenScope, tx: Tx, memory: Memory, vector: bytes | None = None) -> Row:
    """Seal a memory in the present epoch and write it; a changed one keeps its vector."""
    old = tx.row(Collection.MEMORY, opened.row_id(memory.id)) if memory.version > 1 else None
    if old is not None:
        vector = sound_vector(opened, old)
        if old.blob is not None:  # of the version that is replaced, once the new one is durable
            due.leave(opened, tx, Due.SWEEP)
    return write(opened, tx, current(opened, tx, memory, None, vector))


def write(opened: OpenScope, tx: Tx, sealed: Sealed) -> Row:
    """Write a row that is sealed in the present epoch."""
    write_blob(opened, sealed)
    return tx.put(Collection.MEMORY, sealed.row)


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
