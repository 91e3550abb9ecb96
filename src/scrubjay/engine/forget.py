"""forget: erase chosen memories, what was derived from them, and the keys that opened them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from scrubjay.domain.errors import Busy, Full, KeyMissing, NotFound, SealBroken
from scrubjay.domain.memory import Memory
from scrubjay.domain.origin import Actor
from scrubjay.domain.requests import Forget
from scrubjay.domain.results import ErasedCell, Erasure
from scrubjay.domain.rows import Collection, Due, Row
from scrubjay.engine import audit, cells, due, jobs, manifest, receipts, rotate
from scrubjay.engine.opened import OpenScope, day
from scrubjay.ports import Failpoint, Tx, View

_PAGE = 256
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Taken:
    """What one transaction erased."""

    rows: dict[bytes, Row] = field(default_factory=dict)
    cells: list[ErasedCell] = field(default_factory=list)
    already: int = 0
    derived: int = 0


def forget(opened: OpenScope, request: Forget) -> Erasure:
    """Erase what the request names; on return it is gone and cannot come back."""
    targets = _targets(opened, request)
    return carry_out(opened, lambda tx: _erase(opened, tx, request, targets), "forget")


def carry_out(opened: OpenScope, erase: Callable[[Tx], Taken], verb: str) -> Erasure:
    """Run an erasing transaction, then push tombstones and rotate the keys away; the receipt."""
    taken = opened.write(erase, frozen_too=True, erasing=True)
    opened.ports.reach(Failpoint.FORGET_COMMITTED)
    taken.cells += manifest.erased_cells(opened, taken.rows)
    try:
        _complete(opened, taken)
    except (Busy, Full) as error:
        # What was named is erased and stays so. The rest is marked due in the head: the next
        # verbs go on with it, and the receipt says that the keys are still to go.
        _log.warning("forget.left_due", extra={"code": error.code})
    return _receipt(opened, taken, verb)


def _complete(opened: OpenScope, taken: Taken) -> None:
    """Do what can be done at once of what the erasure left due."""
    jobs.push(opened)
    opened.ports.reach(Failpoint.FORGET_PUSHED)
    if any(row.blob for row in taken.rows.values()):
        jobs.sweep(opened)
    if taken.rows and opened.ports.store.size(opened.address) < opened.ports.policy.rotate_below:
        rotate.finish(opened)
    opened.ports.store.settle(opened.address)


def _targets(opened: OpenScope, request: Forget) -> list[bytes]:
    if request.ids:
        return [opened.row_id(public_id) for public_id in request.ids]
    if request.session is not None:
        session = opened.session_hash(request.session)
        assert session is not None
        rows = opened.read(lambda view: view.rows_of_session(Collection.MEMORY, session))
        return [row.id for row in rows]
    return opened.read(lambda view: list(_matching(opened, view, request)))


def _matching(opened: OpenScope, view: View, request: Forget) -> Iterator[bytes]:
    for row, memory in scan(opened, view):
        if request.matches(memory):
            yield row.id


def scan(opened: OpenScope, view: View) -> Iterator[tuple[Row, Memory]]:
    """Every memory that is not erased, with its row."""
    after = 0
    while rows := view.changes(Collection.MEMORY, after, _PAGE):
        yield from ((row, opened.unseal(row)) for row in rows if not row.erased)
        after = rows[-1].seq


def _erase(opened: OpenScope, tx: Tx, request: Forget, targets: list[bytes]) -> Taken:
    named, already = _known(tx, request, targets)
    rows = _closure(opened, tx, named)
    taken = take(opened, tx, rows, named=len(named), verb="forget", actor=request.actor)
    taken.already = already
    if not taken.rows and request.unseen:
        due.leave(opened, tx, Due.PUSH)
        opened.trail.record(tx, "forget", request.actor, targets, number=0)
    return taken


def take(
    opened: OpenScope, tx: Tx, rows: Iterable[Row], *, named: int, verb: str, actor: Actor
) -> Taken:
    """Erase rows, `named` of which were asked for, and leave due what has to follow."""
    taken = Taken()
    for row in list(rows):
        taken.cells += cells.erased_cells(opened, Collection.MEMORY, row)
        erase_row(opened, tx, row)
        taken.rows[row.id] = row
    taken.derived = len(taken.rows) - named
    if taken.rows:
        rotate.raise_epoch(opened, tx, Collection.MEMORY)
        due.leave(opened, tx, Due.ROTATE | Due.PUSH)
        if any(row.blob for row in taken.rows.values()):
            due.leave(opened, tx, Due.SWEEP)
        opened.trail.record(tx, verb, actor, taken.rows, number=len(taken.rows))
    return taken


def _known(tx: Tx, request: Forget, targets: list[bytes]) -> tuple[list[Row], int]:
    """The rows to erase, and how many were erased before.

    Refuses an id that was never here, unless unseen ones are wanted.
    """
    rows, already = list[Row](), 0
    buried = tx.buried(targets)
    for place, row_id in enumerate(targets):
        row = tx.row(Collection.MEMORY, row_id)
        if row is not None and not row.erased:
            rows.append(row)
        elif row is not None or row_id in buried:
            already += 1
        elif request.unseen:
            tx.bury([row_id])
        else:
            raise NotFound(f"There is no memory {request.ids[place]} in this scope.")
    return rows, already


def _closure(opened: OpenScope, tx: Tx, named: list[Row]) -> Iterable[Row]:
    """The named rows, what was derived from them, and the earlier versions of all of these.

    An earlier version is the same memory before a correction: out of sight, so nobody could
    name it, and what it says is what was asked to be forgotten.
    """
    found = {row.id: row for row in named}
    waiting = list(named)
    while waiting:
        row = waiting.pop()
        for row_id in (*tx.derived(row.id), *_earlier(opened, row)):
            other = None if row_id in found else tx.row(Collection.MEMORY, row_id)
            if other is not None and not other.erased:
                found[row_id] = other
                waiting.append(other)
    return found.values()


def _earlier(opened: OpenScope, row: Row) -> tuple[bytes, ...]:
    try:
        supersedes = opened.unseal(row).supersedes
    except (SealBroken, KeyMissing, NotFound):
        # A damaged row must still be erasable; what it replaced can then only be named itself.
        return ()
    return (opened.row_id(supersedes),) if supersedes else ()


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
