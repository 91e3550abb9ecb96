"""Marks for work a committed verb leaves to be finished, in the head of its scope."""

from __future__ import annotations

from msgspec.structs import replace

from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.model.rows import Collection, Due, Head
from scrubjay.ports import Tx


def leave(opened: OpenScope, tx: Tx, work: Due) -> None:
    """Leave work to be finished by the next verbs, in the transaction that causes it."""
    head = tx.head()
    since = head.due_since if head.due else day(opened.ports.clock.now())
    tx.set_head(replace(head, due=head.due | work, due_since=since))


def clear(opened: OpenScope, work: Due, seen: Head) -> None:
    """Take the mark off, unless something came in between that may have left it anew."""

    def store(tx: Tx) -> None:
        head = tx.head()
        if _unchanged(head, seen, work):
            left = head.due & ~work
            tx.set_head(replace(head, due=left, due_since=head.due_since if left else None))

    if seen.due & work:
        opened.write(store, frozen_too=True, erasing=True)


def _unchanged(head: Head, seen: Head, work: Due) -> bool:
    if work is not Due.ROTATE:
        return head.audit_count == seen.audit_count
    return all(head.at(one).epoch == seen.at(one).epoch for one in Collection)
