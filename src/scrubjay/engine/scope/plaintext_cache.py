"""LRU cache of decrypted memories, as they are at one change of their scope.

Opening a memory takes longer than ranking it, and an agent asks about the same things again and
again. The cache is plaintext, but no more so than the keys beside it in memory; it is dropped at
the first notice of an erasure, and whenever a scope is closed.
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
"""What a memory takes beside its texts, roughly, in bytes."""
_NEVER: Final = -1
"""The change of no state there is."""


class PlaintextCache:
    """LRU cache of decrypted memories by row id, within a budget of bytes; thread-safe.

    Each is as it was at the change `seq`, and given out only to a reader of that very state.
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
        """Roughly how many bytes it takes."""
        return self._size

    def get(self, row_id: bytes, seq: int) -> Memory | None:
        """The memory of a row in the state at this change, if it is here."""
        with self._mutex:
            if seq != self._seq or row_id not in self._held:
                return None
            self._held.move_to_end(row_id)
            return _copied(self._held[row_id][0])

    def put(self, row_id: bytes, memory: Memory, seq: int) -> None:
        """Keep a memory that was opened in the state at this change.

        If others have seen a later one meanwhile, nobody can tell whether it still is as it was.
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
        """Let go of what has changed up to a change; the rest is as it was."""
        with self._mutex:
            for row_id in changed:
                self._take(row_id)
            self._seq = seq

    def clear(self) -> None:
        """Let go of everything."""
        with self._mutex:
            self._held.clear()
            self._size = 0

    def noticed(self, erased: int) -> None:
        """Let go of everything if something was erased since this was last told.

        Nor is anything kept until the index has followed: who still looks at the state before the
        erasure would bring back what was erased.
        """
        if erased > self._erased:
            self.clear()
            with self._mutex:
                self._erased, self._seq = erased, _NEVER

    def _take(self, row_id: bytes) -> None:
        gone = self._held.pop(row_id, None)
        self._size -= 0 if gone is None else gone[1]


def _copied(memory: Memory) -> Memory:
    """The memory with metadata of its own, which is all of it that anybody could change."""
    if not memory.metadata:
        return memory
    return replace(memory, metadata=deepcopy(dict(memory.metadata)))


def _size(memory: Memory) -> int:
    """Roughly how many bytes a memory takes."""
    texts = (memory.content, *memory.tags, *memory.sources)
    metadata = len(repr(memory.metadata)) if memory.metadata else 0
    return _OVERHEAD + 2 * sum(map(len, texts)) + 4 * metadata
