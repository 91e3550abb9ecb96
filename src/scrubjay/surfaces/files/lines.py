"""Lines of a notes file: which of them are memories, and how the file changes around them.

Headings, comments, fenced blocks, rules, tables and blank lines are the layout: they stay as they
are. Every other line is one memory, without its list mark.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final

from msgspec import Struct

HEADING: Final = "## Remembered"
"""Where lines go that the engine adds, if the file has none of its own yet."""
_MARK: Final = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_LAYOUT: Final = re.compile(r"\s*(?:#{1,6}\s|<!--|-->|\||(?:-{3,}|\*{3,}|_{3,})\s*$|$)")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")


class Item(Struct, frozen=True):
    """A line that is a memory: its number in the file, and what it says."""

    number: int
    text: str

    @property
    def digest(self) -> str:
        """Digest of what it says: how a line is known again."""
        return digest(self.text)


def digest(text: str) -> str:
    """Digest of a line, whatever its spaces."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:32]


def said(text: str) -> str:
    """A memory's text as one line of a file."""
    return " ".join(text.split())


def items(text: str) -> list[Item]:
    """The lines of a file that are memories."""
    found, fenced, comment = list[Item](), False, False
    for number, line in enumerate(text.splitlines()):
        if _FENCE.match(line):
            fenced = not fenced
        elif comment or line.lstrip().startswith("<!--"):
            comment = "-->" not in line
        elif not fenced and not _LAYOUT.match(line):
            mark = _MARK.match(line)
            words = said(line[mark.end() :] if mark else line)
            if words:
                found.append(Item(number, words))
    return found


def edits(before: Sequence[str], after: Sequence[str]) -> dict[str, str]:
    """Which digest took the place of which: lines that were rewritten where they stood."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return {
        old: new
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind == "replace" and b - a == d - c
        for old, new in zip(before[a:b], after[c:d], strict=True)
    }


def rewritten(text: str, changed: Mapping[int, str | None], added: Iterable[str]) -> str:
    """The file with some lines replaced, or left out, and some added at its end."""
    kept = list[str]()
    for number, line in enumerate(text.splitlines()):
        new = changed.get(number, "") if number in changed else line
        if number in changed and new is not None:
            mark = _MARK.match(line)
            new = (mark[0] if mark else "") + new
        if new is not None:
            kept.append(new)
    more = [f"- {one}" for one in added]
    if more:
        if kept and not items(f"{kept[-1]}\n") and kept[-1].strip():
            kept.append("")
        if not kept:
            kept += [HEADING, ""]
        kept += more
    return "\n".join(kept) + "\n" if kept else ""
