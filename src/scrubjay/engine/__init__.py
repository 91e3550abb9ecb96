"""The engine: one method per verb, in one class per room, on any scope."""

from __future__ import annotations

from scrubjay.engine.ledger.verbs import LedgerVerbs
from scrubjay.engine.memories.verbs import MemoryVerbs
from scrubjay.engine.open_scopes import bounded
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.keyring import Keyring
from scrubjay.engine.scope.policy import Policy
from scrubjay.engine.transfer.verbs import TransferVerbs

__all__ = ["Kernel", "Keyring", "Policy", "Ports"]


@bounded
class Kernel(MemoryVerbs, LedgerVerbs, TransferVerbs):
    """All verbs on all scopes of one installation, over the ports; thread-safe.

    What a verb waits for others, all together, is bounded as one wait is.
    """
