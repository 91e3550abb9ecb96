"""The verbs that look whether everything is as promised, as a part of the engine."""

from __future__ import annotations

from scrubjay.domain.results import AuditEvent, Erasure, Report
from scrubjay.domain.scope import Scope
from scrubjay.engine import audit, receipts, scopes
from scrubjay.engine import verify as verifying
from scrubjay.engine.opened import OpenScope, Ports


class Checking:
    """What the engine can say about what is kept, and about what it stands on."""

    def _begin(self, scope: Scope) -> OpenScope:
        raise NotImplementedError

    def _check_open(self) -> Ports:
        raise NotImplementedError

    def verify(self, scope: Scope) -> Report:
        """Open everything and check what was promised."""
        return verifying.verify(self._begin(scope))

    def verify_erased(self, receipt: Erasure) -> Report:
        """Search all that is kept for erased cells and prove that no key opens them."""
        return verifying.verify_erased(self._check_open(), receipt)

    def receipts(self, scope: Scope) -> tuple[Erasure, ...]:
        """The erasure receipts kept for a scope, oldest first, also after destroy."""
        ports = self._check_open()
        address, _ = scopes.locate(ports, scope)
        return receipts.kept(ports, address)

    def audit(self, scope: Scope, *, after: int = 0, limit: int = 1000) -> tuple[AuditEvent, ...]:
        """The audit trail after a count, oldest first."""
        opened = self._begin(scope)
        opened.flush_reads()
        return audit.trail(opened, after, limit)

    def verify_audit(self, scope: Scope) -> Report:
        """Whether the audit trail is whole."""
        return audit.verify(self._begin(scope))

    def check_embedder(self) -> None:
        """Ask the embedder for one vector; EmbedderError if it gives none in time."""
        ports = self._check_open()
        deadline = ports.clock.monotonic() + ports.policy.embed_seconds
        ports.embedder.embed(["scrub jay"], deadline=deadline)
