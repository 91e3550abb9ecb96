"""amend and freeze: small changes that keep the content."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from scrubjay.engine.memories.retain import read_live
from scrubjay.engine.scope import cells
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import Stale
from scrubjay.model.memory import Edition, Memory
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Amend, Caller
from scrubjay.model.rows import Freeze
from scrubjay.ports import Tx


def amend(
    opened: OpenScope, request: Amend, caller: Caller, expected: frozenset[Edition] | None = None
) -> Memory:
    """Change a memory's pin and expiry, both or neither; Stale if it is not as expected."""

    def store(tx: Tx) -> Memory:
        old = read_live(opened, tx, request.id)
        check_expected(old.edition, expected)
        new = request.memory(old)
        if new == old:
            return old
        new = replace(new, version=old.version + 1)
        row = cells.put(opened, tx, new)
        for verb in _verbs(old, new):
            opened.trail.record(tx, verb, caller.actor, (row.id,))
        return new

    return opened.write(store)


def check_expected(edition: Edition, expected: frozenset[Edition] | None) -> None:
    """Refuse a state that was not expected.

    Asked inside the transaction that changes the memory: nobody, in whatever process, comes
    between the look and the change.
    """
    if expected is not None and edition not in expected:
        raise Stale("The memory has changed since it was read.")


def _verbs(old: Memory, new: Memory) -> Iterator[str]:
    """What was done, as the audit trail has it."""
    if new.pinned is not old.pinned:
        yield "pin" if new.pinned else "unpin"
    if new.expires_at != old.expires_at:
        yield "expire"


def freeze(opened: OpenScope, level: Freeze, *, actor: Actor) -> Freeze:
    """Stop writes, or writes and recall, or (`none`) nothing; returns the level before."""

    def store(tx: Tx) -> Freeze:
        head = tx.head()
        if head.frozen is not level:
            tx.set_head(replace(head, frozen=level))
            opened.trail.record(tx, f"freeze.{level.value}", actor)
        return head.frozen

    return opened.write(store, frozen_too=True)
