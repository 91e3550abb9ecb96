"""extract: what a model finds in turns that rules did not, later and apart from recording them.

The model is asked outside any transaction. What it answers is written in one that looks again
whether the turn may still be read: a turn that was forgotten meanwhile leaves nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace

from scrubjay.engine.ledger.backlog import Backlog
from scrubjay.engine.ledger.timeline import Line
from scrubjay.engine.ledger.turn_ledger import Book, distill, unseal
from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.engine.scope.scope_values import Notes
from scrubjay.engine.search import embedding
from scrubjay.guard.admission import admit_piece
from scrubjay.model import echo
from scrubjay.model.errors import (
    ExtractorError,
    Frozen,
    InvalidRequest,
    KeyMissing,
    NotFound,
    SealBroken,
)
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Actor
from scrubjay.model.results import Extraction, ExtractionStatus, Stopped
from scrubjay.model.rows import Collection, Freeze, Row
from scrubjay.model.turns import (
    MODEL_PART,
    MODEL_PIECES,
    Extracted,
    Piece,
    State,
    Turn,
    alike,
    derived_id,
)
from scrubjay.ports import Extractor, Failpoint, Tx, View

_SUBJECT: Final = frozenset({"user"})
"""Rules keep what the user said, a model says that the user said it."""


def sift(
    pieces: Sequence[Piece], noted: Sequence[str], placeholder: str
) -> tuple[list[Piece], int]:
    """The pieces as they may be kept, numbered anew, and how many only repeat something."""
    from scrubjay.engine.search.word_match import (
        gist,  # loads stemmers, which recording turns does not need
    )

    known = [gist(text) - _SUBJECT for text in noted]
    kept, filled, repeats = list[Piece](), set[str](), 0
    for piece in pieces:
        admitted = admit_piece(piece, placeholder)
        said = gist(admitted.content) - _SUBJECT
        if not said or admitted.kind in (Kind.EPISODE, Kind.SUMMARY):
            continue
        is_echo = echo.marked(admitted.content) or any(alike(said, one) for one in known)
        if is_echo or admitted.slot in filled:
            repeats += 1
            continue
        known.append(said)
        if admitted.slot:
            filled.add(admitted.slot)  # one turn says one thing about one thing
        part = f"{MODEL_PART}{len(kept)}"
        kept.append(replace(admitted, part=part, said_by_user=False))
    return kept[:MODEL_PIECES], repeats


_TURN: Final = Collection.TURN
_PAGE: Final = 64
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """A turn to be read, and what is noted of it."""

    turn: Turn
    seq: int
    noted: tuple[str, ...]


def extract(
    opened: OpenScope, *, limit: int, seconds: float, again: bool, actor: Actor
) -> Extraction:
    """Have a model read the turns that wait, at most so many and no longer than that."""
    extractor = opened.ports.extractor
    if extractor is None:
        raise InvalidRequest(
            "No model is configured.", hint="Set extraction.url and extraction.model."
        )
    if opened.read(lambda view: view.head().frozen) is not Freeze.NONE:
        raise Frozen(f"The scope {opened.scope} is frozen.")  # before a token is spent
    if again:
        opened.write(lambda tx: _begin_again(opened, tx, actor))
    return _Round(opened, extractor, actor).run(limit, opened.ports.clock.monotonic() + seconds)


def _begin_again(opened: OpenScope, tx: Tx, actor: Actor) -> None:
    notes = Notes(opened, tx)
    backlog = Backlog.of(notes)
    backlog.begin_again(tx.head().turn.seq)
    backlog.put(notes)
    notes.write(tx)
    opened.trail.record(tx, "extract.again", actor)


def status(opened: OpenScope) -> ExtractionStatus:
    """How far the model has come, and what it cost."""

    def look(view: View) -> ExtractionStatus:
        backlog = Backlog.of(Notes(opened, view))
        return ExtractionStatus(
            configured=opened.ports.extractor is not None,
            paused=backlog.paused,
            waiting=_waiting(opened, view),
            done=backlog.done,
            failed=backlog.failed,
            memories=backlog.memories,
            repeats=backlog.repeats,
            tokens_in=backlog.tokens_in,
            tokens_out=backlog.tokens_out,
            tokens_today=backlog.spent_on(day(opened.ports.clock.now())),
            daily_tokens=opened.ports.policy.daily_tokens,
        )

    return opened.read(look)


def _waiting(opened: OpenScope, view: View) -> int:
    """How many turns wait; by their rows, since the last ones may be gone."""
    backlog = Backlog.of(Notes(opened, view))
    fresh = sum(not row.erased for row in _rows(view, backlog.cursor))
    return fresh + len(backlog.again)


def pause(opened: OpenScope, *, paused: bool, actor: Actor) -> ExtractionStatus:
    """Stop sending turns of this scope to the model, or go on."""

    def store(tx: Tx) -> None:
        notes = Notes(opened, tx)
        backlog = Backlog.of(notes)
        if backlog.paused is not paused:
            backlog.paused = paused
            backlog.put(notes)
            notes.write(tx)
            opened.trail.record(tx, "extract.pause" if paused else "extract.resume", actor)

    opened.write(store, frozen_too=True)
    return status(opened)


class _Round:
    """One extraction: turn after turn, until the limit, the time, or a reason to stop."""

    def __init__(self, opened: OpenScope, extractor: Extractor, actor: Actor) -> None:
        self._opened = opened
        self._extractor = extractor
        self._actor = actor
        self._tried: set[str] = set()
        self._moot: set[str] = set()
        self._passed = 0
        self._done = Extraction()

    def run(self, limit: int, until: float) -> Extraction:
        stopped = None
        self._enter()
        for _ in range(limit):
            stopped = self._reason()
            chosen = None if stopped else self._choose()
            if chosen is None:
                break
            if not self._read(chosen):
                stopped = Stopped.UNAVAILABLE
                break
            if self._opened.ports.clock.monotonic() >= until:
                break
        return replace(self._done, stopped=stopped, left=self._leave())

    def _reason(self) -> Stopped | None:
        """Why the model is not to be asked just now."""
        opened, most = self._opened, self._opened.ports.policy.daily_tokens
        backlog = opened.read(lambda view: Backlog.of(Notes(opened, view)))
        if backlog.paused:
            return Stopped.PAUSED
        spent = backlog.spent_on(day(opened.ports.clock.now()))
        return Stopped.SPENT if most and spent >= most else None

    def _enter(self) -> None:
        """Have a note before looking: turns that come to be new from then on are put in it."""
        opened = self._opened

        def store(tx: Tx) -> None:
            notes = Notes(opened, tx)
            Backlog.of(notes).put(notes)
            notes.write(tx)

        turns, there = opened.read(
            lambda view: (view.head().turn.seq, Backlog.begun(Notes(opened, view)))
        )
        if turns and not there:
            opened.write(store)

    def _leave(self) -> int:
        """Note how far this looked, and what need not wait; how many turns wait at most."""
        opened = self._opened

        def store(tx: Tx) -> None:
            notes = Notes(opened, tx)
            backlog = Backlog.of(notes)
            backlog.cursor = max(backlog.cursor, self._passed)
            for turn_id in self._moot & set(backlog.again):
                row = tx.row(_TURN, opened.row_id(turn_id))
                if row is None or self._look(tx, row, backlog, strict=False) is None:
                    del backlog.again[turn_id]
            backlog.put(notes)
            notes.write(tx)

        if self._passed > opened.read(lambda view: Backlog.of(Notes(opened, view))).cursor or (
            self._moot
        ):
            opened.write(store)
        return opened.read(lambda view: _waiting(opened, view))

    # -- which turn ----------------------------------------------------------------------

    def _choose(self) -> _Chosen | None:
        try:
            return self._opened.read(partial(self._next, strict=True))
        except (SealBroken, KeyMissing):
            # Damage, and no rotation under way: it must not hold up all that came after it.
            return self._opened.read(partial(self._next, strict=False))

    def _next(self, view: View, *, strict: bool) -> _Chosen | None:
        """The next turn to read: new ones first, so that one that fails holds nobody up."""
        backlog = Backlog.of(Notes(self._opened, view))
        for row in _rows(view, max(backlog.cursor, self._passed)):
            if (chosen := self._look(view, row, backlog, strict=strict)) is not None:
                return chosen
            self._passed = row.seq
        for turn_id in backlog.again:
            if turn_id in self._tried:
                continue
            found = view.row(_TURN, self._opened.row_id(turn_id))
            chosen = self._look(view, found, backlog, strict=strict) if found else None
            if chosen is not None:
                return chosen
            self._moot.add(turn_id)
        return None

    def _look(self, view: View, row: Row, backlog: Backlog, *, strict: bool) -> _Chosen | None:
        """The turn of a row, if it is to be read."""
        try:
            turn = None if row.erased else unseal(self._opened, row)
        except (SealBroken, KeyMissing, NotFound):
            if strict:
                raise
            return None
        if turn is None or not _may_read(self._opened, view, turn):
            return None
        parts = _model_ids(turn)
        known = _known(self._opened, view, parts[0])
        if known and row.seq > backlog.redo:
            return None  # such as by a load that brought what was found with the turn
        return _Chosen(
            turn=turn, seq=row.seq, noted=tuple(_noted(self._opened, view, row.id, set(parts)))
        )

    # -- reading it ----------------------------------------------------------------------

    def _read(self, chosen: _Chosen) -> bool:
        """Ask about one turn and write what is found; whether the model was there."""
        ports = self._opened.ports
        self._tried.add(chosen.turn.id)
        deadline = ports.clock.monotonic() + ports.policy.extract_seconds
        try:
            answer = self._extractor.extract(chosen.turn, chosen.noted, deadline=deadline)
        except ExtractorError as error:
            _log.warning("extract.unavailable", extra={"code": error.code})
            self._give_way(chosen)
            return False
        ports.reach(Failpoint.EXTRACT_ANSWERED)
        pieces, repeats = sift(answer.pieces, chosen.noted, ports.policy.placeholder)
        written = self._keep(chosen, answer, pieces, repeats)
        done = self._done
        self._done = replace(
            done,
            turns=done.turns + answer.usable,
            memories=done.memories + written,
            repeats=done.repeats + repeats,
            failed=done.failed + (not answer.usable),
            tokens_in=done.tokens_in + answer.tokens_in,
            tokens_out=done.tokens_out + answer.tokens_out,
        )
        return True

    def _give_way(self, chosen: _Chosen) -> None:
        """Let other turns go first next time.

        It counts against the turn only if the model answered others just now: else it is the
        model that fails, and no turn is to be given up for that.
        """
        self._done = replace(self._done, failed=self._done.failed + 1)

        def store(tx: Tx) -> None:
            notes = Notes(self._opened, tx)
            backlog = Backlog.of(notes)
            if backlog.waits(chosen.seq, chosen.turn.id):
                backlog.fail(chosen.seq, chosen.turn.id, counted=self._done.turns > 0)
                backlog.put(notes)
                notes.write(tx)

        self._opened.write(store)

    def _keep(
        self, chosen: _Chosen, answer: Extracted, pieces: Sequence[Piece], repeats: int
    ) -> int:
        """Write what was found, unless the turn is no longer to be read; how many memories."""
        opened, turn = self._opened, chosen.turn
        patience = opened.ports.policy.embed_seconds
        vectors = embedding.vectors_of_pieces(opened, pieces, seconds=patience)

        def store(tx: Tx) -> int:
            book = Book(opened, tx)
            backlog = self._counted(book.notes, answer)
            written: list[bytes] = []
            if backlog.waits(chosen.seq, turn.id) and answer.usable:
                if _may_read(opened, tx, turn) and not tx.buried([opened.row_id(turn.id)]):
                    anew = chosen.seq <= backlog.redo
                    written = book.add_found(turn, pieces, vectors, _model_ids(turn), anew=anew)
                backlog.done += 1
                backlog.memories += len(written)
                backlog.repeats += repeats
                backlog.settle(chosen.seq, turn.id)
            elif backlog.waits(chosen.seq, turn.id):
                backlog.fail(chosen.seq, turn.id, counted=True)
            backlog.put(book.notes)
            names = (opened.row_id(turn.id), *written)
            opened.trail.record(tx, "extract", self._actor, names, number=len(written))
            book.write()
            return len(written)

        try:
            return opened.write(store)
        except Frozen:
            opened.write(lambda tx: self._count(tx, answer), frozen_too=True)
            raise

    def _count(self, tx: Tx, answer: Extracted) -> None:
        """Count the tokens of an answer that came too late to be kept."""
        notes = Notes(self._opened, tx)
        self._counted(notes, answer).put(notes)
        notes.write(tx)

    def _counted(self, notes: Notes, answer: Extracted) -> Backlog:
        backlog = Backlog.of(notes)
        today = day(self._opened.ports.clock.now())
        backlog.spend(answer.tokens_in, answer.tokens_out, today)
        return backlog


# -- what may be read, and what is kept of the answer ---------------------------------------------


def _rows(view: View, after: int) -> Iterator[Row]:
    while rows := view.changes(_TURN, after, _PAGE):
        yield from rows
        after = rows[-1].seq


def _model_ids(turn: Turn) -> tuple[str, ...]:
    return tuple(derived_id(turn.id, f"{MODEL_PART}{number}") for number in range(MODEL_PIECES))


def _may_read(opened: OpenScope, view: View, turn: Turn) -> bool:
    """Whether a turn is there, was kept, and nothing of it was forgotten.

    What somebody forgot of a turn by itself would be found in it again, in other words.
    """
    row = view.row(_TURN, opened.row_id(turn.id))
    mark = Line(Notes(opened, view)).get(turn.place)
    if row is None or row.erased or mark is None or mark.state != State.KEPT:
        return False
    parts = [derived_id(turn.id, piece.part) for piece in distill(opened, turn) or ()]
    return not view.buried(opened.row_id(one) for one in (*parts, *_model_ids(turn)))


def _known(opened: OpenScope, view: View, public_id: str) -> bool:
    row = view.row(Collection.MEMORY, opened.row_id(public_id))
    return row is not None and not row.erased


def _noted(opened: OpenScope, view: View, turn_row: bytes, without: set[str]) -> Iterator[str]:
    """What was derived from a turn, but for its episode and what a model found before."""
    for row_id in view.derived(turn_row):
        row = view.row(Collection.MEMORY, row_id)
        memory = None if row is None or row.erased else opened.unseal(row)
        if memory and memory.kind is not Kind.EPISODE and memory.id not in without:
            yield memory.content
