"""retain, retain_many, supersede, amend and freeze: the verbs that write memories or stop it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from scrubjay.engine.ledger import derivation, sessions
from scrubjay.engine.memories import retention
from scrubjay.engine.memories.read import not_here, read_live
from scrubjay.engine.scope.audit_trail import SUBJECTS
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.search import embedding
from scrubjay.engine.search.kinds import kind_of
from scrubjay.guard.admission import admit, check_claim
from scrubjay.model.batches import BatchReceipt, Refusal, RetainedMany, RetainMany
from scrubjay.model.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LimitReached,
    NotFound,
    ScrubjayError,
    Stale,
)
from scrubjay.model.memory import Edition, Kind, Memory, check_category, wording
from scrubjay.model.origin import Actor, Origin, lowest
from scrubjay.model.requests import Amend, Caller, Retain, Supersede
from scrubjay.model.results import Outcome, Retained
from scrubjay.model.rows import Collection, Due, Freeze, Row
from scrubjay.model.text import made
from scrubjay.ports import Failpoint, Tx

_OWNERS = frozenset({Origin.USER, Origin.OPERATOR})
"""The origins whose words may tell an agent how to act, without saying so."""


class Draft(Struct, frozen=True, kw_only=True):
    """A memory on its way to a row: admitted, embedded, and sealed ahead of its transaction."""

    memory: Memory
    stable: bool
    """Whether the writer chose its id."""
    redacted: Mapping[str, int]
    inferred: Kind | None = None
    """Its kind, where the text told it."""
    vector: bytes | None = None
    degraded: tuple[str, ...] = ()
    ahead: Row | None = None
    """Sealed in the epoch as last seen; None if only the transaction can do that."""


def draft(opened: OpenScope, request: Retain, caller: Caller, now: datetime) -> Draft:
    """Admit a request: without secrets and invisible characters, under the id it will have."""
    request, redacted = admit(request, opened.ports.policy.placeholder)
    _check_terms(request, now)
    public_id = request.id or f"mem-{opened.ports.clock.new_id()}"
    if (inferred := _infer_kind(opened, request)) is not None:
        request = replace(request, kind=inferred)
    memory = request.memory(public_id, now, caller)
    stable = request.id is not None
    return Draft(memory=memory, stable=stable, redacted=redacted, inferred=inferred)


def sealed_ahead(
    opened: OpenScope, one: Draft, vector: bytes | None, degraded: tuple[str, ...] = ()
) -> Draft:
    """The draft with its vector, sealed before the transaction begins."""
    ahead = opened.seal_ahead(one.memory, vector)
    return replace(one, vector=vector, degraded=degraded, ahead=ahead)


def retain(opened: OpenScope, request: Retain, caller: Caller) -> Retained:
    """Write a memory; durable when this returns, and only once per key."""
    one = draft(opened, request, caller, opened.ports.clock.now())
    vector: bytes | None = None
    degraded: tuple[str, ...] = ()
    if opened.ports.embedder.costly:  # else its vectors are made with the index
        text = wording(one.memory.content, one.memory.tags)
        vector, degraded = embedding.vector_of(opened, text)
    one = sealed_ahead(opened, one, vector, degraded)

    def work(tx: Tx) -> Retained:
        receipt, row_id = store(opened, tx, one, caller, epoch=tx.head().memory.epoch)
        if row_id is not None:
            opened.trail.record(tx, "retain", caller.actor, (row_id,))
        return receipt

    receipt = opened.write(work)
    opened.ports.reach(Failpoint.RETAIN_COMMITTED)
    return receipt


def _infer_kind(opened: OpenScope, request: Retain) -> Kind | None:
    """The kind that a text without one reads like; None where one is given, or it is a fact.

    Only of what the owners tell: what a speaker said in a conversation is no wish of theirs.
    """
    said = request.speaker is not None or request.position is not None
    if request.kind or said or request.origin not in _OWNERS or opened.ports.distiller is None:
        return None
    kind = kind_of(request.content)
    return None if kind is Kind.FACT else kind


def store(
    opened: OpenScope, tx: Tx, one: Draft, caller: Caller, *, epoch: int
) -> tuple[Retained, bytes | None]:
    """Write a draft; its receipt, and its row id unless it is known or was forgotten.

    What it raises has changed nothing, so that the others of a batch can be written.
    """
    memory = one.memory
    is_trusted = partial(_is_trusted, opened, tx, memory)
    receipt, holder = _replayed(opened, tx, memory.id, memory.key, is_trusted, stable=one.stable)
    if receipt is not None:
        return receipt, None
    # No more trusted than what its session has read and than what it was derived from.
    origin, session = memory.origin, memory.provenance.session
    if session is not None:
        origin = sessions.trusted(opened, tx, session, origin)
    sources = [read_live(opened, tx, source) for source in memory.sources]
    if sources:
        origin = lowest([origin, *(source.origin for source in sources)])
    # What is derived late, from a value that was corrected meanwhile, is hidden as well.
    outdated = any(not source.current for source in sources)
    if caller.allowances:
        sessions.spend(opened, tx, caller.allowances)
    inferred = one.inferred if origin in _OWNERS else None
    row, told = one.ahead, memory
    if origin is not memory.origin or outdated:
        told = replace(memory, origin=origin, retired_at=memory.recorded_at if outdated else None)
        if inferred is not one.inferred:
            told = replace(told, kind=Kind.FACT)
        row = None
    latest = opened.limits.keeps_latest(tx)
    if latest and (old := retention.same_before(opened, tx, told)) is not None:
        told = replace(told, supersedes=old.id, pinned=told.pinned or old.pinned)
        ended = replace(old, superseded_by=told.id, retired_at=told.recorded_at)
        opened.put(tx, replace(ended, version=old.version + 1))
        row = None
    if row is None or row.epoch != epoch:
        row = opened.seal(told, epoch, one.vector)
    if holder is not None:
        _give_up_key(opened, tx, holder)
    row = opened.write_memory(tx, told, row)
    for source in memory.sources:
        tx.link(opened.row_id(source), row.id)
    if outdated:
        derivation.hide_new(opened, tx, memory)
    receipt = Retained(
        id=memory.id,
        number=row.born,
        redacted=one.redacted,
        degraded=one.degraded,
        hidden=int(outdated),
        inferred=inferred,
    )
    return receipt, row.id


def _check_terms(request: Retain | Supersede, now: datetime) -> None:
    if request.tags:
        check_category(request.tags)
    if request.expires_at is not None and request.expires_at <= now:
        raise InvalidRequest("The memory would have expired already.")


def _is_trusted(opened: OpenScope, tx: Tx, memory: Memory) -> bool:
    """Whether what is about to be written is trusted, after its session and its sources."""
    origin, session = memory.origin, memory.provenance.session
    if session is not None:
        origin = sessions.trusted(opened, tx, session, origin)
    return lowest([origin, *(read_live(opened, tx, one).origin for one in memory.sources)]).trusted


def _give_up_key(opened: OpenScope, tx: Tx, holder: Memory) -> None:
    opened.put(tx, replace(holder, key=None, version=holder.version + 1))


def _replayed(
    opened: OpenScope,
    tx: Tx,
    public_id: str,
    key: str | None,
    is_trusted: Callable[[], bool],
    *,
    stable: bool,
) -> tuple[Retained | None, Memory | None]:
    """Idempotency: the receipt for a memory that is known or was forgotten; None for a new one.

    It is known by its key or, if the writer chose it (`stable`), by its id. Beside it the memory
    that has the key and must give it up: one that is not trusted keeps no trusted one out.
    """
    row_id = opened.row_id(public_id) if stable else None
    hashed = opened.key_hash(key)
    if not (names := [name for name in (row_id, hashed) if name is not None]):
        return None, None
    if tx.buried(names):
        return Retained(id=public_id, outcome=Outcome.FORGOTTEN), None
    by_key = tx.row_by_key(Collection.MEMORY, hashed) if hashed else None
    by_id = None if row_id is None else tx.row(Collection.MEMORY, row_id)
    if (known := by_key or by_id) is None:
        return None, None
    memory = opened.unseal(known)
    if by_id is None and not memory.origin.trusted and is_trusted():
        return None, memory
    if by_id is None and opened.limits.retires(tx, memory):
        # Past a limit and only not purged yet: it may be told again, as a new memory.
        opened.erase_memory(tx, known, memory)
        tx.bury([known.id])
        opened.leave_due(tx, Due.PUSH)
        return None, None
    return Retained(id=memory.id, number=known.born, outcome=Outcome.KNOWN), None


def supersede(opened: OpenScope, request: Supersede, caller: Caller) -> Retained:
    """Replace the newest version by compare-and-set; of concurrent writers exactly one wins."""
    clock = opened.ports.clock
    public_id, now = f"mem-{clock.new_id()}", clock.now()
    request, redacted = admit(request, opened.ports.policy.placeholder)
    _check_terms(request, now)
    vector, degraded = embedding.vector_of(opened, wording(request.content, request.tags or ()))

    def store(tx: Tx) -> Retained:
        origin = sessions.trusted(opened, tx, request.session, Origin(request.origin))
        receipt, holder = _replayed(
            opened, tx, public_id, request.key, lambda: origin.trusted, stable=False
        )
        if receipt is not None:
            return receipt
        old = read_live(opened, tx, request.id)
        if old.expired(now):
            raise not_here(opened, request.id)
        if not old.live:
            raise Conflict(
                f"{old.id} was superseded already, by {old.superseded_by}.",
                hint="Supersede the newest version; history shows the chain.",
            )
        if origin.trust < old.origin.trust:
            raise Forbidden(
                f"A memory of origin {old.origin} cannot be superseded by origin {origin}."
            )
        sessions.spend(opened, tx, caller.allowances)
        if holder is not None and holder.id == old.id:
            old = replace(old, key=None)
        elif holder is not None:
            _give_up_key(opened, tx, holder)
        new = replace(request.memory(old, public_id, now, caller), origin=origin)
        retired = replace(old, superseded_by=new.id, retired_at=now, version=old.version + 1)
        old_row = opened.put(tx, retired)
        new_row = opened.put(tx, new, vector)
        for source in new.sources:
            tx.link(opened.row_id(source), new_row.id)
        values = ScopeValues(opened, tx)
        hidden = derivation.refresh(opened, tx, values, retired)
        values.write(tx)
        opened.trail.record(tx, "supersede", caller.actor, (old_row.id, new_row.id))
        return Retained(
            id=new.id, number=new_row.born, redacted=redacted, degraded=degraded, hidden=hidden
        )

    receipt = opened.write(store)
    opened.ports.reach(Failpoint.SUPERSEDE_COMMITTED)
    return receipt


def amend(
    opened: OpenScope, request: Amend, caller: Caller, expected: frozenset[Edition] | None = None
) -> Memory:
    """Change a memory's pin, expiry and archiving; Stale if it is not as expected.

    Only the newest version is archived. One that is past a limit is not taken back.
    """

    def store(tx: Tx) -> Memory:
        old = read_live(opened, tx, request.id)
        check_expected(old.edition, expected)
        new = request.memory(old, opened.moment())
        if new == old:
            return old
        archives = new.archived_at != old.archived_at
        if archives and not old.live:
            raise Conflict(f"{old.id} was superseded.", hint="Archive the newest version.")
        if archives and new.archived_at is None and opened.limits.retires(tx, new):
            raise LimitReached(
                f"{old.id} is past the retention of its kind.", hint="Pin it, or raise the limit."
            )
        new = replace(new, version=old.version + 1)
        row = opened.put(tx, new)
        if new.pinned is not old.pinned:
            verb = "pin" if new.pinned else "unpin"
            opened.trail.record(tx, verb, caller.actor, (row.id,))
        if new.expires_at != old.expires_at:
            opened.trail.record(tx, "expire", caller.actor, (row.id,))
        if archives:
            verb = "archive" if new.archived_at else "unarchive"
            opened.trail.record(tx, verb, caller.actor, (row.id,))
        return new

    return opened.write(store)


def check_expected(edition: Edition, expected: frozenset[Edition] | None) -> None:
    """Optimistic lock: raise Stale unless the memory is in an expected edition.

    Called inside the transaction that changes the memory, so it holds across processes.
    """
    if expected is not None and edition not in expected:
        raise Stale("The memory has changed since it was read.")


def freeze(opened: OpenScope, level: Freeze, *, actor: Actor, lifts: bool) -> Freeze:
    """Stop writes, or writes and recall, or (`none`) nothing; returns the level before.

    Who `lifts` no restriction is refused inside of the transaction: the owner may just have set it.
    """

    def store(tx: Tx) -> Freeze:
        head = tx.head()
        if head.frozen is Freeze.ALL and not lifts:
            raise Forbidden(
                "A restriction is lifted by its owner; others ask at /v1/personal/lift."
            )
        if head.frozen is not level:
            tx.set_head(replace(head, frozen=level))
            opened.trail.record(tx, f"freeze.{level.value}", actor)
        return head.frozen

    return opened.write(store, frozen_too=True)


# -- retain_many -----------------------------------------------------------------------------------

CHUNK: Final = 512
"""How many memories one transaction writes: other writers wait no longer than for these."""
FOLLOWED: Final = 4
"""After how many chunks the index follows: large steps cost less, small ones less memory."""
OF_ITEM: Final = (InvalidRequest, Forbidden, NotFound, LimitReached, Conflict)
"""Errors that concern one item; any other one, such as a full disk, concerns all that follow."""


class Follow(Protocol):
    """Called when some chunks are durable, and told whether the last is."""

    def __call__(self, *, last: bool) -> None:
        """Take in what was written."""


def retain_many(
    opened: OpenScope, request: RetainMany, caller: Caller, follow: Follow | None = None
) -> RetainedMany:
    """Write many memories; those of a chunk are durable together.

    An error that is of no item ends the batch: earlier chunks stay, and a repeat of the batch
    writes nothing twice where the items have keys or ids.
    """
    items = request.fields
    size = len(items) if request.atomic else CHUNK
    receipts: list[BatchReceipt] = []
    for at in range(0, len(items), size or 1):
        drafts = _drafts(opened, items[at : at + size], caller)
        work = partial(_store, opened, drafts, caller, atomic=request.atomic)
        receipts += opened.write(work)
        opened.ports.reach(Failpoint.RETAIN_COMMITTED)
        last = len(receipts) == len(items)
        if follow is not None and (last or (at // size + 1) % FOLLOWED == 0):
            follow(last=last)
    return RetainedMany.of(receipts)


def _drafts(
    opened: OpenScope, items: Sequence[Mapping[str, Any]], caller: Caller
) -> list[Draft | ScrubjayError]:
    """The items of a chunk as drafts, embedded together; or what is wrong with one."""
    now, ceiling = opened.ports.clock.now(), caller.ceiling
    found: list[Draft | ScrubjayError] = []
    for fields in items:
        try:
            if ceiling is None:
                request = made(Retain, fields)
            else:  # of an origin that the caller may give it
                request = made(Retain, {"origin": ceiling, **fields})
                check_claim(Origin(request.origin), ceiling)
            found.append(draft(opened, request, caller, now))
        except OF_ITEM as error:
            found.append(error)
    drafts = [one for one in found if isinstance(one, Draft)]
    texts = [wording(one.memory.content, one.memory.tags) for one in drafts]
    vectors, degraded = embedding.vectors_of(
        opened, texts, seconds=opened.ports.policy.embed_seconds
    )
    pairs = zip(drafts, vectors, strict=True)
    sealed = (sealed_ahead(opened, one, vector, degraded) for one, vector in pairs)
    return [next(sealed) if isinstance(one, Draft) else one for one in found]


def _store(
    opened: OpenScope,
    drafts: Sequence[Draft | ScrubjayError],
    caller: Caller,
    tx: Tx,
    *,
    atomic: bool,
) -> list[BatchReceipt]:
    receipts: list[BatchReceipt] = []
    stored: list[bytes] = []
    epoch = tx.head().memory.epoch  # once: each write makes another head
    for place, one in enumerate(drafts):
        try:
            if isinstance(one, ScrubjayError):
                raise one
            retained, row_id = store(opened, tx, one, caller, epoch=epoch)
        except OF_ITEM as error:
            if atomic:
                raise type(error)(f"Item {place}: {error.message}", hint=error.hint) from error
            receipts.append(BatchReceipt(refused=Refusal.of(error)))
            continue
        receipts.append(BatchReceipt(retained=retained))
        if row_id is not None:
            stored.append(row_id)
    for at in range(0, len(stored), SUBJECTS):  # each of them is named in the trail
        ids = stored[at : at + SUBJECTS]
        opened.trail.record(tx, "retain", caller.actor, ids, number=len(ids))
    return receipts
