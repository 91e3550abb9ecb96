"""What the ranking knows of each row besides its text: who, when, where in which session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Times: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int32]
Mask: TypeAlias = NDArray[np.bool_]

NONE = -1
"""The code of no session, no speaker; the row of no neighbor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One array per property, a row per memory; made once, used by every query until a write."""

    speaker: Codes
    time: Times
    """Seconds since 1970; NaN where unknown."""
    length: Floats
    """Characters of content."""
    timed: Mask
    asks: Mask
    counts: Mask
    names: Mask
    instructs: Mask
    prefers: Mask
    importance: Floats
    trust: Floats
    pinned: Mask
    previous: Codes
    following: Codes
    by_session: Codes
    """All rows, session after session."""
    session_starts: Codes
    """Where each session begins in `by_session`."""

    def __len__(self) -> int:
        return len(self.speaker)


def arrange(
    *,
    session: Codes,
    position: Codes,
    speaker: Codes,
    time: Times,
    length: Floats,
    signs: Mapping[str, Mask],
    importance: Floats | None = None,
    trust: Floats | None = None,
    pinned: Mask | None = None,
) -> Columns:
    """Columns of these rows; a row of no session is a session of its own.

    `signs` holds what the text shows (`timed`, `asks`, `counts`, `names`, `instructs`,
    `prefers`); importance and trust run from 0 to 1 with 0.5 and 1 as the usual ones.
    """
    rows = len(session)
    alone = session == NONE
    own = np.where(alone, -1 - np.arange(rows), session)
    order = np.lexsort((position, own)).astype(np.int32)
    first = np.ones(rows, np.bool_)
    first[1:] = own[order[1:]] != own[order[:-1]]
    previous, following = _neighbors(order, first)
    return Columns(
        speaker=speaker,
        time=time,
        length=length,
        importance=np.full(rows, 0.5, np.float32) if importance is None else importance,
        trust=np.ones(rows, np.float32) if trust is None else trust,
        pinned=np.zeros(rows, np.bool_) if pinned is None else pinned,
        previous=previous,
        following=following,
        by_session=order,
        session_starts=np.flatnonzero(first).astype(np.int32),
        **signs,
    )


def _neighbors(order: Codes, first: Mask) -> tuple[Codes, Codes]:
    previous = np.full(len(order), NONE, np.int32)
    following = previous.copy()
    inner = ~first[1:]
    previous[order[1:][inner]] = order[:-1][inner]
    following[order[:-1][inner]] = order[1:][inner]
    return previous, following
