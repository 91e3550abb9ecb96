"""Requests and answers of personal memory, in the words of its users."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct, field

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Content, Json, Memory, MemoryId, Result
from scrubjay.model.overview import RecallCounter
from scrubjay.model.pages import Paged
from scrubjay.model.purposes import LawfulBasis, PurposeState, UsePurpose
from scrubjay.model.results import Erasure, Holdings
from scrubjay.model.scope import Scope
from scrubjay.model.text import CheckedRequest, Id, Name, Positive, Share, Tag, Time, Words, doc
from scrubjay.surfaces.personal.categories import Category, ContentType, content_hash, place_of
from scrubjay.surfaces.personal.copies import CopyForm
from scrubjay.surfaces.personal.register import RightKind

# -- fields that several have ----------------------------------------------------------------------

CategoryOf = Annotated[Category, doc("The category of the memory.")]
Form = Annotated[ContentType, doc("The form of the content.")]
CategoryList = Annotated[tuple[Category, ...], doc("Categories to match; empty for all.")]
TopicTags = Annotated[tuple[Tag, ...], doc("Labels of its topics.", max_length=64)]
CreatedAt = Annotated[datetime, doc("The time it was stored, in UTC.")]
AuditId = Annotated[str, doc("The id of the event in the audit trail.")]


class OwnedRequest(CheckedRequest, frozen=True, kw_only=True):
    """Base of the requests: whose memory it is must be what the key, or the command, says."""

    user_id: Annotated[Name | None, doc("Id of the owner; must be that of the scope.")] = None
    org_id: Annotated[
        Name | None, doc("Id of the organization; must be the tenant of the scope.")
    ] = None


# -- store and retrieve ----------------------------------------------------------------------------


class StoreMemory(OwnedRequest, frozen=True, kw_only=True):
    """Store one memory; what says the same as one before takes its place."""

    category: CategoryOf
    content_type: Form
    content: Content
    session_id: Annotated[Name | None, doc("The session it was said in.")] = None
    channel: Annotated[
        Name | None,
        doc("Where it was said, such as slack, teams, email or web: a label."),
    ] = None
    source_msg_id: Annotated[Name | None, doc("The id of the message.")] = None
    timestamp: Annotated[
        Time | None, doc("The time it was said; None for the time of storing.")
    ] = None
    topic_tags: TopicTags = ()
    importance_score: Annotated[Share, doc("Number from 0 to 1; breaks near-ties in ranking.")] = (
        0.5
    )
    ttl: Annotated[Positive | None, doc("Seconds after which it expires; None for never.")] = None


class StoredMemory(Result, frozen=True, kw_only=True):
    """Receipt of a stored memory."""

    memory_id: MemoryId
    embedding_generated: Annotated[
        bool,
        doc("Whether it can be found by meaning: it has a vector, or its index has."),
    ]
    content_hash: Annotated[
        str, doc("Hash of the content, for the caller; only a keyed one is stored.")
    ]
    created_at: CreatedAt
    waiting: Annotated[bool, doc("Whether it waits in the inbox until its owner unlocks.")] = False


class TimeRange(Struct, frozen=True, forbid_unknown_fields=True):
    """A range of time: from `after` on, up to but without `before`."""

    after: Time | None = None
    before: Time | None = None


class RetrieveMemory(OwnedRequest, frozen=True, kw_only=True):
    """Find the memories that answer a question."""

    query: Annotated[Words, doc("The question, in words.")]
    category_filter: CategoryList = ()
    max_results: Annotated[int, doc("How many are returned at most.", ge=1, le=1000)] = 10
    min_similarity: Annotated[
        Share | None,
        doc("Least cosine with the question; None for the default of the embedder."),
    ] = None
    time_range: Annotated[TimeRange | None, doc("When it was said.")] = None


class FoundMemory(Result, frozen=True, kw_only=True):
    """One memory that was found."""

    memory_id: MemoryId
    category: CategoryOf
    content_type: Form
    content: Content
    similarity_score: Annotated[
        float | None, doc("Cosine with the question; None without vectors.")
    ]
    topic_tags: TopicTags
    created_at: CreatedAt


class RetrievedMemories(Result, frozen=True, kw_only=True):
    """What was found, best first."""

    memories: Annotated[tuple[FoundMemory, ...], doc("The memories, best first.")]
    total_searched: Annotated[int, doc("How many were searched.")]
    query_time_ms: Annotated[float, doc("How long the search took.")]
    min_similarity: Annotated[float, doc("The least similarity that was asked for.")]
    min_similarity_from: Annotated[
        str, doc("Where that is from: request, setting, or the embedder by its name.")
    ]
    degraded: Annotated[tuple[str, ...], doc("What could not be used, a sentence each.")] = ()


# -- the owner's view ------------------------------------------------------------------------------


class ViewMemories(Paged, frozen=True, kw_only=True):
    """List what is remembered, newest first, outdated and archived memories too."""

    categories: CategoryList = ()


class SourceOfMemory(Result, frozen=True, kw_only=True):
    """Where a memory was said."""

    session_id: str | None
    channel: str | None
    message_id: str | None
    timestamp: datetime


class MetadataOfMemory(Result, frozen=True, kw_only=True):
    """What else is known of a memory."""

    topic_tags: tuple[str, ...]
    importance_score: float
    access_count: int
    last_accessed: datetime | None
    compacted_from: tuple[str, ...]
    ttl: int | None
    """Seconds from its storing to its expiry."""
    replaced_by: str | None
    origin: str
    performed_by: str
    reason: str | None


class PersonalRecord(Result, frozen=True, kw_only=True):
    """A memory as its owner sees it."""

    memory_id: MemoryId
    user_id: str
    org_id: str
    category: CategoryOf
    content_type: Form
    content: Content
    content_hash: str
    source: SourceOfMemory
    metadata: MetadataOfMemory
    created_at: CreatedAt
    updated_at: datetime
    deleted_at: None = None


def record_of(scope: Scope, memory: Memory, counted: RecallCounter) -> PersonalRecord:
    """A memory as its owner sees it, with how often it was found."""
    category, form = place_of(memory)
    where, expires = memory.provenance, memory.expires_at
    ttl = None if expires is None else round((expires - memory.recorded_at).total_seconds())
    return PersonalRecord(
        memory_id=memory.id,
        user_id=scope.owner,
        org_id=scope.tenant,
        category=category,
        content_type=form,
        content=memory.content,
        content_hash=content_hash(memory.content),
        source=SourceOfMemory(
            session_id=where.session,
            channel=where.channel,
            message_id=where.message_id,
            timestamp=memory.said_at,
        ),
        metadata=MetadataOfMemory(
            topic_tags=memory.tags,
            importance_score=memory.importance,
            access_count=counted.recalls,
            last_accessed=counted.recalled_at,
            compacted_from=memory.sources,
            ttl=ttl,
            replaced_by=memory.superseded_by,
            origin=memory.origin.value,
            performed_by=performed_by(where.actor),
            reason=where.reason,
        ),
        created_at=memory.recorded_at,
        updated_at=memory.retired_at or memory.archived_at or memory.recorded_at,
    )


def performed_by(actor: str) -> str:
    """Who did it, in the words of the audit log: an assistant acts for the system."""
    return {"user": "user", "operator": "admin"}.get(actor, "system")


# -- forget ----------------------------------------------------------------------------------------


class ForgetTarget(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to forget; exactly one of these."""

    memory_ids: tuple[Id, ...] = ()
    session_id: Name | None = None
    topic_tags: tuple[Tag, ...] = ()
    before: Time | None = None
    query: Words | None = None
    confirm_matches: bool = False
    """With a query: whether what the first call listed is erased, by its token."""


