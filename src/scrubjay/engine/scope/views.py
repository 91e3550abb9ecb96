"""What many verbs look for in a view: changes, a row that is there, what was derived from it."""

from __future__ import annotations

from collections.abc import Iterator

from scrubjay.model.rows import Collection, Row
from scrubjay.ports import View

_PAGE = 256


def changes(
    view: View, collection: Collection, after: int = 0, *, page: int = _PAGE
) -> Iterator[Row]:
    """Every row of a collection that changed after a seq, erased ones too, read in pages."""
    while rows := view.changes(collection, after, page):
        yield from rows
        after = rows[-1].seq


def living(view: View, collection: Collection, row_id: bytes) -> Row | None:
    """The row of this id; None if it is not there, or erased."""
    row = view.row(collection, row_id)
    return None if row is None or row.erased else row


def derived(view: View, source: bytes) -> list[Row]:
    """The memories that were derived from a turn or memory and are not erased."""
    rows = view.rows(Collection.MEMORY, ids := view.derived(source))
    return [rows[row_id] for row_id in ids if row_id in rows and not rows[row_id].erased]


def earlier_versions(row_id: bytes) -> bytes:
    """The name under which lineage has the version before a row that purge erased."""
    return row_id[::-1]
