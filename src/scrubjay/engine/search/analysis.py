"""Text analysis: words to terms, for stored texts and questions alike, and signs of a text.

A word is case-folded, stemmed in its language and freed of accents. Scripts that put no spaces
between words yield single characters and pairs of neighbors; languages that write compounds as
one word also yield the words a long one begins and ends with. A question loses its stop words.
The words of the languages are in `languages.toml`.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import re
import struct
import sys
import tomllib
import unicodedata
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from scrubjay.engine.search.kinds import kind_of
from scrubjay.model.memory import Kind
from scrubjay.model.text import lazy_pattern
from scrubjay.model.words import WordCache

if TYPE_CHECKING:
    import re2
    from Stemmer import Stemmer

ANALYZER_VERSION = 4
"""Stored with each segment: terms of another version are analyzed again."""

DEFAULT_LANGUAGE = "english"
COMPOUNDING = frozenset({"german", "dutch", "swedish"})
SHORTEST_PART = 4
LONGEST_PART = 10
SMALL_TALK = 1 / 6
"""How much a word common in talk about anything tells, against other words."""
PART_SHARE = 0.5
"""Weight of a part of a compound, and of a compound matched by a part of it."""
MEMBER_SHARE = 0.5
"""Weight of a hyponym: a dog is a pet, but a question for pets is not one for dogs alone."""
LONGEST_WORD = 64
LONGEST_STEMMED = 256
SAMPLE_WORDS = 200
"""Number of words used for language detection."""

# Thai, Lao, Myanmar, Khmer; Hangul (spaced, but its words carry their particles); kana; Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\uac00-\ud7af"
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# Accents, and the vowel signs of the scripts of India, which are parts of their words.
_COMBINING = "\u0300-\u036f\u0900-\u0963\u0971-\u0dff\u200c\u200d"
_ASCII_WORD = re.compile(r"[a-z0-9]+(?:(?<=[0-9])[.,][0-9]+|'[a-z0-9]+)*")
_WORD = lazy_pattern(
    rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W_])(?:(?![{_UNSPACED}])[\w{_COMBINING}])*"
    rf"(?:(?<=\d)[.,]\d+|'[^\W_{_UNSPACED}]+)*"
)
_UNSPACED_START = lazy_pattern(rf"[{_UNSPACED}]")
_MARKS = lazy_pattern(r"([^\w\x00-\x7f]{64})[^\w\x00-\x7f]+")
_PROPER_NAME = lazy_pattern(r"(?<=[\w,;:] )['\"(]?([A-ZÀ-ÖØ-ÞА-ЯЁ][^\W\d_]{2,})")
_APOSTROPHES = str.maketrans("\u2019\u02bc\uff07", "'''")
_KANA = lazy_pattern("[\u3041-\u30fa]")
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


class Wanted(Struct, frozen=True):
    """Query term, with the similar terms that may replace it."""

    term: str
    weight: float = 1.0
    near: Mapping[str, float] = {}
    telling: float = 1.0
    """How much sharing it tells: a word of small talk next to nothing, whatever its frequency."""
    name: str | None = None
    """The word itself, if a capital makes it a name: another spelling of it may be held."""


def words(text: str) -> list[str]:
    """The words of a text in order, case-folded; a run of an unspaced script is one item.

    Of don't, John's and l'amour the parts that carry meaning are words.
    """
    if text.isascii():
        folded = text.lower()
        found = _ASCII_WORD.findall(folded)
    else:
        folded = normalize(text).casefold().translate(_APOSTROPHES)
        found = _WORD.findall(folded)
    if "'" not in folded:
        return found
    parts = []
    for word in found:
        pieces = word.split("'")
        if len(pieces) > 1:
            pieces = [piece for piece in pieces if len(piece) > 2] or pieces[:1]
        parts += pieces
    return parts


def normalize(text: str) -> str:
    """The text in Unicode's compatibility form (NFKC), in linear time.

    Sorting a long run of combining marks takes the square of its length, so the rest of one that
    no script needs is left out.
    """
    return unicodedata.normalize("NFKC", _MARKS.sub(r"\1", text))


def terms(text: str, language: str | None = None) -> list[str]:
    """The terms a stored text is found by, in order and with repetitions."""
    return analyze(text, language)[0]


def analyze(text: str, language: str | None = None) -> tuple[list[str], str]:
    """The terms of a text, and the language they are in: the one given, or recognized."""
    found = words(text)
    language = language or recognize(found)
    return terms_of(found, language), language


def terms_of(found: Iterable[str], language: str) -> list[str]:
    """The terms of words in a language, in order and with repetitions."""
    return list(chain.from_iterable(map(_terms_in(language).__getitem__, found)))


def wanted(question: str, languages: Iterable[str] = ()) -> list[Wanted]:
    """Query terms of a question, stemmed for each language of the scope.

    The stems of all languages count alike: the detected language of a short text is uncertain.
    """
    found, languages = words(question), tuple(languages)
    spoken = language_of(found, languages)
    letters = (word for word in found if len(word) == 1 and word.isascii() and word.isalpha())
    stops = stop_words(spoken).union(letters)
    if "may" in found and not pattern("question", "month_may").search(question):
        stops |= {"may"}
    kept = dict.fromkeys(word for word in found if word not in stops)
    empty = not kept
    kept = kept or dict.fromkeys(found)
    stemmed = tuple(dict.fromkeys((spoken, *languages, DEFAULT_LANGUAGE)))
    asked: dict[str, Wanted] = {}
    names = proper_names(question)
    for word in kept:
        if _UNSPACED_START.match(word):
            for term in _content(word, spoken):
                asked.setdefault(term, Wanted(term))
            continue
        stems = dict.fromkeys(_stem(word, language) for language in stemmed)
        term = next(iter(stems))
        anew = map(_stem, _languages()["restated"].get(word, "").split(), repeat(spoken))
        near = {**near_terms(word), **dict.fromkeys(hyponyms().get(term, ()), MEMBER_SHARE)}
        near |= {**dict.fromkeys(anew, 1.0), **dict.fromkeys(stems, 1.0)}
        compounding = not COMPOUNDING.isdisjoint(stemmed)
        if compounding and len(term) >= SHORTEST_PART and term.isalpha():
            # Compounds the word is a part of, and the words that may be parts of it.
            parts = {part.strip("-") for part in _parts(term)}
            near = {**dict.fromkeys((f"{term}-", f"-{term}", *parts), PART_SHARE), **near}
        del near[term]
        telling = 0.0 if empty else SMALL_TALK if term in small_talk(spoken) else 1.0
        name = word if word in names else None
        asked.setdefault(term, Wanted(term, 1.0, near, telling, name))
    return list(asked.values())


def _content(run: str, language: str) -> Iterator[str]:
    """Terms of a run of an unspaced script, without question words."""
    pieces = [run]
    if language in _languages()["asking"]:
        pieces = [piece for piece in pattern("asking", language).split(run) if piece] or [run]
    for piece in pieces:
        for term in _terms_in(language)[piece]:
            # One kana is a sound, not a word.
            if len(term) > 1 or len(run) == 1 or not _KANA.match(term):
                yield term


def holds(query: str) -> Callable[[str], bool]:
    """Predicate: whether a text holds every word of the query, in any of its forms.

    For verbs that need exact matches instead of ranking, such as forget by query. Stop words are
    ignored, unless the query has nothing else.
    """
    asked = words(query)
    stops = stop_words(recognize(asked))
    kept = [word for word in asked if word not in stops] or asked

    def test(text: str) -> bool:
        found, language = analyze(text)
        held = set(found)
        return bool(kept) and all(held.issuperset(terms(word, language)) for word in kept)

    return test


def gist(text: str) -> frozenset[str]:
    """Terms of a text without its stop words."""
    found = words(text)
    language = recognize(found)
    stops = stop_words(language)
    return frozenset(term for word in found if word not in stops for term in terms(word, language))


def proper_names(text: str) -> set[str]:
    """Words with a capital within a sentence, in lower case."""
    return {match.casefold() for match in _PROPER_NAME.findall(text)}


@cache
def _terms_in(language: str) -> WordCache[tuple[str, ...]]:
    return WordCache(partial(_terms, language=language))


def _terms(word: str, language: str) -> tuple[str, ...]:
    if _UNSPACED_START.match(word):
        return (*word, *("".join(pair) for pair in pairwise(word)))
    stem = _stem(word, language)
    if language in COMPOUNDING and stem.isalpha():
        return (stem, *_parts(stem))
    return (stem,)


def _parts(stem: str) -> Iterator[str]:
    """Possible parts of a compound: its prefixes and suffixes that leave room for another word."""
    for size in range(SHORTEST_PART, min(len(stem) - SHORTEST_PART, LONGEST_PART) + 1):
        yield f"{stem[:size]}-"
        yield f"-{stem[-size:]}"


def _stem(word: str, language: str) -> str:
    if word[0].isdigit():
        return word.replace(",", "")[:LONGEST_WORD]
    # Stemmers move the rest of the word at each step.
    return fold(stemmer(language).stemWord(word[:LONGEST_STEMMED]))[:LONGEST_WORD]


@cache
def stemmer(language: str) -> Stemmer:
    """The Snowball stemmer of a language, or English for the Latin words of one without."""
    from Stemmer import Stemmer, algorithms

    return Stemmer(language if language in algorithms() else DEFAULT_LANGUAGE, 0)


def fold(word: str) -> str:
    """The word without the accents of Latin letters; other scripts keep their marks."""
    return word if word.isascii() else "".join(map(_fold_letter, word))


@cache
def _fold_letter(letter: str) -> str:
    if letter == "ё":
        return "е"
    decomposed = unicodedata.normalize("NFD", letter)
    return decomposed[0] if decomposed[0].isascii() else letter


# -- languages --------------------------------------------------------------------------------


@cache
def _languages() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))


def table(name: str) -> Mapping[str, Any]:
    """A table of `languages.toml`."""
    return _languages()[name]


@cache
def _listed(table: str, name: str) -> frozenset[str]:
    return frozenset(_languages()[table][name].split())


@cache
def pattern(table: str, name: str) -> re.Pattern[str]:
    """A regular expression of `languages.toml`, for text in lower case."""
    return re.compile("|".join(map("".join, _languages()[table][name])))


def stop_words(language: str) -> frozenset[str]:
    """Words of a language too common to search for; none of one without a list."""
    known = language in _languages()["stop_words"]
    return _listed("stop_words", language) if known else frozenset()


def common_words(text: str) -> frozenset[str]:
    """The stop words of the language a text is in."""
    return stop_words(recognize(words(text)))


@cache
def small_talk(language: str) -> frozenset[str]:
    """Terms common in talk about anything; none of a language without a list."""
    listed = _languages()["small_talk"].get(language, "").split()
    return frozenset(_stem(word, language) for word in listed)


@cache
def hyponyms() -> dict[str, frozenset[str]]:
    """Terms of the members of a kind, by the terms of its names: dog and cat, by pet."""
    table: dict[str, frozenset[str]] = {}
    for names, members in _languages()["hyponyms"].items():
        found = frozenset(_stem(word, DEFAULT_LANGUAGE) for word in members.split())
        for name in (_stem(word, DEFAULT_LANGUAGE) for word in names.split()):
            table[name] = table.get(name, frozenset()) | found
    return {name: members - {name} for name, members in table.items()}


@cache
def _speakers() -> dict[str, tuple[str, ...]]:
    """Languages of each stop word."""
    table: dict[str, tuple[str, ...]] = {}
    for language in _languages()["stop_words"]:
        for word in stop_words(language):
            table[word] = (*table.get(word, ()), language)
    return table


def heard(word: str) -> tuple[str, ...]:
    """The languages that have a word as a stop word: it is a vote for each of them."""
    return _speakers().get(word, ())


def recognize(found: list[str], default: str = DEFAULT_LANGUAGE) -> str:
    """Language detection: by the most stop words, or by the script."""
    sample = found[:SAMPLE_WORDS]
    votes = Counter(chain.from_iterable(filter(None, map(_speakers().get, sample))))
    if votes:
        best = max(votes.values())
        return default if votes.get(default) == best else max(votes, key=votes.__getitem__)
    text = "".join(word for word in sample if not word.isascii())
    if _KANA.search(text):
        return "japanese"
    for letter in text:
        for language, first, last in _SCRIPTS:
            if first <= letter <= last:
                return language
    return next((_LETTERS[letter] for letter in text if letter in _LETTERS), default)


def language_of(asked: list[str], languages: Collection[str]) -> str:
    """Language of a question to texts in some languages: another needs more than one stop word.

    "Hat size" is no German to a scope that has none, nor is "son's birthday" French.
    """
    language = recognize(asked)
    if language == DEFAULT_LANGUAGE or language in languages:
        return language
    rest = [word for word in asked if language not in heard(word)]
    return recognize(rest) if len(rest) == len(asked) - 1 else language


# -- near words -------------------------------------------------------------------------------

_NEAR_HEAD = struct.Struct("<4sIIII")
_NEAR_MAGIC = b"SJN1"


def near_terms(word: str) -> Mapping[str, float]:
    """Similar terms of a word, each with its weight below 1; empty for an unknown word.

    `tools/make_near.py` wrote the table.
    """
    places, terms, starts, near, nearness = _near_table()
    place = places.get(word)
    if place is None:
        return {}
    return {terms[near[at]]: nearness[at] / 255 for at in range(starts[place], starts[place + 1])}


@cache
def _near_table() -> tuple[dict[str, int], list[str], array[int], array[int], bytes]:
    packed = Path(__file__).with_name("near.bin").read_bytes()
    magic, words_size, terms_size, count, pairs = _NEAR_HEAD.unpack_from(packed)
    if magic != _NEAR_MAGIC:
        raise ValueError("near.bin is not a table of near words")
    body = zlib.decompress(packed[_NEAR_HEAD.size :])
    at = words_size + terms_size
    words = body[:words_size].decode().split("\n")
    terms = body[words_size:at].decode().split("\n")
    first, last = at + 4 * (count + 1), at + 4 * (count + 1) + 2 * pairs
    # Numbers written little-endian, without an object for each.
    starts, near = array("I", body[at:first]), array("H", body[first:last])
    if sys.byteorder == "big":
        starts.byteswap()
        near.byteswap()
    return {word: place for place, word in enumerate(words)}, terms, starts, near, body[last:]


# -- signs ------------------------------------------------------------------------------------

SIGNS_VERSION = 3
"""Stored with the columns: signs of another version must be read again."""

SEEN_CHARS = 1000
"""Characters that are read; signs occur early in a long text."""
LONGEST_INSTRUCTION = 400

_SIGN_WORD = lazy_pattern(r"\w+")
_DIGIT = lazy_pattern(r"\d")
_DIGITS = "digits"
_HINTS: Final = (
    *("times", "time_hints", "instruction_hints", "preference_hints", "wish_hints"),
    _DIGITS,
)


_PATTERNS: Final = ("time_phrase", "time_number", "instruction", "preference")


@cache
def _automaton() -> re2.Set:
    """The patterns of signs as one automaton, for ASCII: elsewhere its letters are not Python's."""
    import re2

    chosen = re2.Set.SearchSet()
    for name in _PATTERNS:
        chosen.Add(pattern("signs", name).pattern)
    chosen.Compile()
    return chosen


