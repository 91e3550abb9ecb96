"""audit: reading the trail, checking that it is whole, and copying its head to safety."""

from __future__ import annotations

import hmac
import logging
import re

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import InvalidRequest, ScrubjayError, SealBroken
from scrubjay.model.origin import Actor
from scrubjay.model.results import AuditEvent, Report
from scrubjay.model.rows import Head
from scrubjay.ports import View

_log = logging.getLogger(__name__)
_VERB = re.compile(r"[a-z0-9._-]{1,64}")

LOST = "restore.lost"
"""The verb of an event that says how many events a lost file had; those need not be there."""
_PAGE = 1000
_log = logging.getLogger(__name__)


def trail(opened: OpenScope, after: int = 0, limit: int = _PAGE) -> tuple[AuditEvent, ...]:
    """The events after a count, oldest first."""
    rows = opened.read(lambda view: view.audit(after, limit))
    return tuple(opened.trail.event(row) for row in rows)


def verify(opened: OpenScope) -> Report:
    """Whether the trail is whole: every link, its end in the head, its start of old."""
    # The catalog's copy is read first: it may only ever lag behind the trail.
    entry = opened.ports.store.catalog.entry(opened.address)
    known = {entry.audit_count: entry.audit_mac} if entry else {}
    return opened.read(lambda view: _verify(opened, view, known))


def _verify(opened: OpenScope, view: View, known: dict[int, bytes]) -> Report:
    mac, count, lost = bytes(32), 0, 0
    problems, strange = list[str](), list[str]()
    while rows := view.audit(count, _PAGE):
        for row in rows:
            if row.count != count + 1:
                return _broken(count, f"Audit event {count + 1} is missing.")
            count = row.count
            mac = opened.trail.link(mac, count, row.cell)
            if not hmac.compare_digest(mac, row.mac):
                return _broken(count, f"Audit event {count} was altered.")
            if known.get(count, mac) != mac:
                strange.append(f"Audit event {count} is not the one the catalog knows.")
            try:
                event = opened.trail.event(row)
                lost = max(lost, event.number) if event.verb == LOST else lost
            except SealBroken:
                problems.append(f"Audit event {count} does not open.")
    problems += _end(view.head(), count, mac)
    if max(known, default=0) > count:
        strange.append(f"The audit trail ends at {count}, but the catalog knows {max(known)}.")
    return Report(
        checked=count, problems=(*problems, *(strange if max(known, default=0) > lost else ()))
    )


def _broken(count: int, problem: str) -> Report:
    return Report(checked=count, problems=(problem,))


def _end(head: Head, count: int, mac: bytes) -> list[str]:
    if (head.audit_count, head.audit_mac) == (count, mac):
        return []
    return ["The audit trail does not end where the head says."]


def note(opened: OpenScope, verb: str, *, session: str | None, actor: Actor) -> None:
    """Record an event that changed nothing, with the session it happened in, as a pseudonym."""
    if not _VERB.fullmatch(verb):
        raise InvalidRequest("A verb of the trail is up to 64 of a-z, 0-9, dot, dash and _.")
    subject = opened.session_hash(session)
    subjects = () if subject is None else (subject,)
    opened.write(lambda tx: opened.trail.record(tx, verb, actor, subjects), frozen_too=True)


def copy_head(opened: OpenScope) -> Head:
    """Copy the audit head to the catalog, so that a trail cut short shows."""
    head = opened.read(lambda view: view.head())
    catalog = opened.ports.store.catalog
    entry = catalog.entry(opened.address)
    if entry is not None and entry.audit_count < head.audit_count:
        catalog.note_audit(opened.address, head.audit_count, head.audit_mac)
    return head


def leave(opened: OpenScope) -> None:
    """Write the counted reads and copy the audit head, if that can still be done.

    Closing never fails: a scope that was destroyed or a full disk only costs the count of reads.
    """
    try:
        opened.flush_reads()
        copy_head(opened)
    except ScrubjayError as error:
        _log.warning("close.reads_not_written", extra={"code": error.code})
