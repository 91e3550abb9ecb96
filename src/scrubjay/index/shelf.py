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
        self._mutex = threading.Lock()

    def take(self, name: str, make: Callable[[], Item]) -> Item:
        """The thing of this name, made if it is not here, as the most recently used one."""
        with self._mutex:
            if name not in self._items:
                self._items[name] = make()
            self._items.move_to_end(name)
            return self._items[name]

    def drop(self, name: str) -> None:
        """Let go of one; none is fine."""
        with self._mutex:
            self._items.pop(name, None)

    def trim(self) -> None:
        """Let go of the least recently used until the rest fits; the last one used stays."""
        with self._mutex:
            total = self._total()
            while total > self._budget and len(self._items) > 1:
                _, gone = self._items.popitem(last=False)
                total -= gone.size

    @property
    def size(self) -> int:
        """How many bytes are on the shelf."""
        with self._mutex:
            return self._total()

    def __len__(self) -> int:
        return len(self._items)

    def _total(self) -> int:
        return sum(item.size for item in self._items.values())
