"""get, browse, history and follow: reading without ranking."""

from __future__ import annotations

from datetime import datetime
from heapq import heappush, heapreplace

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import NotFound
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Browse
from scrubjay.model.results import Changes, Page
from scrubjay.model.rows import Collection
from scrubjay.model.text import check_id, check_time
from scrubjay.ports import View

_PAGE = 256
_LAST = 2**62


def get(
    opened: OpenScope, public_id: str, *, as_of: datetime | None = None, actor: Actor = Actor.USER
) -> Memory:
    """One memory by id, superseded or not; NotFound if it is not here, forgotten or expired."""
    row_id = opened.row_id(check_id(public_id))
    moment = check_time("The time as_of", as_of)

    def look(view: View) -> Memory | None:
        row = view.row(Collection.MEMORY, row_id)
        return None if row is None or row.erased else opened.unseal(row)

    memory = opened.read(look)
    opened.note_read("get", actor)
    if memory is not None and moment is not None and not memory.visible(moment):
        memory = None
    if memory is None or (moment is None and memory.expired(opened.ports.clock.now())):
        raise NotFound(f"There is no memory {public_id} in this scope.")
    return memory


def browse(opened: OpenScope, request: Browse, *, actor: Actor = Actor.USER) -> Page:
    """Memories by filter, newest first, in the order they were first written."""
    page = opened.read(lambda view: _browse(opened, view, request))
    opened.note_read("browse", actor)
    return page


def _browse(opened: OpenScope, view: View, request: Browse) -> Page:
    """Walk back through the changes, keeping the youngest `limit` matches.

    A row is never older in the order of changes than in the order of creation, so as soon as
    the walk is behind the oldest match kept, nothing that could replace it is left.
    """
    now = opened.ports.clock.now()
    kept: list[tuple[int, Memory]] = []
    before, wanted = _LAST, request.limit + 1
    while rows := view.latest(Collection.MEMORY, before, _PAGE):
        for row in rows:
            if len(kept) == wanted and row.seq < kept[0][0]:
                return _page(kept, request.limit)
            if request.cursor is not None and row.born >= request.cursor:
                continue
            if len(kept) == wanted and row.born < kept[0][0]:
                continue
            memory = opened.unseal(row)
            if request.accepts(memory, now):
                place = (row.born, memory)
                heapreplace(kept, place) if len(kept) == wanted else heappush(kept, place)
        before = rows[-1].seq
    return _page(kept, request.limit)


def _page(kept: list[tuple[int, Memory]], limit: int) -> Page:
    newest = sorted(kept, key=lambda place: -place[0])
    more = len(newest) > limit
    return Page(
        memories=tuple(memory for _, memory in newest[:limit]),
        next=newest[limit - 1][0] if more else None,
    )


def history(opened: OpenScope, public_id: str, *, actor: Actor = Actor.USER) -> tuple[Memory, ...]:
    """The whole chain a memory belongs to, oldest first; what was forgotten is not in it."""
    check_id(public_id)
    chain = opened.read(lambda view: _chain(opened, view, public_id))
    opened.note_read("history", actor)
    if not chain:
        raise NotFound(f"There is no memory {public_id} in this scope.")
    return chain


def _chain(opened: OpenScope, view: View, public_id: str) -> tuple[Memory, ...]:
    here = _peek(opened, view, public_id)
    if here is None:
        return ()
    older, newer = here, here
    chain = [here]
    while older.supersedes and (previous := _peek(opened, view, older.supersedes)):
        chain.insert(0, previous)
        older = previous
    while newer.superseded_by and (following := _peek(opened, view, newer.superseded_by)):
        chain.append(following)
        newer = following
    return tuple(chain)


def _peek(opened: OpenScope, view: View, public_id: str) -> Memory | None:
    row = view.row(Collection.MEMORY, opened.row_id(public_id))
    return None if row is None or row.erased else opened.unseal(row)


def follow(opened: OpenScope, after: int, *, min_seq: int = 0, limit: int = 4096) -> Changes:
    """What changed after a seq, for a reader that keeps a copy, such as an index.

    `after` and `min_seq` are those of the last answer. A reader that slept across a clean-up is
    told to start anew, and gets everything from the beginning; so is one that is ahead of the
    scope, because its copy is of rows that were lost.
    """

    def look(view: View) -> Changes:
        position = view.head().memory
        anew = max(after, min_seq) < position.min_seq or after > position.seq
        rows = view.changes(Collection.MEMORY, 0 if anew else after, limit)
        return Changes(
            memories=tuple(opened.unseal(row) for row in rows if not row.erased),
            erased=frozenset(row.id for row in rows if row.erased),
            seq=rows[-1].seq if rows else position.seq,
            min_seq=position.min_seq,
            anew=anew,
        )

    return opened.read(look)
