"""LRU cache of decrypted memories, valid for one state of their scope.

Decrypting a memory takes longer than ranking it, and an agent asks about the same things again. The
cache is plaintext, but no more exposed than the keys in the same memory; it is emptied at the first
notice of an erasure, and when the scope is closed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from copy import deepcopy
from typing import Final

from msgspec.structs import replace

from scrubjay.model.memory import Memory

_OVERHEAD: Final = 1_000
"""Approximate bytes of a memory beside its texts."""
_NEVER: Final = -1
"""A seq that no state has."""


class PlaintextCache:
    """LRU cache of decrypted memories by row id, within a budget of bytes; thread-safe.

    Entries are valid at the change `seq`, and returned only to a reader of that state.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._held: OrderedDict[bytes, tuple[Memory, int]] = OrderedDict()
        self._seq = 0
        self._erased = 0
        self._size = 0
        self._mutex = threading.Lock()

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return self._size

    def get(self, row_id: bytes, seq: int) -> Memory | None:
        """The memory of a row in the state at this change, if it is here."""
        with self._mutex:
            if seq != self._seq or row_id not in self._held:
                return None
            self._held.move_to_end(row_id)
            return _copied(self._held[row_id][0])

    def put(self, row_id: bytes, memory: Memory, seq: int) -> None:
        """Cache a memory that was read in the state at this change.

        It is ignored if a later state was seen meanwhile: the memory may have changed.
        """
        memory, size = _copied(memory), _size(memory)
        with self._mutex:
            if seq != self._seq or size > self._budget:
                return
            self._take(row_id)
            self._held[row_id] = (memory, size)
            self._size += size
            while self._size > self._budget:
                self._take(next(iter(self._held)))

    def follow(self, seq: int, changed: Iterable[bytes]) -> None:
        """Invalidate the memories that changed up to a change."""
        with self._mutex:
            for row_id in changed:
                self._take(row_id)
            self._seq = seq

    def clear(self) -> None:
        """Empty the cache."""
        with self._mutex:
            self._held.clear()
            self._size = 0

    def noticed(self, erased: int) -> None:
        """Empty the cache if something was erased since the last call.

        Nothing is cached until the index has caught up: a reader of the state before the erasure
        would put erased memories back.
        """
        if erased > self._erased:
            self.clear()
            with self._mutex:
                self._erased, self._seq = erased, _NEVER

    def _take(self, row_id: bytes) -> None:
        gone = self._held.pop(row_id, None)
        self._size -= 0 if gone is None else gone[1]


def _copied(memory: Memory) -> Memory:
    """A copy of the memory with its own metadata, its only mutable part."""
    if not memory.metadata:
        return memory
    return replace(memory, metadata=deepcopy(dict(memory.metadata)))


def _size(memory: Memory) -> int:
    """Approximate size of a memory in bytes."""
    texts = (memory.content, *memory.tags, *memory.sources)
    metadata = len(repr(memory.metadata)) if memory.metadata else 0
    return _OVERHEAD + 2 * sum(map(len, texts)) + 4 * metadata
