"""get, browse, history, lineage and follow: reading without ranking."""

from __future__ import annotations

from datetime import datetime
from heapq import heappush, heapreplace

from scrubjay.engine.scope.counters_and_retention import NEVER, Recalls
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.views import living
from scrubjay.model.errors import Frozen, NotFound
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor
from scrubjay.model.overview import Change, Changes, Lineage, RecallCounter, Relative
from scrubjay.model.pages import Page, Paged, cursor_at, place
from scrubjay.model.requests import Browse
from scrubjay.model.rows import Collection, Freeze
from scrubjay.ports import View

_PAGE = 256
_LAST = 2**62
_STEPS = 2
"""How many steps a lineage goes, either way."""
_RELATIVES = 50
"""How many memories and turns a lineage has at most."""


def get(
    opened: OpenScope, public_id: str, *, as_of: datetime | None = None, actor: Actor = Actor.USER
) -> Memory:
    """One memory by id, superseded or not; NotFound if it is unknown, forgotten or expired."""

    def look(view: View) -> Memory | None:
        _check_given(opened, view, actor)
        found = opened.peek(view, public_id)
        return None if found is None else opened.limits.seen(view, found)

    memory = opened.read(look)
    opened.note_read("get", actor)
    if memory is not None and as_of is not None and not memory.visible(as_of):
        memory = None
    if memory is None or (as_of is None and memory.expired(opened.ports.clock.now())):
        raise not_here(opened, public_id)
    return memory


def _check_given(opened: OpenScope, view: View, actor: Actor) -> None:
    """Frozen if recall is frozen, too: then an agent is given no memory, however it asks."""
    if actor is Actor.AGENT and view.head().frozen is Freeze.ALL:
        raise Frozen(f"The scope {opened.scope} is frozen, reading by agents included.")


def read_live(opened: OpenScope, view: View, public_id: str) -> Memory:
    """The memory with this id, superseded or not; NotFound if it does not exist."""
    if (memory := opened.peek(view, public_id)) is None:
        raise not_here(opened, public_id)
    return memory


def not_here(opened: OpenScope, public_id: str) -> NotFound:
    """The error for an id with no memory in the scope."""
    return NotFound(f"There is no memory {public_id} in {opened.scope}.")


def counter(opened: OpenScope, public_id: str, *, actor: Actor = Actor.USER) -> RecallCounter:
    """How often a memory was recalled, and when last."""

    def look(view: View) -> Recalls:
        number = read_live(opened, view, public_id).number
        written = opened.counters.of(view, [number]).get(number, NEVER)
        return written.joined(opened.counters.pending.get(number, NEVER))

    recalls = opened.read(look)
    opened.note_read("counters", actor)
    at = recalls.at if recalls.times else None
    return RecallCounter(id=public_id, recalls=recalls.times, recalled_at=at)


def browse(opened: OpenScope, request: Browse, *, actor: Actor = Actor.USER) -> Page[Memory]:
    """Memories by filter, newest first, in the order they were first written."""
    now, wanted = opened.ports.clock.now(), request.limit + 1
    (end,) = place(request.cursor)

    def look(view: View) -> list[tuple[int, Memory]]:
        # Walks back through the changes, keeping the youngest matches. A row is never older in
        # the order of changes than in that of creation: as soon as the walk is behind the oldest
        # match kept, nothing that could replace it is left.
        _check_given(opened, view, actor)
        kept: list[tuple[int, Memory]] = []
        before = _LAST
        while rows := view.latest(Collection.MEMORY, before, _PAGE):
            for row in rows:
                full = len(kept) == wanted
                if full and row.seq < kept[0][0]:
                    return kept
                if end and row.born >= end:
                    continue
                if full and row.born < kept[0][0]:
                    continue
                memory = opened.limits.seen(view, opened.unseal(row))
                if request.accepts(memory, now):
                    one = (row.born, memory)
                    heapreplace(kept, one) if full else heappush(kept, one)
            before = rows[-1].seq
        return kept

    newest = sorted(opened.read(look), key=lambda one: -one[0])
    opened.note_read("browse", actor)
    return Page(
        data=tuple(memory for _, memory in newest[: request.limit]),
        next_cursor=cursor_at(newest[-2][0]) if len(newest) == wanted else None,
    )


