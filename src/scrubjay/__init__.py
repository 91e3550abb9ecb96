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
if TYPE_CHECKING:  # `as` says to a type checker that the name is ours to give
    from scrubjay.access import Grant as Grant
    from scrubjay.access import Issued as Issued
    from scrubjay.access import Key as Key
    from scrubjay.client import Client as Client
    from scrubjay.client import connect as connect
    from scrubjay.handle import AsyncJay as AsyncJay
    from scrubjay.handle import Engine as Engine
    from scrubjay.handle import Jay as Jay
    from scrubjay.handle import open as open
    from scrubjay.model.batches import BatchReceipt as BatchReceipt
    from scrubjay.model.batches import Refusal as Refusal
    from scrubjay.model.batches import RetainedMany as RetainedMany
    from scrubjay.model.compaction import Compacted as Compacted
    from scrubjay.model.compaction import CompactionOutcome as CompactionOutcome
    from scrubjay.model.compaction import CompactionTrial as CompactionTrial
    from scrubjay.model.conversations import Appended as Appended
    from scrubjay.model.conversations import Conversation as Conversation
    from scrubjay.model.conversations import Entry as Entry
    from scrubjay.model.conversations import NewEntry as NewEntry
    from scrubjay.model.conversations import Transcript as Transcript
    from scrubjay.model.documents import Document as Document
    from scrubjay.model.documents import Removed as Removed
    from scrubjay.model.documents import Stored as Stored
    from scrubjay.model.errors import Busy as Busy
    from scrubjay.model.errors import Changed as Changed
    from scrubjay.model.errors import Conflict as Conflict
    from scrubjay.model.errors import Damaged as Damaged
    from scrubjay.model.errors import Destroyed as Destroyed
    from scrubjay.model.errors import EmbedderError as EmbedderError
    from scrubjay.model.errors import ExtractorError as ExtractorError
    from scrubjay.model.errors import Forbidden as Forbidden
    from scrubjay.model.errors import Frozen as Frozen
    from scrubjay.model.errors import Full as Full
    from scrubjay.model.errors import InvalidRequest as InvalidRequest
    from scrubjay.model.errors import KeyMissing as KeyMissing
    from scrubjay.model.errors import KeyUnavailable as KeyUnavailable
    from scrubjay.model.errors import LimitReached as LimitReached
    from scrubjay.model.errors import Locked as Locked
    from scrubjay.model.errors import NeedsConfirmation as NeedsConfirmation
    from scrubjay.model.errors import NotFound as NotFound
    from scrubjay.model.errors import OutcomeUnknown as OutcomeUnknown
    from scrubjay.model.errors import Restricted as Restricted
    from scrubjay.model.errors import SchemaTooNew as SchemaTooNew
    from scrubjay.model.errors import ScrubjayError as ScrubjayError
    from scrubjay.model.errors import SealBroken as SealBroken
    from scrubjay.model.errors import Stale as Stale
    from scrubjay.model.errors import StoreError as StoreError
    from scrubjay.model.errors import Timeout as Timeout
    from scrubjay.model.errors import UserLocked as UserLocked
    from scrubjay.model.errors import WrongKey as WrongKey
    from scrubjay.model.jobs import JobKind as JobKind
    from scrubjay.model.jobs import JobStatus as JobStatus
    from scrubjay.model.jobs import RunningJob as RunningJob
    from scrubjay.model.jobs import Worked as Worked
    from scrubjay.model.memory import Kind as Kind
    from scrubjay.model.memory import Memory as Memory
    from scrubjay.model.memory import Provenance as Provenance
    from scrubjay.model.origin import Actor as Actor
    from scrubjay.model.origin import Origin as Origin
    from scrubjay.model.overview import Change as Change
    from scrubjay.model.overview import Changes as Changes
    from scrubjay.model.overview import Lineage as Lineage
    from scrubjay.model.overview import RecallCounter as RecallCounter
    from scrubjay.model.overview import Relative as Relative
    from scrubjay.model.overview import Statistics as Statistics
    from scrubjay.model.pages import Page as Page
    from scrubjay.model.pages import every as every
    from scrubjay.model.purposes import LawfulBasis as LawfulBasis
    from scrubjay.model.purposes import PurposeState as PurposeState
    from scrubjay.model.purposes import UsePurpose as UsePurpose
    from scrubjay.model.results import AuditEvent as AuditEvent
    from scrubjay.model.results import BackedUp as BackedUp
    from scrubjay.model.results import BackupNote as BackupNote
    from scrubjay.model.results import Brief as Brief
    from scrubjay.model.results import CopiedSentence as CopiedSentence
    from scrubjay.model.results import DestroyToken as DestroyToken
    from scrubjay.model.results import ErasedCell as ErasedCell
    from scrubjay.model.results import Erasure as Erasure
    from scrubjay.model.results import Exported as Exported
    from scrubjay.model.results import Extraction as Extraction
    from scrubjay.model.results import ExtractionStatus as ExtractionStatus
    from scrubjay.model.results import FileInspection as FileInspection
    from scrubjay.model.results import Hit as Hit
    from scrubjay.model.results import Holdings as Holdings
    from scrubjay.model.results import Loaded as Loaded
    from scrubjay.model.results import Outcome as Outcome
    from scrubjay.model.results import Preview as Preview
    from scrubjay.model.results import Purged as Purged
    from scrubjay.model.results import Recalled as Recalled
    from scrubjay.model.results import Reindexed as Reindexed
    from scrubjay.model.results import Report as Report
    from scrubjay.model.results import Retained as Retained
    from scrubjay.model.results import Rotated as Rotated
    from scrubjay.model.results import Session as Session
    from scrubjay.model.results import Stopped as Stopped
    from scrubjay.model.retention import Duplicates as Duplicates
    from scrubjay.model.retention import KindLimit as KindLimit
    from scrubjay.model.retention import Limit as Limit
    from scrubjay.model.retention import Retention as Retention
    from scrubjay.model.rows import Freeze as Freeze
    from scrubjay.model.scope import Quota as Quota
    from scrubjay.model.scope import Scope as Scope
    from scrubjay.model.turns import Moment as Moment
    from scrubjay.model.turns import Recorded as Recorded
    from scrubjay.model.turns import State as State
    from scrubjay.model.turns import Timeline as Timeline
    from scrubjay.model.turns import Turn as Turn
    from scrubjay.model.user_keys import Held as Held
    from scrubjay.model.user_keys import Unlocked as Unlocked

