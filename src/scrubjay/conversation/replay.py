"""Replay of an external history into the ledger: page by page, idempotent.

A history is a list of JSON lines in pages that begin after a time. A line is written when its turn
ends but has the time it began, so pages overlap, as far as there is room: a long turn must not fall
between two of them. A duplicate costs one lookup.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from scrubjay.conversation import messages
from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest, ScrubjayError
from scrubjay.model.results import Outcome
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record

PAGE: Final = 1_000
"""Maximum number of lines of a page."""
OVERLAP: Final = timedelta(minutes=10)
"""Overlap of a page with the one before, if possible:"""
_FRESH: Final = PAGE // 4
"""at least this many lines of the next page must be new."""
_APART: Final = PAGE // 10
"""A second is read to its end when so many lines of later ones came after it."""
_SECOND: Final = timedelta(seconds=1)
Line = dict[str, Any]
Fetch = Callable[[datetime | None], Iterator[bytes | None]]
"""The lines after a time; None for one that is longer than a line may be."""
Read = Callable[[Line], Record | None]
"""The turn of a line; None if it is none."""


@dataclass(slots=True)
class ReplayReport:
    """Result of the replay of one agent: counts of its lines."""

    agent: str
    stored: int = 0
    known: int = 0
    forgotten: int = 0
    ignored: int = 0
    """Failed turns, and lines without a turn."""
    overlong: int = 0
    """Lines that are longer than the history itself would read."""
    last: datetime | None = None
    crowded: list[datetime] = field(default_factory=list)
    """Seconds of which there may be more lines than the history gives."""
    error: str | None = None
    """Error that ended the replay; what was read before is kept."""

    @property
    def seen(self) -> int:
        """Number of lines read."""
        return self.stored + self.known + self.forgotten + self.ignored + self.overlong

    @property
    def whole(self) -> bool:
        """Whether the whole history was read."""
        return self.error is None and not self.crowded

    def count(self, outcome: Outcome) -> None:
        """Count a turn by its outcome."""
        match outcome:
            case Outcome.STORED | Outcome.WAITING:
                self.stored += 1
            case Outcome.KNOWN:
                self.known += 1
            case Outcome.FORGOTTEN:
                self.forgotten += 1


def replay(
    engine: Kernel,
    scope: Scope,
    pulled: ReplayReport,
    fetch: Fetch,
    read: Read,
    *,
    after: datetime | None = None,
    progress: Callable[[ReplayReport], None] = lambda _: None,
) -> ReplayReport:
    """Replay a history into a scope; known turns are skipped.

    Errors are in the result, so that the histories of other agents go on.
    """
    try:
        for raw, line in _lines(fetch, after, pulled):
            record = read(line) if line is not None else None
            pulled.last = time_of(line) or pulled.last
            if raw is None:
                pulled.overlong += 1
            elif record is None:
                pulled.ignored += 1
            else:
                pulled.count(engine.record(scope, record).outcome)
            progress(pulled)
    except ScrubjayError as error:
        pulled.error = f"{error.code}: {error.message}"
    return pulled


def _lines(
    fetch: Fetch, after: datetime | None, pulled: ReplayReport
) -> Iterator[tuple[bytes | None, Line | None]]:
    """All lines after a time, each once, page by page; none is kept but by its digest."""
    seen: set[bytes] = set()
    while True:
        digests: set[bytes] = set()
        times: list[datetime | None] = []
        for raw in fetch(after):
            parsed = messages.parsed(raw) if raw is not None else None
            line = parsed if isinstance(parsed, dict) else None
            times.append(time_of(line))
            digest = hashlib.sha256(raw or b"").digest()
            digests.add(digest)
            if digest not in seen:
                yield raw, line
        if len(times) < PAGE:
            return
        after, seen = onward(times, after, pulled), digests


def onward(times: list[datetime | None], after: datetime | None, pulled: ReplayReport) -> datetime:
    """After which time the next page begins, given those of the lines of this one.

    What may still come of a time that is passed over is lost, so as little as can be is: a page
    reaches back ten minutes, or as far as leaves room for new lines. Where one second fills most
    of a page, there is no smaller step than to go beyond it, and it is noted.
    """
    known = sorted(time for time in times if time is not None)
    if not known:
        raise InvalidRequest("The history has a page without a time, and cannot be read on.")
    wanted = max(known[-1] - OVERLAP, known[min(_FRESH, len(known) - 1)]) - _SECOND
    if wanted >= known[0] and (after is None or wanted > after):
        return wanted
    first = known[0]
    last_of_first = max(place for place, time in enumerate(times) if time == first)
    if last_of_first >= len(times) - _APART:
        pulled.crowded.append(first)
    return first


def time_of(line: Line | None) -> datetime | None:
    """When the turn of a line began, by the second."""
    stamp = line.get("ts") if line else None
    try:
        if not isinstance(stamp, str):
            return None
        return datetime.fromisoformat(stamp).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        return None
