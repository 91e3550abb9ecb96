"""Words to terms: one analysis for what is stored and for what is asked.

A word is case-folded, stemmed in its language and freed of accents. Scripts that put no spaces
between words yield single characters and pairs of neighbors; languages that write compounds as
one word also yield the words a long one begins and ends with. A question loses its stop words.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import re
import struct
import sys
import unicodedata
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.engine.search.stopwords import ASKING, STOP_WORDS

_HEAD = struct.Struct("<4sIIII")
_MAGIC = b"SJN1"


def near_terms(word: str) -> Mapping[str, float]:
    """The terms near a word and what each counts in its place, below 1; empty when unknown."""
    places, terms, starts, near, nearness = _table()
    place = places.get(word)
    if place is None:
        return {}
    return {terms[near[at]]: nearness[at] / 255 for at in range(starts[place], starts[place + 1])}


def pack(table: Mapping[str, Mapping[str, float]]) -> bytes:
    """The file of a table."""
    words = sorted(word for word in table if table[word])
    terms = sorted({term for word in words for term in table[word]})
    places = {term: place for place, term in enumerate(terms)}
    starts, near, nearness = [0], [], bytearray()
    for word in words:
        near += [places[term] for term in table[word]]
        nearness += bytes(round(255 * share) for share in table[word].values())
        starts.append(len(near))
    names = "\n".join(words).encode(), "\n".join(terms).encode()
    body = (
        *names,
        struct.pack(f"<{len(starts)}I", *starts),
        struct.pack(f"<{len(near)}H", *near),
        bytes(nearness),
    )
    head = _HEAD.pack(_MAGIC, len(names[0]), len(names[1]), len(words), len(near))
    return head + zlib.compress(b"".join(body), 9)


@cache
def _table() -> tuple[dict[str, int], list[str], array[int], array[int], bytes]:
    packed = Path(__file__).with_name("near.bin").read_bytes()
    magic, words_size, terms_size, count, pairs = _HEAD.unpack_from(packed)
    if magic != _MAGIC:
        raise ValueError("near.bin is not a table of near words")
    body = zlib.decompress(packed[_HEAD.size :])
    at = words_size + terms_size
    words = body[:words_size].decode().split("\n")
    terms = body[words_size:at].decode().split("\n")
    first, last = at + 4 * (count + 1), at + 4 * (count + 1) + 2 * pairs
    starts, near = _numbers("I", body[at:first]), _numbers("H", body[first:last])
    return {word: place for place, word in enumerate(words)}, terms, starts, near, body[last:]


def _numbers(kind: str, packed: bytes) -> array[int]:
    """Numbers written little-endian, without an object for each."""
    found = array(kind, packed)
    if sys.byteorder == "big":
        found.byteswap()
    return found


if TYPE_CHECKING:
    from Stemmer import Stemmer

ANALYZER_VERSION = 2
"""Stored with what was analyzed: terms of another version must be made again."""

DEFAULT_LANGUAGE = "english"
COMPOUNDING = frozenset({"german", "dutch", "swedish"})
SHORTEST_PART = 4
LONGEST_PART = 10
PART_SHARE = 0.5
"""What a part of a compound counts, and a compound of which only a part is asked for."""
LONGEST_WORD = 64
CACHED_WORDS = 1 << 16
SAMPLE_WORDS = 200
"""How many words are looked at to recognize a language."""

# Thai, Lao, Myanmar, Khmer; Hangul (spaced, but its words carry their particles); kana; Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\uac00-\ud7af"
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_ASCII_WORD = re.compile(r"[a-z0-9]+(?:(?<=[0-9])[.,][0-9]+|'[a-z0-9]+)*")
_WORD = re.compile(
    rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W_])(?:(?![{_UNSPACED}])[\w\u0300-\u036f])*"
    rf"(?:(?<=\d)[.,]\d+|'[^\W_{_UNSPACED}]+)*"
)
_UNSPACED_START = re.compile(rf"[{_UNSPACED}]")
_APOSTROPHES = str.maketrans("\u2019\u02bc\uff07", "'''")
_KANA = re.compile("[\u3041-\u30fa]")
_SCRIPTS = (
    ("russian", "\u0400", "\u04ff"),
    ("greek", "\u0370", "\u03ff"),
    ("armenian", "\u0530", "\u058f"),
    ("arabic", "\u0600", "\u06ff"),
    ("hindi", "\u0900", "\u097f"),
    ("tamil", "\u0b80", "\u0bff"),
    ("korean", "\uac00", "\ud7af"),
    ("chinese", "\u3400", "\u9fff"),
)
_LETTERS = {
    **dict.fromkeys("äöü", "german"),
    **dict.fromkeys("çêœ", "french"),
    **dict.fromkeys("ãõ", "portuguese"),
    "ñ": "spanish",
    "å": "swedish",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term a question asks for, and the near terms that may stand in for it."""

    term: str
    weight: float = 1.0
    near: Mapping[str, float] = field(default_factory=dict)


