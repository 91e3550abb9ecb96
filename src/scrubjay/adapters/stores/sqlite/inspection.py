"""What can be said of a scope's file without its keys."""

from __future__ import annotations

from collections.abc import Iterator

from scrubjay.adapters.stores.sqlite.connections import QUERIES, TABLES
from scrubjay.adapters.stores.sqlite.transaction import SqliteView


def size(view: SqliteView) -> int:
    """Bytes of the file once its log is in it."""
    return int(view.all(QUERIES["page_count"])[0][0] * view.all(QUERIES["page_size"])[0][0])


def findings(view: SqliteView) -> Iterator[str]:
    """What is structurally wrong, one sentence each."""
    for (finding,) in view.all(QUERIES["integrity"]):
        if finding != "ok":
            yield f"The file is damaged: {finding}."
    for collection, queries in TABLES.items():
        if count := view.all(queries.beyond_head)[0][0]:
            yield f"{count} rows of {collection} are out of the order the head knows."
        if count := view.all(queries.erased_with_content)[0][0]:
            yield f"{count} erased rows of {collection} still have content."
    yield from _audit_findings(view)


def _audit_findings(view: SqliteView) -> Iterator[str]:
    count, first, last = view.all(QUERIES["audit_extent"])[0]
    head = view.head()
    if count and last - first + 1 != count:
        yield "Audit rows are missing in between."
    # A scope that was destroyed keeps the count of the rows it once had.
    if last != head.audit_count and not (head.destroyed and not count):
        yield f"The audit ends at {last}, but the head knows {head.audit_count} rows."
