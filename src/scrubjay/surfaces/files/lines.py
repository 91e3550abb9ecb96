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
        if comment or (not fenced and line.lstrip().startswith("<!--")):
            comment = "-->" not in line
        elif _FENCE.match(line):
            fenced = not fenced
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


def _line(mark: str, text: str) -> str:
    """A line that is read back as this text: one that looks like layout gets a list's mark."""
    tried = (f"{one}{text}" for one in (mark, "- ", "- [ ] "))
    return next((one for one in tried if [item.text for item in items(one)] == [text]), "")


def _closing(kept: Sequence[str]) -> list[str]:
    """What ends a fence or a comment that the file leaves open: lines after it would be in it."""
    text = "\n".join(kept)
    tried: Final[Sequence[list[str]]] = ([], ["```"], ["-->"])
    return next(one for one in tried if len(items("\n".join([text, *one, "x"]))) > len(items(text)))


def rewritten(text: str, changed: Mapping[int, str | None], added: Iterable[str]) -> str:
    """The file with some lines replaced, or left out, and some added at its end."""
    kept = list[str]()
    for number, line in enumerate(text.splitlines()):
        new = changed.get(number, "") if number in changed else line
        if number in changed and new is not None:
            mark = _MARK.match(line)
            new = _line(mark[0] if mark else "", new)
        if new is not None:
            kept.append(new)
    more = [_line("- ", one) for one in added]
    if more:
        kept += _closing(kept)
        if kept and not items(f"{kept[-1]}\n") and kept[-1].strip():
            kept.append("")
        if not kept:
            kept += [HEADING, ""]
        kept += more
    return "\n".join(kept) + "\n" if kept else ""
