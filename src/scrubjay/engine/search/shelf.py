"""The shelf: LRU cache of open indexes within a memory budget; and short recalls without a thread.

A recall is short if it takes a few milliseconds and waits for no lock. A surface with an event loop
may run it on the loop. The work is many small calls of numpy, each of which releases the GIL and
takes it again: in a thread, it and the loop would switch dozens of times, which doubles the cost.
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
    """Anything with an approximate size in bytes."""

    @property
    def size(self) -> int:
        """Bytes in memory."""


Item = TypeVar("Item", bound=Sized)


class Shelf(Generic[Item]):
    """LRU cache within a budget of bytes; thread-safe.

    An evicted entry stays usable for callers that still hold it.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._items: OrderedDict[str, Item] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._total = 0
        self._touched: set[str] = set()
        """Entries whose size may have changed; asking all of thousands would take too long."""
        self._mutex = threading.Lock()

    def take(self, name: str, make: Callable[[], Item]) -> Item:
        """The entry of this name, made if it is missing; it becomes the most recently used one."""
        with self._mutex:
            if name not in self._items:
                self._items[name] = make()
            self._items.move_to_end(name)
            self._touched.add(name)
            return self._items[name]

    def find(self, name: str) -> Item | None:
        """The entry of this name, or None; it becomes the most recently used one."""
        with self._mutex:
            if name not in self._items:
                return None
            self._items.move_to_end(name)
            self._touched.add(name)
            return self._items[name]

    @property
    def full(self) -> bool:
        """Whether the budget is exceeded, so that `trim` would evict."""
        with self._mutex:
            self._measure_touched()
            return self._total > self._budget

    def drop(self, name: str) -> None:
        """Drop one entry; a missing one is fine."""
        with self._mutex:
            self._items.pop(name, None)
            self._measure(name)

    def trim(self) -> list[Item]:
        """Evict the least recently used entries until the rest fits; the last one used stays."""
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
        """Size in bytes when it was last trimmed."""
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
"""Maximum number of memories: more take longer, mostly outside the GIL."""
CHANGES: Final = 32
"""Maximum number of changes to catch up with."""


class Short:
    """A short recall of one scope; its index is locked until the end of the block.

    It neither advances due work nor evicts other indexes, which may take long; the next recall in
    a thread does.
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
    """A short recall of the scope; None if it would take long or wait for a lock."""
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