def history(opened: OpenScope, public_id: str, *, actor: Actor = Actor.USER) -> tuple[Memory, ...]:
    """All versions of a memory, oldest first, without forgotten ones."""

    def look(view: View) -> tuple[Memory, ...]:
        _check_given(opened, view, actor)
        here = opened.peek(view, public_id)
        chain = [here] if here else []
        while chain and (previous := opened.peek(view, chain[0].supersedes)):
            chain.insert(0, previous)
        while chain and (following := opened.peek(view, chain[-1].superseded_by)):
            chain.append(following)
        return tuple(opened.limits.seen(view, one) for one in chain)

    chain = opened.read(look)
    opened.note_read("history", actor)
    if not chain:
        raise not_here(opened, public_id)
    return chain


def lineage(opened: OpenScope, public_id: str, *, actor: Actor = Actor.USER) -> Lineage:
    """Sources of a memory and what was derived from it; those that are gone are left out."""

    def source(view: View, id: str, steps: int) -> Relative | None:
        if memory := opened.peek(view, id):
            return Relative(steps=steps, memory=opened.limits.seen(view, memory))
        row = living(view, Collection.TURN, opened.row_id(id))
        return None if row is None else Relative(steps=steps, turn=opened.unseal_turn(row))

    def look(view: View) -> tuple[Memory, list[Relative], list[Relative]]:
        memory = opened.limits.seen(view, read_live(opened, view, public_id))
        above, below = list[Relative](), list[Relative]()
        nearest, known = [memory], {public_id}
        for steps in range(1, _STEPS + 1):
            ids = [id for one in nearest for id in one.sources if id not in known]
            known.update(ids)
            found = (source(view, id, steps) for id in dict.fromkeys(ids[: _RELATIVES + 1]))
            level = [one for one in found if one is not None]
            nearest = [one.memory for one in level if one.memory is not None]
            above += level
        rows, seen = [opened.row_id(public_id)], {opened.row_id(public_id)}
        for steps in range(1, _STEPS + 1):
            ids_below = [id for row in rows for id in view.derived(row) if id not in seen]
            seen.update(ids_below)
            rows = list(dict.fromkeys(ids_below))[: _RELATIVES + 1]
            there = (living(view, Collection.MEMORY, row) for row in rows)
            told = [opened.limits.seen(view, opened.unseal(row)) for row in there if row]
            below += [Relative(steps=steps, memory=one) for one in told]
        return memory, above, below

    memory, above, below = opened.read(look)
    opened.note_read("lineage", actor)
    half = _RELATIVES // 2
    sources = above[: max(half, _RELATIVES - len(below))]
    derived = below[: max(half, _RELATIVES - len(above))]
    complete = len(sources) + len(derived) == len(above) + len(below)
    return Lineage(memory=memory, sources=tuple(sources), derived=tuple(derived), complete=complete)


def follow(opened: OpenScope, request: Paged, *, actor: Actor = Actor.USER) -> Changes:
    """Change feed: the changes after a cursor, for a reader that keeps a copy, such as an index.

    Memories are as they are stored: that one is past a limit now is no change.
    The cursor has the seq an answer reached to, and the seq below which changes were incomplete
    then. A reader from before a purge must discard its copy and gets all rows; so must one that is
    ahead of the scope, because its copy is of rows that were lost.
    """
    after, complete = place(request.cursor, 2)

    def look(view: View) -> Changes:
        position = view.head().memory
        anew = max(after, complete) < position.min_seq or after > position.seq
        rows = view.changes(Collection.MEMORY, 0 if anew else after, request.limit)
        return Changes(
            changes=tuple(
                Change(
                    seq=row.seq,
                    row=row.id.hex(),
                    memory=None if row.erased else opened.unseal(row),
                )
                for row in rows
            ),
            next_cursor=cursor_at(rows[-1].seq if rows else position.seq, position.min_seq),
            anew=anew,
        )

    found = opened.read(look)
    if found.changes:
        opened.note_read("follow", actor)
    return found
