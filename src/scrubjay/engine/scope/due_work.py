"""Due work: deferred work of committed verbs, done in small time slices by later ones."""

from __future__ import annotations

import logging

from scrubjay.engine.scope import pending_blobs, rotate
from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.engine.scope.views import changes
from scrubjay.engine.search import manifest
from scrubjay.model.errors import KeyMissing, StoreError, UserLocked
from scrubjay.model.rows import Collection, Due, Head
from scrubjay.ports import Tx, patience

_log = logging.getLogger(__name__)


def attempt(opened: OpenScope) -> None:
    """Do due work for at most one slice, if possible; every verb begins with it if there is some.

    It never fails the verb: work that cannot be done now stays due.
    """
    try:
        with patience(0):
            advance(opened)
    except (StoreError, KeyMissing, UserLocked) as error:
        _log.warning("jobs.left_due", extra={"code": error.code})


def advance(opened: OpenScope) -> None:
    """Do due work for at most one slice."""
    if opened.due & Due.PUSH:
        push(opened)
    if opened.due & Due.SWEEP:
        sweep(opened)
    if opened.due & Due.ROTATE:
        rotate.finish(opened, seconds=opened.ports.policy.slice_seconds)


def finish(opened: OpenScope) -> None:
    """Do all due work."""
    while opened.head().due:
        advance(opened)
        if not opened.ports.store.lasting(opened.address):
            return  # an old key is kept until no failover can need it


def push(opened: OpenScope) -> None:
    """Copy tombstones to the catalog, where they outlive the scope's file."""
    head, tombstones = opened.read(lambda view: (view.head(), frozenset(view.tombstones())))
    if head.due & Due.PUSH:
        catalog = opened.ports.store.catalog
        catalog.bury(opened.address, tombstones - catalog.tombstones(opened.address))
        opened.clear_due(Due.PUSH, head)


def sweep(opened: OpenScope) -> None:
    """Garbage collection: delete blobs that neither a row nor the manifest references.

    A blob that is pending has a writer who may still refer to it, and is spared. Any other is
    referred to by now, or never will be: so the names are listed before the transaction.
    """
    names, today = opened.ports.blobs.names(opened.address), day(opened.ports.clock.now())
    there = [name for name in names if not name.startswith(pending_blobs.PARCEL)]

    def store(tx: Tx) -> tuple[Head, set[str]]:
        orphans = set(there) - pending_blobs.spare(tx, today)
        if orphans:
            orphans -= manifest.listed(opened, tx)
            for collection in Collection:
                orphans.difference_update(row.blob for row in changes(tx, collection) if row.blob)
        return tx.head(), orphans

    head, orphans = opened.write(store, frozen_too=True, erasing=True)
    for name in sorted(orphans):
        opened.ports.blobs.delete(opened.address, name)
    opened.clear_due(Due.SWEEP, head)
