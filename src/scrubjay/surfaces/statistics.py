"""Statistics of a scope: counts by kind, week, tag and origin, and how long a recall takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from scrubjay.domain.errors import Frozen
from scrubjay.domain.memory import Kind, Memory
from scrubjay.domain.requests import BROWSE_LIMIT
from scrubjay.surfaces.jay import Jay

WEEKS = 12
TOP = 10
_ASKED = 5
_WORDS = 8

Count = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long a recall takes, in milliseconds: the first in a process, and those after it."""

    first: float
    later: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A scope in numbers."""

    scope: str
    live: int
    superseded: int
    pinned: int
    kinds: tuple[Count, ...]
    origins: tuple[Count, ...]
    tags: tuple[Count, ...]
    weeks: tuple[tuple[date, int], ...]
    """How many were recorded in each week, by its Monday, oldest first."""
    latency: Latency | None = None
    """None if recall is frozen, or there is nothing to ask for."""


def statistics(jay: Jay, now: datetime, monotonic: Callable[[], float]) -> Statistics:
    """Count everything once, then ask a few questions and take the time."""
    memories = list(_all(jay))
    live = [memory for memory in memories if memory.live]
    kinds = Counter(memory.kind for memory in live)
    return Statistics(
        scope=str(jay.scope),
        live=len(live),
        superseded=len(memories) - len(live),
        pinned=sum(memory.pinned for memory in live),
        kinds=tuple((kind.value, kinds[kind]) for kind in Kind if kinds[kind]),
        origins=_most(memory.origin.value for memory in live),
        tags=_most(tag for memory in live for tag in memory.tags),
        weeks=_weeks(memories, now),
        latency=_latency(jay, live, monotonic),
    )


def _all(jay: Jay) -> Iterator[Memory]:
    cursor: int | None = None
    while True:
        page = jay.browse(superseded=True, limit=BROWSE_LIMIT, cursor=cursor)
        yield from page
        if (cursor := page.next) is None:
            return


def _most(names: Iterable[str]) -> tuple[Count, ...]:
    """The most frequent, and among equals in the order of the alphabet."""
    counts = Counter(names).items()
    return tuple(sorted(counts, key=lambda pair: (-pair[1], pair[0]))[:TOP])


def _weeks(memories: Iterable[Memory], now: datetime) -> tuple[tuple[date, int], ...]:
    counts = Counter(_monday(memory.recorded_at) for memory in memories)
    this = _monday(now)
    mondays = [this - timedelta(weeks=back) for back in reversed(range(WEEKS))]
    return tuple((monday, counts[monday]) for monday in mondays)


def _monday(time: datetime) -> date:
    day = time.astimezone().date()
    return day - timedelta(days=day.weekday())


def _latency(jay: Jay, live: list[Memory], monotonic: Callable[[], float]) -> Latency | None:
    """Ask for what the newest memories say: a first time, and then some more."""
    asked = [" ".join(memory.content.split()[:_WORDS]) for memory in live[:_ASKED]]
    times = []
    try:
        for query in asked and [asked[0], *asked]:
            began = monotonic()
            jay.recall(query)
            times.append((monotonic() - began) * 1000)
    except Frozen:
        return None
    return Latency(first=times[0], later=sorted(times[1:])[len(asked) // 2]) if times else None
