"""retain_many: memories in chunks, each chunk in one transaction, with all checks of retain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from scrubjay.engine.memories import retain
from scrubjay.engine.memories.retain import Draft
from scrubjay.engine.scope.audit_trail import SUBJECTS
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search import embedding
from scrubjay.guard.admission import check_claim
from scrubjay.model.batches import BatchReceipt, Refusal, RetainedMany, RetainMany
from scrubjay.model.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LimitReached,
    NotFound,
    ScrubjayError,
)
from scrubjay.model.memory import wording
from scrubjay.model.origin import Origin
from scrubjay.model.requests import Caller, Retain
from scrubjay.model.text import made
from scrubjay.ports import Failpoint, Tx

CHUNK: Final = 512
"""How many memories one transaction writes: other writers wait no longer than for these."""
OF_ITEM: Final = (InvalidRequest, Forbidden, NotFound, LimitReached, Conflict)
"""Errors that concern one item; any other one, such as a full disk, concerns all that follow."""


class Follow(Protocol):
    """Called when a chunk is durable, and told whether it was the last."""

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
        if follow is not None:
            follow(last=len(receipts) == len(items))
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
            found.append(retain.draft(opened, request, caller, now))
        except OF_ITEM as error:
            found.append(error)
    drafts = [one for one in found if isinstance(one, Draft)]
    texts = [wording(one.memory.content, one.memory.tags) for one in drafts]
    vectors, degraded = embedding.vectors_of(
        opened, texts, seconds=opened.ports.policy.embed_seconds
    )
    pairs = zip(drafts, vectors, strict=True)
    sealed = (retain.sealed_ahead(opened, one, vector, degraded) for one, vector in pairs)
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
    for place, one in enumerate(drafts):
        try:
            if isinstance(one, ScrubjayError):
                raise one
            retained, row_id = retain.store(opened, tx, one, caller)
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
