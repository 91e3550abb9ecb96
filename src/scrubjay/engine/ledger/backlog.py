"""The backlog: which turns a model has still to read, and what its reading has cost.

It is one note of the scope. Turns are appended to the ledger, so a place in the order of changes
says which were looked at; beside it stand the few that have to be looked at again. So nothing is
written when a turn is recorded, and a turn that no process came to is never forgotten.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final, cast

from scrubjay.engine.scope.scope_values import Notes
from scrubjay.model.memory import Json

ATTEMPTS: Final = 3
"""After so many answers nobody could read, a turn is given up."""
_NAME: Final = "extraction"


@dataclass(slots=True, kw_only=True)
class Backlog:
    """The note as it is in one transaction."""

    cursor: int = 0
    """Up to which change of the ledger turns were looked at."""
    redo: int = 0
    """Up to which change they are to be read although they were before."""
    again: dict[str, int] = field(default_factory=dict)
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
        found = cast(dict[str, Any], notes.get(_NAME) or {})
        # A copy: notes hand out what they hold.
        return cls(**{**found, "again": dict(found.get("again", {}))})

    @staticmethod
    def begun(notes: Notes) -> bool:
        """Whether there is such a note at all."""
        return notes.get(_NAME) is not None

    def put(self, notes: Notes) -> None:
        """Note it; written with the other notes."""
        notes.put(_NAME, cast(Json, asdict(self)))

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
