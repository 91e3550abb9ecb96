"""count, statistics and ids by their beginning: read off the columns, all but the archived ones."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta, tzinfo
from typing import Final

import numpy as np

from scrubjay.engine.search.open_index import OpenIndex, Peek, past_limits
from scrubjay.engine.search.scope_index import moment
from scrubjay.engine.search.segment import KINDS, ORIGINS, Columns
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.filters import Filter
from scrubjay.model.memory import PREFIX_CHARS, label
from scrubjay.model.origin import Actor
from scrubjay.model.overview import Statistics
from scrubjay.ports import View

WEEKS: Final = 12
TOP: Final = 10
_CANDIDATES: Final = 10
"""How many ids an error names that begin alike."""


def columns(indexed: OpenIndex) -> Columns:
    """Columns of every memory of the scope, the newest included."""
    with indexed.lock:
        indexed.catch_up()
        held, fresh = indexed.ready.columns(), indexed.ready.fresh()
    return Columns.join([held, Columns.of(fresh)]) if fresh else held


def count(indexed: OpenIndex, request: Filter, actor: Actor) -> int:
    """How many memories a filter accepts."""
    opened, now = indexed.opened, indexed.opened.ports.clock.now()
    opened.note_read("count", actor)
    if request.archived is not False:  # they are in no index

        def accepted(view: View) -> int:
            seen = (opened.limits.seen(view, one) for _, one in opened.memories(view))
            return sum(request.accepts(one, now) for one in seen)

        return opened.read(accepted)
    held = columns(indexed)
    mask = held.accepted(request, now)
    if indexed.limits is not None and request.as_of is None and not request.superseded:
        mask &= ~past_limits(held, indexed.limits, now)
    return int(mask.sum())


def statistics(indexed: OpenIndex, zone: tzinfo, actor: Actor) -> Statistics:
    """Counts of the current memories, and how many were recorded in the last weeks."""
    now = indexed.opened.ports.clock.now()
    held = columns(indexed)
    held = held.pick(held.expires > now.timestamp())
    live = held.pick(np.isinf(held.retired))
    if indexed.limits is not None:
        live = live.pick(~past_limits(live, indexed.limits, now))
    this = now.astimezone(zone).date()
    mondays = [this - timedelta(weeks=back, days=this.weekday()) for back in range(WEEKS)]
    weeks = dict.fromkeys(reversed([one.isoformat() for one in mondays]), 0)
    oldest = (now - timedelta(weeks=WEEKS + 1)).timestamp()
    for time in held.recorded[held.recorded > oldest]:
        day: date = moment(time).astimezone(zone).date()
        monday = (day - timedelta(days=day.weekday())).isoformat()
        if monday in weeks:
            weeks[monday] += 1
    kinds, origins = np.bincount(live.kind), np.bincount(live.origin)
    tags = np.bincount(live.tags, minlength=len(live.names))
    indexed.opened.note_read("statistics", actor)
    return Statistics(
        scope=indexed.opened.scope,
        live=len(live),
        superseded=len(held) - len(live),
        pinned=int(live.pinned.sum()),
        kinds={KINDS[code].value: int(kinds[code]) for code in np.flatnonzero(kinds)},
        origins=_most((ORIGINS[code].value, int(origins[code])) for code in range(len(origins))),
        tags=_most(zip(live.names, map(int, tags), strict=True)),
        weeks=weeks,
    )


def _most(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The most frequent, and among equals in the order of the alphabet."""
    some = sorted((-number, name) for name, number in counts if number)
    return {name: -number for number, name in some[:TOP]}


def whole_id(indexed: OpenIndex, prefix: str) -> str | None:
    """The id that begins so, of those made here; None if none does.

    InvalidRequest if several do, with the first of them. An id that its writer brought is only
    found whole: programs compare such ids, and one may well be the beginning of another.
    """
    held = columns(indexed)
    rows = held.row_id[held.labeled([label("id", prefix[:PREFIX_CHARS])])]

    def look(peek: Peek) -> list[str]:
        found = (peek(row.tobytes()) for row in rows)
        return sorted(one.id for one in found if one is not None and one.id.startswith(prefix))

    ids = indexed.read(look)
    if len(ids) > 1:
        more = f" and {len(ids) - _CANDIDATES:,} more" * (len(ids) > _CANDIDATES)
        raise InvalidRequest(
            f"{prefix} is the beginning of {len(ids):,} ids: {', '.join(ids[:_CANDIDATES])}{more}.",
            hint="Give more characters of the one you mean.",
        )
    return ids[0] if ids else None
