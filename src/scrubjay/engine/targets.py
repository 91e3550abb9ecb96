"""What an erasing verb is aimed at: from a target to rows, and a look at them before they go."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence

from scrubjay.domain.errors import Conflict, KeyMissing, NeedsConfirmation, NotFound, SealBroken
from scrubjay.domain.memory import Memory, wording
from scrubjay.domain.requests import Forget
from scrubjay.domain.results import Preview
from scrubjay.domain.rows import Collection, Row
from scrubjay.engine.opened import OpenScope
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
        assert session is not None
        rows = opened.read(lambda view: view.rows_of_session(Collection.MEMORY, session))
        return [row.id for row in rows]
    accepts = request.matches if request.query is None else _holding(request.query)
    return opened.read(
        lambda view: [row.id for row, memory in scan(opened, view) if accepts(memory)]
    )


def _holding(query: str) -> Callable[[Memory], bool]:
    from scrubjay.index.holding import holds  # loads stemmers, which other targets do not need

    test = holds(query)
    return lambda memory: test(wording(memory.content, memory.tags))


def present(view: View, ids: Iterable[bytes]) -> list[Row]:
    """Those of the rows that are there and not erased."""
    rows = (view.row(Collection.MEMORY, row_id) for row_id in ids)
    return [row for row in rows if row is not None and not row.erased]


def closure(opened: OpenScope, view: View, named: Sequence[Row]) -> list[Row]:
    """The named rows, what was derived from them, and the earlier versions of all of these.

    An earlier version is the same memory before a correction: out of sight, so nobody could
    name it, and what it says is what was asked to be forgotten.
    """
    found = {row.id: row for row in named}
    waiting = list(named)
    while waiting:
        row = waiting.pop()
        for row_id in (*view.derived(row.id), *_earlier(opened, row)):
            other = None if row_id in found else view.row(Collection.MEMORY, row_id)
            if other is not None and not other.erased:
                found[row_id] = other
                waiting.append(other)
    return list(found.values())


def _earlier(opened: OpenScope, row: Row) -> tuple[bytes, ...]:
    try:
        supersedes = opened.unseal(row).supersedes
    except (SealBroken, KeyMissing, NotFound):
        # A damaged row must still be erasable; what it replaced can then only be named itself.
        return ()
    return (opened.row_id(supersedes),) if supersedes else ()


# -- a look before ------------------------------------------------------------------------------


def preview(opened: OpenScope, request: Forget) -> Preview:
    """What a forget of this request would erase, and the token that confirms exactly that."""
    ids = resolve(opened, request)

    def look(view: View) -> Preview:
        named = present(view, ids)
        chosen = {row.id for row in named}
        rows = sorted(closure(opened, view, named), key=lambda row: row.born)
        return Preview(
            memories=tuple(opened.unseal(row) for row in rows if row.id in chosen),
            others=tuple(opened.unseal(row) for row in rows if row.id not in chosen),
            token=opened.token(row.id for row in rows),
        )

    found = opened.read(look)
    opened.note_read("preview", request.actor)
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
    token = opened.token(row.id for row in closure(opened, view, present(view, ids)))
    if not hmac.compare_digest(request.confirm.encode(), token.encode()):
        raise Conflict(
            "What would be forgotten is not what the preview showed.",
            hint="Nothing was erased. Look at a new preview.",
        )
