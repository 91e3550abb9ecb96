"""Canaries: texts found nowhere else, so that whatever is left of one on disk can be counted."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from bench.peers.material import Turn

MARK = "canary-"
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")


def hatch(owner: str, count: int) -> tuple[Turn, ...]:
    """So many turns in a conversation, each with a random word of its own."""
    return tuple(
        Turn(
            owner=owner,
            id=f"{MARK}{number}",
            session="canaries",
            position=number,
            speaker="bird",
            time=None,
            text=f"{MARK}{secrets.token_hex(16)}",
        )
        for number in range(count)
    )


def copies(folder: Path, words: Sequence[str]) -> int:
    """How often the words stand in the files below a folder, as UTF-8 or UTF-16."""
    needles = [word.encode(encoding) for word in words for encoding in ENCODINGS]
    contents = (path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return sum(content.count(needle) for content in contents for needle in needles)
