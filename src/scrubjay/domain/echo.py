"""Echoes: what memory itself had put into a conversation, which is not to be remembered again.

A proxy puts recalled memories into the prompt between two marker lines. A client may send that
text back, and an agent may repeat it; neither says anything new.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MARK: Final = "--- BEGIN MEMORY"
_BLOCK: Final = re.compile(r"--- BEGIN MEMORY\b[^\n]*\n(.*?)(?:--- END MEMORY ---|\Z)", re.DOTALL)
_LABELS: Final = re.compile(r"^\[(?:kind|source|ts|score)=[^\]\n]*\][ \t]*$", re.MULTILINE)
_CONTEXT: Final = re.compile(r"\[Runtime context for this invocation\.[^\]]*\]\s*", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[^.!?。\uff01\uff1f\n]*[.!?。\uff01\uff1f\n]*")
_PLAIN: Final = re.compile(r"\W+")
_SHORTEST: Final = 20
"""Shorter sentences are anybody's: they are not taken for a repetition."""


def cut(text: str) -> str:
    """The text without injected memory blocks and the sentence that introduces them."""
    if _MARK not in text and "untime context" not in text:
        return text
    return _CONTEXT.sub("", _BLOCK.sub("", text)).strip()


def marked(text: str) -> bool:
    """Whether a text holds the marks of an injected block, whatever became of its lines."""
    return _MARK in text


def injected(text: str) -> list[str]:
    """What stands in the memory blocks of a prompt, without the labels."""
    if _MARK not in text:
        return []
    return [_LABELS.sub("", block[1]).strip() for block in _BLOCK.finditer(text)]


def without_repeats(text: str, shown: Iterable[str]) -> str:
    """The text without the sentences that only repeat what was shown."""
    known = " ".join(_plain(one) for one in shown)
    if not known:
        return text
    sentences = _SENTENCE.findall(text)
    return "".join(one for one in sentences if not _is_repeat(one, known)).strip()


def _is_repeat(sentence: str, known: str) -> bool:
    plain = _plain(sentence)
    return len(plain) >= _SHORTEST and plain in known


def _plain(text: str) -> str:
    return _PLAIN.sub(" ", text).strip().lower()
