"""pin, expire and freeze: small changes that keep the content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from scrubjay.domain.memory import Memory
from scrubjay.domain.origin import Actor
from scrubjay.domain.rows import Freeze
from scrubjay.domain.text import check_id, check_time
from scrubjay.engine import cells
from scrubjay.engine.opened import OpenScope
from scrubjay.engine.retain import read_live
from scrubjay.ports import Tx


def pin(opened: OpenScope, public_id: str, *, pinned: bool = True, actor: Actor) -> Memory:
    """Pin or unpin a memory."""
    verb = "pin" if pinned else "unpin"
    return _change(opened, public_id, verb, actor, lambda memory: replace(memory, pinned=pinned))


def expire(opened: OpenScope, public_id: str, at: datetime | None, *, actor: Actor) -> Memory:
    """Set the time a memory expires, in the past for at once; None for never."""
    moment = check_time("The time of expiry", at)
    return _change(
        opened, public_id, "expire", actor, lambda memory: replace(memory, expires_at=moment)
    )


def _change(
    opened: OpenScope, public_id: str, verb: str, actor: Actor, edit: Callable[[Memory], Memory]
) -> Memory:
    check_id(public_id)

    def store(tx: Tx) -> Memory:
        old = read_live(opened, tx, public_id)
        new = edit(old)
        if new == old:
            return old
        new = replace(new, version=old.version + 1)
        row = cells.put(opened, tx, new)
        opened.trail.record(tx, verb, actor, (row.id,))
        return new

    return opened.write(store)


def freeze(opened: OpenScope, level: Freeze, *, actor: Actor) -> Freeze:
    """Stop writes, or writes and recall, or (`none`) nothing; returns the level before."""

    def store(tx: Tx) -> Freeze:
        head = tx.head()
        if head.frozen is not level:
            tx.set_head(replace(head, frozen=level))
            opened.trail.record(tx, f"freeze.{level.value}", actor)
        return head.frozen

    return opened.write(store, frozen_too=True)
