"""The timeline in one line: what is not worth a block of its own is still known to have been."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime

from scrubjay.domain.turns import Moment, State, Timeline, episodes
from scrubjay.guard.clean import one_line

_GIST = 60
_COMPARED = 4_000


def tell(timeline: Timeline, shown: Collection[str], most: int) -> str:
    """Episodes of which something was not shown yet, oldest first; nothing if there is none.

    Where they do not all fit, the oldest ones are only counted.
    """
    told = [group for group in episodes(timeline.moments) if _has_more(group, shown)]
    lines = [_line(group) for group in told]
    if not lines and not timeline.earlier:
        return ""
    text, counted = "", timeline.earlier
    for cut in range(len(lines) + 1):
        text = "Earlier: " + "; ".join([*_counted(timeline.since, counted), *lines[cut:]])
        if len(text.encode()) <= most:
            break
        counted += len(told[cut]) if cut < len(told) else 0
    return fit(text, most)


def _has_more(group: list[Moment], shown: Collection[str]) -> bool:
    return any(one.state is State.KEPT and one.id not in shown for one in group)


def _line(group: list[Moment]) -> str:
    first, last = group[0].at.astimezone(UTC), group[-1].at.astimezone(UTC)
    until = f"\u2013{last:%H:%M}" if f"{first:%H:%M}" != f"{last:%H:%M}" else ""
    routine = sum(one.state is not State.KEPT for one in group)
    about = next(one.gist for one in group if one.state is State.KEPT)
    number = f"{len(group)} turn{'s' * (len(group) > 1)}"
    number += f", {routine} of them routine" if routine else ""
    return f"{first:%Y-%m-%d %H:%M}{until} ({number}): {one_line(about, most=_GIST)}"


def _counted(since: datetime | None, count: int) -> Iterator[str]:
    if since is not None and count:
        yield f"{count:,} turns since {since:%Y-%m-%d}"


def fit(text: str, most: int) -> str:
    """The text in at most so many bytes; what is cut short says so."""
    raw = text.encode()
    if len(raw) <= most:
        return text
    return raw[: most - 4].decode("utf-8", "ignore").rstrip() + " …"


def stamp(at: datetime) -> str:
    """A time as the proxy writes it: seconds, UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def plain(text: str) -> str:
    """A text as it is compared: without spaces and case, and only its beginning."""
    return " ".join(text[:_COMPARED].split()).lower()[:500]
