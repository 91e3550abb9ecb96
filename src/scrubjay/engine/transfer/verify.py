"""verify: open everything, check every promise that can be checked, prove an erasure."""

from __future__ import annotations

from collections.abc import Iterator

from scrubjay.engine.ledger import turns
from scrubjay.engine.scope import cells
from scrubjay.engine.scope.open_scope import OpenScope, Ports
from scrubjay.engine.search import manifest
from scrubjay.engine.transfer import audit
from scrubjay.model.errors import InvalidRequest, NotFound, SealBroken
from scrubjay.model.memory import Memory
from scrubjay.model.results import Erasure, Report
from scrubjay.model.rows import Collection, Row
from scrubjay.ports import View

_PAGE = 256
_TRIES = 3


def verify(opened: OpenScope) -> Report:
    """Decrypt every row, and check order, chains, tombstones, blobs, audit and the file itself.

    What another process changes meanwhile may look like damage, and is looked at again.
    """
    for _ in range(_TRIES - 1):
        before = opened.read(lambda view: view.head())
        report = _verify(opened)
        if report.sound or opened.read(lambda view: view.head()) == before:
            return report
    return _verify(opened)


def _verify(opened: OpenScope) -> Report:
    memories: dict[str, Memory] = {}

    def look(view: View) -> tuple[int, list[str]]:
        memories.clear()
        checked, problems = 0, list[str]()
        for collection in Collection:
            count, found = _check_rows(opened, view, collection, memories)
            checked += count
            problems += found
        problems += _check_tombstones(opened, view)
        problems += turns.check_line(opened, view)
        return checked, problems + manifest.check(opened, view)

    checked, problems = opened.read(look)
    problems += _check_chains(memories)
    problems += opened.ports.store.check(opened.address)
    trail = audit.verify(opened)
    return Report(checked=checked + trail.checked, problems=(*problems, *trail.problems))


def _check_rows(
    opened: OpenScope, view: View, collection: Collection, memories: dict[str, Memory]
) -> tuple[int, list[str]]:
    checked, after, problems = 0, 0, list[str]()
    blobs = set(opened.ports.blobs.names(opened.address))
    position = view.head().at(collection)
    while rows := view.changes(collection, after, _PAGE):
        for row in rows:
            checked += 1
            problems += _check_row(opened, collection, row, blobs, memories)
        after = rows[-1].seq
    if after > position.seq:
        problems.append(f"The {collection.value} head is behind its rows.")
    return checked, problems


def _check_row(
    opened: OpenScope,
    collection: Collection,
    row: Row,
    blobs: set[str],
    memories: dict[str, Memory],
) -> Iterator[str]:
    name = f"{collection.value} row {row.seq}"
    if row.erased:
        if row.cell or row.vector or row.blob or row.key or row.session:
            yield f"{name} is erased, but something of it is left."
        return
    if row.blob is not None and row.blob not in blobs:
        yield f"{name} points to a blob that is not there."
        return
    try:
        opened.open_body(collection, row)
        cells.open_vector(opened, row)
        if collection is Collection.MEMORY:
            memory = opened.unseal(row)
            memories[memory.id] = memory
            if opened.row_id(memory.id) != row.id:
                yield f"{name} holds a memory with another id."
        elif collection is Collection.TURN:
            yield from turns.check(opened, row, name)
    except (SealBroken, NotFound) as error:
        yield f"{name}: {error.message}"


def _check_tombstones(opened: OpenScope, view: View) -> list[str]:
    due = view.head().due
    tombstones = set(view.tombstones())
    missing = tombstones - opened.ports.store.catalog.tombstones(opened.address)
    problems = []
    if missing and not due:
        problems.append(f"{len(missing)} tombstones are not in the catalog.")
    for row_id in tombstones:
        for collection in (Collection.MEMORY, Collection.TURN):
            row = view.row(collection, row_id)
            if row is not None and not row.erased:
                problems.append(f"{collection} row {row.seq} is tombstoned, but not erased.")
    return problems


def _check_chains(memories: dict[str, Memory]) -> Iterator[str]:
    """Each memory has at most one successor, and both sides of a link agree."""
    for memory in memories.values():
        after = memories.get(memory.superseded_by or "")
        if after is not None and after.supersedes != memory.id:
            yield f"{memory.id} names a successor that does not name it."
        before = memories.get(memory.supersedes or "")
        if before is not None and before.superseded_by != memory.id:
            yield f"{memory.id} supersedes a memory that another one superseded."


# -- erasures ---------------------------------------------------------------------------------


def verify_erased(ports: Ports, receipt: Erasure) -> Report:
    """Search every byte kept for the cells of a receipt, and prove that no key opens them."""
    if not receipt.address.isalnum():
        raise InvalidRequest("That is not an erasure receipt.")
    found = tuple(_search(ports, receipt))
    problems = [*_check_keys(ports, receipt)]
    if receipt.verb == "destroy" and ports.store.exists(receipt.address):
        problems.append("The rows of the destroyed scope are still there.")
    return Report(checked=len(receipt.cells), problems=tuple(problems), found=found)


def _search(ports: Ports, receipt: Erasure) -> Iterator[str]:
    nonces = {bytes.fromhex(cell.nonce): cell for cell in receipt.cells}
    if not nonces:
        return
    for source in (ports.store.raw(receipt.address), ports.blobs.raw(receipt.address)):
        for place, piece in source:
            for nonce, cell in nonces.items():
                if nonce in piece:
                    yield f"{place} still has the bytes of an erased cell of epoch {cell.epoch}."


def _check_keys(ports: Ports, receipt: Erasure) -> Iterator[str]:
    """A cell opens only with its epoch's key: so none of those epochs may have a slot left."""
    epochs = {(cell.collection, cell.epoch) for cell in receipt.cells}
    purposes = set(ports.keyring.purposes(receipt.address))
    for collection, epoch in sorted(epochs):
        if f"{collection}.{epoch}" in purposes:
            yield f"The key of {collection} epoch {epoch} is still in the keyring."
    if receipt.verb == "destroy" and purposes:
        yield "Keys of the destroyed scope are still in the keyring."
