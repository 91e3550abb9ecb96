"""Quotations and echoes: what in a turn is not its speaker's own words.

A quotation is known by its form: a fence, a pair of tags, a block of `>` lines, a passage in
quotation marks, a pasted block. An echo is an injected memory that comes back in a conversation and
must not be stored again.

A proxy puts recalled memories into the prompt between two marker lines. A client may send that
text back, and an agent may repeat it; neither is new. Texts may be megabytes long and hostile:
everything here takes linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from scrubjay.model.text import lazy_pattern

GAP: Final = "[…]"
"""Stands in the own words where a quotation was."""
BLOCK_CHARS: Final = 1_500
"""A longer block without a mark is pasted."""
_EDGE_CHARS: Final = 500
"""Length up to which a line that introduces a pasted block is not part of it."""
_PASSAGE_CHARS: Final = 60
"""Less than this between quotation marks is a name or a title, and no quotation."""
_LINE_CHARS: Final = 20
"""The same where the marks begin and end a line, or stand near its ends."""
_NEAR: Final = 8
_TITLE_CHARS: Final = 512
_UNCLOSED: Final = 64
"""From so many different tags on that are never closed, a text is markup to its end."""
_MOST: Final = 2_000
"""From so many openings or quotations on, what follows is one; further marks are not looked at."""

_OPENING: Final = lazy_pattern(
    r"```|~~~"
    r"|^[ \t]*<([A-Za-z][\w:.-]{0,63})(?:[ \t][^<>\n]{0,300})?>"
    r"|^[ \t]*[-=#*]{2,}[ \t]*BEGIN\b",
    re.MULTILINE,
)
_END: Final = lazy_pattern(r"^[ \t]*[-=#*]{2,}[ \t]*END\b.*$", re.MULTILINE)
_LINES: Final = lazy_pattern(r"^[ \t]*>.*(?:\n[ \t]*>.*)*", re.MULTILINE)
_MARK: Final = lazy_pattern(r'["“”„«»「」『』]')
_CLOSES: Final = {"“": "”", "„": "“”", "«": "»", "»": "«", "「": "」", "『": "』", '"': '"'}
_INTRODUCTION: Final = lazy_pattern(rf"\s*+[^\n]{{1,{_EDGE_CHARS}}}[?:\uff1f\uff1a][ \t\r]*(?=\n)")
_PARAGRAPHS: Final = lazy_pattern(r"\n[ \t\r]*\n\s*")

Span = tuple[int, int]


class Words(NamedTuple):
    """A text in two parts."""

    own: str
    quoted: tuple[str, ...]


def own_words(text: str, *, typed: bool) -> Words:
    """The own words with a gap for every quotation, and the quotations.

    Of a text that a person `typed`, all that is too long to be typed is one; of another, only
    a paragraph of that length.
    """
    parts = [(text, False)]
    for find in (_enclosed, _lines, _passages, _typed if typed else _paragraphs):
        parts = [cut for part in parts for cut in ([part] if part[1] else _cut(part[0], find))]
    own = "".join(GAP if quoted else part for part, quoted in parts)
    own = own if any(part.strip() for part, quoted in parts if not quoted) else ""
    return Words(own, tuple(part.strip() for part, quoted in parts if quoted and part.strip()))


def _cut(text: str, find: Callable[[str], Iterator[Span]]) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it is a quotation."""
    at = 0
    for number, (start, end) in enumerate(find(text)):
        yield text[at:start], False
        at = end if number < _MOST else len(text)
        yield text[start:at], True
        if number == _MOST:
            break
    yield text[at:], False


def _enclosed(text: str) -> Iterator[Span]:
    """Fences, pairs of tags, and lines between BEGIN and END.

    Whichever begins first goes on to its own end, whatever stands in it.
    """
    at, openings, unclosed = 0, 0, set[str]()
    while opening := _OPENING.search(text, at):
        at, tag, openings = opening.end(), opening[1], openings + 1
        if openings > _MOST:
            end = len(text)
        elif tag in unclosed:
            continue
        elif tag:
            closing = f"</{tag}>"
            found = text.find(closing, at)
            if found < 0:
                unclosed.add(tag)
                if len(unclosed) < _UNCLOSED:
                    continue
            end = found + len(closing) if found >= 0 else len(text)
        elif opening[0] in ("```", "~~~"):
            found = text.find(opening[0], at)
            end = found + len(opening[0]) if found >= 0 else len(text)
        else:
            last = None if "--" in unclosed else _END.search(text, at)
            if last is None:
                unclosed.add("--")  # a line that somebody asks about; no later one ends either
                continue
            end = last.end()
        yield opening.start(), end
        at = end


