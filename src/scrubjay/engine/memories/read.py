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
from scrubjay.ports import View

_PAGE = 256
_LAST = 2**62


def get(
    opened: OpenScope, public_id: str, *, as_of: datetime | None = None, actor: Actor = Actor.USER
) -> Memory:
    """One memory by id, superseded or not; NotFound if it is unknown, forgotten or expired."""

    def look(view: View) -> Memory | None:
        found = opened.peek(view, public_id)
        return None if found is None else opened.limits.seen(view, found)

    memory = opened.read(look)
    opened.note_read("get", actor)
    if memory is not None and as_of is not None and not memory.visible(as_of):
        memory = None
    if memory is None or (as_of is None and memory.expired(opened.ports.clock.now())):
        raise not_here(public_id)
    return memory


def read_live(opened: OpenScope, view: View, public_id: str) -> Memory:
    """The memory with this id, superseded or not; NotFound if it does not exist."""
    if (memory := opened.peek(view, public_id)) is None:
        raise not_here(public_id)
    return memory


def not_here(public_id: str) -> NotFound:
    """The error for an id with no memory in this scope."""
    return NotFound(f"There is no memory {public_id} in this scope.")


def browse(opened: OpenScope, request: Browse, *, actor: Actor = Actor.USER) -> Page:
    """Memories by filter, newest first, in the order they were first written."""
    now, wanted = opened.ports.clock.now(), request.limit + 1

    def look(view: View) -> list[tuple[int, Memory]]:
        # Walks back through the changes, keeping the youngest matches. A row is never older in
        # the order of changes than in that of creation: as soon as the walk is behind the oldest
        # match kept, nothing that could replace it is left.
        kept: list[tuple[int, Memory]] = []
        before = _LAST
        while rows := view.latest(Collection.MEMORY, before, _PAGE):
            for row in rows:
                full = len(kept) == wanted
                if full and row.seq < kept[0][0]:
                    return kept
                if request.cursor is not None and row.born >= request.cursor:
                    continue
                if full and row.born < kept[0][0]:
                    continue
                memory = opened.limits.seen(view, opened.unseal(row))
                if request.accepts(memory, now):
                    place = (row.born, memory)
                    heapreplace(kept, place) if full else heappush(kept, place)
            before = rows[-1].seq
        return kept

    newest = sorted(opened.read(look), key=lambda place: -place[0])
    opened.note_read("browse", actor)
    return Page(
        memories=tuple(memory for _, memory in newest[: request.limit]),
        next=newest[request.limit - 1][0] if len(newest) == wanted else None,
    )


def history(opened: OpenScope, public_id: str, *, actor: Actor = Actor.USER) -> tuple[Memory, ...]:
    """All versions of a memory, oldest first, without forgotten ones."""

    def look(view: View) -> tuple[Memory, ...]:
        here = opened.peek(view, public_id)
        chain = [here] if here else []
        while chain and (previous := opened.peek(view, chain[0].supersedes)):
            chain.insert(0, previous)
        while chain and (following := opened.peek(view, chain[-1].superseded_by)):
            chain.append(following)
        return tuple(chain)

    chain = opened.read(look)
    opened.note_read("history", actor)
    if not chain:
        raise not_here(public_id)
    return chain


def follow(opened: OpenScope, after: int, *, min_seq: int = 0, limit: int = 4096) -> Changes:
    """Change feed: the changes after a seq, for a reader that keeps a copy, such as an index.

    `after` and `min_seq` are those of the last answer. A reader from before a purge must discard
    its copy and gets all rows; so must one that is ahead of the scope, because its copy is of rows
    that were lost.
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
