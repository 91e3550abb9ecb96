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
Places: TypeAlias = NDArray[np.intp]
"""Rows to gather by: as wide as an address, since numpy would widen them at every use."""
Mask: TypeAlias = NDArray[np.bool_]

NONE = -1
"""The code of no session, no speaker; the row of no neighbor."""
QUOTABLE = 250
"""Characters up to which a turn passes its whole evidence to its neighbors."""
SHORT = 120
LEAST = 5
"""Below this many characters a turn is not counted as even shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One array per property, a row per memory; made once, used by every query until a write."""

    speaker: Codes
    time: Times
    """Seconds since 1970; NaN where unknown."""
    latest: float
    """The last of these times: a question asked after it need not be told from later ones."""
    timed: Mask
    instructs: Mask
    prefers: Mask
    previous: Places
    following: Places
    by_session: Places
    """All rows, session after session."""
    session_starts: Places
    """Where each session begins in `by_session`."""
    session_of: Places
    """Which of these sessions each row belongs to."""
    gate: Floats
    """How much of its evidence a turn may pass to its neighbors, by length."""
    replies: Mask
    """Turns that answer somebody else's question."""
    manner: Mapping[str, Floats]
    """The features no question changes, by name; those that are 0 everywhere are left out."""

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

    `signs` holds what the text shows (`timed`, `asks`, `instructs`, `prefers`);
    importance and trust run from 0 to 1 with 0.5 and 1 as the usual ones.
    """
    rows = len(session)
    own = np.where(session == NONE, -1 - np.arange(rows), session)  # as wide as an address
    order = _ordered(own, position)
    first = np.ones(rows, np.bool_)
    first[1:] = own[order[1:]] != own[order[:-1]]
    previous, following = _neighbors(order, first)
    asks = signs["asks"]
    other = speaker[previous] != speaker
    return Columns(
        speaker=speaker,
        time=time,
        latest=float(np.fmax.reduce(time, initial=-np.inf)),
        timed=signs["timed"],
        instructs=signs["instructs"],
        prefers=signs["prefers"],
        previous=previous,
        following=following,
        by_session=order,
        session_starts=np.flatnonzero(first),
        session_of=_session_of(order, first),
        gate=np.minimum(1, QUOTABLE / np.maximum(length, 1)).astype(np.float32),
        replies=(previous != NONE) & asks[previous] & other,
        manner=_manner(length, asks, importance, trust, pinned),
    )


def _manner(
    length: Floats, asks: Mask, importance: Floats | None, trust: Floats | None, pinned: Mask | None
) -> dict[str, Floats]:
    """Very short turns seldom hold the answer; questions neither."""
    size = np.log(np.maximum(length, LEAST)).astype(np.float32)
    found = {
        "short": np.maximum(np.float32(np.log(SHORT)) - size, 0),
        "question": asks.astype(np.float32),
    }
    if importance is not None:
        found["importance"] = importance - np.float32(0.5)
    if trust is not None:
        found["distrust"] = 1 - trust
    if pinned is not None:
        found["pinned"] = pinned.astype(np.float32)
    return {name: values for name, values in found.items() if values.any()}


def _ordered(session: Places, position: Codes) -> Places:
    """The rows by session, then position; equal ones as they come."""
    if not len(session):
        return np.empty(0, np.intp)
    least, most = int(position.min()), int(position.max())
    span = most - least + 1
    if span * max(int(session.max()), -int(session.min()), 1) >= 2**62:
        return np.lexsort((position, session))
    # As one number: rows mostly come in this order, and a stable sort of those is one pass.
    return np.argsort(session * span + (position - least), kind="stable")


def _session_of(order: Places, first: Mask) -> Places:
    found = np.empty(len(order), np.intp)
    found[order] = np.cumsum(first) - 1
    return found


def _neighbors(order: Places, first: Mask) -> tuple[Places, Places]:
    previous = np.full(len(order), NONE, np.intp)
    following = previous.copy()
    inner = ~first[1:]
    previous[order[1:][inner]] = order[:-1][inner]
    following[order[:-1][inner]] = order[1:][inner]
    return previous, following