def _lines(text: str) -> Iterator[Span]:
    """Blocks of lines that begin with `>`."""
    return (found.span() for found in _LINES.finditer(text))


def _passages(text: str) -> Iterator[Span]:
    """Passages between quotation marks, with those within them."""
    begun: list[tuple[str, int]] = []
    found: list[Span] = []
    for mark in islice(_MARK.finditer(text), _MOST):
        start, end = mark.span()
        before, after = text[max(start - 1, 0) : start], text[end : end + 1]
        straight = mark[0] == '"'  # the same at both ends: its neighbors say which end it is
        closes = begun and mark[0] in _CLOSES[begun[-1][0]]
        if closes and not (straight and before.isspace()):
            _, start = begun.pop()
            before, newline, near = text[max(start - _NEAR, 0) : start].rpartition("\n")
            begins = not near.strip() and (newline or start <= _NEAR)
            near, newline, _ = text[end : end + _NEAR].partition("\n")
            ends = not near.strip(" \t\r.,") and (newline or end + _NEAR >= len(text))
            if end - start >= (_LINE_CHARS if begins and ends else _PASSAGE_CHARS):
                while found and found[-1][0] > start:
                    found.pop()
                found.append((start, end))
        elif mark[0] in _CLOSES and not (straight and (before.isalnum() or not after.strip())):
            begun.append((mark[0], start))
    return iter(found)


def _paragraphs(text: str) -> Iterator[Span]:
    """Paragraphs that are too long."""
    at = 0
    for gap in (*_PARAGRAPHS.finditer(text), None):
        end = gap.start() if gap else len(text)
        if end - at > BLOCK_CHARS:
            yield at, end
        at = gap.end() if gap else end


def _typed(text: str) -> Iterator[Span]:
    """What is too long to be typed.

    A line before it that introduces it or asks, and a question after it, are the author's.
    """
    if len(text) <= BLOCK_CHARS:
        return
    first = _INTRODUCTION.match(text)
    start, end = first.end() if first else 0, len(text.rstrip())
    last = text.rfind("\n", start, end) + 1
    if 0 < end - last <= _EDGE_CHARS and text[end - 1] in "?\uff1f":
        end = max(last, start)
    yield start, end


_BLOCK_BEGIN: Final = "--- BEGIN MEMORY"
_BLOCK_END: Final = "--- END MEMORY ---"
_MARKER: Final = lazy_pattern(r"--- (?:BEGIN MEMORY\b|END MEMORY ---)")
_MARKER_CHARS: Final = 300
"""A marker line is no longer than this, and indented by no more than a few characters."""
_INDENT: Final = 8
_MARKERS: Final = 2_000
"""Maximum number of markers read in one text: a proxy writes two."""
_DASH: Final = "[-\u2010-\u2015\u2212]"
_LAST_DASH: Final = lazy_pattern(f"(?i)(?<={_DASH}{{2}}){_DASH}(?= ?(?:BEGIN|END) MEMORY)")
_LABELS: Final = lazy_pattern(r"^\[(?:kind|source|ts|score)=[^\]\n]*\][ \t]*$", re.MULTILINE)
_CONTEXT: Final = "[Runtime context for this invocation."
_CONTEXT_CHARS: Final = 400
_SENTENCE: Final = lazy_pattern(r"[^.!?。\uff01\uff1f\n]*[.!?。\uff01\uff1f\n]*")
_PLAIN: Final = lazy_pattern(r"\W+")
_CLAUSE: Final = lazy_pattern(r"[^.!?;。\uff01\uff1f\uff1b\n]*[.!?;。\uff01\uff1f\uff1b\n]*")
_MARKS: Final = (
    '.!?;:,"\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014\u3002\uff01\uff1f\uff1b\uff1a\uff0c\n'
)
_PIECE: Final = lazy_pattern(f"[^{_MARKS}]*[{_MARKS}]*")
"""What stands between marks: of "You said: …", what was said."""
_ABBREVIATED: Final = lazy_pattern(r"(?:^|\W)(?:[^\W\d_]|[A-Z]\w{1,3})\.$")
_ABBREVIATION_CHARS: Final = 12
_SENTENCE_CHARS: Final = 400
SHORTEST: Final = 20
"""Shorter sentences never count as a repetition or a copy."""
_LOOKED_AT: Final = 64 * 1024
"""Characters that are compared: several times what a proxy injects."""
_PLACES: Final = 8
"""Maximum number of candidate places for one sentence."""


