"""The audit trail of a scope: sealed events in a keyed hash chain, appended with each change."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice

from msgspec import Struct

from scrubjay import vault
from scrubjay.model.errors import SealBroken
from scrubjay.model.results import AuditEvent, Report
from scrubjay.model.rows import AuditRow, CatalogEntry
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock, Tx, View
from scrubjay.vault import Mac, Purpose, Sealer

LOST = "restore.lost"
"""Verb of the event that counts the events of a lost file, which are excused."""
PAGE = 1000
SUBJECTS = 64
"""Of how many rows an event has the names."""
_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class AuditTrail(Struct, frozen=True):
    """Audit trail of one scope; its keys live as long as the scope."""

    mac: Mac
    sealer: Sealer
    clock: Clock

    @classmethod
    def of(cls, lookup: bytes, scope: Scope, clock: Clock) -> AuditTrail:
        """The trail whose keys come from a scope's lookup key."""
        sealer = Sealer(lookup, Purpose.AUDIT, scope, "audit")
        return cls(Mac(vault.derive(lookup, Purpose.CHAIN, scope)), sealer, clock)

    def record(
        self, tx: Tx, verb: str, actor: str, ids: Iterable[bytes] = (), *, number: int = 1
    ) -> None:
        """Append one event, atomically with the change it records."""
        head = tx.head()
        count = head.audit_count + 1
        micros = (self.clock.now() - _START) // _MICROSECOND
        names = "".join(f',"{row_id[:8].hex()}"' for row_id in islice(ids, SUBJECTS))
        # JSON by hand: verbs, actors and hexadecimal digits need no escape.
        body = f'["{verb}","{actor}",{micros},{number}{names}]'.encode()
        nonce = self.clock.random(vault.NONCE_BYTES)
        cell = self.sealer.seal(vault.pad(body), row_id=b"", version=count, nonce=nonce)
        tx.append_audit(cell, vault.chain(self.mac, head.audit_mac, count, cell))

    def event(self, row: AuditRow) -> AuditEvent:
        """The event in an audit row; SealBroken if it was altered or moved."""
        body = self.sealer.unseal(row.cell, row_id=b"", version=row.count)
        verb, actor, micros, number, *names = json.loads(vault.unpad(body))
        return AuditEvent(
            count=row.count,
            at=_START + micros * _MICROSECOND,
            verb=verb,
            actor=actor,
            subjects=tuple(names),
            number=number,
        )

    def lost(self, view: View) -> int:
        """How many events were lost with an earlier file, as a restore recorded it; 0 for none."""
        lost, count = 0, 0
        while rows := view.audit(count, PAGE):
            count = rows[-1].count
            for row in rows:
                with suppress(SealBroken):
                    event = self.event(row)
                    lost = max(lost, event.number) if event.verb == LOST else lost
        return lost

    def verify(self, view: View, known: CatalogEntry | None) -> Report:
        """Whether the chain is whole: every link, its end in the head, the catalog's copy in it."""
        mac, count, lost = bytes(32), 0, 0
        problems, strange = list[str](), list[str]()
        copied = known.audit_count if known else 0
        while rows := view.audit(count, PAGE):
            for row in rows:
                if row.count != count + 1:
                    problem = f"Audit event {count + 1} is missing."
                    return Report(checked=count, problems=(problem,))
                count = row.count
                mac = vault.chain(self.mac, mac, count, row.cell)
                if not hmac.compare_digest(mac, row.mac):
                    problem = f"Audit event {count} was altered."
                    return Report(checked=count, problems=(problem,))
                if known and count == copied and known.audit_mac != mac:
                    strange.append(f"Audit event {count} is not the one the catalog knows.")
                try:
                    event = self.event(row)
                    lost = max(lost, event.number) if event.verb == LOST else lost
                except SealBroken:
                    problems.append(f"Audit event {count} does not open.")
        head = view.head()
        if (head.audit_count, head.audit_mac) != (count, mac):
            problems.append("The audit trail does not end where the head says.")
        if copied > count:
            strange.append(f"The audit trail ends at {count}, but the catalog knows {copied}.")
        return Report(checked=count, problems=(*problems, *(strange if copied > lost else ())))
