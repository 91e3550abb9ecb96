"""purge: timed clean-up of what is forgotten, superseded or expired.

It erases and tombstones, but neither follows lineage nor rotates: nobody asked to be forgotten.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from scrubjay.engine.ledger import turn_ledger
from scrubjay.engine.memories import targets
from scrubjay.engine.memories.forget import erase_row
from scrubjay.engine.memories.targets import scan
from scrubjay.engine.scope import due, due_work
from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.engine.search import manifest
from scrubjay.engine.transfer import audit
from scrubjay.engine.transfer.copies import strike
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Actor
from scrubjay.model.results import Purged
from scrubjay.model.rows import Collection, Due, Row
from scrubjay.ports import Failpoint, Tx

_BATCH = 256


def purge(opened: OpenScope, *, superseded_days: int, actor: Actor) -> Purged:
    """Clean up what is past its time; returns what it took."""
    now = opened.ports.clock.now()
    expired = _erase(opened, _expired(opened, now), "purge.expired", actor)
    retired = _retired(opened, now - timedelta(days=superseded_days))
    superseded = _erase(opened, retired, "purge.superseded", actor)
    dropped = _drop(opened, day(now))
    backups = _strike_backups(opened, day(now))
    due_work.push(opened)
    # Always, like the sweep: one that died may have left what it erased in the segments.
    manifest.renew(opened)
    # And not only when marked: a writer that died may have left a blob without a row.
    due_work.sweep(opened)
    opened.ports.store.settle(opened.address)
    audit.copy_head(opened)
    return Purged(expired=expired, superseded=superseded, dropped=dropped, backups=backups)


def _expired(opened: OpenScope, now: datetime) -> list[bytes]:
    def over(row: Row) -> bool:
        return not row.erased and opened.unseal(row).expired(now)

    return opened.read(
        lambda view: [
            row.id for row in view.overdue(Collection.MEMORY, day(now), 2**31) if over(row)
        ]
    )


def _retired(opened: OpenScope, limit: datetime) -> list[bytes]:
    return opened.read(
        lambda view: [
            row.id
            for row, memory in scan(opened, view)
            if memory.retired_at is not None and memory.retired_at <= limit
        ]
    )


def _erase(opened: OpenScope, ids: list[bytes], verb: str, actor: Actor) -> int:
    """Erase in small transactions, so that other writers are never kept waiting long."""

    def store(tx: Tx, batch: list[bytes]) -> int:
        rows = [tx.row(Collection.MEMORY, row_id) for row_id in batch]
        living = [row for row in rows if row is not None and not row.erased]
        _take_turns(opened, tx, living)
        for row in living:
            erase_row(opened, tx, row)
        if living:
            due.leave(opened, tx, Due.PUSH)
            opened.trail.record(tx, verb, actor, [row.id for row in living], number=len(living))
        if any(row.blob for row in living):
            due.leave(opened, tx, Due.SWEEP)
        return len(living)

    count = 0
    for at in range(0, len(ids), _BATCH):
        batch = ids[at : at + _BATCH]
        count += opened.write(lambda tx, batch=batch: store(tx, batch), erasing=True)  # type: ignore[misc]
        opened.ports.reach(Failpoint.PURGE_COMMITTED)
    return count


def _take_turns(opened: OpenScope, tx: Tx, rows: list[Row]) -> None:
    """Erase the turns whose episodes are over: their text is not to outlast them out of sight.

    What else was derived from them stays, and so do their followers as they are.
    """
    memories = [memory for row in rows if (memory := targets.peek(opened, row))]
    sources = [m.sources for m in memories if m.kind is Kind.EPISODE and m.live]
    spoken = targets.present(tx, (opened.row_id(one) for ids in sources for one in ids)).turns
    if spoken and turn_ledger.erase(opened, tx, spoken.values(), (), derive=False):
        due.leave(opened, tx, Due.ROTATE)


def _drop(opened: OpenScope, today: int) -> int:
    def store(tx: Tx) -> int:
        return sum(_drop_rows(tx, collection, today) for collection in Collection)

    dropped = opened.write(store, erasing=True)
    opened.ports.reach(Failpoint.PURGE_COMMITTED)
    return dropped


def _drop_rows(tx: Tx, collection: Collection, today: int) -> int:
    overdue = tx.overdue(collection, today, 2**31)
    return tx.drop(collection, [row.id for row in overdue if row.erased])


def _strike_backups(opened: OpenScope, today: int) -> int:
    backups = opened.ports.store.catalog.backups(opened.address)
    over = [backup for backup in backups if backup.expires < today]
    for backup in over:
        strike(opened.ports, backup)
    return len(over)
