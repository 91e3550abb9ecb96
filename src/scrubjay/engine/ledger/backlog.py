"""The backlog: queue of the turns that a language model has still to read, and its token costs.

It is one note of the scope: a cursor in the order of the ledger's changes, and the few turns to
read again. So recording a turn writes nothing to it, and no turn is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, convert, to_builtins

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import Notes
from scrubjay.model.jobs import ATTEMPTS
from scrubjay.model.memory import Json
from scrubjay.ports import Tx, View

_NAME: Final = "extraction"


class Backlog(Struct, kw_only=True):
    """The backlog in one transaction."""

    cursor: int = 0
    """Last change of the ledger that was looked at."""
    redo: int = 0
    """Last change up to which turns are to be read a second time."""
    again: dict[str, int] = {}
    """Turns before the cursor that still wait, with their attempts so far."""
    paused: bool = False
    done: int = 0
    failed: int = 0
    memories: int = 0
    repeats: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    day: int = 0
    spent: int = 0
    """Tokens used on that day."""

    @classmethod
    def of(cls, notes: Notes) -> Backlog:
        """The backlog of a scope; an empty one if nothing was ever extracted."""
        return convert(notes.get(_NAME) or {}, cls)

    @staticmethod
    def begun(notes: Notes) -> bool:
        """Whether the scope has a backlog."""
        return notes.get(_NAME) is not None

    def put(self, notes: Notes) -> None:
        """Buffer it; written with the other notes."""
        notes.put(_NAME, to_builtins(self))

    def waits(self, seq: int, turn_id: str) -> bool:
        """Whether the turn still waits: no other process finished it."""
        return seq > self.cursor or turn_id in self.again

    def fail(self, turn_id: str, *, counted: bool) -> None:
        """Move a turn to the end of the queue, or give it up after too many attempts."""
        attempts = self.again.pop(turn_id, 0) + counted
        if attempts >= ATTEMPTS:
            self.failed += 1
        else:
            self.again[turn_id] = attempts

    def begin_again(self, last: int) -> None:
        """Queue every turn again, unless they are already."""
        if self.cursor >= self.redo:
            self.cursor, self.redo, self.failed = 0, last, 0
            self.again.clear()

    def spend(self, tokens_in: int, tokens_out: int, day: int) -> None:
        """Count tokens."""
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        self.spent = self.spent_on(day) + tokens_in + tokens_out
        self.day = day

    def spent_on(self, day: int) -> int:
        """Tokens used on a day."""
        return self.spent if day == self.day else 0


def requeue(notes: Notes, turn_id: str) -> None:
    """Queue a turn that was skipped, because it is no repetition any more."""
    if Backlog.begun(notes):
        backlog = Backlog.of(notes)
        backlog.again.setdefault(turn_id, 0)
        backlog.put(notes)


def drop(notes: Notes, turn_id: str) -> None:
    """Remove an erased turn: not even its id may stay."""
    if Backlog.begun(notes):
        backlog = Backlog.of(notes)
        if backlog.again.pop(turn_id, None) is not None:
            backlog.put(notes)


# -- in a backup: a paused scope is paused where it is restored, too ------------------------------


def carried(opened: OpenScope, view: View) -> Mapping[str, Json] | None:
    """The backlog for a backup: by the ids of turns, since their positions will change."""
    notes = Notes(opened, view)
    if not Backlog.begun(notes):
        return None
    backlog = Backlog.of(notes)
    found: dict[str, Json] = to_builtins(backlog)
    for place in ("cursor", "redo", "again"):
        del found[place]
    fresh = [turn.id for row, turn in opened.turns(view) if row.seq > backlog.cursor]
    return {**found, "waiting": [*fresh, *backlog.again]}


def adopt(opened: OpenScope, tx: Tx, found: Mapping[str, Json], *, empty: bool) -> None:
    """Take over the backlog of a backup, unless the scope has one of its own.

    A scope that was `empty` before has only the turns of the backup, so only those that waited
    there are queued.
    """
    notes = Notes(opened, tx)
    if Backlog.begun(notes):
        return
    backlog = convert(found, Backlog)
    if empty:
        backlog.cursor = tx.head().turn.seq
        backlog.again = dict.fromkeys(convert(found["waiting"], list[str]), 0)
    backlog.put(notes)
    notes.write(tx)
