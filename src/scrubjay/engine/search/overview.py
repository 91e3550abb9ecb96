"""brief, count, statistics and sessions: what is read from the columns of the index, unranked.

A brief has the memories to put before a session's first prompt: pinned ones first, then behavioral
ones, then facts, newest first. It decrypts only those, so it is fast in a new process. A turn is in
no index: its row has the keyed hash of the session, and the timeline has its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta, tzinfo
from itertools import product
from typing import Final

import numpy as np
from msgspec.structs import replace

from scrubjay.engine.ledger.sessions import tainted
from scrubjay.engine.ledger.timeline import Line
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.search.open_index import OpenIndex, Peek, past_limits
from scrubjay.engine.search.scope_index import moment
from scrubjay.engine.search.segment import KINDS, NOTHING, ORIGINS, Columns
from scrubjay.model import block
from scrubjay.model.clean import one_line
from scrubjay.model.filters import Filter
from scrubjay.model.memory import PREFIX_CHARS, Kind, Memory, label
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.overview import Statistics
from scrubjay.model.pages import Order, Page, Paged, paged
from scrubjay.model.requests import BriefRequest, Caller
from scrubjay.model.results import Brief, Session
from scrubjay.model.rows import Collection
from scrubjay.model.scope import Scope
from scrubjay.model.turns import time_of
from scrubjay.ports import View

PINNED, BEHAVIORAL, FACT, NEVER = range(4)
_FACTS = frozenset({Kind.FACT, Kind.CONTEXT, Kind.PATTERN, Kind.SUMMARY})

Candidate = tuple[int, int, bytes]
"""Sort key: its place, minus its number (newest first), and the id of its row."""


def brief(indexed: OpenIndex, request: BriefRequest, caller: Caller) -> Brief:
    """Brief of a scope within both limits: the memories, and the text of them."""
    opened = indexed.opened
    now = opened.ports.clock.now()
    with indexed.lock:
        indexed.catch_up()
        opened.check_free()
        held, fresh = indexed.ready.columns(), indexed.ready.fresh()
        limits = indexed.limits
    current = np.isinf(held.retired) & (held.expires > now.timestamp())
    if limits is not None:
        current &= ~past_limits(held, limits, now)
    # `place` for every approval, pin, kind and origin, looked up for all rows at once.
    every = product((False, True), (False, True), KINDS, ORIGINS)
    table = [place(kind, origin, approved=yes, pinned=pin) for yes, pin, kind, origin in every]
    flags = held.approved.astype(np.intp), held.pinned.astype(np.intp)
    shape = (2, 2, len(KINDS), len(ORIGINS))
    places = np.array(table).reshape(shape)[*flags, held.kind, held.origin]
    candidates: list[Candidate] = [
        (int(places[row]), -int(held.born[row]), held.row_id[row].tobytes())
        for row in np.flatnonzero(current & (places != NEVER))
    ]
    for entry in fresh:
        memory = entry.memory
        approved = memory.approved is not None
        where = place(memory.kind, memory.origin, approved=approved, pinned=memory.pinned)
        past = limits is not None and limits.retired(memory, now)
        if where != NEVER and memory.current and not past and not memory.expired(now):
            candidates.append((where, -memory.number, entry.row_id))
    candidates.sort()
    chosen = [
        memory
        for _, memory in indexed.read(
            lambda peek: _fitting(
                ((opened.scope, one) for one in _shown(peek, candidates, now)), request
            )
        )
    ]
    opened.note_read("brief", caller.actor)
    return Brief(
        entries=tuple(chosen),
        omitted=len(candidates) - len(chosen),
        total=len(held) + len(fresh),
        made_at=now,
        markdown=block.brief(chosen, now),
    )


def place(kind: Kind, origin: Origin, *, approved: bool, pinned: bool) -> int:
    """Section of the brief a memory belongs to; none if it is untrusted, or a quotation."""
    if origin is Origin.QUOTED or not (origin.trusted or approved):
        return NEVER
    if pinned:
        return PINNED
    return BEHAVIORAL if kind.behavioral else FACT if kind in _FACTS else NEVER


def joined(parts: Mapping[Scope, Brief], request: BriefRequest) -> Brief:
    """One brief of several scopes: section by section, the newest first, within the same limits."""

    def order(told: tuple[Scope, Memory]) -> tuple[int, float]:
        one = told[1]
        approved = one.approved is not None
        where = place(one.kind, one.origin, approved=approved, pinned=one.pinned)
        return where, -one.recorded_at.timestamp()

    every = [(scope, one) for scope, part in parts.items() for one in part]
    chosen = _fitting(sorted(every, key=order), request)
    first = next(iter(parts.values()))
    memories = [memory for _, memory in chosen]
    assert first.made_at is not None
    return Brief(
        entries=tuple(memories),
        scopes=tuple(scope for scope, _ in chosen),
        omitted=sum(part.omitted for part in parts.values()) + len(every) - len(chosen),
        total=sum(part.total for part in parts.values()),
        made_at=first.made_at,
        markdown=block.brief(memories, first.made_at),
    )


def _fitting(
    told: Iterable[tuple[Scope, Memory]], request: BriefRequest
) -> list[tuple[Scope, Memory]]:
    """The first memories within both limits; one that is too long is skipped."""
    chosen, left = list[tuple[Scope, Memory]](), request.max_chars
    for scope, memory in told:
        if len(chosen) == request.limit:
            break
        size = len(one_line(memory.content))
        if size <= left:
            chosen.append((scope, memory))
            left -= size
    return chosen


def _shown(peek: Peek, candidates: Iterable[Candidate], now: datetime) -> Iterator[Memory]:
    """The candidates that are still to be shown, decrypted one by one."""
    for _, _, row_id in candidates:
        memory = peek(row_id)
        if memory is not None and memory.shown and not memory.expired(now):
            yield memory


# -- count and statistics --------------------------------------------------------------------------

WEEKS: Final = 12
TOP: Final = 10


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


def ids(indexed: OpenIndex, prefix: str) -> list[str]:
    """The ids that begin so, of those made here.

    An id that its writer brought is only found whole: programs compare such ids, and one may well
    be the beginning of another.
    """
    held = columns(indexed)
    opened = indexed.opened
    rows = [
        row.tobytes() for row in held.row_id[held.labeled([label("id", prefix[:PREFIX_CHARS])])]
    ]
    rows += opened.read(lambda view: view.derived(opened.begins_hash(prefix)))  # the archived ones

    def look(peek: Peek) -> list[str]:
        found = map(peek, dict.fromkeys(rows))
        return sorted(one.id for one in found if one is not None and one.id.startswith(prefix))

    return indexed.read(look)


# -- sessions --------------------------------------------------------------------------------------

_PAGE = 256

Sessions = dict[str, Session]


def sessions(
    opened: OpenScope, indexed: OpenIndex, request: Paged, *, actor: Actor
) -> Page[Session]:
    """Sessions that have memories or turns, the most recently active first."""
    now = opened.ports.clock.now()
    with indexed.lock:
        indexed.catch_up()
        held, fresh = indexed.ready.columns(), indexed.ready.fresh()
        limits = indexed.limits
    newest = [
        Session(name=name, first=memory.said_at, last=memory.said_at, memories=1)
        for memory in (entry.memory for entry in fresh)
        if (name := memory.provenance.session) is not None
        and memory.current
        and not memory.expired(now)
        and not (limits is not None and limits.retired(memory, now))
    ]
    if limits is not None:
        held = held.pick(~past_limits(held, limits, now))
    written = _joined([*_in_columns(held, now), *newest])

    def look(view: View) -> Page[Session]:
        known = _joined([*written.values(), *_in_ledger(opened, view, written)])
        newest = sorted(known.values(), key=_order)
        page = paged(newest, request.limit, request.cursor, _order)
        said = (replace(one, tainted=tainted(opened, view, one.name)) for one in page)
        return replace(page, data=tuple(said))

    found = opened.read(look)
    opened.note_read("sessions", actor)
    return found


def _order(one: Session) -> Order:
    return (-round(one.last.timestamp() * 1_000_000), one.name)


def _joined(parts: Iterable[Session]) -> Sessions:
    """Merge what several sources know of the sessions, by name."""
    found: Sessions = {}
    for one in parts:
        known = found.get(one.name)
        found[one.name] = (
            one
            if known is None
            else Session(
                name=one.name,
                first=min(known.first, one.first),
                last=max(known.last, one.last),
                memories=known.memories + one.memories,
                turns=known.turns + one.turns,
            )
        )
    return found


def _in_columns(held: Columns, now: datetime) -> Iterator[Session]:
    """Sessions of the current memories in segments."""
    current = np.isinf(held.retired) & (held.expires > now.timestamp()) & (held.session != NOTHING)
    codes, which = np.unique(held.session[current], return_inverse=True)
    said, sizes = held.said[current], np.bincount(which, minlength=len(codes))
    first, last = np.full(len(codes), np.inf), np.full(len(codes), -np.inf)
    np.minimum.at(first, which, said)
    np.maximum.at(last, which, said)
    for place, code in enumerate(codes):
        yield Session(
            name=held.names[code],
            first=moment(first[place]),
            last=moment(last[place]),
            memories=int(sizes[place]),
        )


def _in_ledger(opened: OpenScope, view: View, names: Iterable[str]) -> Iterator[Session]:
    """Sessions of the turns; a turn is decrypted only if no memory has the name of its session."""
    times = {opened.row_id(mark.id): mark.micros for mark in Line(ScopeValues(opened, view))}
    known = {opened.session_hash(name): name for name in names} if times else {}
    found: dict[str, list[int]] = {}
    after = 0
    while times and (rows := view.changes(Collection.TURN, after, _PAGE)):
        for row in rows:
            if row.session is None or row.id not in times:
                continue
            if row.session not in known:
                known[row.session] = opened.unseal_turn(row).session or ""
            found.setdefault(known[row.session], []).append(times[row.id])
        after = rows[-1].seq
    for name, spoken in found.items():
        first, last = time_of(min(spoken)), time_of(max(spoken))
        yield Session(name=name, first=first, last=last, turns=len(spoken))
