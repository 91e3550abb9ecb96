"""scrubjay: one memory engine, private by construction, that every agent can plug into.

    import scrubjay

    with scrubjay.open("alice") as jay:
        receipt = jay.retain("Alice prefers green tea", kind="preference")
        jay.forget([receipt.id])

Everything here is loaded on first use, so that `import scrubjay` costs next to nothing.
"""

from __future__ import annotations

# Type checkers know this name; importing it from typing would cost most of the time to import us.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from scrubjay.client import Client, connect
    from scrubjay.handle import Jay, open
    from scrubjay.model.errors import (
        Busy,
        Changed,
        Conflict,
        Destroyed,
        EmbedderError,
        ExtractorError,
        Forbidden,
        Frozen,
        Full,
        InvalidRequest,
        KeyMissing,
        LimitReached,
        Locked,
        NeedsConfirmation,
        NotFound,
        SchemaTooNew,
        ScrubjayError,
        SealBroken,
        Stale,
        StoreError,
        Timeout,
    )
    from scrubjay.model.memory import Kind, Memory, Provenance
    from scrubjay.model.origin import Actor, Origin
    from scrubjay.model.results import Erasure, Outcome, Page, Report, Retained, Session
    from scrubjay.model.rows import Freeze
    from scrubjay.model.scope import Scope
    from scrubjay.model.turns import Recorded, Timeline, Turn

__version__ = "0.1.0"

_HOMES = {
    "scrubjay.model.errors": (
        "Busy Changed Conflict Destroyed EmbedderError ExtractorError Forbidden Frozen Full "
        "InvalidRequest KeyMissing LimitReached Locked NeedsConfirmation NotFound SchemaTooNew "
        "ScrubjayError SealBroken Stale StoreError Timeout"
    ),
    "scrubjay.model.memory": "Kind Memory Provenance",
    "scrubjay.model.origin": "Actor Origin",
    "scrubjay.model.results": "Erasure Outcome Page Report Retained Session",
    "scrubjay.model.rows": "Freeze",
    "scrubjay.model.scope": "Scope",
    "scrubjay.model.turns": "Recorded Timeline Turn",
    "scrubjay.client": "Client connect",
    "scrubjay.handle": "Jay open",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Actor",
    "Busy",
    "Changed",
    "Client",
    "Conflict",
    "Destroyed",
    "EmbedderError",
    "Erasure",
    "ExtractorError",
    "Forbidden",
    "Freeze",
    "Frozen",
    "Full",
    "InvalidRequest",
    "Jay",
    "KeyMissing",
    "Kind",
    "LimitReached",
    "Locked",
    "Memory",
    "NeedsConfirmation",
    "NotFound",
    "Origin",
    "Outcome",
    "Page",
    "Provenance",
    "Recorded",
    "Report",
    "Retained",
    "SchemaTooNew",
    "Scope",
    "ScrubjayError",
    "SealBroken",
    "Session",
    "Stale",
    "StoreError",
    "Timeline",
    "Timeout",
    "Turn",
    "connect",
    "open",
]


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(f"module 'scrubjay' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
