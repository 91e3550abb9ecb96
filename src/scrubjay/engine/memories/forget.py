"""forget: erase chosen memories, what was derived from them, and the keys that opened them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from scrubjay.engine.ledger import sessions, turn_ledger
from scrubjay.engine.memories import amend, receipts, targets
from scrubjay.engine.memories.retain import not_here
from scrubjay.engine.memories.targets import Doomed
from scrubjay.engine.scope import cells, due, due_work, rotate
from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.engine.search import manifest
from scrubjay.engine.transfer import audit
from scrubjay.model.errors import Busy, Full, InvalidRequest
from scrubjay.model.memory import Edition
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Caller, Forget
from scrubjay.model.results import ErasedCell, Erasure
from scrubjay.model.rows import Collection, Due, Row
from scrubjay.ports import Failpoint, Tx

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Taken:
    """What one transaction erased."""

    rows: Doomed = field(default_factory=Doomed)
    cells: list[ErasedCell] = field(default_factory=list)
    already: int = 0
    derived: int = 0


def forget(
    opened: OpenScope,
    request: Forget,
    caller: Caller,
    *,
    expected: frozenset[Edition] | None = None,
    turns_only: bool = False,
) -> Erasure:
    """Erase what the request names; on return it is gone and cannot come back.

    `expected` is an optimistic lock on a single id; `turns_only` takes ids as those of turns.
    """
    ids = targets.resolve(opened, request)

    def erase(tx: Tx) -> Taken:
        if expected is not None:
            _check_expected(tx, request, ids, expected)
        targets.check_confirmed(opened, tx, request, ids)
        named, already = _known(tx, request, ids, turns_only=turns_only)
        doomed = targets.closure(opened, tx, named)
        taken = take(opened, tx, doomed, named=len(named), verb="forget", actor=caller.actor)
        taken.already = already
        if taken.rows:
            sessions.spend(opened, tx, caller.allowances)
        if not taken.rows and already < len(ids):
            due.leave(opened, tx, Due.PUSH)
            opened.trail.record(tx, "forget", caller.actor, ids, number=0)
        return taken

    return carry_out(opened, erase, "forget")


def carry_out(opened: OpenScope, erase: Callable[[Tx], Taken], verb: str) -> Erasure:
    """Run an erasing transaction, then push tombstones and rotate the keys away; the receipt."""
    taken = opened.write(erase, frozen_too=True, erasing=True)
    opened.ports.reach(Failpoint.FORGET_COMMITTED)
    taken.cells += manifest.erased_cells(opened, taken.rows.memories)
    try:
        _complete(opened, taken)
    except (Busy, Full) as error:
        # What was named is erased and stays so. The rest is marked due in the head: the next
        # verbs go on with it, and the receipt says that the keys are still to go.
        _log.warning("forget.left_due", extra={"code": error.code})
    return _receipt(opened, taken, verb)


def _complete(opened: OpenScope, taken: Taken) -> None:
    """Do what can be done at once of what the erasure left due."""
    due_work.push(opened)
    opened.ports.reach(Failpoint.FORGET_PUSHED)
    if taken.rows.long:
        due_work.sweep(opened)
    if taken.rows and opened.ports.store.size(opened.address) < opened.ports.policy.rotate_below:
        rotate.finish(opened)
    opened.ports.store.settle(opened.address)


def _check_expected(
    tx: Tx, request: Forget, ids: list[bytes], expected: frozenset[Edition]
) -> None:
    """Refuse a memory that is not as expected; its row says which state it is, damaged or not."""
    if len(ids) != 1 or not request.ids:
        raise InvalidRequest("A state can be expected of one id only.")
    row = tx.row(Collection.MEMORY, ids[0])
    if row is None or row.erased:
        raise not_here(request.ids[0])
    amend.check_expected((row.born, row.version), expected)


def take(
    opened: OpenScope, tx: Tx, doomed: Doomed, *, named: int, verb: str, actor: Actor
) -> Taken:
    """Erase rows, `named` of which were asked for, and leave due what has to follow."""
    taken = Taken(rows=doomed, derived=len(doomed) - named)
    if not doomed:
        return taken
    memories = [targets.peek(opened, row) for row in doomed.memories.values()]
    for row in doomed.memories.values():
        taken.cells += cells.erased_cells(opened, Collection.MEMORY, row)
        erase_row(opened, tx, row)
    if doomed.memories:
        rotate.raise_epoch(opened, tx, Collection.MEMORY)
    due.leave(opened, tx, Due.ROTATE | Due.PUSH)
    if doomed.long:
        due.leave(opened, tx, Due.SWEEP)
    spoken = [memory for memory in memories if memory is not None]
    taken.cells += turn_ledger.erase(opened, tx, doomed.turns.values(), spoken)
    opened.trail.record(tx, verb, actor, doomed.ids, number=len(doomed))
    return taken


def _known(tx: Tx, request: Forget, ids: list[bytes], *, turns_only: bool) -> tuple[Doomed, int]:
    """The rows to erase, and how many were erased before.

    Refuses an id that was never here, unless unseen ones are wanted.
    """
    found, already = targets.present(tx, ids), 0
    buried = tx.buried(ids)
    spared = set(found.memories) if turns_only else set()
    found = Doomed(turns=found.turns) if spared else found
    for place, row_id in enumerate(ids):
        if row_id in found.memories or row_id in found.turns or row_id in spared:
            continue
        if row_id in buried:
            already += 1
        elif request.unseen or _was_here(tx, row_id):
            tx.bury([row_id])
        else:
            raise not_here(request.ids[place])
    return found, already


def _was_here(tx: Tx, row_id: bytes) -> bool:
    """Whether a memory of this id was taken back, because its turn came to say nothing new."""
    return tx.row(Collection.MEMORY, row_id) is not None


def erase_row(opened: OpenScope, tx: Tx, row: Row) -> None:
    """Erase one row and tombstone its id and its key."""
    policy, now = opened.ports.policy, opened.ports.clock.now()
    tx.erase(Collection.MEMORY, row.id, drop_day=day(now + timedelta(days=policy.drop_days)))
    tx.bury([row.id] if row.key is None else [row.id, row.key])


def _receipt(opened: OpenScope, taken: Taken, verb: str) -> Erasure:
    head = audit.copy_head(opened)
    receipt = Erasure(
        address=opened.address,
        verb=verb,
        at=opened.ports.clock.now(),
        erased=len(taken.rows),
        derived=taken.derived,
        already=taken.already,
        cells=tuple(taken.cells),
        rotated=not head.due & Due.ROTATE,
        backups=receipts.backup_notes(opened.ports, opened.address),
        audit_count=head.audit_count,
        audit_mac=head.audit_mac.hex(),
    )
    if taken.rows:
        receipts.keep(opened.ports, receipt)
    return receipt
