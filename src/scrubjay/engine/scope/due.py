"""Due marks of an open scope, for callers that have not moved yet."""

from __future__ import annotations

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.rows import Due
from scrubjay.ports import Tx


def leave(opened: OpenScope, tx: Tx, work: Due) -> None:
    """Leave work to be finished by the next verbs, in the transaction that causes it."""
    opened.leave_due(tx, work)
