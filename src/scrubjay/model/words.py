"""Cache of what is worked out of single words: a look costs no call and takes no lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

CACHED_WORDS: Final = 1 << 16
LONGEST_CACHED: Final = 64
"""A longer word is seldom met twice, and would keep its text in memory."""
Found = TypeVar("Found")


class WordCache(dict[str, Found], Generic[Found]):
    """What a function finds of words, each worked out once; emptied when it is full."""

    def __init__(self, work_out: Callable[[str], Found], most: int = CACHED_WORDS) -> None:
        super().__init__()
        self._work_out = work_out
        self._most = most

    def __missing__(self, word: str) -> Found:
        found = self._work_out(word)
        if len(word) <= LONGEST_CACHED:
            if len(self) >= self._most:
                self.clear()  # the words of a language are soon back
            self[word] = found
        return found
