"""The backlog: queue of the turns that a language model has still to read, and its token costs.

It is one value of the scope: a cursor in the order of the ledger's changes, and the few turns to
read again. So recording a turn writes nothing to it, and no turn is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import convert, field, to_builtins

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import ScopeValues, SealedState
from scrubjay.model.jobs import ATTEMPTS
from scrubjay.model.memory import Json
from scrubjay.ports import Tx, View


class Backlog(SealedState, kw_only=True):
    """The backlog in one transaction; an empty one if nothing was ever extracted."""

    NAME = "extraction"

    cursor: int = 0
    """Last change of the ledger that was looked at."""
    redo: int = 0
    """Last change up to which turns are to be read a second time."""
    again: dict[str, int] = field(default_factory=dict)
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
    def begun(cls, values: ScopeValues) -> bool:
        """Whether the scope has a backlog."""
        return values.get(cls.NAME) is not None

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


def requeue(values: ScopeValues, turn_id: str) -> None:
    """Queue a turn that was skipped, because it is no repetition any more."""
    if Backlog.begun(values):
        backlog = Backlog.of(values)
        backlog.again.setdefault(turn_id, 0)
        backlog.put(values)


def drop(values: ScopeValues, turn_id: str) -> None:
    """Remove an erased turn: not even its id may stay."""
    if Backlog.begun(values):
        backlog = Backlog.of(values)
        if backlog.again.pop(turn_id, None) is not None:
            backlog.put(values)


# -- in a backup: a paused scope is paused where it is restored, too ------------------------------


def carried(opened: OpenScope, view: View) -> Mapping[str, Json] | None:
    """The backlog for a backup: by the ids of turns, since their positions will change."""
    values = ScopeValues(opened, view)
    if not Backlog.begun(values):
        return None
    backlog = Backlog.of(values)
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
    values = ScopeValues(opened, tx)
    if Backlog.begun(values):
        return
    backlog = convert(found, Backlog)
    if empty:
        backlog.cursor = tx.head().turn.seq
        backlog.again = dict.fromkeys(convert(found["waiting"], list[str]), 0)
    backlog.put(values)
    values.write(tx)
