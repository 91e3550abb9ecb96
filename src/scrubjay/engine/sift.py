"""What is kept of a model's answer: clean, each thing once, and nothing that was noted already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from scrubjay.domain import echo
from scrubjay.domain.memory import Kind
from scrubjay.domain.turns import MODEL_PART, MODEL_PIECES, Piece, alike
from scrubjay.guard.admission import admit_piece

_SUBJECT: Final = frozenset({"user"})
"""Rules keep what the user said, a model says that the user said it."""


def sift(
    pieces: Sequence[Piece], noted: Sequence[str], placeholder: str
) -> tuple[list[Piece], int]:
    """The pieces as they may be kept, numbered anew, and how many only repeat something."""
    from scrubjay.index.holding import gist  # loads stemmers, which recording turns does not need

    known = [gist(text) - _SUBJECT for text in noted]
    kept, filled, repeats = list[Piece](), set[str](), 0
    for piece in pieces:
        admitted = admit_piece(piece, placeholder)
        said = gist(admitted.content) - _SUBJECT
        if not said or admitted.kind in (Kind.EPISODE, Kind.SUMMARY):
            continue
        is_echo = echo.marked(admitted.content) or any(alike(said, one) for one in known)
        if is_echo or admitted.slot in filled:
            repeats += 1
            continue
        known.append(said)
        if admitted.slot:
            filled.add(admitted.slot)  # one turn says one thing about one thing
        part = f"{MODEL_PART}{len(kept)}"
        kept.append(replace(admitted, part=part, said_by_user=False))
    return kept[:MODEL_PIECES], repeats