class _Block(NamedTuple):
    """Position of a block with its marker lines, and of its text."""

    start: int
    text: int
    text_end: int
    end: int


def cut(text: str) -> str:
    """The text without injected memory blocks and the sentence that introduces them.

    Only a whole block counts: a quoted marker removes nothing.
    """
    if _BLOCK_BEGIN not in text and _CONTEXT not in text:
        return text
    gaps = _without_spans(text, ((block.start, block.end) for block in _blocks(text)))
    return _without_spans(gaps, _contexts(gaps)).strip()


def marked(text: str) -> bool:
    """Whether a text holds the markers of an injected block, even with broken lines."""
    return _BLOCK_BEGIN in text


def added(text: str) -> bool:
    """Whether a message was put into a prompt by a proxy: it begins with its sentence."""
    return text.lstrip().startswith(_CONTEXT)


def injected(text: str) -> list[str]:
    """Text of the memory blocks of a prompt, without the labels."""
    if _BLOCK_BEGIN not in text:
        return []
    return [_LABELS.sub("", text[one.text : one.text_end]).strip() for one in _blocks(text)]


def defuse(text: str) -> str:
    """The text with no marker of a block in it: it cannot end the block it is put into."""
    return _LAST_DASH.sub(r" \g<0>", text)


def shown_sentences(shown: Iterable[str]) -> list[str]:
    """Sentences of the shown text in normal form, up to the limit of the comparison."""
    plain = map(plain_words, _SENTENCE.findall(_joined(shown, "\n")))
    return [one for one in plain if len(one) >= SHORTEST]


def without_repeats(
    text: str, shown: Iterable[str], earlier: Callable[[str], bool] | None = None
) -> str:
    """The text without the sentences that only repeat what was shown, now or `earlier`."""
    known = _Known(shown)
    if not known and earlier is None:
        return text
    found = _SENTENCE.findall(text, 0, _LOOKED_AT)
    kept = [one for one in found if one not in known]
    if earlier is not None:
        kept = [one for one in kept if not earlier(plain_words(one))]
    return text if len(kept) == len(found) else ("".join(kept) + text[_LOOKED_AT:]).strip()


def without_quoted(text: str, shown: Iterable[str]) -> str:
    """The text, without repetitions of what was shown after a begin marker."""
    start = text.find(_BLOCK_BEGIN)
    if start < 0:
        return text
    return f"{text[:start]}{without_repeats(text[start:], shown)}"


class _Known:
    """Index of what was shown, to find a sentence in it quickly."""

    def __init__(self, shown: Iterable[str]) -> None:
        self._text = plain_words(_joined(shown))
        self._places: dict[str, list[int]] = {}
        for place in range(len(self._text) - SHORTEST + 1):
            places = self._places.setdefault(self._text[place : place + SHORTEST], [])
            if len(places) < _PLACES:
                places.append(place)

    def __bool__(self) -> bool:
        return bool(self._places)

    def __contains__(self, sentence: str) -> bool:
        plain = plain_words(sentence)
        places = self._places.get(plain[:SHORTEST], ()) if len(plain) >= SHORTEST else ()
        return any(self._text.startswith(plain, place) for place in places)


def sentences(text: str) -> list[str]:
    """The sentences of a text that are long enough to be told apart, in plain words."""
    found, begun = list[str](), ""
    for clause in _CLAUSE.finditer(text):
        begun += clause[0]
        goes_on = len(begun) < _SENTENCE_CHARS and _ABBREVIATED.search(begun[-_ABBREVIATION_CHARS:])
        if goes_on:
            continue  # "Dr." ends no sentence
        found.append(plain_words(begun))
        begun = ""
    return [one for one in (*found, plain_words(begun)) if len(one) >= SHORTEST]


