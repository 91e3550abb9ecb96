"""The shelf: open things by name, the least recently used ones let go when space runs out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


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
