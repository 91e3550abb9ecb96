"""Words to terms: one analysis for what is stored and for what is asked.

A word is case-folded, stemmed in its language and freed of accents. Scripts that put no spaces
between words yield single characters and pairs of neighbors. A question loses its stop words.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from scrubjay.index.near import near_terms
from scrubjay.index.stopwords import FRAME_WORDS, STOP_WORDS

if TYPE_CHECKING:
    from Stemmer import Stemmer

ANALYZER_VERSION = 1
"""Stored with what was analyzed: terms of another version must be made again."""

DEFAULT_LANGUAGE = "english"
LONGEST_WORD = 64
CACHED_WORDS = 1 << 16
SAMPLE_WORDS = 200
"""How many words are looked at to recognize a language."""

FRAME_WEIGHT = 0.35
"""What a word counts that says how to answer ("how many weeks") rather than what about."""

# Thai, Lao, Myanmar, Khmer; Hangul (spaced, but its words carry their particles); kana; Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\uac00-\ud7af"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_ASCII_WORD = re.compile(r"[a-z0-9]+(?:(?<=[0-9])[.,][0-9]+|'[a-z0-9]+)*")
_WORD = re.compile(
    rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W_])(?:(?![{_UNSPACED}])[\w\u0300-\u036f])*"
    rf"(?:(?<=\d)[.,]\d+|'[^\W_{_UNSPACED}]+)*"
)
_UNSPACED_START = re.compile(rf"[{_UNSPACED}]")
_APOSTROPHES = str.maketrans("\u2019\u02bc\uff07", "'''")
_SCRIPTS = (
    ("russian", "\u0400", "\u04ff"),
    ("greek", "\u0370", "\u03ff"),
    ("armenian", "\u0530", "\u058f"),
    ("arabic", "\u0600", "\u06ff"),
    ("hindi", "\u0900", "\u097f"),
    ("tamil", "\u0b80", "\u0bff"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term a question asks for, and the near terms that may stand in for it."""

    term: str
    weight: float = 1.0
    near: Mapping[str, float] = field(default_factory=dict)


def words(text: str) -> list[str]:
    """The words of a text in order, case-folded; a run of an unspaced script is one item."""
    if text.isascii():
        return _split_apostrophes(_ASCII_WORD.findall(text.lower()))
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    return _split_apostrophes(_WORD.findall(folded))


def terms(text: str, language: str | None = None) -> list[str]:
    """The terms a stored text is found by, in order and with repetitions."""
    found = words(text)
    language = language or recognize(found)
    return [term for word in found for term in _terms(word, language)]


def wanted(question: str, languages: Iterable[str] = ()) -> list[Wanted]:
    """What a question asks for, stemmed as in each language the scope is written in."""
    found = words(question)
    spoken = recognize(found)
    kept = [word for word in found if not _stops(word, spoken)] or found
    framed = all(word in FRAME_WORDS for word in kept)
    terms_asked: dict[str, Wanted] = {}
    for language in dict.fromkeys((spoken, *languages)):
        for word in kept:
            frames = word in FRAME_WORDS and not framed
            near = {} if frames else _damped(word)
            for term in _terms(word, language):
                terms_asked.setdefault(term, Wanted(term, FRAME_WEIGHT if frames else 1.0, near))
    return list(terms_asked.values())


@lru_cache(CACHED_WORDS)
def _damped(word: str) -> Mapping[str, float]:
    """Near terms by the square of their nearness: the less near, the much less they count."""
    return {term: share * share for term, share in near_terms(word).items()}


def recognize(found: list[str], default: str = DEFAULT_LANGUAGE) -> str:
    """The language most stop words among the words speak for, or the one its script is used by."""
    sample = found[:SAMPLE_WORDS]
    votes: dict[str, int] = {}
    for word in sample:
        for language in _SPEAKERS.get(word, ()):
            votes[language] = votes.get(language, 0) + 1
    if not votes:
        return _by_script(sample) or default
    best = max(votes.values())
    return default if votes.get(default) == best else max(votes, key=votes.__getitem__)


def _by_script(found: list[str]) -> str | None:
    for word in found:
        for language, first, last in _SCRIPTS:
            if first <= word[0] <= last:
                return language
    return None


def _stops(word: str, language: str) -> bool:
    return word in STOP_WORDS.get(language, ()) or (len(word) == 1 and word.isascii())


def _split_apostrophes(found: list[str]) -> list[str]:
    """Don't, John's and l'amour: the parts that carry meaning."""
    if not any("'" in word for word in found):
        return found
    parts = []
    for word in found:
        if "'" not in word:
            parts.append(word)
            continue
        pieces = word.split("'")
        parts += [piece for piece in pieces if len(piece) > 2] or pieces[:1]
    return parts


@lru_cache(CACHED_WORDS)
def _terms(word: str, language: str) -> tuple[str, ...]:
    if _UNSPACED_START.match(word):
        return (*word, *("".join(pair) for pair in pairwise(word)))
    if word[0].isdigit():
        return (word.replace(",", "")[:LONGEST_WORD],)
    return (fold(stemmer(language).stemWord(word))[:LONGEST_WORD],)


def fold(word: str) -> str:
    """The word without the accents of Latin letters; other scripts keep their marks."""
    if word.isascii():
        return word
    return "".join(_fold_letter(letter) for letter in word)


@cache
def _fold_letter(letter: str) -> str:
    if letter == "ё":
        return "е"
    decomposed = unicodedata.normalize("NFD", letter)
    return decomposed[0] if decomposed[0].isascii() else letter


@cache
def stemmer(language: str) -> Stemmer:
    """The Snowball stemmer of a language."""
    from Stemmer import Stemmer

    return Stemmer(language, 0)


def _speakers() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for language, stop_words in STOP_WORDS.items():
        for word in stop_words:
            table[word] = (*table.get(word, ()), language)
    return table


_SPEAKERS = _speakers()
