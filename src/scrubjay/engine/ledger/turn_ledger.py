"""The ledger of turns: what follows from the turns that are there, in one transaction.

What is derived is a function of the *set* of turns: a turn is compared with those before it by
time, not by arrival. So a turn that comes late, or goes, may change what the next few of its
followers yield, and these are looked at again in the same transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from scrubjay.engine.ledger import backlog, sessions, statement_chain
from scrubjay.engine.ledger.timeline import Line, Mark, Place
from scrubjay.engine.scope.open_scope import OpenScope, living
from scrubjay.engine.scope.scope_values import Notes
from scrubjay.model.errors import KeyMissing, NotFound, SealBroken
from scrubjay.model.memory import Memory, Provenance
from scrubjay.model.origin import Origin, lowest
from scrubjay.model.results import ErasedCell
from scrubjay.model.rows import Collection, Due, Row
from scrubjay.model.turns import (
    EPISODE_PART,
    LOOK_BACK,
    Piece,
    Recorded,
    State,
    Turn,
    alike,
    derived_id,
    encode,
    stated,
)
from scrubjay.ports import Distiller, Tx, View

_Answer = TypeVar("_Answer")


class Repeats:
    """Compares turns of one state of a scope; each is read once at most for either question."""

    def __init__(self, distiller: Distiller | None, read: Callable[[str], Turn]) -> None:
        self._distiller = distiller
        self._read = read
        self._words: dict[str, frozenset[str]] = {}
        self._stated: dict[str, Mapping[str, str]] = {}

    def of(self, turn_id: str, before: Sequence[Mark]) -> list[str]:
        """Which of the turns before it, given oldest first, a turn only says again."""
        words = self._words_of(turn_id)
        like = {mark.id for mark in before if alike(words, self._words_of(mark.id))}
        if not like:
            return []
        found, says = [], self._stated_in(turn_id)
        for mark in reversed(before):
            said = self._stated_in(mark.id)
            if any(said.get(slot, value) != value for slot, value in says.items()):
                break  # what was said before that no longer counts
            # Of a turn that could not be distilled nothing is known: it makes no other needless.
            if mark.id in like and says.items() <= said.items() and mark.state != State.FAILED:
                found.append(mark.id)
        return found

    def _words_of(self, turn_id: str) -> frozenset[str]:
        if turn_id not in self._words:
            self._words[turn_id] = self._ask(turn_id, lambda by, turn: by.words(turn), frozenset())
        return self._words[turn_id]

    def _stated_in(self, turn_id: str) -> Mapping[str, str]:
        if turn_id not in self._stated:
            self._stated[turn_id] = self._ask(
                turn_id, lambda by, turn: stated(turn, by.distill(turn)), {}
            )
        return self._stated[turn_id]

    def _ask(
        self, turn_id: str, question: Callable[[Distiller, Turn], _Answer], otherwise: _Answer
    ) -> _Answer:
        if self._distiller is None:
            return otherwise
        try:
            return question(self._distiller, self._read(turn_id))
        except Exception:  # seam: a damaged turn, or one nobody can read, is like no other
            return otherwise


_GIST = 80
_TIES = 20_000
_YEAR_2020 = datetime(2020, 1, 1, tzinfo=UTC)
_TURN = Collection.TURN
_log = logging.getLogger(__name__)


def distill(opened: OpenScope, turn: Turn) -> Sequence[Piece] | None:
    """What a turn yields; None if the distiller failed, which costs no turn."""
    distiller = opened.ports.distiller
    if distiller is None:
        return ()
    try:
        return distiller.distill(turn)
    except Exception:  # seam: whatever a distiller trips over, the turn itself is kept
        _log.warning("distill.failed", extra={"distiller": distiller.identity})
        return None


def read_turn(opened: OpenScope, view: View, turn_id: str) -> Turn:
    """The turn with this id; NotFound if it is not here."""
    if (row := living(view, _TURN, opened.row_id(turn_id))) is None:
        raise NotFound("There is no such turn in this scope.")
    return opened.unseal_turn(row)


class LedgerView:
    """The turns in one state of a scope, in the order of time."""

    def __init__(self, opened: OpenScope, view: View) -> None:
        self._opened = opened
        self._view = view
        self.notes = Notes(opened, view)
        self.line = Line(self.notes)
        self._repeats = Repeats(opened.ports.distiller, partial(read_turn, opened, view))

    def repeats(self, turn: Mark) -> list[Mark]:
        """The followers of a turn that were not kept because they say what it says."""
        return [
            mark
            for mark in self.line.after(turn.place, LOOK_BACK)
            if mark.state == State.REPEATED and turn.id in self._said_before(mark.place, mark.id)
        ]

    def find(self, row: Row) -> Mark | None:
        """Where the turn of a row stands."""
        try:
            return self.line.get(self._opened.unseal_turn(row).place)
        except (SealBroken, KeyMissing, NotFound):
            # A damaged row must still be erasable; its place is then only found by looking.
            row_id = self._opened.row_id
            return next((mark for mark in self.line if row_id(mark.id) == row.id), None)

    def _said_before(self, place: Place, turn_id: str) -> list[str]:
        """Which of the turns just before a place say the same."""
        return self._repeats.of(turn_id, self.line.before(place, LOOK_BACK))


class TurnLedger(LedgerView):
    """The ledger in one transaction: rows, timeline, and what is derived from them."""

    def __init__(self, opened: OpenScope, tx: Tx) -> None:
        super().__init__(opened, tx)
        self._tx = tx

    def write(self) -> None:
        """Write the notes that changed."""
        self.notes.write(self._tx)

    def add(
        self, turn: Turn, distilled: Sequence[Piece] | None, vectors: dict[str, bytes | None]
    ) -> None:
        """Write a turn and derive what it and its followers now yield."""
        self._put_row(turn)
        self.assess(turn, distilled, vectors)

    def assess(
        self, turn: Turn, distilled: Sequence[Piece] | None, vectors: dict[str, bytes | None]
    ) -> None:
        """Derive what a turn that is written and its followers now yield."""
        if not distilled:
            self._mark(turn, State.FAILED if distilled is None else State.TRIVIAL)
        else:
            self._mark(turn, State.REPEATED)  # until it is found to be new, just below
            if not self._said_before(turn.place, turn.id):
                self._mark(turn, State.KEPT)
                self._derive(turn, distilled, vectors)
        self.settle([turn.place])

    def add_found(
        self,
        turn: Turn,
        pieces: Sequence[Piece],
        vectors: dict[str, bytes | None],
        earlier: Iterable[str],
        *,
        anew: bool,
    ) -> list[bytes]:
        """Write what was found in a turn later; `anew`, in place of the memories found earlier."""
        if anew:
            self._withdraw(turn, frozenset(earlier))
        return self._derive(turn, pieces, vectors)

    def enroll(self, turn: Turn, state: State) -> None:
        """Write a turn whose memories are there already."""
        self._put_row(turn)
        self._mark(turn, state)

    def settle(self, places: Iterable[Place]) -> None:
        """Look again at the turns that follow these places: what they yield may have changed."""
        found: dict[Place, Mark] = {}
        for place in places:
            found |= {mark.place: mark for mark in self.line.after(place, LOOK_BACK)}
        for mark in found.values():
            if mark.state in (State.KEPT, State.REPEATED):
                is_new = not self._said_before(mark.place, mark.id)
                if is_new is (mark.state == State.KEPT):
                    continue
                turn = read_turn(self._opened, self._tx, mark.id)
                distilled = distill(self._opened, turn) if is_new else ()
                state = State.KEPT if is_new else State.REPEATED
                state = State.FAILED if distilled is None else state
                self.line.put(mark._replace(state=int(state)))
                if is_new:  # after all
                    self._derive(turn, distilled or (), {})
                    backlog.requeue(self.notes, turn.id)
                else:
                    self._withdraw(turn)

    def erase(self, row: Row) -> Place | None:
        """Erase a turn's row and take it out of the timeline; where it stood."""
        mark = self.find(row)
        self._tx.erase(_TURN, row.id, drop_day=self._opened.drop_day())
        self._tx.bury([row.id])
        if mark is not None:
            self.line.remove(mark.place)
            backlog.drop(self.notes, mark.id)
        return None if mark is None else mark.place

    def release(self, memory: Memory) -> None:
        """Take a memory that is to be erased out of its slot."""
        if isinstance(name := memory.metadata.get(statement_chain.KEY), str):
            self._slot(name, memory.origin).remove(self._tx, memory)

    def enlist(self, memory: Memory) -> None:
        """Note a statement that was written as it is, such as by a load."""
        name = memory.metadata.get(statement_chain.KEY)
        # A correction by hand inherits slot and sources, but not the message it was said in.
        if isinstance(name, str) and memory.sources == (memory.provenance.message_id,):
            self._slot(name, memory.origin).enroll(memory)

    def _slot(self, name: str, origin: Origin) -> statement_chain.Slot:
        return statement_chain.Slot(self._opened, self.notes, name, origin)

    def receipt(self, turn: Turn, redacted: Mapping[str, int]) -> Recorded:
        """What became of a turn."""
        mark = self.line.get(turn.place)
        assert mark is not None
        rows = self._derived(turn.id)
        return Recorded(
            id=turn.id,
            state=State(mark.state),
            memories=tuple(self._opened.unseal(row).id for row in rows),
            redacted=redacted,
        )

    # -- one turn ----------------------------------------------------------------------

    def _put_row(self, turn: Turn) -> None:
        opened = self._opened
        session = None if turn.session is None else opened.session_hash(turn.session)
        opened.put_body(self._tx, _TURN, opened.row_id(turn.id), encode(turn), session=session)

    def _mark(self, turn: Turn, state: State) -> None:
        gist = " ".join((turn.user or turn.assistant)[: 4 * _GIST].split())[:_GIST]
        self.line.put(Mark(*turn.place, turn.id, int(state), gist))

    # -- what a turn yields ------------------------------------------------------------

    def _derive(
        self, turn: Turn, pieces: Sequence[Piece], vectors: dict[str, bytes | None]
    ) -> list[bytes]:
        written = []
        for piece in pieces:
            memory = self._memory(turn, piece)
            row_id = self._opened.row_id(memory.id)
            if self._tx.buried([row_id]) or living(self._tx, Collection.MEMORY, row_id):
                continue  # forgotten by itself, or there already
            vector = vectors.get(piece.part)
            if piece.slot is None:
                statement_chain.put(self._opened, self._tx, memory, vector)
            else:
                self._slot(piece.slot, memory.origin).add(self._tx, memory, vector)
            self._tx.link(self._opened.row_id(turn.id), row_id)
            written.append(row_id)
        return written

    def _withdraw(self, turn: Turn, only: frozenset[str] | None = None) -> None:
        """Take back what a turn yielded, or only these, but for what somebody made their own.

        It is not forgotten: nothing is tombstoned, and it may be derived again.
        """
        turn_row = self._opened.row_id(turn.id)
        for row in self._derived(turn.id):
            memory = self._opened.unseal(row)
            if memory.pinned or memory.sources != (turn.id,):
                continue
            if only is not None and memory.id not in only:
                continue
            self.release(memory)
            for derived in self._tx.derived(row.id):
                self._tx.link(turn_row, derived)  # what others made of it still has a source
            if row.blob is not None:
                self._opened.leave_due(self._tx, Due.SWEEP)
            self._tx.erase(Collection.MEMORY, row.id, drop_day=self._opened.drop_day())

    def _derived(self, turn_id: str) -> list[Row]:
        ids = self._tx.derived(self._opened.row_id(turn_id))
        rows = (living(self._tx, Collection.MEMORY, row_id) for row_id in ids)
        return [row for row in rows if row is not None]

    def _memory(self, turn: Turn, piece: Piece) -> Memory:
        whole = piece.part == EPISODE_PART
        session = turn.session or (f"{turn.at:%Y-%m-%d}" if whole else None)
        # Where it stands in its session, or in its day, as a number that fits an index's column.
        if turn.session is not None:
            position = max(int((turn.at - _YEAR_2020).total_seconds()), 0) % 2**31
        else:
            midnight = turn.at.replace(hour=0, minute=0, second=0, microsecond=0)
            seconds = int((turn.at - midnight).total_seconds())
            position = seconds * _TIES + turn.place[1] % _TIES
        origin = turn.origin
        if not piece.said_by_user:
            agent = sessions.trusted(self._opened, self._tx, turn.session, Origin.AGENT)
            origin = lowest([origin, agent])
        return Memory(
            id=derived_id(turn.id, piece.part),
            kind=piece.kind,
            content=piece.content,
            # As it would have been live: the order of arrival leaves no trace.
            recorded_at=turn.at,
            origin=origin,
            provenance=Provenance(
                actor=turn.actor,
                session=session,
                channel=turn.channel,
                message_id=turn.id,
                said_at=turn.at,
            ),
            position=position,
            tags=piece.tags,
            importance=piece.importance,
            sources=(turn.id,),
            metadata={} if piece.slot is None else {statement_chain.KEY: piece.slot},
        )


