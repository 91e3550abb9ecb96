"""sessions: list the sessions of a scope without decrypting their memories.

Session and time of every memory are columns of the index, which are in memory or loaded in a few
milliseconds, as for the brief. A turn is in no index: its row has the keyed hash of the session,
and the timeline has its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import numpy as np
from msgspec.structs import replace

from scrubjay.engine.ledger.sessions import tainted
from scrubjay.engine.ledger.timeline import Line
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import Notes
from scrubjay.engine.search.open_index import OpenIndex
from scrubjay.engine.search.scope_index import moment
from scrubjay.engine.search.segment import NOTHING, Columns
from scrubjay.model.origin import Actor
from scrubjay.model.pages import Order, Page, Paged, paged
from scrubjay.model.results import Session
from scrubjay.model.rows import Collection
from scrubjay.model.turns import time_of
from scrubjay.ports import View

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
    newest = [
        Session(name=name, first=memory.said_at, last=memory.said_at, memories=1)
        for memory in (entry.memory for entry in fresh)
        if (name := memory.provenance.session) is not None
        and memory.current
        and not memory.expired(now)
    ]
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
    times = {opened.row_id(mark.id): mark.micros for mark in Line(Notes(opened, view))}
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
