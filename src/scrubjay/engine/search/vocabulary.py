"""Analysis of many texts at once: each piece between two spaces has a number, numpy does the rest.

What a piece holds is worked out once, by `analysis` and `sounds`; so a text costs a look for each
of its pieces. This is for plain texts: ASCII, in English. All others are analyzed one by one.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from scrubjay.engine.search import analysis
from scrubjay.engine.search.analysis import (
    DEFAULT_LANGUAGE,
    SAMPLE_WORDS,
    SEEN_CHARS,
    Signs,
    heard,
    hints,
    read_signs,
    terms_of,
    words,
)
from scrubjay.engine.search.postings import Keys, Mask, Rows, key_of, keys_of
from scrubjay.engine.search.sounds import sounds
from scrubjay.model.memory import Memory, wording
from scrubjay.model.words import CACHED_WORDS, LONGEST_CACHED

Array: TypeAlias = NDArray[Any]
_RUN: Final = 2048
"""Memories analyzed at a time."""
_FEW: Final = 8
"""Fewer memories are analyzed one by one: each step of numpy costs the same for any number."""
_LONG: Final = 0
"""The number of every piece that is too long to be kept."""


class Analyzed(Struct, frozen=True, kw_only=True):
    """What is found in the texts of some memories: each occurrence of a term, with its row."""

    keys: Keys
    rows: Rows
    lengths: Rows
    """How many terms each row holds, without the sounds of its names."""
    languages: list[str]
    signs: list[Signs]


class _Ragged:
    """Some values for each number; they are added in the order of the numbers."""

    def __init__(self, kind: str) -> None:
        self._values, self._starts = array(kind), array("l", (0,))

    def add(self, values: Iterable[int]) -> None:
        self._values.extend(values)
        self._starts.append(len(self._values))

    def of(self, numbers: Array) -> tuple[Array, Array]:
        """All values of these numbers in order, and the place of the number each belongs to."""
        starts, values = np.array(self._starts), np.array(self._values)
        first, counts = starts[:-1].take(numbers), np.diff(starts).take(numbers)
        # Most numbers have one value, or none: the others are few.
        owners = np.flatnonzero(counts)
        found, several = values.take(first.take(owners)), counts.take(owners)
        if not len(several) or several.max() == 1:
            return found, owners
        owners = np.repeat(owners, several)
        offsets = np.arange(len(owners)) - np.repeat(np.cumsum(several) - several, several)
        return values.take(first.take(owners) + offsets), owners


class _Vocabulary(dict[str, int]):
    """The numbers of pieces, and what each holds; used under its lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.terms, self.marks, self.votes = _Ragged("Q"), _Ragged("Q"), _Ragged("B")
        self.hints = array("B")
        self._languages: dict[str, int] = {DEFAULT_LANGUAGE: 0}
        self._add("")

    @property
    def languages(self) -> int:
        """How many languages were heard; the usual one is the first of them."""
        return len(self._languages)

    def __missing__(self, piece: str) -> int:
        if len(piece) > LONGEST_CACHED:
            return _LONG
        number = self[piece] = len(self.hints)
        self._add(piece)
        return number

    def _add(self, piece: str) -> None:
        found = words(piece)
        self.terms.add(map(key_of, terms_of(found, DEFAULT_LANGUAGE)))
        self.marks.add(map(key_of, sounds(piece) if piece != piece.lower() else ()))
        known = self._languages
        self.votes.add(
            known.setdefault(language, len(known))
            for language in chain.from_iterable(map(heard, found))
        )
        self.hints.append(hints(piece))


_vocabulary = _Vocabulary()


def analyze(memories: Sequence[Memory]) -> Analyzed:
    """Analyze the texts of these memories: their speakers, contents and tags."""
    runs = range(0, len(memories), _RUN)
    found = [_analyze(memories[first : first + _RUN]) for first in runs]
    bases = np.array(runs, np.uint32)
    return Analyzed(
        keys=_joined([one.keys for one in found], np.uint64),
        rows=_joined([one.rows + b for one, b in zip(found, bases, strict=True)], np.uint32),
        lengths=_joined([one.lengths for one in found], np.uint32),
        languages=[language for one in found for language in one.languages],
        signs=[shown for one in found for shown in one.signs],
    )


def _joined(arrays: Sequence[Array], kind: type[np.generic]) -> Array:
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


