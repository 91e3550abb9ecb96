"""record: one sealed row per turn, and what is derived from the turns that are there.

What is derived is a function of the *set* of turns: a turn is compared with those before it by
time, not by arrival. So a turn that comes late, or goes, may change what the next few of its
followers yield, and these are looked at again in the same transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from scrubjay.domain import echo
from scrubjay.domain.errors import NotFound, SealBroken
from scrubjay.domain.memory import Memory, wording
from scrubjay.domain.origin import Actor
from scrubjay.domain.results import Outcome
from scrubjay.domain.rows import Collection, Row
from scrubjay.domain.turns import (
    Record,
    Recorded,
    State,
    Timeline,
    Turn,
)
from scrubjay.engine import embedding, slots
from scrubjay.engine.book import Book, distill, peek, unseal
from scrubjay.engine.notes import Notes
from scrubjay.engine.opened import OpenScope
from scrubjay.engine.timeline import Line
from scrubjay.guard.admission import admit_turn
from scrubjay.ports import Failpoint, Tx, View

_GIST = 80
_TIES = 20_000
_YEAR_2020 = datetime(2020, 1, 1, tzinfo=UTC)
_TURN = Collection.TURN
_log = logging.getLogger(__name__)


def record(opened: OpenScope, request: Record) -> Recorded:
    """Write a turn; durable when this returns, and only once per id."""
    row_id = opened.row_id(request.id)
    if receipt := opened.read(lambda view: _seen_before(view, row_id, request.id)):
        return receipt  # a replay costs no transaction
    turn, redacted = _admitted(opened, request)
    distilled = distill(opened, turn)
    vectors = {
        piece.part: embedding.vector_of(opened, wording(piece.content, piece.tags))
        for piece in distilled or ()
    }

    def store(tx: Tx) -> Recorded:
        if receipt := _seen_before(tx, row_id, turn.id):
            return receipt
        book = Book(opened, tx)
        book.add(turn, distilled, vectors)
        opened.trail.record(tx, "record", turn.actor, (row_id,))
        book.write()
        return book.receipt(turn, redacted)

    receipt = opened.write(store)
    opened.ports.reach(Failpoint.RETAIN_COMMITTED)
    return receipt


def _admitted(opened: OpenScope, request: Record) -> tuple[Turn, Mapping[str, int]]:
    """The turn as it may be kept: no secrets, and nothing that memory itself had put in."""
    turn = request.turn(opened.ports.clock.now())
    turn = replace(turn, user=echo.cut(turn.user), assistant=echo.cut(turn.assistant))
    return admit_turn(turn, opened.ports.policy.placeholder)


def _seen_before(view: View, row_id: bytes, turn_id: str) -> Recorded | None:
    if view.buried([row_id]):
        return Recorded(id=turn_id, outcome=Outcome.FORGOTTEN)
    row = view.row(_TURN, row_id)
    if row is None:
        return None
    outcome = Outcome.FORGOTTEN if row.erased else Outcome.KNOWN
    return Recorded(id=turn_id, outcome=outcome)


# -- reading ----------------------------------------------------------------------------------


def turns(opened: OpenScope, *, limit: int, actor: Actor) -> tuple[Turn, ...]:
    """The latest turns by time, newest first."""

    def look(view: View) -> tuple[Turn, ...]:
        marks = Line(Notes(opened, view)).latest(limit)
        return tuple(peek(opened, view, mark.id) for mark in reversed(marks))

    found = opened.read(look)
    opened.note_read("turns", actor)
    return found


def timeline(opened: OpenScope, *, limit: int, actor: Actor) -> Timeline:
    """When there was a turn, and roughly what about; opens none."""

    def look(view: View) -> Timeline:
        line = Line(Notes(opened, view))
        marks = line.latest(limit)
        return Timeline(
            moments=tuple(mark.moment() for mark in marks),
            earlier=len(line) - len(marks),
            since=line.begins,
            begun=line.begun(limit),
        )

    found = opened.read(look)
    opened.note_read("timeline", actor)
    return found


# -- loading ----------------------------------------------------------------------------------


def load(opened: OpenScope, tx: Tx, loaded: Iterable[Turn], memories: Iterable[Memory]) -> None:
    """Add turns that come with their memories: nothing is derived, all is as it was there."""
    book = Book(opened, tx)
    for turn in loaded:
        row_id = opened.row_id(turn.id)
        if _seen_before(tx, row_id, turn.id) is None:
            book.enroll(turn, _state_of(opened, tx, turn))
    for memory in memories:
        if slots.peek(opened, tx, memory.id) is not None:
            book.enlist(memory)
    book.write()


def _state_of(opened: OpenScope, tx: Tx, turn: Turn) -> State:
    if tx.derived(opened.row_id(turn.id)):
        return State.KEPT
    return State.REPEATED if distill(opened, turn) else State.TRIVIAL


# -- checking ---------------------------------------------------------------------------------


def check(opened: OpenScope, row: Row, name: str) -> Iterator[str]:
    """What is wrong with one turn's row."""
    if opened.row_id(unseal(opened, row).id) != row.id:
        yield f"{name} holds a turn with another id."


def check_line(opened: OpenScope, view: View) -> list[str]:
    """Whether the timeline lists exactly the turns there are."""
    try:
        listed = {opened.row_id(mark.id) for mark in Line(Notes(opened, view))}
    except (SealBroken, NotFound) as error:
        return [f"The timeline of turns does not open: {error.message}"]
    after, missing = 0, 0
    while rows := view.changes(_TURN, after, 256):
        living = {row.id for row in rows if not row.erased}
        missing += len(living - listed)
        listed -= living
        after = rows[-1].seq
    problems = [f"{missing} turns are not in the timeline."] if missing else []
    return problems + ([f"The timeline lists {len(listed)} turns too many."] if listed else [])