class ForgetMemories(OwnedRequest, frozen=True, kw_only=True):
    """Erase memories for good, with all that was derived from them; a query in two steps."""

    target: Annotated[
        ForgetTarget,
        doc("What to forget: memory_ids, session_id, topic_tags, before or a query."),
    ]
    confirmation_token: Annotated[str | None, doc("The token of the first call, for a query.")] = (
        None
    )

    def __post_init__(self) -> None:
        CheckedRequest.__post_init__(self)
        one = self.target
        given = (one.memory_ids, one.topic_tags, one.session_id, one.before, one.query)
        if sum(map(bool, given)) != 1:
            raise InvalidRequest("target: it names exactly one thing to forget.")
        if one.confirm_matches != (self.confirmation_token is not None):
            raise InvalidRequest(
                "confirm_matches: it needs the token of the first call, and that needs it.",
                hint="Ask without both; repeat the call with both.",
            )


class ForgottenMemories(Result, frozen=True, kw_only=True):
    """Receipt of an erasure, or what a query would erase."""

    deleted_count: Annotated[int, doc("How many memories and turns were erased.")] = 0
    memory_ids: Annotated[tuple[str, ...], doc("The ids of the erased memories.")] = ()
    copies: Annotated[int, doc("How many memories and sentences say the same: they go, too.")] = 0
    audit_id: Annotated[str | None, doc("The event; None while nothing was erased.")] = None
    matches: Annotated[
        tuple[FoundMemory, ...], doc("Of a query: what would be erased, best first.")
    ] = ()
    confirmation_token: Annotated[str | None, doc("What confirms that, and nothing else.")] = None
    receipt: Annotated[Erasure | None, doc("The receipt, for `verify --erased`.")] = None


