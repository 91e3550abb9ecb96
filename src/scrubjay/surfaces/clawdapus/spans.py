"""Stretches of a conversation: what is not worth a block of its own is still known to have been."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Final

from scrubjay.guard.clean import one_line
from scrubjay.model.turns import EPISODE_TURNS, Moment, State, Timeline

_GIST: Final = 60
_NOISE: Final = 10
"""From so many turns on that nothing is kept of, their number is worth telling."""
_COMPARED: Final = 4_000


class Episodes:
    """The latest episodes of a conversation; the first may lack its beginning.

    All are closed, by a pause or by their number of turns, but for the last one: what is told
    of a closed one stays the same however the conversation goes on.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        groups = timeline.episodes()
        self._cut = groups.pop(0) if timeline.begun and groups else []
        self._groups = groups
        self._of = {one.id: group for group in groups for one in group}
        self._open = _open_one(timeline, groups or [self._cut])
        self._told: set[str] = set()

    def is_open(self, turns: Collection[str]) -> bool:
        """Whether one of the turns is of the episode that still goes on."""
        return not {one.id for one in self._open}.isdisjoint(turns)

    def around(self, turns: Collection[str]) -> str:
        """What else a closed episode of one of the turns was about; said once for each."""
        group = next((self._of[one] for one in turns if one in self._of), [])
        others = [one for one in group if one.state is State.KEPT and one.id not in turns]
        if not others or group is self._open or group[0].id in self._told:
            return ""
        self._told.add(group[0].id)
        gists = "; ".join(one_line(one.gist, most=_GIST) for one in others)
        return f"(one of {_number(group)}, {_time(group)}; also: {gists})"

    def tell(self, shown: Collection[str], most: int) -> str:
        """Episodes of which something was not shown yet, oldest first; nothing if there is none.

        Where they do not all fit, the oldest ones are only counted.
        """
        told = [
            group
            for group in self._groups
            if _has_more(group, shown) and group[0].id not in self._told
        ]
        lines = [_line(group) for group in told]
        counted = self._timeline.earlier + len(self._cut)
        if not lines and not counted:
            return ""
        text = ""
        for cut in range(len(lines) + 1):
            counts = _counted(self._timeline.since, counted)
            text = "Earlier: " + "; ".join([*counts, *lines[cut:]])
            if len(text.encode()) <= most:
                break
            counted += len(told[cut]) if cut < len(told) else 0
        return fit(text, most)

    def noise(self) -> str:
        """How many of the latest turns were routine, where these are many."""
        moments = self._timeline.moments
        routine = [one for one in moments if one.state in (State.REPEATED, State.TRIVIAL)]
        if len(routine) < _NOISE:
            return ""
        last = routine[-1].at.astimezone(UTC)
        return (
            f"{len(routine)} of the last {len(moments)} turns were routine or said nothing new, "
            f"the last of them at {last:%Y-%m-%d %H:%M}."
        )


def _open_one(timeline: Timeline, groups: list[list[Moment]]) -> list[Moment]:
    """The last episode, unless it has as many turns as one may have."""
    last = groups[-1]
    begun = timeline.begun if last and last[0] is timeline.moments[0] else 0
    return [] if begun + len(last) == EPISODE_TURNS else last


def _has_more(group: list[Moment], shown: Collection[str]) -> bool:
    return any(one.state is State.KEPT and one.id not in shown for one in group)


def _line(group: list[Moment]) -> str:
    routine = sum(one.state is not State.KEPT for one in group)
    about = next(one.gist for one in group if one.state is State.KEPT)
    number = _number(group) + (f", {routine} of them routine" if routine else "")
    return f"{_time(group)} ({number}): {one_line(about, most=_GIST)}"


def _number(group: list[Moment]) -> str:
    return f"{len(group)} turn{'s' * (len(group) > 1)}"


def _time(group: list[Moment]) -> str:
    first, last = group[0].at.astimezone(UTC), group[-1].at.astimezone(UTC)
    until = f"\u2013{last:%H:%M}" if f"{first:%H:%M}" != f"{last:%H:%M}" else ""
    return f"{first:%Y-%m-%d %H:%M}{until}"


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
