"""The engine: one method per verb, in one class per room, on any scope."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import ParamSpec, TypeVar

from scrubjay.engine.ledger.verbs import LedgerVerbs
from scrubjay.engine.memories.verbs import MemoryVerbs
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.keyring import Keyring
from scrubjay.engine.scope.policy import Policy
from scrubjay.engine.transfer.verbs import TransferVerbs
from scrubjay.ports import patience

__all__ = ["Kernel", "Keyring", "Policy", "Ports"]

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Kernel(MemoryVerbs, LedgerVerbs, TransferVerbs):
    """All verbs on all scopes of one installation, over the ports; thread-safe.

    What a verb waits for others, all together, is bounded as one wait is.
    """


def _patient(verb: Callable[Given, Result]) -> Callable[Given, Result]:
    @wraps(verb)
    def bounded(*args: Given.args, **named: Given.kwargs) -> Result:
        with patience():
            return verb(*args, **named)

    return bounded


for _name in dir(Kernel):
    if not _name.startswith("_") and isfunction(_verb := getattr(Kernel, _name)):
        setattr(Kernel, _name, _patient(_verb))
