"""verify and audit: open everything, prove an erasure, read the trail and check it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, product
from typing import Any, Final

from scrubjay.engine.ledger import conversations, documents, turns
from scrubjay.engine.memories import receipts
from scrubjay.engine.scope import lifecycle, root_key
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.pending_blobs import PARCEL
from scrubjay.engine.scope.views import changes, living
from scrubjay.engine.search import manifest
from scrubjay.model.errors import InvalidRequest, KeyMissing, NotFound, SealBroken
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor
from scrubjay.model.pages import Page, cursor_at, place
from scrubjay.model.requests import AuditRequest
from scrubjay.model.results import AuditEvent, Erasure, Report
from scrubjay.model.rows import AuditRow, Collection, Row
from scrubjay.model.scope import Scope
from scrubjay.ports import View

_VERB = re.compile(r"[a-z0-9._-]{1,64}")
_ADDRESS = re.compile(r"[A-Za-z0-9]{1,64}")


def audit(opened: OpenScope, request: AuditRequest) -> Page[AuditEvent]:
    """The events, oldest first."""
    (after,) = place(request.cursor)

    def look(view: View) -> Sequence[AuditRow]:
        newest = max(view.head().audit_count - request.limit, 0)
        return view.audit(newest if request.newest else after, request.limit + 1)

    rows = opened.read(look)
    events = tuple(map(opened.trail.event, rows[: request.limit]))
    more = len(rows) > len(events)
    return Page(data=events, next_cursor=cursor_at(events[-1].count) if more else None)


def verify_audit(opened: OpenScope) -> Report:
    """Whether the trail is whole: every link, its end in the head, the catalog's copy in it."""
    # The catalog's copy is read first: it may only ever lag behind the trail.
    known = opened.ports.store.catalog.entry(opened.address)
    return opened.read(lambda view: opened.trail.verify(view, known))


def note_event(opened: OpenScope, verb: str, *, session: str | None, actor: Actor) -> None:
    """Record an event that changed nothing, with the pseudonym of its session."""
    if not _VERB.fullmatch(verb):
        raise InvalidRequest("A verb of the trail is up to 64 of a-z, 0-9, dot, dash and _.")
    subjects = () if session is None else (opened.session_hash(session),)
    opened.write(lambda tx: opened.trail.record(tx, verb, actor, subjects), frozen_too=True)


_TRIES = 3
_READ: Final[Mapping[Collection, Callable[[OpenScope, Row], Any]]] = {
    Collection.MEMORY: OpenScope.unseal,
    Collection.TURN: OpenScope.unseal_turn,
    Collection.CONVERSATION: conversations.opened_row,
    Collection.DOCUMENT: documents.named_rightly,
}


def verify(opened: OpenScope) -> Report:
    """Decrypt every row, and check order, chains, tombstones, blobs, audit and the file itself.

    A concurrent change may look like damage, so findings are checked again.
    """
    for _ in range(_TRIES - 1):
        before = opened.head()
        report = _verify(opened)
        if report.sound or opened.head() == before:
            return report
    return _verify(opened)


def _verify(opened: OpenScope) -> Report:
    memories: dict[str, Memory] = {}

    def look(view: View) -> tuple[int, list[str]]:
        memories.clear()
        checked, problems, head = 0, list[str](), view.head()
        blobs = {
            name for name in opened.ports.blobs.names(opened.address) if not name.startswith(PARCEL)
        }
        for collection in Collection:
            last = 0
            for row in changes(view, collection):
                checked, last = checked + 1, row.seq
                problems += _check_row(opened, collection, row, blobs, memories)
            if last > head.at(collection).seq:
                problems.append(f"The {collection.value} head is behind its rows.")
        tombstones = set(view.tombstones())
        missing = tombstones - opened.ports.store.catalog.tombstones(opened.address)
        if missing and not head.due:
            problems.append(f"{len(missing)} tombstones are not in the catalog.")
        others = [one for one in Collection if one is not Collection.SESSION]
        for row_id, collection in product(tombstones, others):
            if (kept := living(view, collection, row_id)) is not None:
                problems.append(f"{collection} row {kept.seq} is tombstoned, but not erased.")
        problems += turns.check_line(opened, view) + conversations.check(opened, view)
        problems += opened.limits.check(view)
        problems += opened.counters.check(view, {one.number for one in memories.values()})
        return checked, problems + manifest.check(opened, view)

    checked, problems = opened.read(look)
    problems += _check_chains(memories)
    problems += opened.ports.store.check(opened.address)
    trail = verify_audit(opened)
    return Report(checked=checked + trail.checked, problems=(*problems, *trail.problems))


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
        opened.open_vector(row)
        if collection is Collection.SESSION:
            return
        found = _READ[collection](opened, row)
        if isinstance(found, Memory):
            memories[found.id] = found
        if found is None or opened.row_id(found.id) != row.id:
            yield f"{name} holds a {collection.value} with another id."
    except (SealBroken, NotFound, KeyMissing) as error:
        yield f"{name}: {error.message}"


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


