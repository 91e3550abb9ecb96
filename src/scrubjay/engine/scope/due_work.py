"""Due work: what a committed verb left to be finished, advanced in small slices."""

from __future__ import annotations

import logging

from scrubjay.engine.scope import due, rotate
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search import manifest
from scrubjay.model.errors import Busy, Full
from scrubjay.model.rows import Collection, Due, Head
from scrubjay.ports import Tx

_log = logging.getLogger(__name__)


def attempt(opened: OpenScope) -> None:
    """Work on what is due for at most one slice, if it can be done now; every verb begins so.

    It must not keep the verb from being done: what cannot be done now stays due, and shows.
    """
    if opened.due:
        try:
            advance(opened)
        except (Busy, Full) as error:
            _log.warning("jobs.left_due", extra={"code": error.code})


def advance(opened: OpenScope) -> None:
    """Work on what is due for at most one slice."""
    if opened.due & Due.PUSH:
        push(opened)
    if opened.due & Due.SWEEP:
        sweep(opened)
    if opened.due & Due.ROTATE:
        rotate.finish(opened, seconds=opened.ports.policy.slice_seconds)


def finish(opened: OpenScope) -> None:
    """Work on what is due until nothing is."""
    while opened.read(lambda view: view.head()).due:
        advance(opened)


def push(opened: OpenScope) -> None:
    """Copy tombstones to the catalog, where they outlive the scope's file."""
    head, tombstones = opened.read(lambda view: (view.head(), frozenset(view.tombstones())))
    if not head.due & Due.PUSH:
        return
    catalog = opened.ports.store.catalog
    catalog.bury(opened.address, tombstones - catalog.tombstones(opened.address))
    due.clear(opened, Due.PUSH, head)


def sweep(opened: OpenScope) -> None:
    """Delete blobs neither a row nor the index points to.

    It runs in a transaction because blobs are written in one: so none is on its way to its row.
    """

    def store(tx: Tx) -> tuple[Head, list[str]]:
        names = opened.ports.blobs.names(opened.address)
        used = _blobs_in_use(tx) | manifest.listed(opened, tx) if names else set()
        return tx.head(), [name for name in names if name not in used]

    head, orphans = opened.write(store, frozen_too=True, erasing=True)
    for name in orphans:
        opened.ports.blobs.delete(opened.address, name)
    due.clear(opened, Due.SWEEP, head)


def _blobs_in_use(tx: Tx) -> set[str]:
    used: set[str] = set()
    for collection in Collection:
        after = 0
        while rows := tx.changes(collection, after, 256):
            used.update(row.blob for row in rows if row.blob is not None)
            after = rows[-1].seq
    return used
