"""Statement chains: of several statements about one thing, such as a name, the latest one counts.

Statements derived from turns form a chain by the time they were said, whatever order they came
in: a late one takes its place in the middle, and one that is taken out leaves no gap.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from scrubjay.engine.ledger import derivation
from scrubjay.engine.ledger.timeline import Line, Mark, Place
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Origin
from scrubjay.model.rows import Collection
from scrubjay.model.turns import place
from scrubjay.ports import Tx

KEY = "slot"
"""Metadata key that names the slot of a memory."""


class StatementChain:
    """The statements of one origin about one thing, by time."""

    def __init__(self, opened: OpenScope, values: ScopeValues, name: str, origin: Origin) -> None:
        self._opened = opened
        self._values = values
        # Only like origins share a chain: nobody supersedes what is trusted more.
        self._line = Line(values, f"slot/{origin.value}/{name}")

    def enroll(self, memory: Memory) -> None:
        """Add a statement that is already written; its links stay as they are."""
        self._line.put(Mark(*_place(memory), memory.id))

    def add(self, tx: Tx, memory: Memory, vector: bytes | None) -> None:
        """Write a statement in its place in the chain."""
        self.enroll(memory)
        before, after = self._near(tx, memory)
        before = self._open_end(tx, before)
        memory = replace(
            memory,
            supersedes=before.id if before else None,
            superseded_by=after.id if after else None,
            retired_at=after.recorded_at if after else None,
        )
        put(self._opened, tx, memory, vector)
        self._join(tx, before, memory)
        self._join(tx, memory, after)

    def remove(self, tx: Tx, memory: Memory) -> None:
        """Unlink a statement and join its neighbors; the caller erases its row."""
        if not self._has(memory):
            return
        before, after = self._near(tx, memory)
        self._line.remove(_place(memory))
        self._join(tx, self._open_end(tx, before, memory.id), after)

    def _near(self, tx: Tx, memory: Memory) -> tuple[Memory | None, Memory | None]:
        """The existing statements before and after one."""
        where = _place(memory)
        return self._first(tx, self._line.before(where)), self._first(tx, self._line.after(where))

    def _first(self, tx: Tx, marks: Iterable[Mark]) -> Memory | None:
        """The nearest existing one: a forgotten statement may still be listed."""
        found = (self._opened.peek(tx, mark.id) for mark in marks)
        return next((memory for memory in found if memory is not None), None)

    def _join(self, tx: Tx, before: Memory | None, after: Memory | None) -> None:
        """Link two statements to each other."""
        if before is not None:
            self._change(
                tx,
                before,
                superseded_by=after.id if after else None,
                retired_at=after.recorded_at if after else None,
            )
        if after is not None:
            self._change(tx, after, supersedes=before.id if before else None)

    def _open_end(self, tx: Tx, before: Memory | None, gone: str | None = None) -> Memory | None:
        """The statement, or None if a person superseded it: then the chain continues there."""
        if before is None or before.superseded_by in (None, gone):
            return before
        after = self._opened.peek(tx, before.superseded_by)
        return before if after is None or self._has(after) else None

    def _has(self, memory: Memory) -> bool:
        mark = self._line.get(_place(memory)) if memory.sources else None
        return mark is not None and mark.id == memory.id

    def _change(self, tx: Tx, memory: Memory, **links: object) -> None:
        current = self._opened.peek(tx, memory.id)
        assert current is not None
        changed = replace(current, **links)
        if changed != current:
            self._opened.put(tx, replace(changed, version=current.version + 1))
            if changed.current is not current.current:
                derivation.refresh(self._opened, tx, self._values, changed)


def _place(memory: Memory) -> Place:
    return place(memory.said_at, memory.sources[0])


def put(opened: OpenScope, tx: Tx, memory: Memory, vector: bytes | None) -> None:
    """Write a derived memory, also over one that was withdrawn before."""
    known = tx.row(Collection.MEMORY, opened.row_id(memory.id))
    version = 1 if known is None else known.version + 1
    memory = replace(memory, version=version)
    opened.write_memory(tx, memory, opened.seal(memory, tx.head().memory.epoch, vector))