_UNKNOWN = (
    "This home does not know this erasure: it may have been restored from an older backup, or "
    "the receipt was altered. Forget it here again."
)


def verify_erased(ports: Ports, scope: Scope, receipt: Erasure) -> Report:
    """Search every byte kept for the cells of a receipt, and prove that no key opens them.

    What was restored has other cells and keys than the receipt names: where nothing says that
    it was erased here too, finding none of them would prove nothing.
    """
    if not _ADDRESS.fullmatch(receipt.address):
        raise InvalidRequest("That is not an erasure receipt.")
    lives = lifecycle.lives(ports, scope)
    ours = receipt.address in lives
    if not ours and ports.store.catalog.entry(receipt.address) is not None:
        raise InvalidRequest(
            f"That is no receipt of {scope}, but of another scope of this home.",
            hint="Ask the scope it was given for.",
        )
    address = receipt.address if ours else lives[-1]
    if not _is_known(ports, address, receipt):
        return Report(checked=0, problems=(_UNKNOWN,))
    nonces = {bytes.fromhex(cell.nonce): cell for cell in receipt.cells}
    sources = (ports.store.raw(address), ports.blobs.raw(address))
    found = [
        f"{place} still has the bytes of an erased cell of epoch {cell.epoch}."
        for place, piece in chain.from_iterable(sources if nonces else ())
        for nonce, cell in nonces.items()
        if nonce in piece
    ]
    # A cell opens only with its epoch's key: so none of those epochs may have a slot left.
    purposes = set(ports.keyring.purposes(receipt.address))
    problems = [
        f"The key of {collection} epoch {epoch} is still in the keyring."
        for collection, epoch in sorted({(cell.collection, cell.epoch) for cell in receipt.cells})
        if f"{collection}.{epoch}" in purposes
    ]
    if receipt.verb == "destroy" and purposes:
        problems.append("Keys of the destroyed scope are still in the keyring.")
    if receipt.verb == "destroy" and ports.store.exists(receipt.address):
        problems.append("The rows of the destroyed scope are still there.")
    slots = ports.keyring.slots
    left = "overwritten, no byte of them is left" if slots.traceless else "deleted from the store"
    elsewhere = "It was erased in another home: here a restored backup brought its audit event."
    seen = (
        f"Rows, blobs and slots of this installation were searched; the old slots are {left}.",
        root_key.seen_of(ports, receipt.generation) if ours else elsewhere,
        "Copies made elsewhere, such as backups of the disk or of the keys, cannot be seen.",
    )
    return Report(
        checked=len(receipt.cells), problems=tuple(problems), found=tuple(found), seen=seen
    )


def _is_known(ports: Ports, address: str, receipt: Erasure) -> bool:
    """Whether the erasure happened here: its receipt is kept, or the trail has its event.

    A backup takes the trail along, and with it what was erased before it. Of a destroy the trail
    says nothing, and a receipt that names other cells than the kept one was altered.
    """

    def proof(one: Erasure) -> object:
        return one.verb, one.audit_count, one.audit_mac, one.cells

    kept, entry = receipts.kept(ports, address), ports.store.catalog.entry(address)
    if proof(receipt) in map(proof, kept):
        return True
    if receipt.cells and any(one.audit_count == receipt.audit_count for one in kept):
        return False
    if entry is not None and entry.destroyed:
        return address == receipt.address and not receipt.cells
    if receipt.verb != "destroy":
        with suppress(NotFound), ports.store.read(address) as view:
            if 0 < receipt.audit_count <= view.head().audit_count:
                (event,) = view.audit(receipt.audit_count - 1, 1)
                return event.mac.hex() == receipt.audit_mac
    return False
