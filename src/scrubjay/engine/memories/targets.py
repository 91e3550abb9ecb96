"""What an erasing verb is aimed at: from a target to rows, and a look at them before they go."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scrubjay.engine.ledger import turn_ledger
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import Conflict, KeyMissing, NeedsConfirmation, NotFound, SealBroken
from scrubjay.model.memory import Kind, Memory, wording
from scrubjay.model.requests import Caller, Forget
from scrubjay.model.results import Preview
from scrubjay.model.rows import Collection, Row
from scrubjay.ports import View

_PAGE = 256


def scan(opened: OpenScope, view: View) -> Iterator[tuple[Row, Memory]]:
    """Every memory that is not erased, with its row."""
    after = 0
    while rows := view.changes(Collection.MEMORY, after, _PAGE):
        yield from ((row, opened.unseal(row)) for row in rows if not row.erased)
        after = rows[-1].seq


def resolve(opened: OpenScope, request: Forget) -> list[bytes]:
    """The row ids a target stands for."""
    if request.ids:
        return [opened.row_id(public_id) for public_id in request.ids]
    if request.session is not None:
        session = opened.session_hash(request.session)
        return opened.read(
            lambda view: [
                row.id
                for collection in (Collection.MEMORY, Collection.TURN)
                for row in view.rows_of_session(collection, session)
            ]
        )
    if request.query is not None:
        return _holding(opened, request.query)
    return opened.read(
        lambda view: [
            *(row.id for row, memory in scan(opened, view) if request.matches(memory)),
            *_turns_before(opened, view, request),
        ]
    )


def _turns_before(opened: OpenScope, view: View, request: Forget) -> Iterator[bytes]:
    if request.before is not None:
        yield from (row.id for row, turn in opened.turns(view) if turn.at < request.before)


def _holding(opened: OpenScope, query: str) -> list[bytes]:
    """The memories that hold all words of a query, and the turns: nobody sees those otherwise."""
    from scrubjay.engine.search.analysis import (
        holds,  # loads stemmers, which other targets do not need
    )

    test = holds(query)

    def look(view: View) -> list[bytes]:
        memories = (row.id for row, m in scan(opened, view) if test(wording(m.content, m.tags)))
        said = (row.id for row, t in opened.turns(view) if test(wording(t.user, [t.assistant])))
        return [*memories, *said]

    return opened.read(look)


@dataclass(slots=True)
class Doomed:
    """The rows an erasure takes: memories and turns, by their ids."""

    memories: dict[bytes, Row] = field(default_factory=dict)
    turns: dict[bytes, Row] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.memories) + len(self.turns)

    @property
    def long(self) -> bool:
        """Whether the body of one of them is in a blob."""
        return any(row.blob for row in (*self.memories.values(), *self.turns.values()))

    @property
    def ids(self) -> tuple[bytes, ...]:
        """The ids of all of them."""
        return (*self.memories, *self.turns)


def present(view: View, ids: Iterable[bytes]) -> Doomed:
    """Those of the rows that are there and not erased."""
    found = Doomed()
    for row_id in ids:
        for collection, rows in (
            (Collection.MEMORY, found.memories),
            (Collection.TURN, found.turns),
        ):
            row = view.row(collection, row_id)
            if row is not None and not row.erased:
                rows[row_id] = row
    return found


def closure(opened: OpenScope, view: View, named: Doomed) -> Doomed:
    """The named rows, what was derived from them, and the earlier versions of named memories.

    An earlier version is the same memory before a correction: out of sight, so nobody could
    name it, and what it says is what was asked to be forgotten. For the same reason a turn goes
    with its episode, and so do the turns that only repeated it.
    """
    found = Doomed(dict(named.memories), dict(named.turns))
    _follow(opened, view, found, found.memories.values(), earlier=True)
    found.turns |= _spoken(opened, view, found.memories.values())
    for turn in found.turns.values():
        derived = _living(view, view.derived(turn.id), found)
        found.memories |= {row.id: row for row in derived}
        # What another turn said before stays: it is the latest again.
        _follow(opened, view, found, derived, earlier=False)
    return found


def _follow(
    opened: OpenScope, view: View, found: Doomed, rows: Iterable[Row], *, earlier: bool
) -> None:
    waiting = list(rows)
    while waiting:
        row = waiting.pop()
        before = _earlier(opened, row) if earlier else ()
        for other in _living(view, (*view.derived(row.id), *before), found):
            found.memories[other.id] = other
            waiting.append(other)


def _living(view: View, ids: Iterable[bytes], found: Doomed) -> list[Row]:
    rows = (view.row(Collection.MEMORY, row_id) for row_id in ids if row_id not in found.memories)
    return [row for row in rows if row is not None and not row.erased]


def _earlier(opened: OpenScope, row: Row) -> tuple[bytes, ...]:
    # Of a damaged row, what it replaced can only be named itself.
    memory = peek(opened, row)
    return (opened.row_id(memory.supersedes),) if memory and memory.supersedes else ()


def _spoken(opened: OpenScope, view: View, rows: Iterable[Row]) -> dict[bytes, Row]:
    """The turns whose episodes these are, and those that only repeated them."""
    episodes = [m for row in rows if (m := peek(opened, row)) and m.kind is Kind.EPISODE]
    ids = (opened.row_id(source) for memory in episodes for source in memory.sources)
    spoken = present(view, ids).turns
    return turn_ledger.with_repeats(opened, view, spoken) if spoken else {}


def peek(opened: OpenScope, row: Row) -> Memory | None:
    """The memory in a row; None if it is damaged: it must still be erasable."""
    try:
        return opened.unseal(row)
    except (SealBroken, KeyMissing, NotFound):
        return None


# -- a look before ------------------------------------------------------------------------------


def preview(opened: OpenScope, request: Forget, caller: Caller) -> Preview:
    """What a forget of this request would erase, and the token that confirms exactly that."""
    ids = resolve(opened, request)

    def look(view: View) -> Preview:
        named = present(view, ids)
        doomed = closure(opened, view, named)
        rows = sorted(doomed.memories.values(), key=lambda row: row.born)
        return Preview(
            memories=tuple(opened.unseal(row) for row in rows if row.id in named.memories),
            others=tuple(opened.unseal(row) for row in rows if row.id not in named.memories),
            token=opened.token(doomed.ids),
        )

    found = opened.read(look)
    opened.note_read("preview", caller.actor)
    return found


def check_confirmed(opened: OpenScope, view: View, request: Forget, ids: Iterable[bytes]) -> None:
    """Refuse unless what would be erased now is what was shown."""
    if request.confirm is None:
        if request.query is not None:
            raise NeedsConfirmation(
                "Forgetting by words needs the confirmation of a preview.",
                hint="Look at preview(…) and repeat the call with confirm=preview.token.",
            )
        return
    token = opened.token(closure(opened, view, present(view, ids)).ids)
    if not hmac.compare_digest(request.confirm.encode(), token.encode()):
        raise Conflict(
            "What would be forgotten is not what the preview showed.",
            hint="Nothing was erased. Look at a new preview.",
        )
