"""Slots: of several statements about one thing, such as a name, the latest one counts.

Statements derived from turns form a chain by the time they were said, whatever order they came
in: a late one takes its place in the middle, and one that is taken out leaves no gap.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from scrubjay.domain.memory import Json, Memory
from scrubjay.domain.origin import Origin
from scrubjay.domain.rows import Collection
from scrubjay.engine import cells
from scrubjay.engine.notes import Notes
from scrubjay.engine.opened import OpenScope
from scrubjay.ports import Tx

KEY = "slot"
"""Under which name a memory's metadata says which slot it fills."""
_MOST = 128
"""How many statements about one thing are kept in line; the oldest beyond them stay as they are."""


class Said(NamedTuple):
    """One statement: when, and which memory holds it."""

    micros: int
    tie: int
    id: str


class Slot:
    """The statements of one origin about one thing, oldest first."""

    def __init__(self, opened: OpenScope, notes: Notes, name: str, origin: Origin) -> None:
        self._opened = opened
        self._notes = notes
        # Only like origins share a chain: nobody supersedes what is trusted more.
        self._name = f"slot/{origin.value}/{name}"
        found = cast(list[list[Json]], notes.get(self._name) or [])
        self._said = [Said(*one) for one in found]  # type: ignore[arg-type]

    def enroll(self, said: Said) -> None:
        """Put a statement that is written already in its place; its links stay as they are."""
        if said not in self._said:
            insort(self._said, said)
            self._keep()

    def add(self, tx: Tx, said: Said, memory: Memory, vector: bytes | None) -> None:
        """Write a statement in its place in the chain."""
        self._said = [one for one in self._said if one.id != said.id]
        insort(self._said, said)
        at = self._said.index(said)
        before, after = self._near(tx, at)
        memory = replace(
            memory,
            supersedes=before.id if before else None,
            superseded_by=after.id if after else None,
            retired_at=after.recorded_at if after else None,
        )
        put(self._opened, tx, memory, vector)
        self._join(tx, before, memory)
        self._join(tx, memory, after)
        self._keep()

    def remove(self, tx: Tx, memory: Memory) -> None:
        """Take a statement out and join its neighbors; its row is the caller's to erase."""
        at = next((n for n, one in enumerate(self._said) if one.id == memory.id), None)
        if at is None:
            return
        before, after = self._near(tx, at)
        del self._said[at]
        self._join(tx, before, after, gone=memory.id)
        self._keep()

    def _keep(self) -> None:
        del self._said[:-_MOST]
        self._notes.put(self._name, [list(one) for one in self._said] or None)

    def _near(self, tx: Tx, at: int) -> tuple[Memory | None, Memory | None]:
        """The statements before and after one that are still there."""
        return (
            self._first(tx, self._said[:at][::-1]),
            self._first(tx, self._said[at + 1 :]),
        )

    def _first(self, tx: Tx, said: Sequence[Said]) -> Memory | None:
        found = (peek(self._opened, tx, one.id) for one in said)
        return next((memory for memory in found if memory is not None), None)

    def _join(
        self, tx: Tx, before: Memory | None, after: Memory | None, *, gone: str | None = None
    ) -> None:
        """Let two statements name each other, unless somebody corrected the first by hand."""
        ours = {one.id for one in self._said} | {gone, None}
        if before is not None and before.superseded_by in ours:
            self._change(
                tx,
                before,
                superseded_by=after.id if after else None,
                retired_at=after.recorded_at if after else None,
            )
        if after is not None and after.supersedes in ours:
            self._change(tx, after, supersedes=before.id if before else None)

    def _change(self, tx: Tx, memory: Memory, **links: object) -> None:
        current = peek(self._opened, tx, memory.id)
        assert current is not None
        changed = replace(current, **links)  # type: ignore[arg-type]
        if changed != current:
            cells.put(self._opened, tx, replace(changed, version=current.version + 1))


def put(opened: OpenScope, tx: Tx, memory: Memory, vector: bytes | None) -> None:
    """Write a derived memory, also in the place of one that was taken back before."""
    known = tx.row(Collection.MEMORY, opened.row_id(memory.id))
    version = 1 if known is None else known.version + 1
    sealed = cells.current(opened, tx, replace(memory, version=version), None, vector)
    cells.write(opened, tx, sealed)


def peek(opened: OpenScope, tx: Tx, public_id: str) -> Memory | None:
    """The memory of this id as it is in the transaction; None if it is not there."""
    row = tx.row(Collection.MEMORY, opened.row_id(public_id))
    return None if row is None or row.erased else opened.unseal(row)
