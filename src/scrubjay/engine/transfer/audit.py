"""audit: read the trail, check that it is whole, and note an event in it."""

from __future__ import annotations

import re

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.origin import Actor
from scrubjay.model.pages import FIRST, Page, Paged, cursor_at, place
from scrubjay.model.results import AuditEvent, Report

_VERB = re.compile(r"[a-z0-9._-]{1,64}")


def trail(opened: OpenScope, request: Paged = FIRST) -> Page[AuditEvent]:
    """The events, oldest first."""
    (after,) = place(request.cursor)
    rows = opened.read(lambda view: view.audit(after, request.limit + 1))
    events = tuple(map(opened.trail.event, rows[: request.limit]))
    more = len(rows) > len(events)
    return Page(data=events, next_cursor=cursor_at(events[-1].count) if more else None)


def verify(opened: OpenScope) -> Report:
    """Whether the trail is whole: every link, its end in the head, the catalog's copy in it."""
    # The catalog's copy is read first: it may only ever lag behind the trail.
    known = opened.ports.store.catalog.entry(opened.address)
    return opened.read(lambda view: opened.trail.verify(view, known))


def note(opened: OpenScope, verb: str, *, session: str | None, actor: Actor) -> None:
    """Record an event that changed nothing, with the pseudonym of its session."""
    if not _VERB.fullmatch(verb):
        raise InvalidRequest("A verb of the trail is up to 64 of a-z, 0-9, dot, dash and _.")
    subjects = () if session is None else (opened.session_hash(session),)
    opened.write(lambda tx: opened.trail.record(tx, verb, actor, subjects), frozen_too=True)
