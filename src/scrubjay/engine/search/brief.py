"""brief: the memories to put before a session's first prompt; no query, no ranking.

Pinned memories first, then behavioral ones, then facts, newest first. It reads columns only, so
it is fast in a new process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import product

import numpy as np

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search.open_index import OpenIndex, Peek, past_limits
from scrubjay.engine.search.segment import KINDS, ORIGINS
from scrubjay.model import block
from scrubjay.model.clean import one_line
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.origin import Origin
from scrubjay.model.requests import BriefRequest, Caller
from scrubjay.model.results import Brief
from scrubjay.model.scope import Scope

PINNED, BEHAVIORAL, FACT, NEVER = range(4)
_FACTS = frozenset({Kind.FACT, Kind.CONTEXT, Kind.PATTERN, Kind.SUMMARY})

Candidate = tuple[int, int, bytes]
"""Sort key: its place, minus its number (newest first), and the id of its row."""


def brief(opened: OpenScope, indexed: OpenIndex, request: BriefRequest, caller: Caller) -> Brief:
    """Brief of a scope within both limits: the memories, and the text of them."""
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
