"""Sealing of memories by their open scope, for callers that have not moved yet."""

from __future__ import annotations

from collections.abc import Iterable

from scrubjay.engine.scope.open_scope import OpenScope, Sealed
from scrubjay.model.errors import KeyMissing
from scrubjay.model.memory import Memory
from scrubjay.model.results import ErasedCell
from scrubjay.model.rows import Collection, Row
from scrubjay.ports import Tx


def seal_ahead(opened: OpenScope, memory: Memory, vector: bytes | None = None) -> Sealed | None:
    """The memory sealed before its transaction begins, in the epoch as last seen.

    None if another process rotated that epoch's key away since; then only the head can tell.
    """
    try:
        return opened.seal(memory, opened.epoch(Collection.MEMORY), vector)
    except KeyMissing:
        return None


def current(
    opened: OpenScope, tx: Tx, memory: Memory, sealed: Sealed | None, vector: bytes | None = None
) -> Sealed:
    """The memory as a row, sealed anew if the epoch moved on since it was sealed."""
    epoch = tx.head().memory.epoch
    if sealed is None or sealed.row.epoch != epoch:
        return opened.seal(memory, epoch, vector)
    return sealed


def put(opened: OpenScope, tx: Tx, memory: Memory, vector: bytes | None = None) -> Row:
    """Seal a memory in the present epoch and write it."""
    return opened.put(tx, memory, vector)


def write(opened: OpenScope, tx: Tx, sealed: Sealed) -> Row:
    """Write a row that is sealed in the present epoch."""
    return opened.write_row(tx, Collection.MEMORY, sealed)


def erased_cells(opened: OpenScope, collection: Collection, row: Row) -> Iterable[ErasedCell]:
    """The cells of a row, as a receipt names them."""
    return opened.erased_cells(collection, row)


def open_vector(opened: OpenScope, row: Row) -> bytes | None:
    """The packed vector kept with a memory."""
    return opened.open_vector(row)


def sound_vector(opened: OpenScope, row: Row) -> bytes | None:
    """The packed vector kept with a memory; None also for a damaged one."""
    return opened.sound_vector(row)


def seal_vector(opened: OpenScope, packed: bytes | None, row_id: bytes, epoch: int) -> bytes | None:
    """A packed vector as the cell beside the body of its memory."""
    return opened.seal_vector(packed, row_id, epoch)
