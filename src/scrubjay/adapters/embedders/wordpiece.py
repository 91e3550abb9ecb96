"""Words to pieces of a fixed vocabulary, by the rules of BERT's uncased models."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

UNKNOWN = "[UNK]"
LONGEST_WORD = 100
CACHED_WORDS = 50_000
_CJK = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF)),
    *((0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


class _Folding(dict[int, str]):
    """What each character becomes: itself, nothing, a space, or a word of its own."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold(chr(code))
        return folded


def _fold(char: str) -> str:
    kind = unicodedata.category(char)
    if char in "\t\n\r" or kind[0] == "Z":
        return " "
    # Unassigned characters stay, so that a newer Unicode changes nothing about the others.
    if kind in {"Mn", "Cc", "Cf", "Co", "Cs"} or char == "\ufffd":
        return ""
    # ASCII marks such as $ and + are symbols to Unicode, but stand alone in the vocabulary.
    alone = kind[0] == "P" or (char.isascii() and not char.isalnum())
    return f" {char} " if alone or _is_ideograph(ord(char)) else char


def _is_ideograph(code: int) -> bool:
    return any(first <= code <= last for first, last in _CJK)


class WordPiece:
    """Texts to the numbers of their pieces: the longest piece that fits, again and again."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self.unknown = self._numbers[UNKNOWN]
        """The number of what is not in the vocabulary."""
        self._folding = _Folding()
        self._cache: dict[str, list[int]] = {}

    def pieces(self, text: str) -> list[int]:
        """The numbers of the pieces of a text, in order."""
        found: list[int] = []
        folded = unicodedata.normalize("NFD", text.lower()).translate(self._folding)
        for word in folded.split():
            found += self._cache.get(word) or self._remember(word)
        return found

    def _remember(self, word: str) -> list[int]:
        if len(self._cache) >= CACHED_WORDS:
            # Emptied, not trimmed: the words of a language are soon back, and reads take no lock.
            self._cache = {}
        self._cache[word] = pieces = self._split(word)
        return pieces

    def _split(self, word: str) -> list[int]:
        if len(word) > LONGEST_WORD:
            return [self.unknown]
        pieces, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._numbers.get(mark + word[start:end])
                if number is not None:
                    break
            else:
                return [self.unknown]
            pieces.append(number)
            start = end
        return pieces