def _analyze(memories: Sequence[Memory]) -> Analyzed:
    texts = [_Text(memory) for memory in memories]
    plain = [row for row, text in enumerate(texts) if text.whole.isascii()]
    signs: list[Signs | None] = [None] * len(texts)
    languages = [DEFAULT_LANGUAGE] * len(texts)
    lengths = np.zeros(len(texts), np.uint32)
    english = np.zeros(len(texts), np.bool_)
    keys, rows = list[Keys](), list[Rows]()
    if len(plain) >= _FEW:
        found = _Plain.of([texts[row] for row in plain])
        for place, row in enumerate(plain):
            signs[row] = found.signs[place]
        numbers = np.array(plain, np.uint32)
        keys, rows = [found.keys], [numbers[found.rows]]
        lengths[numbers] = found.lengths
        english[numbers[found.english]] = True
    for row in np.flatnonzero(~english).tolist():
        terms, languages[row] = analysis.analyze(texts[row].whole)
        marked = (*terms, *sounds(texts[row].said))
        keys.append(keys_of(marked))
        rows.append(np.full(len(marked), row, np.uint32))
        lengths[row] = len(terms)
    return Analyzed(
        keys=_joined(keys, np.uint64),
        rows=_joined(rows, np.uint32),
        lengths=lengths,
        languages=languages,
        signs=[
            read_signs(memory.content) if shown is None else shown
            for memory, shown in zip(memories, signs, strict=True)
        ],
    )


class _Text:
    """What is analyzed of a memory: who said it, what it says, and its tags."""

    __slots__ = ("before", "content", "said", "whole")

    def __init__(self, memory: Memory) -> None:
        self.content = memory.content
        self.said = wording(memory.content, memory.tags)
        self.before = f"{memory.speaker}: " if memory.speaker else ""
        self.whole = self.before + self.said


class _Plain(Struct, frozen=True, kw_only=True):
    """What numpy finds in texts of ASCII; there are keys of those in English."""

    keys: Keys
    rows: Rows
    lengths: Rows
    english: Mask
    signs: list[Signs | None]

    @classmethod
    def of(cls, texts: Sequence[_Text]) -> _Plain:
        """Find it."""
        pieces = [text.whole.split() for text in texts]
        sizes = np.array(list(map(len, pieces)), np.intp)
        starts = np.cumsum(sizes) - sizes
        with (held := _usable()).lock:
            each = map(held.__getitem__, chain.from_iterable(pieces))
            numbers = np.fromiter(each, np.intp, int(sizes.sum()))
            keys, key_owners = held.terms.of(numbers)
            marks, mark_owners = held.marks.of(numbers)
            votes, vote_owners = held.votes.of(numbers)
            hinting, languages = np.array(held.hints)[numbers], held.languages
        rows = np.repeat(np.arange(len(texts)), sizes)
        lengths = np.bincount(rows[key_owners], minlength=len(texts))
        cast = np.bincount(rows[vote_owners] * languages + votes, minlength=len(texts) * languages)
        counts = cast.reshape(len(texts), languages)
        english = counts[:, 0] == counts.max(axis=1)
        for row in np.flatnonzero(lengths > SAMPLE_WORDS).tolist():  # its beginning decides
            english[row] = analysis.recognize(words(texts[row].whole)) == DEFAULT_LANGUAGE
        english[rows[numbers == _LONG]] = False
        # The speaker is no part of what was said, and the tags are none of the content.
        place = np.arange(len(numbers)) - starts[rows]
        first = np.array([len(text.before.split()) for text in texts], np.intp)
        ends = [
            size if text.said is text.content else begin + len(text.content.split())
            for text, size, begin in zip(texts, sizes.tolist(), first.tolist(), strict=True)
        ]
        hinting[(place < first[rows]) | (place >= np.array(ends, np.intp)[rows])] = 0
        said = (place >= first[rows])[mark_owners] & english[rows[mark_owners]]
        marked = np.unique(
            np.stack((rows[mark_owners][said].astype(np.uint64), marks[said])), axis=1
        )
        held_by = rows[key_owners]
        kept = english[held_by]
        bits = np.bitwise_or.reduceat(hinting, starts) if len(numbers) else hinting
        return cls(
            keys=np.concatenate((keys[kept], marked[1])),
            rows=np.concatenate((held_by[kept], marked[0])).astype(np.uint32),
            lengths=lengths.astype(np.uint32),
            english=english,
            signs=[
                read_signs(text.content, hinting) if len(text.content) <= SEEN_CHARS else None
                for text, hinting in zip(texts, bits.tolist(), strict=True)
            ],
        )


def _usable() -> _Vocabulary:
    """The vocabulary; a new one in the place of one that is full."""
    global _vocabulary  # noqa: PLW0603 - another thread may still use the one before
    if len(_vocabulary) > CACHED_WORDS:
        _vocabulary = _Vocabulary()
    return _vocabulary
