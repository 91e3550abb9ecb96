"""The writing end of the audit trail: one sealed, chained line per change, in its transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from scrubjay import vault
from scrubjay.domain.results import AuditEvent
from scrubjay.domain.rows import AuditRow
from scrubjay.domain.scope import Scope
from scrubjay.ports import Clock, Tx
from scrubjay.vault import Mac, Purpose, Sealer

_SUBJECTS = 64
_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Trail:
    """The keys of one scope's audit trail; they live as long as the scope."""

    mac: Mac
    sealer: Sealer
    clock: Clock

    @classmethod
    def of(cls, lookup: bytes, scope: Scope, clock: Clock) -> Trail:
        """The trail whose keys come from a scope's lookup key."""
        sealer = Sealer(lookup, Purpose.AUDIT, scope, "audit")
        return cls(Mac(vault.derive(lookup, Purpose.CHAIN, scope)), sealer, clock)

    def record(
        self, tx: Tx, verb: str, actor: str, ids: Iterable[bytes] = (), *, number: int = 1
    ) -> None:
        """Append one event; it is durable together with the change, or neither is."""
        head = tx.head()
        count = head.audit_count + 1
        micros = (self.clock.now() - _START) // _MICROSECOND
        names = "".join(f',"{row_id[:8].hex()}"' for row_id in islice(ids, _SUBJECTS))
        # JSON by hand: verbs, actors and hexadecimal digits need no escape.
        body = f'["{verb}","{actor}",{micros},{number}{names}]'.encode()
        nonce = self.clock.random(vault.NONCE_BYTES)
        cell = self.sealer.seal(vault.pad(body), row_id=b"", version=count, nonce=nonce)
        tx.append_audit(cell, self.link(head.audit_mac, count, cell))

    def link(self, previous: bytes, count: int, cell: bytes) -> bytes:
        """The link of the chain that follows `previous`."""
        return vault.chain(self.mac, previous, count, cell)

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
