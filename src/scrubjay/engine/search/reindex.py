"""reindex: rebuild the index from the rows, with a vector for every memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from scrubjay.engine.ledger import turns
from scrubjay.engine.scope import purposes
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search import embedding, manifest
from scrubjay.engine.search.open_index import OpenIndex, kept_vector
from scrubjay.model.errors import Changed, SealBroken
from scrubjay.model.memory import Memory, wording
from scrubjay.model.origin import Actor
from scrubjay.model.results import Reindexed
from scrubjay.model.rows import Collection, Freeze, Row
from scrubjay.ports import Progress, View

_BATCH = 64


def reindex(
    opened: OpenScope, indexed: OpenIndex, *, progress: Progress, actor: Actor
) -> Reindexed:
    """Compute a vector of the present embedder for every memory and rewrite the segments.

    Turns that could not be distilled are tried again first, unless the scope is frozen. It can be
    interrupted anywhere: finished vectors stay, and so does the old index until the new one is
    complete.
    """
    if opened.head().frozen is Freeze.NONE:
        turns.derive_failed(opened, actor=actor)
    total = max(1, opened.head().memory.seq)
    after, embedded = 0, 0

    def batch(view: View) -> Sequence[Row]:
        return view.changes(Collection.MEMORY, after, _BATCH)

    costly = opened.ports.embedder.costly
    while costly and purposes.embeds(opened) and (rows := opened.read(batch)):
        after = rows[-1].seq
        embedded += _embed(opened, [row.id for row in rows if not row.erased])
        progress(min(after, total), total)
    with indexed.lock:
        indexed.start_over()
        indexed.ready.settle()
        memories = len(indexed.ready.columns())
        if memories:
            indexed.publish()
        else:
            manifest.drop(opened)
            indexed.reset()
    opened.write(lambda tx: opened.trail.record(tx, "reindex", actor), frozen_too=True)
    progress(total, total)
    return Reindexed(memories=memories, embedded=embedded)


def _embed(opened: OpenScope, ids: list[bytes]) -> int:
    """Write the missing vectors of one batch; rows that changed meanwhile are skipped."""

    def look(view: View) -> dict[Row, Memory]:
        """Memories without a vector of the present embedder."""
        found: dict[Row, Memory] = {}
        for row in (view.row(Collection.MEMORY, row_id) for row_id in ids):
            if row is not None and not row.erased:
                vector = None
                # One that is damaged is none of our business: verify names it.
                with suppress(SealBroken):
                    memory = opened.unseal(row)
                    with suppress(Changed):
                        vector = kept_vector(opened, row)
                    if vector is None:
                        found[row] = memory
        return found

    bare = opened.read(look)
    if not bare:
        return 0
    texts = [wording(memory.content, memory.tags) for memory in bare.values()]
    embedder = opened.ports.embedder
    made = [embedding.pack(embedder.identity, one[None, :]) for one in embedder.embed(texts)]

    resealed = [
        (row, replace(row, vector=opened.seal_vector(packed, row.id, row.epoch)))
        for row, packed in zip(bare, made, strict=True)
    ]
    kept = opened.write(lambda tx: tx.reseal(Collection.MEMORY, resealed), frozen_too=True)
    return len(kept)
