"""Results that show a scope or a memory from outside: statistics, lineage, changes."""

from __future__ import annotations

from typing import Annotated

from scrubjay.model.memory import Memory, MemoryId, Result
from scrubjay.model.scope import Scope
from scrubjay.model.text import Time, doc
from scrubjay.model.turns import Turn

Counts = dict[str, int]


class Statistics(Result, frozen=True, kw_only=True):
    """Counts of a scope; expired memories do not count."""

    scope: Annotated[Scope, doc("The scope.")]
    live: Annotated[int, doc("How many memories are current.")]
    superseded: Annotated[int, doc("How many were superseded, or wait for a source.")]
    pinned: Annotated[int, doc("How many of the current ones are pinned.")]
    kinds: Annotated[Counts, doc("How many are current, by kind.")]
    origins: Annotated[Counts, doc("How many are current, by origin.")]
    tags: Annotated[Counts, doc("The ten most frequent tags, and how many have each.")]
    weeks: Annotated[
        Counts,
        doc(
            "How many were recorded in each of the last twelve weeks, superseded ones "
            "too, by its Monday; oldest first."
        ),
    ]

    @property
    def title(self) -> str:
        """The scope and its totals."""
        counts = f"{self.live:,} memories, {self.pinned:,} pinned, {self.superseded:,} superseded"
        return f"{self.scope}: {counts}"

    @property
    def parts(self) -> list[tuple[str, Counts]]:
        """The lists that have something in them, by title."""
        named = (("kinds", self.kinds), ("origins", self.origins), ("top tags", self.tags))
        return [(title, counts) for title, counts in named if counts]


class RecallCounter(Result, frozen=True, kw_only=True):
    """Counter of one memory: how often a search gave it as a hit.

    It is written at most once a minute, and when the scope is closed. A brief, a list or a look at
    one memory does not count.
    """

    id: MemoryId
    recalls: Annotated[int, doc("How often it was recalled.")] = 0
    recalled_at: Annotated[
        Time | None, doc("The time it was last recalled; None if it never was.")
    ] = None


class Relative(Result, frozen=True, kw_only=True):
    """A memory or turn that another memory was derived from, or that was derived from it."""

    steps: Annotated[int, doc("How many steps away it is: 1 or 2.")]
    memory: Annotated[Memory | None, doc("The memory; None for a turn.")] = None
    turn: Annotated[Turn | None, doc("The turn; None for a memory.")] = None


class Lineage(Result, frozen=True, kw_only=True):
    """Lineage of one memory: its sources and what was derived from it, two steps each way."""

    memory: Annotated[Memory, doc("The memory itself.")]
    sources: Annotated[
        tuple[Relative, ...], doc("What it was derived from, the nearest first.")
    ] = ()
    derived: Annotated[
        tuple[Relative, ...], doc("What was derived from it, the nearest first.")
    ] = ()
    complete: Annotated[
        bool, doc("Whether this is all within two steps; at most 50 are returned.")
    ] = True


class Change(Result, frozen=True, kw_only=True):
    """One change of a scope: a memory was written, changed or erased."""

    seq: Annotated[int, doc("Sequence number of the change.")]
    row: Annotated[str, doc("Pseudonym of the memory: the same in all its changes, also the last.")]
    memory: Annotated[Memory | None, doc("The memory as it is now; None if it was erased.")] = None


class Changes(Result, frozen=True, kw_only=True):
    """Change feed of a scope from a cursor on, for a reader that keeps a copy."""

    changes: Annotated[tuple[Change, ...], doc("The changes, oldest first.")]
    next_cursor: Annotated[
        str, doc("Pagination cursor of the changes that come next, those still to be made as well.")
    ]
    anew: Annotated[
        bool,
        doc("Reset: the reader must first drop its copy; changes before this were cleaned up."),
    ] = False

    @property
    def memories(self) -> tuple[Memory, ...]:
        """The memories that were written or changed."""
        return tuple(one.memory for one in self.changes if one.memory is not None)

    @property
    def erased(self) -> frozenset[str]:
        """The pseudonyms of the memories that were erased."""
        return frozenset(one.row for one in self.changes if one.memory is None)