def with_repeats(opened: OpenScope, view: View, rows: Mapping[bytes, Row]) -> dict[bytes, Row]:
    """These turns and those that were not kept because they only say the same."""
    ledger = LedgerView(opened, view)
    found = dict(rows)
    waiting = list(rows.values())
    while waiting:
        mark = ledger.find(waiting.pop())
        for repeat in () if mark is None else ledger.repeats(mark):
            row = living(view, _TURN, opened.row_id(repeat.id))
            if row is not None and row.id not in found:
                found[row.id] = row
                waiting.append(row)
    return found


# -- erasing ----------------------------------------------------------------------------------


def erase(
    opened: OpenScope, tx: Tx, rows: Iterable[Row], erased: Iterable[Memory], *, derive: bool = True
) -> list[ErasedCell]:
    """Erase turns, and what the timeline and the slots say of erased memories; the gone cells.

    Unless `derive` is false, followers that only repeated what is gone now speak for themselves.
    """
    doomed, ledger = list(rows), TurnLedger(opened, tx)
    gone = [cell for row in doomed for cell in opened.erased_cells(_TURN, row)]
    for memory in erased:
        ledger.release(memory)
    places = [place for row in doomed if (place := ledger.erase(row)) is not None]
    if doomed:
        opened.raise_epoch(tx, _TURN)
    if derive:
        ledger.settle(places)
    if replaced := ledger.notes.replaced():
        gone += replaced
        opened.raise_epoch(tx, Collection.SESSION)
    ledger.write()
    return gone
