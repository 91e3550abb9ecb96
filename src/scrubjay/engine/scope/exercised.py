"""Rights that were exercised in a scope, read from its audit trail: what recipients are told of.

The trail has each change in its own transaction, whichever door it came by. So a notice cannot be
lost by a crash between the change and the notice, and no verb has to remember to make one.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from scrubjay.engine.memories import receipts
from scrubjay.engine.scope.audit_trail import PAGE
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.installation import installation_key, scope_name
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import NotFound
from scrubjay.model.results import AuditEvent
from scrubjay.model.scope import Scope
from scrubjay.ports import View, every_entry

RIGHTS: Final = {
    "supersede": "rectification",
    "forget": "erasure",
    "reject": "erasure",
    "revoke": "erasure",
    "delete_conversation": "erasure",
    "destroy": "erasure",
    "freeze.all": "restriction",
    "freeze.none": "restriction_lifted",
}
"""The verbs that articles 16 to 18 of the GDPR are about, as the trail has them, and the right."""

ENDED: Final = 2**62
"""The number of a destroy: it comes after every event of the trail that went with it."""


class Life(Struct, frozen=True, kw_only=True):
    """One life of a scope, from its first write to its destroy, and how long its trail is."""

    scope: Scope
    address: str
    destroyed: bool
    events: int


def lives(ports: Ports) -> list[Life]:
    """Every life whose name opens, destroyed ones too; no scope is opened for it."""
    found = list[Life]()
    entries = list(every_entry(ports.store.catalog))
    key = installation_key(ports) if entries else b""
    for entry in entries:
        if (scope := scope_name(key, entry)) is None:
            continue
        events = ENDED
        if not entry.destroyed:
            try:
                events = ports.store.head(entry.address).audit_count
            except NotFound:
                continue
        life = Life(scope=scope, address=entry.address, destroyed=entry.destroyed, events=events)
        found.append(life)
    return found


def exercised(opened: OpenScope, after: int) -> list[AuditEvent]:
    """The events after a count that recipients are told of; reading them is no event itself."""

    def look(view: View) -> list[AuditEvent]:
        found, last = list[AuditEvent](), after
        while rows := view.audit(last, PAGE):
            last = rows[-1].count
            events = map(opened.trail.event, rows)
            found += [event for event in events if event.verb in RIGHTS]
        return found

    return opened.read(look)


def destroyed(ports: Ports, life: Life) -> list[AuditEvent]:
    """The destroy that ended a life, as an event of its trail, which is gone."""
    return [
        AuditEvent(count=life.events, at=one.at, verb=one.verb, actor="", number=one.erased)
        for one in receipts.kept(ports, life.address)
        if one.verb == "destroy"
    ]
