"""The shelf: open indexes by name, an LRU cache within a budget of bytes; and recalls on the spot.

A recall is short where it takes but a few milliseconds now and waits for nobody. A surface with an
event loop may then do it right there. The work is nearly all Python and small calls of numpy, each
of which lets go of the interpreter and wants it back: on a thread of its own, it and the loop would
take it from each other dozens of times, which costs as much again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from scrubjay.model.errors import ScrubjayError
from scrubjay.model.requests import Caller, Recall
from scrubjay.model.results import Recalled
from scrubjay.model.scope import Scope

if TYPE_CHECKING:
    from scrubjay.engine.search.open_index import OpenIndex


class Sized(Protocol):
    """Something that says roughly how many bytes of memory it takes."""

    @property
    def size(self) -> int:
        """Bytes in memory."""


Item = TypeVar("Item", bound=Sized)


class Shelf(Generic[Item]):
    """Things kept open within a budget of bytes; safe for several threads.

    What is let go is only forgotten here: whoever still works with it may finish.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._items: OrderedDict[str, Item] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._total = 0
        self._touched: set[str] = set()
        """Whose size may have changed; to ask all of thousands each time would take too long."""
        self._mutex = threading.Lock()

    def take(self, name: str, make: Callable[[], Item]) -> Item:
        """The thing of this name, made if it is not here, as the most recently used one."""
        with self._mutex:
            if name not in self._items:
                self._items[name] = make()
            self._items.move_to_end(name)
            self._touched.add(name)
            return self._items[name]

    def find(self, name: str) -> Item | None:
        """The thing of this name as the most recently used one; None if it is not here."""
        with self._mutex:
            if name not in self._items:
                return None
            self._items.move_to_end(name)
            self._touched.add(name)
            return self._items[name]

    @property
    def full(self) -> bool:
        """Whether something has to go: `trim` lets it."""
        with self._mutex:
            self._measure_touched()
            return self._total > self._budget

    def drop(self, name: str) -> None:
        """Let go of one; none is fine."""
        with self._mutex:
            self._items.pop(name, None)
            self._measure(name)

    def trim(self) -> list[Item]:
        """Let go of the least recently used until the rest fits; the last one used stays."""
        gone: list[Item] = []
        with self._mutex:
            self._measure_touched()
            while self._total > self._budget and len(self._items) > 1:
                name, item = self._items.popitem(last=False)
                self._measure(name)
                gone.append(item)
        return gone

    @property
    def size(self) -> int:
        """How many bytes were on the shelf when it was last trimmed."""
        return self._total

    def __len__(self) -> int:
        return len(self._items)

    def _measure_touched(self) -> None:
        while self._touched:
            self._measure(self._touched.pop())

    def _measure(self, name: str) -> None:
        item = self._items.get(name)
        before = self._sizes.pop(name, 0)
        if item is not None:
            self._sizes[name] = item.size
        self._total += self._sizes.get(name, 0) - before


# -- a recall on the spot -----------------------------------------------------------------------

ROWS: Final = 10_000
"""A scope of more memories is ranked elsewhere: that takes longer, most of it outside Python."""
CHANGES: Final = 32
"""How many changes may be taken in on the way."""


class Short:
    """A recall of one scope that is at hand; its index is held until the end of the block.

    It works on what it holds and on nothing else: it neither advances what is due nor makes room
    for others, which may take long. The next recall on a thread does.
    """

    def __init__(self, indexed: OpenIndex, held: ExitStack) -> None:
        self._indexed = indexed
        self._held = held

    def __enter__(self) -> Short:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def recall(self, scope: Scope, request: Recall, caller: Caller) -> Recalled:
        """The memories that answer a question, best first."""
        from scrubjay.engine.search import recall  # loaded already, since the index was used

        assert scope == self._indexed.opened.scope
        assert not request.scopes
        return recall.recall([self._indexed], request, caller)


def short(indexed: OpenIndex) -> Short | None:
    """A recall of the scope, ready to be done; None if it would take long, or wait."""
    opened = indexed.opened
    if opened.ports.embedder.costly or not indexed.lock.acquire(blocking=False):
        return None
    with ExitStack() as held:
        held.callback(indexed.lock.release)
        index = indexed.index
        if index is None or indexed.late or not indexed.used or len(index) > ROWS:
            return None
        if index.unwritten + CHANGES > opened.ports.policy.segment_rows:
            return None  # a segment may be written
        try:
            head = opened.read(lambda view: view.head())
        except ScrubjayError:
            return None  # the recall itself will say what is wrong
        # What is due is for a thread to advance: were it never asked, it would stay due.
        if not head.due and 0 <= head.memory.seq - index.seq <= CHANGES:
            return Short(indexed, held.pop_all())
    return None
