"""Echoes: injected memories that come back in a conversation and must not be stored again.

A proxy puts recalled memories into the prompt between two marker lines. A client may send that
text back, and an agent may repeat it; neither is new. Texts may be megabytes long and hostile:
everything here takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

_BEGIN: Final = "--- BEGIN MEMORY"
_END: Final = "--- END MEMORY ---"
_MARKER: Final = re.compile(r"--- (?:BEGIN MEMORY\b|END MEMORY ---)")
_MARKER_CHARS: Final = 300
"""A marker line is no longer than this, and indented by no more than a few characters."""
_INDENT: Final = 8
_MARKERS: Final = 2_000
"""Maximum number of markers read in one text: a proxy writes two."""
_DASH: Final = "[-\u2010-\u2015\u2212]"
_LAST_DASH: Final = re.compile(f"(?i)(?<={_DASH}{{2}}){_DASH}(?= ?(?:BEGIN|END) MEMORY)")
_LABELS: Final = re.compile(r"^\[(?:kind|source|ts|score)=[^\]\n]*\][ \t]*$", re.MULTILINE)
_CONTEXT: Final = "[Runtime context for this invocation."
_CONTEXT_CHARS: Final = 400
_SENTENCE: Final = re.compile(r"[^.!?。\uff01\uff1f\n]*[.!?。\uff01\uff1f\n]*")
_PLAIN: Final = re.compile(r"\W+")
_SHORTEST: Final = 20
"""Shorter sentences never count as a repetition."""
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
    if _BEGIN not in text and _CONTEXT not in text:
        return text
    gaps = _without_spans(text, ((block.start, block.end) for block in _blocks(text)))
    return _without_spans(gaps, _contexts(gaps)).strip()


def marked(text: str) -> bool:
    """Whether a text holds the markers of an injected block, even with broken lines."""
    return _BEGIN in text


def injected(text: str) -> list[str]:
    """Text of the memory blocks of a prompt, without the labels."""
    if _BEGIN not in text:
        return []
    return [_LABELS.sub("", text[one.text : one.text_end]).strip() for one in _blocks(text)]


def defuse(text: str) -> str:
    """The text with no marker of a block in it: it cannot end the block it is put into."""
    return _LAST_DASH.sub(r" \g<0>", text)


def without_repeats(text: str, shown: Iterable[str]) -> str:
    """The text without the sentences that only repeat what was shown."""
    known = _Known(shown)
    if not known:
        return text
    sentences = _SENTENCE.findall(text, 0, _LOOKED_AT)
    kept = "".join(one for one in sentences if one not in known)
    return (kept + text[_LOOKED_AT:]).strip()


def without_quoted(text: str, shown: Iterable[str]) -> str:
    """The text, without repetitions of what was shown after a begin marker."""
    start = text.find(_BEGIN)
    if start < 0:
        return text
    return f"{text[:start]}{without_repeats(text[start:], shown)}"


class _Known:
    """Index of what was shown, to find a sentence in it quickly."""

    def __init__(self, shown: Iterable[str]) -> None:
        self._text = _plain(_joined(shown))
        self._places: dict[str, list[int]] = {}
        for place in range(len(self._text) - _SHORTEST + 1):
            places = self._places.setdefault(self._text[place : place + _SHORTEST], [])
            if len(places) < _PLACES:
                places.append(place)

    def __bool__(self) -> bool:
        return bool(self._places)

    def __contains__(self, sentence: str) -> bool:
        plain = _plain(sentence)
        places = self._places.get(plain[:_SHORTEST], ()) if len(plain) >= _SHORTEST else ()
        return any(self._text.startswith(plain, place) for place in places)


def _joined(shown: Iterable[str]) -> str:
    """What was shown, cut to the length that is compared."""
    parts: list[str] = []
    room = _LOOKED_AT
    for one in shown:
        parts.append(one[:room])
        room -= len(parts[-1])
        if not room:
            break
    return " ".join(parts)


def _plain(text: str) -> str:
    return _PLAIN.sub(" ", text).strip().lower()


# -- where blocks are -------------------------------------------------------------------------


def _blocks(text: str) -> Iterator[_Block]:
    """Every whole block: a begin marker without an end before the next one is ignored."""
    begun: tuple[int, int] | None = None
    for marker in islice(_MARKER.finditer(text), _MARKERS):
        line = _line(text, marker)
        if line is None:
            continue
        if not marker[0].startswith(_END):
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
    closes = not rest if marker[0] == _END else rest.endswith("---")
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