__version__ = "0.1.0"

_HOMES = {
    "scrubjay.access": "Grant Issued Key",
    "scrubjay.model.batches": "BatchReceipt Refusal RetainedMany",
    "scrubjay.model.compaction": "Compacted CompactionOutcome CompactionTrial",
    "scrubjay.model.conversations": "Appended Conversation Entry NewEntry Transcript",
    "scrubjay.model.documents": "Document Removed Stored",
    "scrubjay.model.errors": (
        "Busy Changed Conflict Damaged Destroyed EmbedderError ExtractorError Forbidden Frozen "
        "Full InvalidRequest KeyMissing KeyUnavailable LimitReached Locked NeedsConfirmation "
        "NotFound OutcomeUnknown Restricted SchemaTooNew ScrubjayError SealBroken Stale "
        "StoreError Timeout UserLocked WrongKey"
    ),
    "scrubjay.model.jobs": "JobKind JobStatus RunningJob Worked",
    "scrubjay.model.memory": "Kind Memory Provenance",
    "scrubjay.model.origin": "Actor Origin",
    "scrubjay.model.overview": "Change Changes Lineage RecallCounter Relative Statistics",
    "scrubjay.model.pages": "Page every",
    "scrubjay.model.purposes": "LawfulBasis PurposeState UsePurpose",
    "scrubjay.model.results": (
        "AuditEvent BackedUp BackupNote Brief CopiedSentence DestroyToken ErasedCell Erasure "
        "Exported Extraction ExtractionStatus FileInspection Hit Holdings Loaded Outcome Preview "
        "Purged Recalled Reindexed Report Retained Rotated Session Stopped"
    ),
    "scrubjay.model.retention": "Duplicates KindLimit Limit Retention",
    "scrubjay.model.rows": "Freeze",
    "scrubjay.model.scope": "Quota Scope",
    "scrubjay.model.turns": "Moment Recorded State Timeline Turn",
    "scrubjay.model.user_keys": "Held Unlocked",
    "scrubjay.client": "Client connect",
    "scrubjay.handle": "AsyncJay Engine Jay open",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_NAMES)  # noqa: PLE0605 - the table above has each name once


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(f"module 'scrubjay' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
