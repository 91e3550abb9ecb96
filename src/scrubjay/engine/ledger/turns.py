"""record: one sealed row per turn, and what is derived from the turns that are there.

What is derived is a function of the *set* of turns: a turn is compared with those before it by
time, not by arrival. So a turn that comes late, or goes, may change what the next few of its
followers yield, and these are looked at again in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from scrubjay.engine.ledger import backlog
from scrubjay.engine.ledger.timeline import Line, Mark, Place
from scrubjay.engine.ledger.turn_ledger import TurnLedger, distill, read_turn
from scrubjay.engine.scope.open_scope import OpenScope, changes
from scrubjay.engine.scope.scope_values import Notes
from scrubjay.engine.search import embedding
from scrubjay.guard.admission import admit_turn
from scrubjay.model import echo
from scrubjay.model.errors import NotFound, SealBroken
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Caller
from scrubjay.model.results import Outcome
from scrubjay.model.rows import Collection
from scrubjay.model.turns import (
    TURNS_CHARS,
    Record,
    Recorded,
    State,
    Timeline,
    Turn,
    place,
)
from scrubjay.ports import Failpoint, Tx, View

_TURN = Collection.TURN
_NEVER: Place = (2**63, 0)
"""After all turns there can be."""


def record(opened: OpenScope, request: Record, caller: Caller) -> Recorded:
    """Write a turn; durable when this returns, and only once per id."""
    turn_id = request.id or f"turn-{opened.ports.clock.new_id()}"
    row_id = opened.row_id(turn_id)
    if receipt := opened.read(lambda view: _seen_before(view, row_id, turn_id)):
        return receipt  # a replay costs no transaction
    turn = request.turn(turn_id, opened.ports.clock.now(), caller.actor)
    turn = replace(turn, user=echo.cut(turn.user), assistant=echo.cut(turn.assistant))
    turn, redacted = admit_turn(turn, opened.ports.policy.placeholder)
    distilled = distill(opened, turn)
    patience = opened.ports.policy.turn_embed_seconds
    vectors = embedding.vectors_of_pieces(opened, distilled or (), seconds=patience)

    def store(tx: Tx) -> Recorded:
        if receipt := _seen_before(tx, row_id, turn.id):
            return receipt
        ledger = TurnLedger(opened, tx)
        ledger.add(turn, distilled, vectors)
        opened.trail.record(tx, "record", turn.actor, (row_id,))
        ledger.write()
        return ledger.receipt(turn, redacted)

    receipt = opened.write(store)
    opened.ports.reach(Failpoint.RETAIN_COMMITTED)
    return receipt


def _seen_before(view: View, row_id: bytes, turn_id: str) -> Recorded | None:
    if view.buried([row_id]):
        return Recorded(id=turn_id, outcome=Outcome.FORGOTTEN)
    row = view.row(_TURN, row_id)
    if row is None:
        return None
    outcome = Outcome.FORGOTTEN if row.erased else Outcome.KNOWN
    return Recorded(id=turn_id, outcome=outcome)


# -- trying again -----------------------------------------------------------------------------


def derive_failed(opened: OpenScope, *, actor: Actor) -> int:
    """Derive from the turns that could not be distilled before; how many now could."""
    failed = opened.read(
        lambda view: [mark for mark in Line(Notes(opened, view)) if mark.state == State.FAILED]
    )
    return sum(_derive_again(opened, mark, actor) for mark in failed)


def _derive_again(opened: OpenScope, mark: Mark, actor: Actor) -> bool:
    try:
        turn = opened.read(lambda view: read_turn(opened, view, mark.id))
    except (NotFound, SealBroken):  # forgotten since, or damaged: verify names it
        return False
    distilled = distill(opened, turn)
    if distilled is None:
        return False
    patience = opened.ports.policy.embed_seconds
    vectors = embedding.vectors_of_pieces(opened, distilled, seconds=patience)

    def store(tx: Tx) -> bool:
        ledger = TurnLedger(opened, tx)
        if ledger.line.get(mark.place) != mark:
            return False  # another process was faster
        ledger.assess(turn, distilled, vectors)
        backlog.requeue(ledger.notes, turn.id)
        opened.trail.record(tx, "reindex", actor, (opened.row_id(turn.id),))
        ledger.write()
        return True

    return opened.write(store)


# -- reading ----------------------------------------------------------------------------------


def end(before: datetime | None, before_id: str | None) -> Place:
    """Where a list of turns ends: at a time, or at the turn that was then.

    Of turns of one moment only the id can tell which are still to come.
    """
    if before is None:
        return _NEVER
    return (place(before, "")[0], -1) if before_id is None else place(before, before_id)


def turns(
    opened: OpenScope, *, limit: int, session: str | None = None, end: Place, actor: Actor
) -> tuple[Turn, ...]:
    """The latest turns by time before a place, newest first; all of them, or a session's.

    At least one if there is one, at most `limit`, and no more than TURNS_CHARS say.
    """

    def look(view: View) -> tuple[Turn, ...]:
        if session is None:
            ids = [mark.id for mark in Line(Notes(opened, view)).before(end, limit)]
        else:
            # When each was, only its cell says.
            rows = view.rows_of_session(_TURN, opened.session_hash(session))
            places = sorted((turn.place, turn.id) for turn in map(opened.unseal_turn, rows))
            ids = [turn_id for place, turn_id in places if place < end][-limit:]
        found: list[Turn] = []
        left = TURNS_CHARS
        for turn_id in reversed(ids):
            turn = read_turn(opened, view, turn_id)
            left -= len(turn.user) + len(turn.assistant)
            if found and left < 0:
                break
            found.append(turn)
        return tuple(found)

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
    ledger = TurnLedger(opened, tx)
    for turn in loaded:
        row_id = opened.row_id(turn.id)
        if _seen_before(tx, row_id, turn.id) is not None:
            continue
        state = State.KEPT
        if not tx.derived(row_id):
            distilled = distill(opened, turn)
            state = State.REPEATED if distilled else State.TRIVIAL
            state = State.FAILED if distilled is None else state
        ledger.enroll(turn, state)
    for memory in memories:
        if opened.peek(tx, memory.id) is not None:
            ledger.enlist(memory)
    ledger.write()


# -- checking ---------------------------------------------------------------------------------


def check_line(opened: OpenScope, view: View) -> list[str]:
    """Whether the timeline lists exactly the turns there are."""
    try:
        listed = {opened.row_id(mark.id) for mark in Line(Notes(opened, view))}
    except (SealBroken, NotFound) as error:
        return [f"The timeline of turns does not open: {error.message}"]
    there = {row.id for row in changes(view, _TURN) if not row.erased}
    problems = []
    if missing := len(there - listed):
        problems.append(f"{missing} turns are not in the timeline.")
    if surplus := len(listed - there):
        problems.append(f"The timeline lists {surplus} turns too many.")
    return problems
