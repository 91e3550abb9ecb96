"""retain and supersede: the two verbs that add a memory."""

from __future__ import annotations

from msgspec.structs import replace

from scrubjay.engine.ledger import sessions
from scrubjay.engine.scope import cells
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search import embedding
from scrubjay.guard.admission import admit
from scrubjay.model.errors import Conflict, Forbidden, InvalidRequest, NotFound
from scrubjay.model.memory import Memory, wording
from scrubjay.model.origin import Origin, lowest
from scrubjay.model.requests import Caller, Retain, Supersede
from scrubjay.model.results import Outcome, Retained
from scrubjay.model.rows import Collection
from scrubjay.ports import Failpoint, Tx, View


def retain(opened: OpenScope, request: Retain, caller: Caller) -> Retained:
    """Write a memory; durable when this returns, and only once per key."""
    clock = opened.ports.clock
    now = clock.now()
    request, redacted = admit(request, opened.ports.policy.placeholder)
    if request.expires_at is not None and request.expires_at <= now:
        raise InvalidRequest("The memory would have expired already.")
    public_id = request.id or f"mem-{clock.new_id()}"
    memory = request.memory(public_id, now, caller.actor)
    vector = embedding.vector_of(opened, wording(memory.content, memory.tags))
    sealed = cells.seal_ahead(opened, memory, vector)

    def store(tx: Tx) -> Retained:
        if receipt := _seen_before(opened, tx, memory, stable=request.id is not None):
            return receipt
        sessions.spend(opened, tx, caller.allowances)
        settled = _with_sources(opened, tx, _in_session(opened, tx, memory))
        ahead = sealed if settled is memory else None
        current = cells.current(opened, tx, settled, ahead, vector)
        opened.trail.record(tx, "retain", caller.actor, (current.row.id,))
        cells.write(opened, tx, current)
        for source in memory.sources:
            tx.link(opened.row_id(source), current.row.id)
        return Retained(id=memory.id, redacted=redacted)

    receipt = opened.write(store)
    opened.ports.reach(Failpoint.RETAIN_COMMITTED)
    return receipt


def _seen_before(opened: OpenScope, tx: Tx, memory: Memory, *, stable: bool) -> Retained | None:
    """The receipt for a memory that is known or was forgotten; None for a new one."""
    if memory.key is None and not stable:
        return None
    key = opened.key_hash(memory.key)
    row_id = opened.row_id(memory.id)
    names = [name for name in (row_id if stable else None, key) if name is not None]
    if names and tx.buried(names):
        return Retained(id=memory.id, outcome=Outcome.FORGOTTEN)
    known = tx.row_by_key(Collection.MEMORY, key) if key else None
    if known is None and stable:
        known = tx.row(Collection.MEMORY, row_id)
    if known is None:
        return None
    return Retained(id=opened.unseal(known).id, outcome=Outcome.KNOWN)


def _in_session(opened: OpenScope, tx: Tx, memory: Memory) -> Memory:
    """The memory no more trusted than what its session has read."""
    session = memory.provenance.session
    origin = sessions.trusted(opened, tx, session, memory.origin)
    return memory if origin is memory.origin else replace(memory, origin=origin)


def _with_sources(opened: OpenScope, tx: Tx, memory: Memory) -> Memory:
    """The memory no more trusted than what it was derived from."""
    if not memory.sources:
        return memory
    sources = [read_live(opened, tx, source) for source in memory.sources]
    origin = lowest([memory.origin, *(source.origin for source in sources)])
    return memory if origin is memory.origin else replace(memory, origin=origin)


def read_live(opened: OpenScope, view: View, public_id: str) -> Memory:
    """The memory with this id, superseded or not; NotFound if it is not here (any more)."""
    row = view.row(Collection.MEMORY, opened.row_id(public_id))
    if row is None or row.erased:
        raise not_here(public_id)
    return opened.unseal(row)


def not_here(public_id: str) -> NotFound:
    """What is said of an id that nothing is to be seen of."""
    return NotFound(f"There is no memory {public_id} in this scope.")


def supersede(opened: OpenScope, request: Supersede, caller: Caller) -> Retained:
    """Replace the head of a chain; of several writers on one head exactly one wins."""
    clock = opened.ports.clock
    public_id, now = f"mem-{clock.new_id()}", clock.now()
    request, redacted = admit(request, opened.ports.policy.placeholder)
    vector = embedding.vector_of(opened, wording(request.content, request.tags or ()))

    def store(tx: Tx) -> Retained:
        if request.key and (receipt := _replayed(opened, tx, request, public_id)):
            return receipt
        old = read_live(opened, tx, request.id)
        if old.expired(now):
            raise not_here(request.id)
        origin = sessions.trusted(opened, tx, request.session, Origin(request.origin))
        _check_supersession(old, origin)
        sessions.spend(opened, tx, caller.allowances)
        new = replace(request.memory(old, public_id, now, caller.actor), origin=origin)
        retired = replace(old, superseded_by=new.id, retired_at=now, version=old.version + 1)
        old_row = cells.put(opened, tx, retired)
        new_row = cells.put(opened, tx, new, vector)
        for source in new.sources:
            tx.link(opened.row_id(source), new_row.id)
        opened.trail.record(tx, "supersede", caller.actor, (old_row.id, new_row.id))
        return Retained(id=new.id, redacted=redacted)

    receipt = opened.write(store)
    opened.ports.reach(Failpoint.SUPERSEDE_COMMITTED)
    return receipt


def _replayed(opened: OpenScope, tx: Tx, request: Supersede, public_id: str) -> Retained | None:
    key = opened.key_hash(request.key)
    assert key is not None
    if tx.buried([key]):
        return Retained(id=public_id, outcome=Outcome.FORGOTTEN)
    known = tx.row_by_key(Collection.MEMORY, key)
    if known is None:
        return None
    return Retained(id=opened.unseal(known).id, outcome=Outcome.KNOWN)


def _check_supersession(old: Memory, origin: Origin) -> None:
    if not old.live:
        raise Conflict(
            f"{old.id} was superseded already, by {old.superseded_by}.",
            hint="Supersede the newest version; history shows the chain.",
        )
    if origin.trust < old.origin.trust:
        raise Forbidden(f"A memory of origin {old.origin} cannot be superseded by origin {origin}.")
