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
    from scrubjay.access import (
        Grant,
        Issued,
        Key,
    )
    from scrubjay.client import (
        Client,
        connect,
    )
    from scrubjay.handle import (
        AsyncJay,
        Jay,
        open,
    )
    from scrubjay.handle import SharedEngine as Engine
    from scrubjay.model.errors import (
        Busy,
        Changed,
        Conflict,
        Damaged,
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
    from scrubjay.model.memory import (
        Kind,
        Memory,
        Provenance,
    )
    from scrubjay.model.origin import (
        Actor,
        Origin,
    )
    from scrubjay.model.results import (
        AuditEvent,
        BackedUp,
        BackupNote,
        Brief,
        ErasedCell,
        Erasure,
        Exported,
        Extraction,
        ExtractionStatus,
        Hit,
        Loaded,
        Outcome,
        Page,
        Preview,
        Purged,
        Recalled,
        Reindexed,
        Report,
        Retained,
        Rotated,
        Session,
        Stopped,
    )
    from scrubjay.model.rows import (
        Freeze,
    )
    from scrubjay.model.scope import (
        Scope,
    )
    from scrubjay.model.turns import (
        Moment,
        Recorded,
        State,
        Timeline,
        Turn,
    )

__version__ = "0.1.0"

_HOMES = {
    "scrubjay.access": "Grant Issued Key",
    "scrubjay.model.errors": (
        "Busy Changed Conflict Damaged Destroyed EmbedderError ExtractorError Forbidden Frozen "
        "Full InvalidRequest KeyMissing LimitReached Locked NeedsConfirmation NotFound "
        "SchemaTooNew ScrubjayError SealBroken Stale StoreError Timeout"
    ),
    "scrubjay.model.memory": "Kind Memory Provenance",
    "scrubjay.model.origin": "Actor Origin",
    "scrubjay.model.results": (
        "AuditEvent BackedUp BackupNote Brief ErasedCell Erasure Exported Extraction "
        "ExtractionStatus Hit Loaded Outcome Page Preview Purged Recalled Reindexed "
        "Report Retained Rotated Session Stopped"
    ),
    "scrubjay.model.rows": "Freeze",
    "scrubjay.model.scope": "Scope",
    "scrubjay.model.turns": "Moment Recorded State Timeline Turn",
    "scrubjay.client": "Client connect",
    "scrubjay.handle": "AsyncJay Jay open",
}
_NAMES = {name: (home, name) for home, names in _HOMES.items() for name in names.split()}
_NAMES["Engine"] = ("scrubjay.handle", "SharedEngine")

__all__ = [
    "Actor",
    "AsyncJay",
    "AuditEvent",
    "BackedUp",
    "BackupNote",
    "Brief",
    "Busy",
    "Changed",
    "Client",
    "Conflict",
    "Damaged",
    "Destroyed",
    "EmbedderError",
    "Engine",
    "ErasedCell",
    "Erasure",
    "Exported",
    "Extraction",
    "ExtractionStatus",
    "ExtractorError",
    "Forbidden",
    "Freeze",
    "Frozen",
    "Full",
    "Grant",
    "Hit",
    "InvalidRequest",
    "Issued",
    "Jay",
    "Key",
    "KeyMissing",
    "Kind",
    "LimitReached",
    "Loaded",
    "Locked",
    "Memory",
    "Moment",
    "NeedsConfirmation",
    "NotFound",
    "Origin",
    "Outcome",
    "Page",
    "Preview",
    "Provenance",
    "Purged",
    "Recalled",
    "Recorded",
    "Reindexed",
    "Report",
    "Retained",
    "Rotated",
    "SchemaTooNew",
    "Scope",
    "ScrubjayError",
    "SealBroken",
    "Session",
    "Stale",
    "State",
    "Stopped",
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

    home, known = _NAMES[name]
    value: object = getattr(import_module(home), known)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
