"""extract: memories that a language model finds in turns, in the background.

The model is called outside any transaction. Its answer is written in one that checks again whether
the turn may be read: a turn that was forgotten meanwhile leaves nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from scrubjay.engine.ledger import jobs
from scrubjay.engine.ledger.backlog import Backlog
from scrubjay.engine.ledger.jobs import JobQueue
from scrubjay.engine.ledger.timeline import Line
from scrubjay.engine.ledger.turns import TurnLedger, distill
from scrubjay.engine.scope import purposes
from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.scope.views import changes, derived, living
from scrubjay.engine.search import embedding
from scrubjay.guard.admission import admit
from scrubjay.model import echo
from scrubjay.model.errors import (
    ExtractorError,
    Frozen,
    InvalidRequest,
    KeyMissing,
    NotFound,
    SealBroken,
)
from scrubjay.model.jobs import JobKind
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Actor
from scrubjay.model.results import Extraction, ExtractionStatus, Stopped
from scrubjay.model.rows import Collection, Row
from scrubjay.model.turns import (
    MODEL_PART,
    MODEL_PIECES,
    Extracted,
    Piece,
    State,
    Turn,
    alike,
    derived_id,
    model_ids,
)
from scrubjay.ports import Extractor, Failpoint, Tx, View

_SUBJECT: Final = frozenset({"user"})
"""Ignored in comparisons: a model writes "the user likes", where rules keep "I like"."""


def sift(
    pieces: Sequence[Piece], noted: Sequence[str], placeholder: str
) -> tuple[list[Piece], int]:
    """Filter: the pieces to keep, renumbered, and the number of repetitions."""
    from scrubjay.engine.search.analysis import (
        gist,  # loads stemmers, which recording turns does not need
    )

    known = [gist(text) - _SUBJECT for text in noted]
    kept, filled, repeats = list[Piece](), set[str](), 0
    for piece in pieces:
        admitted, _ = admit(piece, placeholder)
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
_log = logging.getLogger(__name__)


class _Chosen(Struct, frozen=True, kw_only=True):
    """A turn to be read, and the memories already derived from it."""

    turn: Turn
    seq: int
    noted: tuple[str, ...]


def extract(
    opened: OpenScope, *, limit: int, seconds: float, again: bool, actor: Actor
) -> Extraction:
    """Send waiting turns to the model, within a limit of turns and of time."""
    extractor = opened.ports.extractor
    if extractor is None:
        raise InvalidRequest(
            "No model is configured.", hint="Set extraction.url and extraction.model."
        )
    jobs.check_writable(opened)
    if again:

        def begin_again(tx: Tx, backlog: Backlog) -> bool:
            backlog.begin_again(tx.head().turn.seq)
            opened.trail.record(tx, "extract.again", actor)
            return True

        Backlog.change(opened, begin_again)
    return _Round(opened, extractor, actor).run(limit, opened.ports.clock.monotonic() + seconds)


def status(opened: OpenScope) -> ExtractionStatus:
    """Progress and cost of extraction."""

    def look(view: View) -> ExtractionStatus:
        backlog = Backlog.of(ScopeValues(opened, view))
        return ExtractionStatus(
            configured=opened.ports.extractor is not None,
            paused=backlog.paused,
            waiting=waiting(opened, view),
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


def waiting(opened: OpenScope, view: View) -> int:
    """Number of waiting turns, counted by rows, since some may be erased."""
    backlog = Backlog.of(ScopeValues(opened, view))
    fresh = sum(not row.erased for row in changes(view, _TURN, backlog.cursor))
    return fresh + len(backlog.again)


def pause(opened: OpenScope, *, paused: bool, actor: Actor) -> ExtractionStatus:
    """Stop sending turns of this scope to the model, or go on."""

    def change(tx: Tx, backlog: Backlog) -> bool:
        if backlog.paused is paused:
            return False
        backlog.paused = paused
        opened.trail.record(tx, "extract.pause" if paused else "extract.resume", actor)
        return True

    Backlog.change(opened, change, frozen_too=True)
    return status(opened)


class _Round:
    """One extraction: turn after turn, until a limit or a reason to stop."""

    def __init__(self, opened: OpenScope, extractor: Extractor, actor: Actor) -> None:
        self._opened = opened
        self._extractor = extractor
        self._actor = actor
        self._tried: set[str] = set()
        self._moot: set[str] = set()
        self._passed = 0
        self._done = Extraction()

    def run(self, limit: int, until: float) -> Extraction:
        opened, stopped = self._opened, None
        clock, most = opened.ports.clock, opened.ports.policy.daily_tokens
        turns, begun = opened.read(
            lambda view: (view.head().turn.seq, Backlog.begun(ScopeValues(opened, view)))
        )
        if turns and not begun:
            # A backlog before the first look: turns that come to be new from then on are put in it.
            Backlog.change(opened, lambda *_: True)
        for _ in range(limit):
            backlog = self._backlog()
            if backlog.paused or not opened.read(
                lambda view: purposes.derives(opened, ScopeValues(opened, view))
            ):
                stopped = Stopped.PAUSED
            elif most and backlog.spent_on(day(clock.now())) >= most:
                stopped = Stopped.SPENT
            elif (chosen := self._choose()) is None:
                break
            elif (holder := self._lease(chosen)) is None:
                continue  # another process was faster
            elif not self._read(chosen, holder):
                stopped = Stopped.UNAVAILABLE
            if stopped or clock.monotonic() >= until:
                break
        if self._passed > self._backlog().cursor or self._moot:
            Backlog.change(opened, self._leave)
        left = opened.read(lambda view: waiting(opened, view))
        return replace(self._done, stopped=stopped, left=left)

    def _backlog(self) -> Backlog:
        return self._opened.read(lambda view: Backlog.of(ScopeValues(self._opened, view)))

    def _leave(self, tx: Tx, backlog: Backlog) -> bool:
        """Write the cursor, and the turns that need not be read."""
        backlog.cursor = max(backlog.cursor, self._passed)
        for turn_id in self._moot & set(backlog.again):
            row = tx.row(_TURN, self._opened.row_id(turn_id))
            if row is None or self._look(tx, row, backlog, strict=False) is None:
                del backlog.again[turn_id]
        return True

    # -- which turn ----------------------------------------------------------------------

    def _choose(self) -> _Chosen | None:
        """The next turn to read."""
        try:
            return self._opened.read(partial(self._next, strict=True))
        except (SealBroken, KeyMissing):
            # Damage, and no rotation under way: it must not hold up all that came after it.
            return self._opened.read(partial(self._next, strict=False))

    def _next(self, view: View, *, strict: bool) -> _Chosen | None:
        """The next turn to read: new ones first, so that a failing one blocks no other."""
        values = ScopeValues(self._opened, view)
        backlog = Backlog.of(values)
        for row in changes(view, _TURN, max(backlog.cursor, self._passed)):
            if (chosen := self._look(view, row, backlog, strict=strict)) is not None:
                return chosen
            self._passed = row.seq
        queue, now = JobQueue.of(values), self._opened.ports.clock.now()
        for turn_id in backlog.again:
            if turn_id in self._tried or not queue.is_free(self._job(turn_id), now):
                continue
            found = view.row(_TURN, self._opened.row_id(turn_id))
            chosen = self._look(view, found, backlog, strict=strict) if found else None
            if chosen is not None:
                return chosen
            self._moot.add(turn_id)
        return None

    def _look(self, view: View, row: Row, backlog: Backlog, *, strict: bool) -> _Chosen | None:
        """The turn of a row, if it is to be read."""
        opened = self._opened
        try:
            turn = None if row.erased else opened.unseal_turn(row)
        except (SealBroken, KeyMissing, NotFound):
            if strict:
                raise
            return None
        if turn is None or not _may_read(opened, view, turn):
            return None
        found = model_ids(turn.id)
        if row.seq > backlog.redo and living(view, Collection.MEMORY, opened.row_id(found[0])):
            return None  # such as by a load that brought what was found with the turn
        # What rules noted: all that was derived, but for the episode and what a model found before.
        memories = map(opened.unseal, derived(view, row.id))
        noted = [m.content for m in memories if m.kind is not Kind.EPISODE and m.id not in found]
        return _Chosen(turn=turn, seq=row.seq, noted=tuple(noted))

    # -- reading it ----------------------------------------------------------------------

    def _job(self, turn_id: str) -> str:
        return jobs.job_name(self._opened, JobKind.EXTRACTION, turn_id)

    def _lease(self, chosen: _Chosen) -> str | None:
        """Take the turn for this process; returns the holder of the lease, None if it is taken.

        From then on the turn is among those to read again: the cursor passes it, and if this
        process dies, another one reads it when the lease is over.
        """
        job, turn_id = self._job(chosen.turn.id), chosen.turn.id
        self._tried.add(turn_id)

        def store(tx: Tx) -> str | None:
            values = ScopeValues(self._opened, tx)
            queue, backlog = JobQueue.of(values), Backlog.of(values)
            free = queue.is_free(job, self._opened.ports.clock.now())
            may = purposes.derives(self._opened, values)
            if not free or not may or not backlog.waits(chosen.seq, turn_id):
                return None
            backlog.cursor = max(backlog.cursor, chosen.seq)
            backlog.again.setdefault(turn_id, 0)
            holder = queue.take(self._opened, job)
            backlog.put(values)
            queue.put(values)
            values.write(tx)
            return holder

        holder = self._opened.write(store)
        self._opened.ports.reach(Failpoint.JOB_LEASED)
        return holder

    def _read(self, chosen: _Chosen, holder: str) -> bool:
        """Send one turn and write the result; returns whether the model was available."""
        ports = self._opened.ports
        deadline = ports.clock.monotonic() + ports.policy.extract_seconds
        own, _ = chosen.turn.own_words()  # a model would vouch for what was only quoted
        try:
            answer = self._extractor.extract(own, chosen.noted, deadline=deadline)
        except ExtractorError as error:
            _log.warning("extract.unavailable", extra={"code": error.code})
            # Other turns go first next time. It counts against the turn only if the model answered
            # others just now: else it is the model that fails, and no turn is given up for that.
            counted = self._done.turns > 0
            self._done = replace(self._done, failed=self._done.failed + 1)

            def give_way(tx: Tx) -> None:
                values = ScopeValues(self._opened, tx)
                queue, backlog = JobQueue.of(values), Backlog.of(values)
                mine = queue.give_back(self._job(chosen.turn.id), holder)
                if mine and chosen.turn.id in backlog.again:
                    backlog.fail(chosen.turn.id, counted=counted)
                backlog.put(values)
                queue.put(values)
                values.write(tx)

            self._opened.write(give_way)
            return False
        ports.reach(Failpoint.EXTRACT_ANSWERED)
        pieces, repeats = sift(answer.pieces, chosen.noted, ports.policy.placeholder)
        written = self._keep(chosen, holder, answer, pieces, repeats)
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

    def _keep(
        self,
        chosen: _Chosen,
        holder: str,
        answer: Extracted,
        pieces: Sequence[Piece],
        repeats: int,
    ) -> int:
        """Write the memories, unless the turn may no longer be read; returns their number."""
        opened, turn = self._opened, chosen.turn
        patience = opened.ports.policy.embed_seconds
        vectors = embedding.vectors_of_pieces(opened, pieces, seconds=patience)

        def spend(_: Tx, backlog: Backlog) -> bool:
            today = day(opened.ports.clock.now())
            backlog.spend(answer.tokens_in, answer.tokens_out, today)
            return True

        def store(tx: Tx) -> int:
            ledger = TurnLedger(opened, tx)
            backlog = Backlog.of(ledger.values)
            spend(tx, backlog)
            queue = JobQueue.of(ledger.values)
            waits = queue.give_back(self._job(turn.id), holder) and turn.id in backlog.again
            queue.put(ledger.values)
            written: list[bytes] = []
            if not purposes.derives(opened, ledger.values):
                pass  # withdrawn while the model thought: nothing of the answer is kept
            elif waits and answer.usable:
                if _may_read(opened, tx, turn) and not tx.buried([opened.row_id(turn.id)]):
                    if chosen.seq <= backlog.redo:  # in place of what was found earlier
                        ledger.withdraw(turn, model_ids(turn.id))
                    written = ledger.derive(turn, pieces, vectors)
                backlog.done += 1
                backlog.memories += len(written)
                backlog.repeats += repeats
                del backlog.again[turn.id]
            elif waits:
                backlog.fail(turn.id, counted=True)
            backlog.put(ledger.values)
            names = (opened.row_id(turn.id), *written)
            opened.trail.record(tx, "extract", self._actor, names, number=len(written))
            ledger.values.write(tx)
            return len(written)

        try:
            return opened.write(store)
        except Frozen:  # the answer came too late to be kept, but its tokens count
            Backlog.change(opened, spend, frozen_too=True)
            job = self._job(turn.id)
            JobQueue.change(opened, lambda _, queue: queue.give_back(job, holder), frozen_too=True)
            raise


# -- what may be read, and what is kept of the answer ---------------------------------------------


def _may_read(opened: OpenScope, view: View, turn: Turn) -> bool:
    """Whether a turn exists, was kept, has words of its own, and nothing of it was forgotten.

    The model would find a forgotten memory again, in other words.
    """
    mark = Line(ScopeValues(opened, view)).get(turn.place)
    there = living(view, _TURN, opened.row_id(turn.id))
    if there is None or mark is None or mark.state != State.KEPT:
        return False
    own, _ = turn.own_words()
    if not own.user.strip() and not own.assistant.strip():
        return False
    parts = [derived_id(turn.id, piece.part) for piece in distill(opened, turn) or ()]
    return not view.buried(opened.row_id(one) for one in (*parts, *model_ids(turn.id)))
