"""The ledger: one sealed row per turn, and the memories derived from the turns.

Derivation is a function of the *set* of turns: a turn is compared with those before it by time, not
by arrival. So a late or erased turn may change what the next few turns yield, and these are derived
again in the same transaction.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from scrubjay.engine.ledger import backlog, sessions, statement_chain
from scrubjay.engine.ledger.timeline import NEVER, Line, Mark, Place
from scrubjay.engine.scope import purposes
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.scope.views import changes, derived, living
from scrubjay.engine.search import embedding
from scrubjay.guard.admission import admit
from scrubjay.model import echo, pages
from scrubjay.model.errors import InvalidRequest, KeyMissing, NotFound, SealBroken
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin, lowest
from scrubjay.model.pages import Page, Paged
from scrubjay.model.requests import Caller, TurnsRequest
from scrubjay.model.results import ErasedCell, Outcome
from scrubjay.model.rows import Collection, Due, Row
from scrubjay.model.turns import (
    LOOK_BACK,
    QUOTED_CHARS,
    QUOTED_PART,
    QUOTED_PIECES,
    TURNS_CHARS,
    Piece,
    Record,
    Recorded,
    State,
    Timeline,
    Turn,
    alike,
    derived_id,
    encode,
    model_ids,
    place,
    rest_id,
    stated,
)
from scrubjay.ports import Distiller, Failpoint, Tx, View

_Answer = TypeVar("_Answer")
_GIST = 80
_TIES = 20_000
_SHIFT = -place(datetime.min.replace(tzinfo=UTC), "")[0]
"""Microseconds from the year 1 on: a cursor has no sign."""
_YEAR_2020 = datetime(2020, 1, 1, tzinfo=UTC)
_TURN = Collection.TURN
_CHUNK = re.compile(rf"(?s)\S.{{0,{QUOTED_CHARS - 1}}}(?!\S)|\S{{{QUOTED_CHARS}}}")
"""A stretch of a quotation, up to a space where there is one."""
_log = logging.getLogger(__name__)


def distill(opened: OpenScope, turn: Turn) -> Sequence[Piece] | None:
    """Distill a turn; None if the distiller failed, which loses no turn."""
    distiller = opened.ports.distiller
    if distiller is None:
        return ()
    try:
        return _pieces(distiller, turn)
    except Exception:  # seam: whatever a distiller trips over, the turn itself is kept
        _log.warning("distill.failed", extra={"distiller": distiller.identity})
        return None


def _pieces(distiller: Distiller, turn: Turn) -> Sequence[Piece]:
    """Pieces of a turn: those of its own words, and its quotations, whichever distiller it is."""
    pieces = distiller.distill(turn)
    own, quotations = turn.own_words()
    if not pieces or not quotations:
        return pieces
    found = _CHUNK.finditer("\n\n".join(quotations))
    return [
        *distiller.distill(own),
        *(
            Piece(
                part=f"{QUOTED_PART}{number}",
                kind=Kind.EPISODE,  # it is forgotten with its turn, and never tells how to act
                content=chunk[0],
                said_by_user=not turn.assistant.strip(),
                quoted=True,
            )
            for number, chunk in enumerate(islice(found, QUOTED_PIECES))
        ),
    ]


def read_turn(opened: OpenScope, view: View, turn_id: str) -> Turn:
    """The turn with this id; NotFound if there is none."""
    if (row := living(view, _TURN, opened.row_id(turn_id))) is None:
        raise NotFound(f"There is no turn {turn_id} in {opened.scope}.")
    return opened.unseal_turn(row)


class LedgerView:
    """The turns in one state of a scope, in the order of time."""

    def __init__(self, opened: OpenScope, view: View, values: ScopeValues | None = None) -> None:
        self._opened = opened
        self._view = view
        self.values = values or ScopeValues(opened, view)
        self.line = Line(self.values)
        self._words = self._ask(lambda by, turn: by.words(turn), frozenset[str]())
        self._stated = self._ask(lambda by, turn: stated(turn, _pieces(by, turn)), dict[str, str]())

    def _ask(
        self, question: Callable[[Distiller, Turn], _Answer], otherwise: _Answer
    ) -> Callable[[str], _Answer]:
        """A question about turns, by their ids; each is read for it once at most."""

        @cache
        def answer(turn_id: str) -> _Answer:
            distiller = self._opened.ports.distiller
            if distiller is None:
                return otherwise
            try:
                return question(distiller, read_turn(self._opened, self._view, turn_id))
            except Exception:  # seam: a damaged turn, or one nobody can read, is like no other
                return otherwise

        return answer

    def repeats(self, turn: Mark) -> list[Mark]:
        """Later turns that were not kept because they repeat this one."""
        return [
            mark
            for mark in islice(self.line.after(turn.place), LOOK_BACK)
            if mark.state == State.REPEATED and turn.id in self._said_before(mark.place, mark.id)
        ]

    def find(self, row: Row) -> Mark | None:
        """Place of the turn of a row."""
        if (turn := self._opened.unseal_sound_turn(row)) is not None:
            return self.line.get(turn.place)
        # A damaged row must still be erasable; its place is then only found by looking.
        row_id = self._opened.row_id
        return next((mark for mark in self.line if row_id(mark.id) == row.id), None)

    def _said_before(self, place: Place, turn_id: str) -> list[str]:
        """The one of the turns just before a place that a turn repeats."""
        before = list(islice(self.line.before(place), LOOK_BACK))
        words = self._words(turn_id)
        like = {mark.id for mark in before if alike(words, self._words(mark.id))}
        if not like:
            return []
        found, says = [], self._stated(turn_id)
        for mark in before:
            said = self._stated(mark.id)
            if any(said.get(slot, value) != value for slot, value in says.items()):
                break  # what was said before that no longer counts
            # Of a turn that could not be distilled nothing is known: it makes no other needless.
            if mark.id in like and says.items() <= said.items() and mark.state != State.FAILED:
                found.append(mark.id)
        return found


class TurnLedger(LedgerView):
    """The ledger in one transaction: rows, timeline, and what is derived from them."""

    def __init__(self, opened: OpenScope, tx: Tx, values: ScopeValues | None = None) -> None:
        super().__init__(opened, tx, values)
        self._tx = tx

    def assess(
        self, turn: Turn, distilled: Sequence[Piece] | None, vectors: dict[str, bytes | None]
    ) -> None:
        """Derive the memories of a written turn, and of the turns after it."""
        if not distilled:
            self.mark(turn, State.FAILED if distilled is None else State.TRIVIAL)
        else:
            self.mark(turn, State.REPEATED)  # until it is found to be new, just below
            if not self._said_before(turn.place, turn.id):
                self.mark(turn, State.KEPT)
                self.derive(turn, distilled, vectors)
        self.settle([turn.place])

    def settle(self, places: Iterable[Place]) -> None:
        """Derive the turns after these places again: their memories may have changed."""
        found: dict[Place, Mark] = {}
        for where in places:
            found |= {mark.place: mark for mark in islice(self.line.after(where), LOOK_BACK)}
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
                    self.derive(turn, distilled or (), {})
                    backlog.requeue(self.values, turn.id)
                else:
                    self.withdraw(turn)

    def erase(self, row: Row) -> Place | None:
        """Erase a turn's row and remove it from the timeline; returns its place."""
        mark = self.find(row)
        self._tx.erase(_TURN, row.id, drop_day=self._opened.drop_day())
        self._tx.bury([row.id])
        if mark is not None:
            self.line.remove(mark.place)
            backlog.drop(self.values, mark.id)
        return None if mark is None else mark.place

    def release(self, memory: Memory) -> None:
        """Remove a memory that is to be erased from its statement chain."""
        if isinstance(name := memory.metadata.get(statement_chain.KEY), str):
            self._chain(name, memory.origin).remove(self._tx, memory)

    def enlist(self, memory: Memory) -> None:
        """Add a statement that was written as it is, such as by a load, to its chain."""
        name = memory.metadata.get(statement_chain.KEY)
        # A correction by hand inherits slot and sources, but not the message it was said in.
        if isinstance(name, str) and memory.sources == (memory.provenance.message_id,):
            self._chain(name, memory.origin).enroll(memory)

    def _chain(self, name: str, origin: Origin) -> statement_chain.StatementChain:
        return statement_chain.StatementChain(self._opened, self.values, name, origin)

    # -- one turn ----------------------------------------------------------------------

    def put_row(self, turn: Turn) -> None:
        """Write the sealed row of a turn."""
        opened = self._opened
        session = None if turn.session is None else opened.session_hash(turn.session)
        opened.put_body(self._tx, _TURN, opened.row_id(turn.id), encode(turn), session=session)

    def mark(self, turn: Turn, state: State) -> None:
        """Put a turn in the timeline."""
        own, _ = turn.own_words()
        said = own.user or own.assistant or f"[{Origin.QUOTED}]"
        said = said if turn.origin.trusted else f"[{turn.origin}]"
        gist = " ".join(said[: 4 * _GIST].split())[:_GIST]
        self.line.put(Mark(*turn.place, turn.id, int(state), gist))

    # -- what a turn yields ------------------------------------------------------------

    def derive(
        self, turn: Turn, pieces: Sequence[Piece], vectors: dict[str, bytes | None]
    ) -> list[bytes]:
        """Write the memories of a turn; returns the rows of new ones."""
        written = []
        for piece in purposes.permitted(self._opened, self.values, pieces):
            memory = self._memory(turn, piece)
            row_id = self._opened.row_id(memory.id)
            if self._tx.buried([row_id]) or living(self._tx, Collection.MEMORY, row_id):
                continue  # forgotten by itself, or there already
            vector = vectors.get(piece.part)
            if piece.slot is None:
                statement_chain.put(self._opened, self._tx, memory, vector)
            else:
                self._chain(piece.slot, memory.origin).add(self._tx, memory, vector)
            self._tx.link(self._opened.row_id(turn.id), row_id)
            written.append(row_id)
        return written

    def withdraw(self, turn: Turn, only: Container[str] | None = None) -> None:
        """Withdraw the memories of a turn, or only these, except those that a person changed.

        This is no forget: nothing is tombstoned, and they may be derived again.
        """
        turn_row = self._opened.row_id(turn.id)
        for row in derived(self._tx, turn_row):
            memory = self._opened.unseal(row)
            if memory.pinned or memory.archived_at or memory.sources != (turn.id,):
                continue
            if only is not None and memory.id not in only:
                continue
            self.release(memory)
            for other in self._tx.derived(row.id):
                self._tx.link(turn_row, other)  # what others made of it still has a source
            if row.blob is not None:
                self._opened.leave_due(self._tx, Due.SWEEP)
            self._opened.erase_memory(self._tx, row, memory)

    def _memory(self, turn: Turn, piece: Piece) -> Memory:
        whole = piece.kind is Kind.EPISODE
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
        if piece.quoted:
            origin = lowest([origin, Origin.QUOTED])
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
                key_id=turn.key_id,
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
    """These turns, and those that were not kept because they repeat them."""
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
    opened: OpenScope,
    tx: Tx,
    rows: Iterable[Row],
    erased: Iterable[Memory],
    *,
    values: ScopeValues | None = None,
    derive: bool = True,
) -> list[ErasedCell]:
    """Erase turns, and their entries in timeline and chains; returns the erased cells.

    Pending changes of `values` are written along. Unless `derive` is false, later turns that only
    repeated an erased one are derived again.
    """
    doomed, ledger = list(rows), TurnLedger(opened, tx, values)
    gone = [cell for row in doomed for cell in opened.erased_cells(_TURN, row)]
    for memory in erased:
        ledger.release(memory)
    places = [place for row in doomed if (place := ledger.erase(row)) is not None]
    if doomed:
        opened.raise_epoch(tx, _TURN)
    if derive:
        ledger.settle(places)
    if replaced := ledger.values.replaced():
        gone += replaced
        opened.raise_epoch(tx, Collection.SESSION)
    ledger.values.write(tx)
    return gone


