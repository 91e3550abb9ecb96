"""The timeline: index of the turns of a scope by time.

A store orders rows by their writes, and no row has its time in clear. So the timeline is an index
of two levels: a list of leaves, each a range of turns. Adding a turn rewrites one leaf and the
list, whatever the number of turns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import convert

from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.model.turns import EPISODE_TURNS, IDLE, Moment, State, time_of

_ROOT = "timeline"
_MOST = 96
"""Maximum number of turns in a leaf; more are split."""
_IDLE = IDLE // timedelta(microseconds=1)
Place = tuple[int, int]
NEVER: Place = (2**63, 0)
"""A place after every turn."""


class Mark(NamedTuple):
    """One turn in the timeline, or one thing that was said in a turn."""

    micros: int
    tie: int
    id: str
    state: int = 0
    gist: str = ""

    @property
    def place(self) -> Place:
        """Its place in the order of time."""
        return self.micros, self.tie

    def moment(self) -> Moment:
        """Its time."""
        return Moment(id=self.id, at=time_of(self.micros), state=State(self.state), gist=self.gist)


class Leaf(NamedTuple):
    """Leaf of the timeline: its first place, the value that holds it, the number of its turns.

    The time of its last turn, and the number of turns at its end without a long pause, give the
    episode boundaries without reading earlier leaves.
    """

    micros: int
    tie: int
    number: int
    size: int
    last: int = 0
    run: int = 0

    @property
    def place(self) -> Place:
        """Where it begins."""
        return self.micros, self.tie


def _run(marks: Sequence[Mark]) -> int:
    """Number of turns at the end without a long pause between them."""
    for count in range(1, len(marks)):
        if marks[-count].micros - marks[-count - 1].micros >= _IDLE:
            return count
    return len(marks)


class Line:
    """The timeline, or another line of marks, in one transaction; changes go to its values."""

    def __init__(self, values: ScopeValues, root: str = _ROOT) -> None:
        self._values = values
        self._root = root
        self._leaves = convert(values.get(root) or [], list[Leaf])
        self._marks: dict[int, list[Mark]] = {}

    # -- reading -----------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(leaf.size for leaf in self._leaves)

    def __iter__(self) -> Iterator[Mark]:
        for leaf in self._leaves:
            yield from self._in(leaf.number)

    def get(self, place: Place) -> Mark | None:
        """The turn at a place."""
        if not self._leaves:
            return None
        marks = self._in(self._leaves[self._leaf_of(place)].number)
        at = bisect_left(marks, place)
        return marks[at] if at < len(marks) and marks[at].place == place else None

    def before(self, place: Place = NEVER) -> Iterator[Mark]:
        """The turns before a place, or all of them, the latest first."""
        for leaf in reversed(self._leaves[: self._leaf_of(place) + 1]):
            marks = self._in(leaf.number)
            yield from reversed(marks[: bisect_left(marks, place)])

    def after(self, place: Place) -> Iterator[Mark]:
        """The turns after a place, the earliest first."""
        for leaf in self._leaves[self._leaf_of(place) :]:
            marks = self._in(leaf.number)
            yield from marks[bisect_left(marks, (place[0], place[1] + 1)) :]

    def rank(self, place: Place) -> int:
        """Number of turns before a place."""
        at = self._leaf_of(place)
        sizes = sum(leaf.size for leaf in self._leaves[:at])
        return sizes + sum(
            bisect_left(self._in(leaf.number), place) for leaf in self._leaves[at : at + 1]
        )

    def begun(self, count: int) -> int:
        """Number of turns in the same episode before the first of the last `count` turns."""
        run, last, left = 0, None, max(len(self) - count, 0)
        for leaf in self._leaves:
            if last is None or leaf.micros - last >= _IDLE:
                run = 0
            if leaf.size > left:
                here = _run(self._in(leaf.number)[: left + 1])
                return (here - 1 if here <= left else run + left) % EPISODE_TURNS
            left -= leaf.size
            run = leaf.run if leaf.run < leaf.size else run + leaf.size
            last = leaf.last
        return 0

    @property
    def begins(self) -> datetime | None:
        """Time of the first turn."""
        return time_of(self._leaves[0].micros) if self._leaves else None

    # -- changing ----------------------------------------------------------------------

    def put(self, mark: Mark) -> None:
        """Add a turn, or change the one at its place."""
        if not self._leaves:
            self._leaves = [Leaf(*mark.place, 0, 0)]
            self._marks[0] = []
        at = self._leaf_of(mark.place)
        marks = self._in(self._leaves[at].number)
        where = bisect_left(marks, mark.place)
        known = where < len(marks) and marks[where].place == mark.place
        marks[where : where + known] = [mark]
        if len(marks) > _MOST:
            fresh = max(leaf.number for leaf in self._leaves) + 1
            # Turns mostly come in the order of time: a leaf at the end is left nearly full.
            is_last = at == len(self._leaves) - 1
            cut = len(marks) - 1 if is_last else len(marks) // 2
            self._marks[fresh] = marks[cut:]
            self._leaves.insert(at + 1, Leaf(*marks[cut].place, fresh, 0))
            self._settle(at + 1, self._marks[fresh])
            del marks[cut:]
        self._settle(at, marks)

    def remove(self, place: Place) -> None:
        """Remove a turn; a missing one is fine."""
        if self.get(place) is None:
            return
        at = self._leaf_of(place)
        marks = self._in(self._leaves[at].number)
        del marks[bisect_left(marks, place)]
        self._settle(at, marks)

    def _in(self, number: int) -> list[Mark]:
        if number not in self._marks:
            found = self._values.get(f"{self._root}/{number}") or []
            self._marks[number] = convert(found, list[Mark])
        return self._marks[number]

    def _leaf_of(self, place: Place) -> int:
        """Leaf of a place; the first also takes earlier places."""
        return max(bisect_right(self._leaves, place, key=lambda leaf: leaf.place) - 1, 0)

    def _settle(self, at: int, marks: list[Mark]) -> None:
        """Write a changed leaf, and the list of leaves."""
        number = self._leaves[at].number
        self._values.put(f"{self._root}/{number}", [list(mark) for mark in marks] or None)
        if marks:
            run = _run(marks)
            self._leaves[at] = Leaf(*marks[0].place, number, len(marks), marks[-1].micros, run)
        else:
            del self._leaves[at], self._marks[number]
        self._values.put(self._root, [list(leaf) for leaf in self._leaves] or None)