def words(text: str) -> list[str]:
    """The words of a text in order, case-folded; a run of an unspaced script is one item."""
    if text.isascii():
        found = _ASCII_WORD.findall(text.lower())
        return _split_apostrophes(found) if "'" in text else found
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    found = _WORD.findall(folded)
    return _split_apostrophes(found) if "'" in folded else found


def terms(text: str, language: str | None = None) -> list[str]:
    """The terms a stored text is found by, in order and with repetitions."""
    return analyze(text, language)[0]


def analyze(text: str, language: str | None = None) -> tuple[list[str], str]:
    """The terms of a text, and the language they are in: the one given, or recognized."""
    found = words(text)
    language = language or recognize(found)
    return list(chain.from_iterable(map(_terms, found, repeat(language)))), language


def wanted(question: str, languages: Iterable[str] = ()) -> list[Wanted]:
    """What a question asks for, stemmed as in each language the scope is written in.

    What another language makes of a word counts as much as the word: nobody knows which one a
    short text was taken to be in.
    """
    found = words(question)
    spoken = recognize(found)
    stops = STOP_WORDS.get(spoken, frozenset())
    kept = [word for word in found if not _stops(word, stops)] or found
    stemmed = tuple(dict.fromkeys((spoken, *languages, DEFAULT_LANGUAGE)))
    asked: dict[str, Wanted] = {}
    for word in kept:
        for item in _asked(word, stemmed):
            asked.setdefault(item.term, item)
    return list(asked.values())


def _asked(word: str, languages: tuple[str, ...]) -> Iterator[Wanted]:
    if _UNSPACED_START.match(word):
        yield from map(Wanted, _content(word, languages[0]))
        return
    stems = dict.fromkeys(_stem(word, language) for language in languages)
    near = {**near_terms(word), **dict.fromkeys(stems, 1.0)}
    if not COMPOUNDING.isdisjoint(languages):
        near = {**_kin(next(iter(stems))), **near}
    term = next(iter(stems))
    del near[term]
    yield Wanted(term, 1.0, near)


def _content(run: str, language: str) -> Iterator[str]:
    """The terms of a run without what only makes it a question."""
    asking = ASKING.get(language)
    pieces = [piece for piece in asking.split(run) if piece] if asking else []
    for piece in pieces or [run]:
        for term in _terms(piece, language):
            # One kana is a sound, not a word.
            if len(term) > 1 or len(run) == 1 or not _KANA.match(term):
                yield term


def _kin(stem: str) -> dict[str, float]:
    """Compounds a word is a part of, and the words that may be parts of it."""
    if len(stem) < SHORTEST_PART or not stem.isalpha():
        return {}
    parts = {part.strip("-") for part in _parts(stem)}
    return dict.fromkeys((f"{stem}-", f"-{stem}", *parts), PART_SHARE)


def _parts(stem: str) -> Iterator[str]:
    """What a long word may be made of: every beginning and end that leaves room for another."""
    for size in range(SHORTEST_PART, min(len(stem) - SHORTEST_PART, LONGEST_PART) + 1):
        yield f"{stem[:size]}-"
        yield f"-{stem[-size:]}"


def recognize(found: list[str], default: str = DEFAULT_LANGUAGE) -> str:
    """The language most stop words among the words speak for, or the one its letters are of."""
    sample = found[:SAMPLE_WORDS]
    votes: dict[str, int] = {}
    for speakers in filter(None, map(_SPEAKERS.get, sample)):
        for language in speakers:
            votes[language] = votes.get(language, 0) + 1
    if not votes:
        return _by_letters(sample) or default
    best = max(votes.values())
    return default if votes.get(default) == best else max(votes, key=votes.__getitem__)


def _by_letters(found: list[str]) -> str | None:
    text = "".join(word for word in found if not word.isascii())
    if not text:
        return None
    if _KANA.search(text):
        return "japanese"
    for letter in text:
        for language, first, last in _SCRIPTS:
            if first <= letter <= last:
                return language
    return next((_LETTERS[letter] for letter in text if letter in _LETTERS), None)


def _stops(word: str, stops: frozenset[str]) -> bool:
    return word in stops or (len(word) == 1 and word.isascii() and word.isalpha())


def _split_apostrophes(found: list[str]) -> list[str]:
    """Don't, John's and l'amour: the parts that carry meaning."""
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
    stem = _stem(word, language)
    if language in COMPOUNDING and stem.isalpha():
        return (stem, *_parts(stem))
    return (stem,)


def _stem(word: str, language: str) -> str:
    if word[0].isdigit():
        return word.replace(",", "")[:LONGEST_WORD]
    return fold(stemmer(language).stemWord(word))[:LONGEST_WORD]


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
    """The Snowball stemmer of a language, or English for the Latin words of one without."""
    from Stemmer import Stemmer, algorithms

    return Stemmer(language if language in algorithms() else DEFAULT_LANGUAGE, 0)


def _speakers() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for language, stop_words in STOP_WORDS.items():
        for word in stop_words:
            table[word] = (*table.get(word, ()), language)
    return table


_SPEAKERS = _speakers()
