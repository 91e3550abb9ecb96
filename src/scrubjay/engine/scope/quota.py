"""Quota: what a scope and a tenant may hold, by the policy and by whoever calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.policy import Policy
from scrubjay.model.errors import LimitReached
from scrubjay.model.rows import Collection
from scrubjay.model.scope import Quota, Scope
from scrubjay.ports import Tx

_HINT: Final = "Nothing was written. Forget and purge what is not needed, or have the quota raised."
_ANY: Final = Quota()
_ALLOWED: ContextVar[Quota] = ContextVar("allowed", default=_ANY)


@contextmanager
def allowed(quota: Quota) -> Iterator[None]:
    """Let no write inside go beyond this quota, whatever the policy allows."""
    token = _ALLOWED.set(quota.within(_ALLOWED.get()))
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def quota_of(policy: Policy) -> Quota:
    """The quota of the policy and of whoever called."""
    caller = _ALLOWED.get()
    return policy.quota if caller is _ANY else policy.quota.within(caller)


class QuotaCheck:
    """Checks the writes to one scope; thread-safe."""

    def __init__(self, ports: Ports, scope: Scope, address: str) -> None:
        self._ports, self._scope, self._address = ports, scope, address
        self._counted = (0, 0)  # a seq of the memories, and how many there were at it, at most

    def check_size(self, megabytes: int) -> None:
        """LimitReached if the scope takes its quota of the disk already."""
        size = self._ports.store.size(self._address) + self._ports.blobs.size(self._address)
        if size >= megabytes * 1024 * 1024:
            raise LimitReached(
                f"The scope {self._scope} has reached its quota of {megabytes:,} megabytes.",
                hint=_HINT,
            )

    def check_number(self, tx: Tx, before: int, fresh: int, most: int) -> None:
        """LimitReached if a transaction brings the scope beyond its quota of memories.

        Rows are counted only when they could be too many: no more were added since than changes.
        """
        seq, number = self._counted
        if number + before - seq + fresh > most and seq != before:
            seq, number = self._counted = before, tx.count(Collection.MEMORY) - fresh
        if number + before - seq + fresh > most:
            raise LimitReached(
                f"The scope {self._scope} has reached its quota of {most:,} memories.",
                hint=_HINT,
            )
