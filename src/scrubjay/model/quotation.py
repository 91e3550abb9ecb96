"""Quotation: the words of a text's author apart from what they quoted or pasted.

It goes by form alone: a fence, a pair of tags, lines between BEGIN and END, a `>` block, a passage
in quotation marks, a block longer than people type. Texts may be megabytes long and hostile: all
of it takes time in proportion to their length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

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
_UNCLOSED: Final = 64
"""From so many different tags on that are never closed, a text is markup to its end."""
_MOST: Final = 2_000
"""From so many openings or quotations on, what follows is one; further marks are not looked at."""

_OPENING: Final = re.compile(
    r"```|~~~"
    r"|^[ \t]*<([A-Za-z][\w:.-]{0,63})(?:[ \t][^<>\n]{0,300})?>"
    r"|^[ \t]*[-=#*]{2,}[ \t]*BEGIN\b",
    re.MULTILINE,
)
_END: Final = re.compile(r"^[ \t]*[-=#*]{2,}[ \t]*END\b.*$", re.MULTILINE)
_LINES: Final = re.compile(r"^[ \t]*>.*(?:\n[ \t]*>.*)*", re.MULTILINE)
_MARK: Final = re.compile(r'["“”„«»「」『』]')
_CLOSES: Final = {"“": "”", "„": "“”", "«": "»", "»": "«", "「": "」", "『": "』", '"': '"'}
_INTRODUCTION: Final = re.compile(rf"\s*+[^\n]{{1,{_EDGE_CHARS}}}[?:\uff1f\uff1a][ \t\r]*(?=\n)")
_PARAGRAPHS: Final = re.compile(r"\n[ \t\r]*\n\s*")

Span = tuple[int, int]


class Words(NamedTuple):
    """A text in two parts."""

    own: str
    quoted: tuple[str, ...]


def split(text: str, *, typed: bool) -> Words:
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
