"""The backlog: which turns a model has still to read, and what its reading has cost.

It is one note of the scope. Turns are appended to the ledger, so a place in the order of changes
says which were looked at; beside it stand the few that have to be looked at again. So nothing is
written when a turn is recorded, and a turn that no process came to is never forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, convert, to_builtins

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import Notes
from scrubjay.model.memory import Json
from scrubjay.ports import Tx, View

ATTEMPTS: Final = 3
"""After so many answers nobody could read, a turn is given up."""
_NAME: Final = "extraction"


class Backlog(Struct, kw_only=True):
    """The note as it is in one transaction."""

    cursor: int = 0
    """Up to which change of the ledger turns were looked at."""
    redo: int = 0
    """Up to which change they are to be read although they were before."""
    again: dict[str, int] = {}
    """Turns before the cursor that still wait, by their attempts so far."""
    paused: bool = False
    done: int = 0
    failed: int = 0
    memories: int = 0
    repeats: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    day: int = 0
    spent: int = 0
    """How many tokens were used on that day."""

    @classmethod
    def of(cls, notes: Notes) -> Backlog:
        """The backlog of a scope; an empty one if nothing was ever extracted."""
        return convert(notes.get(_NAME) or {}, cls)

    @staticmethod
    def begun(notes: Notes) -> bool:
        """Whether there is such a note at all."""
        return notes.get(_NAME) is not None

    def put(self, notes: Notes) -> None:
        """Note it; written with the other notes."""
        notes.put(_NAME, to_builtins(self))

    def waits(self, seq: int, turn_id: str) -> bool:
        """Whether nobody was done with a turn in the meantime."""
        return seq > self.cursor or turn_id in self.again

    def settle(self, seq: int, turn_id: str) -> None:
        """Be done with a turn."""
        self.cursor = max(self.cursor, seq)
        self.again.pop(turn_id, None)

    def fail(self, seq: int, turn_id: str, *, counted: bool) -> None:
        """Put a turn at the end of the line, or give it up after too many attempts."""
        attempts = self.again.get(turn_id, 0) + counted
        self.settle(seq, turn_id)
        if attempts >= ATTEMPTS:
            self.failed += 1
        else:
            self.again[turn_id] = attempts

    def begin_again(self, last: int) -> None:
        """Have every turn read once more, unless that is going on already."""
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
        """How many tokens were used on a day."""
        return self.spent if day == self.day else 0


def requeue(notes: Notes, turn_id: str) -> None:
    """Have a turn read that was passed by, because it says something new after all."""
    if Backlog.begun(notes):
        backlog = Backlog.of(notes)
        backlog.again.setdefault(turn_id, 0)
        backlog.put(notes)


def drop(notes: Notes, turn_id: str) -> None:
    """Take a turn that is erased out of the line: not even its id is to stay."""
    if Backlog.begun(notes):
        backlog = Backlog.of(notes)
        if backlog.again.pop(turn_id, None) is not None:
            backlog.put(notes)


# -- in a backup: a paused scope is paused where it is restored, too ------------------------------


def carried(opened: OpenScope, view: View) -> Mapping[str, Json] | None:
    """The backlog as a backup has it: by the ids of turns, since their places will be others."""
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
    """Go on as the backup was, unless the scope has a backlog of its own.

    A scope that was `empty` before has no other turns than the backup's, so that none but those
    that waited there has to be read.
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
