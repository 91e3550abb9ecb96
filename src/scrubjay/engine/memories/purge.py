"""purge: scheduled deletion of expired, long superseded and long forgotten memories.

It erases and tombstones, but neither follows lineage nor rotates keys, as forget does. The lineage
of what it erases stays, in keyed hashes: a later forget still reaches what was derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from scrubjay.engine.ledger import conversations, derivation, turns
from scrubjay.engine.memories import retention
from scrubjay.engine.memories.forget import erase_row, present
from scrubjay.engine.scope import due_work
from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.scope.views import derived, earlier_versions, living
from scrubjay.engine.search import manifest
from scrubjay.engine.transfer.copies import strike
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.origin import Actor
from scrubjay.model.results import Purged
from scrubjay.model.rows import Collection, Due, Row
from scrubjay.ports import Failpoint, Tx, View

IsDue = Callable[[Memory], bool]
"""Whether a memory is to be erased, as things are in a view."""
_BATCH = 256
_ALL = 2**31
_FOR_GOOD = frozenset({"expired", "superseded"})
"""Reasons that leave a tombstone of the key, too; a text past a limit may be written again."""


def purge(opened: OpenScope, superseded_days: int | None, *, actor: Actor) -> Purged:
    """Delete what is past its time, by the policy if no days are given; returns the counts.

    A schedule saves work and waits for a batch of what is past a cap; a person means now.
    """
    ports, now = opened.ports, opened.ports.clock.now()
    days = ports.policy.superseded_days if superseded_days is None else superseded_days
    limit, today = now - timedelta(days=days), day(now)

    def expired(view: View) -> list[bytes]:
        rows = view.overdue(Collection.MEMORY, today, _ALL)
        return [row.id for row in rows if not row.erased and opened.unseal(row).expired(now)]

    def outlived(memory: Memory) -> bool:
        # What is only hidden is kept: it waits to be derived again.
        return not memory.hidden and memory.retired_at is not None and memory.retired_at <= limit

    def superseded(view: View) -> list[bytes]:
        return [row.id for row, memory in opened.memories(view) if outlived(memory)]

    def drop(tx: Tx) -> int:
        return sum(
            tx.drop(one, [row.id for row in tx.overdue(one, today, _ALL) if row.erased])
            for one in Collection
        )

    opened.counters.flush()  # or what was recalled a moment ago would count as idle
    at_once = actor is not Actor.SYSTEM
    finders: dict[str, tuple[Callable[[View], list[bytes]], Callable[[View], IsDue]]] = {
        "expired": (expired, lambda _: lambda memory: memory.expired(now)),
        "superseded": (superseded, lambda _: outlived),
        "retired": (
            partial(retention.past_limits, opened, now=now, at_once=at_once),
            partial(retention.retires, opened, now=now),
        ),
        "idle": (
            partial(retention.past_use, opened, now=now),
            partial(retention.idles, opened, now=now),
        ),
    }
    counts = {
        verb: _erase(
            opened, opened.read(find), due, f"purge.{verb}", actor=actor, keyed=verb in _FOR_GOOD
        )
        for verb, (find, due) in finders.items()
    }
    if counts["retired"]:
        retention.note_purged(opened)
    spoken = opened.read(partial(retention.past_turns, opened, now=now))
    counts["turns"] = _erase_turns(opened, spoken, actor)
    over = opened.read(partial(retention.past_conversations, opened, now=now))
    counts["conversations"] = sum(_delete_conversation(opened, row, actor) for row in over)
    dropped = opened.write(drop, erasing=True)
    ports.reach(Failpoint.PURGE_COMMITTED)
    backups = ports.store.catalog.backups(opened.address)
    expired_backups = [backup for backup in backups if backup.expires < today]
    for backup in expired_backups:
        strike(ports, backup)
    due_work.push(opened)
    # Always, like the sweep: one that died may have left what it erased in the segments.
    manifest.renew(opened)
    # And not only when marked: a writer that died may have left a blob without a row.
    due_work.sweep(opened)
    ports.store.settle(opened.address)
    opened.copy_audit_head()
    return Purged(**counts, dropped=dropped, backups=len(expired_backups))


def _erase(
    opened: OpenScope,
    ids: list[bytes],
    due: Callable[[View], IsDue],
    verb: str,
    *,
    actor: Actor,
    keyed: bool,
) -> int:
    """Erase in small transactions, so that other writers never wait long.

    Each looks again: what was pinned, recalled or given more time meanwhile stays.
    """

    def store(batch: list[bytes], tx: Tx) -> int:
        is_due, there = due(tx), present(tx, batch).memories.values()
        rows = [row for row in there if (m := opened.unseal_sound(row)) is None or is_due(m)]
        # The turns whose episodes are over go, too: their text is not to outlast them out of
        # sight. What else was derived from them stays, and so do their followers as they are.
        memories = [opened.unseal_sound(row) for row in rows]
        episodes = [m for m in memories if m and m.kind is Kind.EPISODE and m.live]
        spoken = present(tx, (opened.row_id(one) for m in episodes for one in m.sources)).turns
        links = _lineage(opened, tx, (*spoken, *(row.id for row in rows)), memories)
        if spoken and turns.erase(opened, tx, spoken.values(), (), derive=False):
            opened.leave_due(tx, Due.ROTATE)
        for row, memory in zip(rows, memories, strict=True):
            erase_row(opened, tx, row, memory, keyed=keyed)
        for source, other in _useful(tx, links):
            tx.link(source, other)
        values, sound = ScopeValues(opened, tx), [memory for memory in memories if memory]
        derivation.erased(opened, tx, values, sound, [row.id for row in rows])
        values.write(tx)
        if rows:
            opened.leave_due(tx, Due.PUSH)
            opened.trail.record(tx, verb, actor, [row.id for row in rows], number=len(rows))
        if any(row.blob for row in rows):
            opened.leave_due(tx, Due.SWEEP)
        return len(rows)

    count = 0
    for at in range(0, len(ids), _BATCH):
        count += opened.write(partial(store, ids[at : at + _BATCH]), erasing=True)
        opened.ports.reach(Failpoint.PURGE_COMMITTED)
    return count


def _erase_turns(opened: OpenScope, ids: list[bytes], actor: Actor) -> int:
    """Erase turns with their episodes, which are their text; what else came of them stays."""

    def store(batch: list[bytes], tx: Tx) -> int:
        spoken = present(tx, batch).turns
        found = [(row, opened.unseal_sound(row)) for one in spoken for row in derived(tx, one)]
        episodes = [(row, m) for row, m in found if m is not None and m.kind is Kind.EPISODE]
        if spoken and turns.erase(opened, tx, spoken.values(), (), derive=False):
            opened.leave_due(tx, Due.ROTATE)
        for row, memory in episodes:
            erase_row(opened, tx, row, memory, keyed=False)
        if spoken:
            opened.leave_due(tx, Due.PUSH | Due.SWEEP)
            opened.trail.record(tx, "purge.turns", actor, [*spoken], number=len(spoken))
        return len(spoken)

    count = 0
    for at in range(0, len(ids), _BATCH):
        count += opened.write(partial(store, ids[at : at + _BATCH]), erasing=True)
        opened.ports.reach(Failpoint.PURGE_COMMITTED)
    return count


def _delete_conversation(opened: OpenScope, seen: Row, actor: Actor) -> bool:
    """Delete a conversation with the entries that no other one shares; not if it went on."""

    def store(tx: Tx) -> bool:
        row = living(tx, Collection.CONVERSATION, seen.id)
        if row is None or row.version != seen.version:
            return False
        rows = {row.id: row} | conversations.unshared(opened, tx, row)
        conversations.erase(opened, tx, rows, {})
        opened.leave_due(tx, Due.PUSH | Due.SWEEP)
        opened.trail.record(tx, "purge.conversation", actor, [*rows], number=len(rows))
        return True

    deleted = opened.write(store, erasing=True)
    opened.ports.reach(Failpoint.PURGE_COMMITTED)
    return deleted


def _lineage(
    opened: OpenScope, view: View, ids: Iterable[bytes], memories: Iterable[Memory | None]
) -> set[tuple[bytes, bytes]]:
    """The links from and to rows that are about to be erased, versions included."""
    both = [name for row_id in ids for name in (row_id, earlier_versions(row_id))]
    links = {(name, other) for name in both for other in view.derived(name)}
    for memory in filter(None, memories):
        row_id = opened.row_id(memory.id)
        links |= {(opened.row_id(source), row_id) for source in memory.sources}
        if memory.supersedes:
            links.add((earlier_versions(row_id), opened.row_id(memory.supersedes)))
        if memory.superseded_by:
            links.add((earlier_versions(opened.row_id(memory.superseded_by)), row_id))
    return links


def _useful(view: View, links: set[tuple[bytes, bytes]]) -> set[tuple[bytes, bytes]]:
    """Those of the links that lead to a memory that is there, by way of others or not."""
    while True:
        sources = {source for source, _ in links}
        kept = {
            (source, other)
            for source, other in links
            if living(view, Collection.MEMORY, other)
            or any(
                name in sources or view.derived(name) for name in (other, earlier_versions(other))
            )
        }
        if kept == links:
            return kept
        links = kept