class Rest(Struct, frozen=True, kw_only=True):
    """The rest of a turn after a sentence was cut out of it."""

    turn: Turn
    withheld: frozenset[str]
    """Forgotten sentences of the turn in normal form: they are not derived again."""


def rest_of(
    opened: OpenScope, view: View, turn: Turn, *, user: str, assistant: str, named: Container[bytes]
) -> Rest:
    """The rest of a turn, and what is not to be derived from it."""
    pieces = {derived_id(turn.id, p.part): p.content for p in distill(opened, turn) or ()}
    ids = {opened.row_id(one): one for one in (*pieces, *model_ids(turn.id))}
    gone = {ids[one] for one in view.buried(ids)} | {ids[one] for one in ids if one in named}
    return Rest(
        turn=replace(turn, id=rest_id(turn.id), user=user, assistant=assistant),
        withheld=frozenset(echo.plain_words(pieces.get(one, "")) for one in gone),
    )


def rests_on(opened: OpenScope, view: View, memory: Memory) -> Sequence[str]:
    """The sentences of a turn that a memory tells in other words."""
    source = memory.provenance.message_id
    if source is None or memory.sources != (source,):
        return ()
    row = living(view, _TURN, opened.row_id(source))
    turn = None if row is None else opened.unseal_sound_turn(row)
    pieces = () if turn is None else distill(opened, turn) or ()
    return [p.said for p in pieces if p.said and derived_id(source, p.part) == memory.id]