class Signs(Struct, frozen=True):
    """Surface features of one text, such as naming a time or being a question."""

    timed: bool = False
    asks: bool = False
    instructs: bool = False
    prefers: bool = False


_NO_SIGNS, _ASKS = Signs(), Signs(asks=True)


def hints(text: str) -> int:
    """Which signs the words of a text hint at, as bits: those of its parts are those of them all.

    Most texts hint at none, so that no pattern is tried.
    """
    seen = _seen(text)
    found = set(_SIGN_WORD.findall(seen))
    bits = 0 if _DIGIT.search(seen) is None else 1 << _HINTS.index(_DIGITS)
    for place, listed in enumerate(_hinting()):
        bits |= (not found.isdisjoint(listed)) << place
    return bits


@cache
def _hinting() -> tuple[frozenset[str], ...]:
    return tuple(_listed("sign_words", name) for name in _HINTS[:-1])


def _seen(text: str) -> str:
    return text[:SEEN_CHARS].lower().replace("\u2019", "'")


def read_signs(text: str, hinting: int | None = None) -> Signs:
    """The signs of a text; `hinting` are its hints, if they are known."""
    bits = hints(text) if hinting is None else hinting
    asks = text.rstrip()[-1:] in {"?", "？"}
    if not bits and text.isascii():
        return _ASKS if asks else _NO_SIGNS
    seen = _seen(text)
    plain = seen.isascii()
    found = (plain and _automaton().Match(seen.encode())) or ()

    def hinted(name: str) -> bool:
        return bool(bits >> _HINTS.index(name) & 1)

    def shown(name: str) -> bool:
        if plain:
            return _PATTERNS.index(name) in found
        return pattern("signs", name).search(seen) is not None

    return Signs(
        timed=hinted("times")
        or (hinted("time_hints") and shown("time_phrase"))
        or (hinted(_DIGITS) and shown("time_number"))
        or (not plain and shown("time_elsewhere")),
        asks=asks,
        instructs=len(text) <= LONGEST_INSTRUCTION
        and (not plain or hinted("instruction_hints"))
        and shown("instruction"),
        prefers=((not plain or hinted("preference_hints")) and shown("preference"))
        # Said by a fact or a turn, it is as good as a memory of that kind.
        or ((not plain or hinted("wish_hints")) and kind_of(text) is Kind.PREFERENCE),
    )
