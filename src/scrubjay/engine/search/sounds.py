"""Names that are spelled in several ways: by their sound, and by edit distance.

The sound of a name is its consonants, alike ones as one letter: Muhammad and Mohamed sound alike,
Catherine and Katherine too. A short one keeps its vowels: John sounds like Jon, and not like Jane.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from scrubjay.engine.search.analysis import fold, stop_words
from scrubjay.model.text import lazy_pattern
from scrubjay.model.words import CACHED_WORDS

MARK: Final = "~"
"""Begins the term of a sound; no word begins with it."""
SHORTEST_SKELETON: Final = 3
"""Consonants by which a name is told from others; one with fewer keeps its vowels."""
SHORTEST_TYPO: Final = 5
"""Letters of a name that may have a typing error; a shorter one would be another name."""
SEVERAL_TYPOS: Final = 8
"""Letters of a name that may have two."""

_CAPITALIZED: Final = lazy_pattern(r"\b[A-ZÀ-ÖØ-ÞĀ-Ž][^\W\d_]{2,}")
_ALIKE: Final = tuple(
    (lazy_pattern(spelled), heard)
    for spelled, heard in (
        (r"ph|[vw]", "f"),
        (r"c(?=[eiy])|sch|sh|z", "s"),
        (r"c[hk]?|qu?", "k"),
        (r"g(?=[eiy])", "j"),
        (r"x", "ks"),
        (r"(?<=.)h", ""),
        (r"y|ie", "i"),
        (r"(.)\1+", r"\1"),
        (r"(?<=..)e$", ""),
    )
)
_VOWELS: Final = lazy_pattern(r"(?<=.)[aeiou]+")


@lru_cache(CACHED_WORDS)
def sound(name: str) -> str:
    """The sound of a name in Latin letters; another one sounds like itself alone."""
    heard = fold(name.casefold())
    for spelled, letter in _ALIKE:
        heard = spelled.sub(letter, heard)
    skeleton = _VOWELS.sub("", heard)
    return skeleton if len(skeleton) >= SHORTEST_SKELETON else heard


def sounds(text: str) -> set[str]:
    """The terms of the capitalized words of a text by their sound."""
    found = {_term(word) for word in _CAPITALIZED.findall(text)}
    found.discard("")
    return found


@lru_cache(CACHED_WORDS)
def _term(word: str) -> str:
    return "" if word.casefold() in stop_words("english") else MARK + sound(word)


def heard_as(word: str) -> Iterator[str]:
    """The terms by which a name may be found that nothing holds as it is spelled: nearest first.

    Its sound; then, of a longer one, that with a letter dropped, or two of them swapped.
    """
    whole = sound(word)
    yield MARK + whole
    if len(word) >= SHORTEST_TYPO and len(whole) > SHORTEST_SKELETON:
        for at in range(1, len(whole)):
            yield MARK + whole[:at] + whole[at + 1 :]
        for at in range(1, len(whole) - 1):
            yield MARK + whole[:at] + whole[at + 1] + whole[at] + whole[at + 2 :]


def same_name(asked: str, known: str) -> bool:
    """Whether one name is likely the other one, spelled in another way or with a typing error.

    Two of equal length that differ in a consonant, like Martin and Marvin, are two names.
    """
    one, other = sound(asked), sound(known)
    if one == other:
        return True
    least = min(len(asked), len(known))
    if least < SHORTEST_TYPO or one[0] != other[0]:
        return False
    if least < SEVERAL_TYPOS and len(one) == len(other) and sorted(one) != sorted(other):
        return False
    return distance(asked.casefold(), known.casefold()) <= 1 + (least >= SEVERAL_TYPOS)


def distance(one: str, other: str) -> int:
    """Edit distance (Damerau-Levenshtein): letters added, dropped, changed, or swapped."""
    before, last = [0] * (len(other) + 1), list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now = [row]
        for at, against in enumerate(other, 1):
            cost = min(last[at] + 1, now[at - 1] + 1, last[at - 1] + (letter != against))
            if row > 1 and at > 1 and (letter, one[row - 2]) == (other[at - 2], against):
                cost = min(cost, before[at - 2] + 1)
            now.append(cost)
        before, last = last, now
    return last[-1]
