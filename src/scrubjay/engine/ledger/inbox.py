"""The inbox of a user-held scope: writes that came while it was locked, sealed to its user.

posted: one transaction (HPKE to the public key, numbered) → unlocked: carried out in their order,
as retain and record are → struck off. Each has an id of its own from the beginning. So what is
carried out a second time, after a crash, is known; and what was forgotten stays forgotten.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.ledger import turns
from scrubjay.engine.memories import retain as retaining
from scrubjay.engine.scope import user_keys
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.quota import quota_of
from scrubjay.engine.scope.user_keys import UserKey
from scrubjay.guard.admission import admit
from scrubjay.model.errors import Frozen, InvalidRequest, LimitReached, SealBroken, UserLocked
from scrubjay.model.origin import Origin, lowest
from scrubjay.model.requests import Caller, Retain
from scrubjay.model.results import Outcome, Retained
from scrubjay.model.rows import Collection
from scrubjay.model.turns import Record, Recorded
from scrubjay.model.user_keys import Unlocked
from scrubjay.ports import Failpoint, Tx, View

MOST: Final = 10_000
"""How many writes wait at most."""
MOST_BYTES: Final = 1024 * 1024
"""How long one of them may be."""
_BATCH: Final = 64
"""How many are carried out before they are struck off together."""
_log = logging.getLogger(__name__)


class InboxEntry(Struct, frozen=True, kw_only=True):
    """A write that waits, and who made it."""

    caller: Caller
    retain: Retain | None = None
    record: Record | None = None


def post_memory(opened: OpenScope, request: Retain, caller: Caller) -> Retained:
    """Leave a memory in the inbox; the receipt has the id it will have."""
    clock = opened.ports.clock
    request, redacted = admit(request, opened.ports.policy.placeholder)
    request = replace(
        request,
        id=request.id or f"mem-{clock.new_id()}",
        said_at=request.said_at or clock.now(),
    )
    _post(opened, InboxEntry(caller=caller, retain=request))
    return Retained(id=str(request.id), outcome=Outcome.WAITING, redacted=redacted)


def post_turn(opened: OpenScope, request: Record, caller: Caller) -> Recorded:
    """Leave a turn in the inbox; the receipt has the id it will have."""
    if request.silent:
        raise InvalidRequest("The turn has no text.", hint="Give what was said, or the answer.")
    clock = opened.ports.clock
    request = replace(
        request, id=request.id or f"turn-{clock.new_id()}", at=request.at or clock.now()
    )
    _post(opened, InboxEntry(caller=caller, record=request))
    return Recorded(id=str(request.id), outcome=Outcome.WAITING)


def _post(opened: OpenScope, waiting: InboxEntry) -> None:
    body, box = msgspec.json.encode(waiting), vault.Inbox()
    if len(body) > MOST_BYTES:
        raise LimitReached("That is too long to wait in an inbox.", hint="Send it once unlocked.")

    most = quota_of(opened.ports.policy).memories

    def store(tx: Tx) -> None:
        state = user_keys.read(opened, tx)
        if state is None:
            raise UserLocked(f"The inbox of {opened.scope} is missing.")
        if state.waiting >= MOST:
            raise LimitReached(
                f"{MOST:,} writes wait in the inbox of {opened.scope} already.",
                hint="Its user unlocks it; then they are taken in.",
            )
        # What waits would be dropped when it is taken in, and was promised to be kept.
        if most and tx.count(Collection.MEMORY) + state.waiting >= most:
            raise LimitReached(
                f"The scope {opened.scope} has reached its quota of {most:,} memories."
            )
        tx.set_value(_name(state.end), box.seal(state.public, body, _place(opened, state.end)))
        user_keys.write(opened, tx, replace(state, end=state.end + 1))
        opened.trail.record(tx, "inbox", waiting.caller.actor)

    opened.write(store)
    opened.ports.reach(Failpoint.INBOX_POSTED)


def waits(opened: OpenScope) -> bool:
    """Whether a write waits, and can be carried out."""
    state = None if opened.locked else opened.read(lambda view: user_keys.read(opened, view))
    return state is not None and state.waiting > 0


def drain(opened: OpenScope) -> Unlocked:
    """Carry out what waits, oldest first; what fails for the scope as a whole waits on."""
    counted, box = Counter[str](), vault.Inbox()
    while True:
        state, batch = opened.read(lambda view: _batch(opened, view, box))
        if state is None or not batch:
            break
        done, stopped = state.first, False
        with suppress(Frozen):
            stopped = True
            for waiting in batch:
                counted[_take(opened, waiting)] += 1
                done += 1
            stopped = False
        opened.ports.reach(Failpoint.INBOX_TAKEN)
        _strike(opened, state, done)
        if stopped:
            break
    state = opened.read(lambda view: user_keys.read(opened, view))
    return Unlocked(
        stored=counted[Outcome.STORED],
        known=counted[Outcome.KNOWN],
        forgotten=counted[Outcome.FORGOTTEN],
        refused=counted[""],
        waiting=0 if state is None else state.waiting,
    )


def _batch(
    opened: OpenScope, view: View, box: vault.Inbox
) -> tuple[UserKey | None, list[InboxEntry | None]]:
    """The oldest writes that wait; None for one that does not open."""
    state = user_keys.read(opened, view)
    if state is None or not state.waiting:
        return state, []
    private = user_keys.private_key(opened, view)
    found = list[InboxEntry | None]()
    for number in range(state.first, min(state.end, state.first + _BATCH)):
        try:
            body = box.unseal(private, view.value(_name(number)) or b"", _place(opened, number))
            found.append(msgspec.json.decode(body, type=InboxEntry))
        except (SealBroken, msgspec.MsgspecError) as error:
            _log.warning("inbox.damaged", extra={"error": type(error).__name__})
            found.append(None)
    return state, found


def _take(opened: OpenScope, waiting: InboxEntry | None) -> str:
    """Carry out one write as its writer may; its outcome, empty if it is refused."""
    if waiting is None:
        return ""
    caller = waiting.caller
    try:
        if waiting.retain is not None:
            capped = replace(waiting.retain, origin=_capped(waiting.retain.origin, caller))
            return retaining.retain(opened, capped, caller).outcome
        assert waiting.record is not None
        told = replace(waiting.record, origin=_capped(waiting.record.origin, caller))
        return turns.record(opened, told, caller).outcome
    except retaining.OF_ITEM as error:
        _log.warning("inbox.refused", extra={"code": error.code})
        return ""


def _capped(origin: Origin | str, caller: Caller) -> Origin:
    """The origin of a write: no more trusted than the key it came by."""
    return lowest([Origin(origin), caller.ceiling or Origin(origin)])


def _strike(opened: OpenScope, seen: UserKey, done: int) -> None:
    """Strike off what was carried out; an empty inbox gets another key."""

    def store(tx: Tx) -> None:
        state = user_keys.read(opened, tx)
        if state is None or state.first != seen.first or done == state.first:
            return  # another process was faster
        for number in range(state.first, done):
            tx.set_value(_name(number), None)
        state = replace(state, first=done)
        if not state.waiting:
            state = user_keys.renew(opened, tx, state)
        user_keys.write(opened, tx, state)

    opened.write(store, frozen_too=True, erasing=True)


def _name(number: int) -> str:
    return f"inbox.{number}"


def _place(opened: OpenScope, number: int) -> bytes:
    return vault.join(opened.scope.tenant, opened.scope.owner, opened.address, number)