# -- rectify, restrict, destroy --------------------------------------------------------------------


class RectifyMemory(OwnedRequest, frozen=True, kw_only=True):
    """Correct a memory (Art. 16): the old text leaves recall at once and stays as history."""

    memory_id: MemoryId
    content: Content
    reason: Annotated[Name, doc("Why, in the words of who corrects it.")]


class RectifiedMemory(Result, frozen=True, kw_only=True):
    """Receipt of a correction."""

    memory_id: MemoryId
    replaces: Annotated[str, doc("The id of the memory that was corrected.")]
    hidden: Annotated[int, doc("How many derived memories are out of sight for it.")]
    content_hash: Annotated[str, doc("Hash of the new content.")]


class RestrictionLevel(StrEnum):
    """How much is stopped."""

    WRITES = "writes"
    """Nothing new is stored: the milder freeze."""
    ALL = "all"
    """Restriction of processing (Art. 18): it is only stored, for its owner to see."""


class RestrictMemory(OwnedRequest, frozen=True, kw_only=True):
    """Stop writes, or restrict all processing (Art. 18): agents get `restricted`."""

    level: Annotated[RestrictionLevel, doc("How much is stopped.")] = RestrictionLevel.ALL


class LiftRestriction(OwnedRequest, frozen=True, kw_only=True):
    """Lift a restriction, in two steps: its owner is informed first (Art. 18 (3))."""

    notice_id: Annotated[
        str | None,
        doc("Id of the notice that the first call returned, once its owner has read it."),
    ] = None


class Restriction(Result, frozen=True, kw_only=True):
    """State of a restriction."""

    level: Annotated[str, doc("What is stopped now: none, writes or all.")]
    notice_id: Annotated[str | None, doc("The notice that has to be read before it is lifted.")] = (
        None
    )
    notice: Annotated[str | None, doc("What it says.")] = None


class DestroyMemory(OwnedRequest, frozen=True, kw_only=True):
    """Destroy everything, in two steps: the first call gives the token for the second."""

    confirmation_token: Annotated[
        str | None, doc("The token of the first call; None asks for one.")
    ] = None


class DestroyedMemory(Result, frozen=True, kw_only=True):
    """Receipt of a destroy, or the token that confirms it."""

    destroyed: bool
    records_deleted: Annotated[int, doc("How many rows of all sorts were erased.")] = 0
    vectors_deleted: Annotated[
        int, doc("How many vectors: one for each memory, kept beside it or indexed.")
    ] = 0
    blobs_deleted: Annotated[
        int, doc("How many sealed files: long texts, and parts of the index.")
    ] = 0
    audit_id: Annotated[str | None, doc("The number that stays in the receipt.")] = None
    confirmation_token: Annotated[
        str | None, doc("What confirms it, for an hour and until the next write.")
    ] = None
    expires_at: Annotated[datetime | None, doc("When the token expires.")] = None
    receipt: Annotated[Erasure | None, doc("The receipt.")] = None


# -- export and import -----------------------------------------------------------------------------


