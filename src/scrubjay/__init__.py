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
    from scrubjay.domain.errors import (
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
    from scrubjay.domain.memory import Kind, Memory, Provenance
    from scrubjay.domain.origin import Actor, Origin
    from scrubjay.domain.results import Erasure, Outcome, Page, Report, Retained, Session
    from scrubjay.domain.rows import Freeze
    from scrubjay.domain.scope import Scope
    from scrubjay.domain.turns import Recorded, Timeline, Turn
    from scrubjay.surfaces.client import Client, connect
    from scrubjay.surfaces.jay import Jay, open

__version__ = "0.1.0"

_HOMES = {
    "scrubjay.domain.errors": (
        "Busy Changed Conflict Destroyed EmbedderError ExtractorError Forbidden Frozen Full "
        "InvalidRequest KeyMissing LimitReached Locked NeedsConfirmation NotFound SchemaTooNew "
        "ScrubjayError SealBroken Stale StoreError Timeout"
    ),
    "scrubjay.domain.memory": "Kind Memory Provenance",
    "scrubjay.domain.origin": "Actor Origin",
    "scrubjay.domain.results": "Erasure Outcome Page Report Retained Session",
    "scrubjay.domain.rows": "Freeze",
    "scrubjay.domain.scope": "Scope",
    "scrubjay.domain.turns": "Recorded Timeline Turn",
    "scrubjay.surfaces.client": "Client connect",
    "scrubjay.surfaces.jay": "Jay open",
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