def put_rests(opened: OpenScope, tx: Tx, rests: Iterable[Rest]) -> None:
    """Write what remains of turns that were erased, with what is derived from that."""
    ledger = TurnLedger(opened, tx)
    for rest in rests:
        turn = rest.turn
        if not turn.user.strip() and not turn.assistant.strip():
            continue
        distilled = distill(opened, turn)
        parts = [p.part for p in distilled or () if echo.plain_words(p.content) in rest.withheld]
        withheld = [derived_id(turn.id, part) for part in parts]
        if rest.withheld:  # a model would find it again, in other words
            withheld += model_ids(turn.id)
        tx.bury(map(opened.row_id, withheld))
        ledger.put_row(turn)
        ledger.assess(turn, distilled, {})
    ledger.values.write(tx)


# -- recording -----------------------------------------------------------------------------------


def record(opened: OpenScope, request: Record, caller: Caller) -> Recorded:
    """Write a turn; durable when this returns, and only once per id."""
    if request.silent:
        raise InvalidRequest("The turn has no text.", hint="Give what was said, or the answer.")
    turn_id = request.id or f"turn-{opened.ports.clock.new_id()}"
    row_id = opened.row_id(turn_id)
    receipt, shown_before = opened.read(
        lambda view: (
            _seen_before(view, row_id, turn_id),
            sessions.shown_before(opened, view, request.session),
        )
    )
    if receipt is not None:
        return receipt  # a replay costs no transaction
    turn = request.turn(turn_id, opened.ports.clock.now(), caller.actor, caller.key)
    # No secrets, and nothing that memory itself had put in.
    turn = replace(
        turn,
        user=echo.without_quoted(echo.cut(turn.user), request.shown),
        assistant=echo.without_repeats(echo.cut(turn.assistant), request.shown, shown_before),
    )
    turn, redacted = admit(turn, opened.ports.policy.placeholder)
    distilled = distill(opened, turn)
    patience = opened.ports.policy.turn_embed_seconds
    vectors = embedding.vectors_of_pieces(opened, distilled or (), seconds=patience)

    def store(tx: Tx) -> Recorded:
        if receipt := _seen_before(tx, row_id, turn.id):
            return receipt
        ledger = TurnLedger(opened, tx)
        ledger.put_row(turn)
        ledger.assess(turn, distilled, vectors)
        sessions.note_shown(opened, tx, turn.session, request.shown)
        opened.trail.record(tx, "record", turn.actor, (row_id,))
        ledger.values.write(tx)
        mark = ledger.line.get(turn.place)
        assert mark is not None
        return Recorded(
            id=turn.id,
            state=State(mark.state),
            memories=tuple(opened.unseal(row).id for row in derived(tx, row_id)),
            redacted=redacted,
        )

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
    """Distill the turns that failed before; returns how many now succeeded."""
    failed = opened.read(
        lambda view: [
            mark for mark in Line(ScopeValues(opened, view)) if mark.state == State.FAILED
        ]
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
        backlog.requeue(ledger.values, turn.id)
        opened.trail.record(tx, "reindex", actor, (opened.row_id(turn.id),))
        ledger.values.write(tx)
        return True

    return opened.write(store)


# -- reading ----------------------------------------------------------------------------------


def _end(cursor: str | None) -> Place:
    """The place before which a page of turns begins, the latest first."""
    if cursor is None:
        return NEVER
    micros, tie = pages.place(cursor, 2)
    return micros - _SHIFT, tie


def _cursor(last: Place) -> str:
    return pages.cursor_at(last[0] + _SHIFT, last[1])


def turns(opened: OpenScope, request: TurnsRequest, *, actor: Actor) -> Page[Turn]:
    """Turns, newest first, of the scope or of a session.

    At least one if there is one, at most `limit`, within TURNS_CHARS characters.
    """
    end, session = _end(request.cursor), request.session
    if request.before is not None:
        end = min(end, (place(request.before, "")[0], -1))

    def look(view: View) -> Page[Turn]:
        if session is None:
            ids = (mark.id for mark in Line(ScopeValues(opened, view)).before(end))
        else:
            # When each was, only its cell says.
            rows = view.rows_of_session(_TURN, opened.session_hash(session))
            found = sorted(map(opened.unseal_turn, rows), key=lambda turn: turn.place, reverse=True)
            ids = (turn.id for turn in found if turn.place < end)
        whole: list[Turn] = []
        left = TURNS_CHARS
        for turn_id in ids:
            turn = read_turn(opened, view, turn_id)
            left -= len(turn.user) + len(turn.assistant)
            if len(whole) == request.limit or (whole and left < 0):
                return Page(data=tuple(whole), next_cursor=_cursor(whole[-1].place))
            whole.append(turn)
        return Page(data=tuple(whole))

    found = opened.read(look)
    opened.note_read("turns", actor)
    return found


def timeline(opened: OpenScope, request: Paged, *, actor: Actor) -> Timeline:
    """Times and topics of the turns, without decrypting one."""
    end = _end(request.cursor)

    def look(view: View) -> Timeline:
        line = Line(ScopeValues(opened, view))
        marks = list(islice(line.before(end), request.limit))[::-1]
        earlier = line.rank(marks[0].place if marks else end)
        return Timeline(
            moments=tuple(mark.moment() for mark in marks),
            earlier=earlier,
            since=line.begins,
            begun=line.begun(len(line) - earlier),
            next_cursor=_cursor(marks[0].place) if earlier else None,
        )

    found = opened.read(look)
    opened.note_read("timeline", actor)
    return found


# -- loading ----------------------------------------------------------------------------------


def load(opened: OpenScope, tx: Tx, loaded: Iterable[Turn], memories: Iterable[Memory]) -> None:
    """Add turns that come with their memories; nothing is derived."""
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
        ledger.put_row(turn)
        ledger.mark(turn, state)
    for memory in memories:
        if opened.peek(tx, memory.id) is not None:
            ledger.enlist(memory)
    ledger.values.write(tx)


# -- checking ---------------------------------------------------------------------------------


def check_line(opened: OpenScope, view: View) -> list[str]:
    """Whether the timeline lists exactly the existing turns."""
    try:
        listed = {opened.row_id(mark.id) for mark in Line(ScopeValues(opened, view))}
    except (SealBroken, NotFound, KeyMissing) as error:
        return [f"The timeline of turns does not open: {error.message}"]
    there = {row.id for row in changes(view, _TURN) if not row.erased}
    problems = []
    if missing := len(there - listed):
        problems.append(f"{missing} turns are not in the timeline.")
    if surplus := len(listed - there):
        problems.append(f"The timeline lists {surplus} turns too many.")
    return problems