class ExportMemories(OwnedRequest, frozen=True, kw_only=True):
    """Export everything, or some categories, in a file that is sealed to its reader."""

    format: Annotated[CopyForm, doc("json, markdown, or a bundle of the engine.")] = CopyForm.JSON
    categories: CategoryList = ()
    include_metadata: Annotated[
        bool, doc("Whether all that is known is in it; an import needs that.")
    ] = True
    inferred: Annotated[
        bool, doc("Whether what was derived is in it, too; not for portability (Art. 20).")
    ] = True
    passphrase: Annotated[
        Annotated[str, Meta(min_length=8, max_length=1024)] | None,
        doc("Passphrase that opens the file; give this or a recipient."),
    ] = None
    recipient: Annotated[str | None, doc("The age recipient that opens the file, as age1….")] = None


class ViewExport(OwnedRequest, frozen=True, kw_only=True):
    """Look at the state of an export."""

    export_id: Annotated[str, doc("The id of the export.")]


class ImportMemories(OwnedRequest, frozen=True, kw_only=True):
    """Import an export, all of it or nothing; what was forgotten here stays forgotten."""

    content: Annotated[bytes, doc("The bytes of the file.")]
    passphrase: Annotated[str | None, doc("Passphrase of a sealed file.")] = None
    identity: Annotated[str | None, doc("The age identity that opens a sealed file.")] = None


# -- the register --------------------------------------------------------------------------------


class FileRequest(OwnedRequest, frozen=True, kw_only=True):
    """Register a request of a person; the answer says by when it is due."""

    right: Annotated[RightKind, doc("What is asked for.")]


class AnswerRequest(OwnedRequest, frozen=True, kw_only=True):
    """Mark a request of the register as answered."""

    request_id: Annotated[str, doc("The id of the request.")]


# -- purposes ------------------------------------------------------------------------------------


class DecidePurpose(OwnedRequest, frozen=True, kw_only=True):
    """Allow a purpose, or withdraw it: it holds at once."""

    purpose: Annotated[UsePurpose, doc("facts, patterns, model or embedding: what is done.")]
    on: Annotated[bool, doc("Whether it is allowed.")]
    basis: Annotated[LawfulBasis, doc("Why it is lawful.")] = LawfulBasis.CONSENT
    note: Annotated[Name | None, doc("What the person was told.")] = None


class DecidedPurpose(Result, frozen=True, kw_only=True):
    """A purpose as it is now; of one that was withdrawn, what there is to erase."""

    state: Annotated[PurposeState, doc("The purpose as it is now.")]
    memory_ids: Annotated[
        tuple[str, ...],
        doc("What was derived for it, up to 1,000: forget takes these ids."),
    ] = ()


# -- audit and status ------------------------------------------------------------------------------

_OPERATIONS: Final = {
    "store": {"retain", "retain_many", "record", "append", "put", "load", "restore", "branch"},
    "update": {"supersede", "amend", "pin", "unpin", "expire", "archive", "unarchive", "approve"},
    "forget": {"forget", "revoke", "purge", "reject", "remove", "delete_conversation"},
    "export": {"export", "backup"},
    "destroy": {"destroy", "destroy_token"},
    "compact": {"consolidate", "consolidation", "compact", "compaction"},
    "retrieve": {"recall", "get", "browse", "history", "brief", "turns", "document", "documents"},
}


def operation_of(verb: str) -> str:
    """The operation of the audit log that a verb is; a verb it does not know keeps its name."""
    return next((name for name, verbs in _OPERATIONS.items() if verb in verbs), verb)


class ViewAudit(Paged, frozen=True, kw_only=True):
    """Read the audit trail, oldest first."""


class PersonalAuditEvent(Result, frozen=True, kw_only=True):
    """One event, without content."""

    audit_id: AuditId
    operation: Annotated[str, doc("What was done, such as store or retrieve.")]
    performed_by: Annotated[str, doc("Who did it: system, user or admin.")]
    performed_at: datetime
    detail: Annotated[Mapping[str, Json], doc("Verb, actor, number of rows.")] = field(
        default_factory=dict
    )


def audit_id(count: int) -> str:
    """The id of an audit event."""
    return f"aud_{count}"


class ViewStatus(OwnedRequest, frozen=True, kw_only=True):
    """Count, without reading: what an administrator may know."""


class PersonalStatus(Holdings, frozen=True, kw_only=True):
    """Numbers and state of a memory; nothing of its content."""

    user_id: str
    org_id: str
    restriction: Annotated[str, doc("What is stopped: none, writes or all.")]