class SentenceMatcher:
    """Finds texts again between punctuation marks, whatever their case, spaces and marks."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_start: dict[str, set[str]] = {}
        for text in texts:
            plain = plain_words(text)
            if len(plain) >= SHORTEST:
                self._by_start.setdefault(plain[:SHORTEST], set()).add(plain)

    def __bool__(self) -> bool:
        return bool(self._by_start)

    def cut(self, text: str) -> tuple[str, list[str]]:
        """The text without the sentences that are found in it, and these, in plain words.

        What is found may be several sentences in a row: a dot after "Dr" seems to end one.
        """
        words: list[str] = []
        places: list[tuple[int, int, int]] = []
        ends: dict[int, int] = {}
        at = 0
        for found in _PIECE.finditer(text):
            if plain := plain_words(found[0]):
                ends[at + len(plain)] = len(places)
                places.append((at, found.start(), found.end()))
                words.append(plain)
                at += len(plain) + 1
        joined = " ".join(words)
        spans, sentences, after = list[tuple[int, int]](), list[str](), 0
        for number, (begin, start, _) in enumerate(places):
            if number < after:
                continue
            likely = self._by_start.get(joined[begin : begin + SHORTEST], ())
            same = [one for one in likely if joined.startswith(one, begin)]
            whole = [one for one in same if begin + len(one) in ends]
            if whole:
                longest = max(whole, key=len)
                last = ends[begin + len(longest)]
                spans.append((start, places[last][2]))
                sentences.append(longest)
                after = last + 1
        return (_without_spans(text, spans).strip() if spans else text), sentences

    def cut_off(self, text: str) -> tuple[str, list[str]]:
        """The text without the beginning of a sentence at its end, and that, in plain words.

        A title is the beginning of what was said, cut off somewhere. A long text is none.
        """
        pieces = _PIECE.finditer(text) if len(text) <= _TITLE_CHARS else ()
        for start in (found.start() for found in pieces):
            begun = plain_words(text[start:])
            likely = sorted(self._by_start.get(begun[:SHORTEST], ()))
            if same := [one for one in likely if one.startswith(begun)]:
                return text[:start].strip(), same[:1]
        return text, []


def _joined(shown: Iterable[str], between: str = " ") -> str:
    """The shown text, up to the limit of the comparison."""
    parts: list[str] = []
    room = _LOOKED_AT
    for one in shown:
        parts.append(one[:room])
        room -= len(parts[-1])
        if not room:
            break
    return between.join(parts)


def plain_words(text: str) -> str:
    """The words of a text, one space between them, in lower case: how texts are compared."""
    return _PLAIN.sub(" ", unicodedata.normalize("NFKC", text)).strip().casefold()


# -- where blocks are -------------------------------------------------------------------------


def _blocks(text: str) -> Iterator[_Block]:
    """Every whole block: a begin marker without an end before the next one is ignored."""
    begun: tuple[int, int] | None = None
    for marker in islice(_MARKER.finditer(text), _MARKERS):
        line = _line(text, marker)
        if line is None:
            continue
        if not marker[0].startswith(_BLOCK_END):
            begun = line
        elif begun is not None:
            yield _Block(begun[0], begun[1], line[0], line[1])
            begun = None


def _line(text: str, marker: re.Match[str]) -> tuple[int, int] | None:
    """Start and end of the line of a marker; None if it is not alone on its line."""
    most = marker.end() + _MARKER_CHARS
    end = text.find("\n", marker.end(), most)
    if end < 0 and len(text) <= most:
        end = len(text)
    _, newline, before = text[max(marker.start() - _INDENT, 0) : marker.start()].rpartition("\n")
    begins = not before.strip() and (newline or marker.start() <= _INDENT)
    rest = text[marker.end() : max(end, 0)].strip()
    closes = not rest if marker[0] == _BLOCK_END else rest.endswith("---")
    return (marker.start() - len(before), end) if end >= 0 and begins and closes else None


def _contexts(text: str) -> Iterator[tuple[int, int]]:
    at = text.find(_CONTEXT)
    while at >= 0:
        inner = at + len(_CONTEXT)
        end = text.find("]", inner, inner + _CONTEXT_CHARS)
        if end >= 0:
            yield at, end + 1
        at = text.find(_CONTEXT, max(inner, end))


def _without_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    kept: list[str] = []
    at = 0
    for start, end in spans:
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]]) if kept else text
