"""Requests of the verbs; each is validated when it is made, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, force_setattr, replace

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.filters import Filter, KindArg, KindSet, TagSet, Where, metadata_labels
from scrubjay.model.memory import (
    ChangeReason,
    ChannelName,
    Content,
    ExpiresAt,
    IdempotencyKey,
    Importance,
    Kind,
    Memory,
    MemoryId,
    MessageId,
    MetadataMap,
    Pinned,
    PlaceInSession,
    Provenance,
    SaidAt,
    SessionName,
    SpeakerName,
    ValidFrom,
    ValidTo,
)
from scrubjay.model.origin import Actor, Origin, OriginArg
from scrubjay.model.pages import Cursor, Paged, PageLimit
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.model.text import (
    SOURCES,
    TAGS,
    CheckedRequest,
    Count,
    Days,
    Id,
    Name,
    Positive,
    Seconds,
    Share,
    Tag,
    Time,
    Words,
    doc,
    zone,
)
from scrubjay.model.turns import Turn

RECALL_LIMIT = 1_000
BRIEF_LIMIT = 1_000
SCOPES = 100
"""Maximum number of further scopes of one recall or brief: each of them is opened."""
FORGET_LIMIT = 10_000
AS_IT_IS = datetime.max.replace(tzinfo=UTC)
"""Sentinel time: leave the expiry as it is."""


# A caller may write a word for a member of an enum, and any sequence for a tuple: a type checker
# knows these, and finds a word that is not known. What a request holds is what the codec made.
if TYPE_CHECKING:
    from scrubjay.model.conversations import Entry
    from scrubjay.model.documents import Document

    LevelArg = Freeze | Literal["none", "writes", "all"]
    TagList = Sequence[str]
    Ids = Sequence[str]
    Scopes = Sequence[Scope | str]
else:
    LevelArg = Freeze
    TagList = Annotated[tuple[Tag, ...], Meta(max_length=TAGS)]
    Ids = tuple[Id, ...]
    Scopes = tuple[Scope, ...]
_LIMIT: Final = "Limit: how many memories are returned at most."

TimeZone = Annotated[
    Name | None, doc("Time zone whose days count, by its IANA name; None for UTC.")
]
OriginOfText = Annotated[
    OriginArg, doc("The origin: by which channel the text came in; it decides trust.")
]


class Allowance(CheckedRequest, frozen=True, kw_only=True):
    """Quota of a session: how many calls it may make; counted durably with each call."""

    session: Annotated[Name, doc("The session (conversation) the quota belongs to.")]
    name: Annotated[str, doc("The name of the quota: calls under the same name share one count.")]
    limit: Annotated[Count, doc("Limit: how many calls the session may make in all.")]


class Caller(Struct, frozen=True, kw_only=True):
    """Caller of a verb: decided by the key or the surface, never by a field of the request."""

    actor: Actor = Actor.USER
    """Role that carries out the verb; written to the audit trail."""
    ceiling: Origin | None = None
    """The most trusted origin of what the caller loads or restores; None for any."""
    key: str | None = None
    """The id of the API key the call came by; what it writes is stamped with it."""
    allowances: tuple[Allowance, ...] = ()
    """Quotas the call counts against; LimitReached when one is used up."""


USER: Final = Caller()
AGENT: Final = Caller(actor=Actor.AGENT)
SYSTEM: Final = Caller(actor=Actor.SYSTEM)


class NoFields(CheckedRequest, frozen=True):
    """Request of a verb that takes no fields."""


NOTHING: Final = NoFields()


class _WithContent(CheckedRequest, frozen=True):
    """The text may be given by position, all else by name."""

    content: Content


class _WithId(CheckedRequest, frozen=True):
    """The id may be given by position, all else by name."""

    id: MemoryId


class _WithIdAndContent(_WithId, frozen=True):
    """The id and the text may be given by position, all else by name."""

    content: Content


class Retain(_WithContent, frozen=True, kw_only=True):
    """Write one memory; durable when the verb returns."""

    kind: Annotated[
        KindArg | None,
        doc(
            "The kind of memory; behavioral kinds tell the agent how to act. Without "
            "one, what a user or operator tells is a preference or an instruction if the text "
            "reads like one; all else is a fact."
        ),
    ] = None
    tags: Annotated[TagList, doc("Tags: labels to filter by, searched like the content.")] = ()
    importance: Importance = 0.5
    pinned: Pinned = False
    key: IdempotencyKey = None
    id: Annotated[
        Id | None,
        doc("The id of the memory, if the caller brings a stable one; None makes a new id."),
    ] = None
    session: SessionName = None
    speaker: SpeakerName = None
    position: PlaceInSession = None
    origin: OriginOfText = Origin.USER
    channel: ChannelName = None
    message_id: MessageId = None
    said_at: SaidAt = None
    sources: Annotated[
        Ids,
        doc("Ids of the memories it is derived from; it is erased with them.", max_length=SOURCES),
    ] = ()
    valid_from: ValidFrom = None
    valid_to: ValidTo = None
    expires_at: ExpiresAt = None
    metadata: MetadataMap = field(default_factory=dict)

    def memory(self, public_id: str, recorded_at: datetime, caller: Caller) -> Memory:
        """The memory this request describes; its other fields have the names of a memory's."""
        told = asdict(self)
        where = {name: told.pop(name) for name in _PROVENANCE}
        told |= {"id": public_id, "kind": self.kind or Kind.FACT, "metadata": dict(self.metadata)}
        provenance = Provenance(actor=caller.actor, key_id=caller.key, **where)
        return Memory(**told, recorded_at=recorded_at, provenance=provenance)


_PROVENANCE: Final = frozenset(Provenance.__struct_fields__) & {*Retain.__struct_fields__}


class Supersede(_WithIdAndContent, frozen=True, kw_only=True):
    """Replace one memory by a new text; fields left out are taken from the old one."""

    kind: Annotated[KindArg | None, doc("The new kind; None keeps the old one.")] = None
    tags: Annotated[TagList | None, doc("The new tags; None keeps the old ones.")] = None
    importance: Annotated[
        Share | None,
        doc("Number from 0 to 1; breaks near-ties in ranking; None keeps the old one."),
    ] = None
    pinned: Annotated[
        bool | None, doc("Pin or unpin: a pinned memory comes first in the brief; None keeps it.")
    ] = None
    expires_at: Annotated[Time | None, doc("Time of expiry; None keeps the old one.")] = None
    key: IdempotencyKey = None
    session: SessionName = None
    reason: ChangeReason = None
    origin: OriginOfText = Origin.USER
    said_at: SaidAt = None

    def memory(self, old: Memory, public_id: str, recorded_at: datetime, caller: Caller) -> Memory:
        """The memory that takes the place of `old`."""
        return replace(
            old,
            id=public_id,
            content=self.content,
            recorded_at=recorded_at,
            kind=self.kind or old.kind,
            tags=old.tags if self.tags is None else self.tags,
            importance=old.importance if self.importance is None else self.importance,
            pinned=old.pinned if self.pinned is None else self.pinned,
            expires_at=self.expires_at or old.expires_at,
            origin=self.origin,
            provenance=Provenance(
                actor=caller.actor,
                key_id=caller.key,
                session=self.session,
                said_at=self.said_at,
                reason=self.reason,
            ),
            key=self.key,
            supersedes=old.id,
            superseded_by=None,
            retired_at=None,
            archived_at=None,
            approved=None,  # a person approved the text before
            version=1,
        )


COUNTERS_LIMIT: Final = 100
"""Maximum number of memories whose counters are asked for at once."""


class CountersRequest(CheckedRequest, frozen=True):
    """Ask how often memories were recalled, and when last."""

    ids: Annotated[Ids, doc("The ids of the memories.", max_length=COUNTERS_LIMIT)]


class Amend(_WithId, frozen=True, kw_only=True):
    """Pin, archive or expire one memory in one transaction; fields left out stay as they are."""

    pinned: Annotated[
        bool | None, doc("Pin or unpin: a pinned memory comes first in the brief; None keeps it.")
    ] = None
    expires_at: Annotated[
        Time | None,
        doc("Time of expiry, in the past for at once; None for never; kept if left out."),
    ] = AS_IT_IS
    archived: Annotated[
        bool | None,
        doc(
            "Archive, or take back from the archive: an archived memory is neither "
            "searched, listed nor in the brief; None keeps it."
        ),
    ] = None

    def __post_init__(self) -> None:
        CheckedRequest.__post_init__(self)
        if self.pinned is None and self.expires_at is AS_IT_IS and self.archived is None:
            raise InvalidRequest(
                "The request names no change.", hint="Give pinned, archived or expires_at."
            )

    def memory(self, old: Memory, now: datetime) -> Memory:
        """The changed memory."""
        pinned = old.pinned if self.pinned is None else self.pinned
        expires_at = old.expires_at if self.expires_at is AS_IT_IS else self.expires_at
        archived_at = old.archived_at if self.archived is None else None
        if self.archived:
            archived_at = old.archived_at or now
        return replace(old, pinned=pinned, expires_at=expires_at, archived_at=archived_at)


class Browse(Filter, frozen=True, kw_only=True):
    """List memories, last recorded first."""

    limit: PageLimit = 100
    cursor: Cursor = None


class _WithQuery(Filter, frozen=True):
    """The question may be given by position, all else by name."""

    query: Annotated[Words, doc("The question to search by, in words.")]


class Recall(_WithQuery, frozen=True, kw_only=True):
    """Search: the memories that answer a question, ranked."""

    limit: Annotated[int, doc(_LIMIT, ge=1, le=RECALL_LIMIT)] = 10
    asked_at: Annotated[
        Time | None, doc("The time the question is asked, which ages count from; None for now.")
    ] = None
    timezone: TimeZone = None
    scopes: Annotated[
        Scopes, doc("Further scopes to search, besides the scope itself.", max_length=SCOPES)
    ] = ()
    worded: Annotated[
        bool, doc("Keyword filter: leaves out memories with no word of the query, nor a near one.")
    ] = False
    untrusted: Annotated[
        bool,
        doc(
            "Lift the limit on untrusted memories: they may fill the whole answer, and "
            "quarantined ones are searched. A filter by `origins` does the same."
        ),
    ] = False
    min_similarity: Annotated[
        Share,
        doc(
            "Threshold from 0 to 1: leaves out hits of lower similarity, and those "
            "without a vector; 0 for none."
        ),
    ] = 0.0
    min_relevance: Annotated[
        Share,
        doc(
            "Threshold from 0 to 1: leaves out hits of lower relevance; "
            "0.02 silences most small talk."
        ),
    ] = 0.0
    max_bytes: Annotated[
        Positive | None, doc("Size budget: bytes of content all hits together may have.")
    ] = None
    max_tokens: Annotated[
        Positive | None, doc("Token budget: tokens all hits together may have, roughly counted.")
    ] = None
    seconds: Annotated[
        Seconds | None,
        doc("Time budget in seconds; steps that did not finish are named in `degraded`."),
    ] = None

    def __post_init__(self) -> None:
        _parse_scopes(self)
        Filter.__post_init__(self)
        zone(self.timezone)
        if self.archived is not False:
            raise InvalidRequest(
                "archived: what is archived is not searched.", hint="Browse it, or count it."
            )

    def accepts(self, memory: Memory, now: datetime) -> bool:
        """Whether the memory may be a hit: one in quarantine only if untrusted ones are wanted."""
        return Filter.accepts(self, memory, now) and (self.lifted or not memory.quarantined)

    @property
    def lifted(self) -> bool:
        """Whether untrusted memories are asked for: then nothing limits their share."""
        return self.untrusted or bool(self.origins)

    @property
    def zone(self) -> tzinfo:
        """The time zone of the caller's days."""
        return zone(self.timezone)

    @property
    def others(self) -> tuple[Scope, ...]:
        """The further scopes."""
        return tuple(one for one in self.scopes if isinstance(one, Scope))


def _parse_scopes(request: Recall | BriefRequest) -> None:
    """The further scopes of a request, which may be one, and by their names."""
    given = request.scopes
    named = (given,) if isinstance(given, str | Scope) else given
    if named and isinstance(named, Iterable):
        parsed = (one if isinstance(one, Scope) else Scope.parse(one) for one in named)
        force_setattr(request, "scopes", tuple(parsed))


class BriefRequest(CheckedRequest, frozen=True, kw_only=True):
    """Ask for the brief: the memories to put before a session's first prompt."""

    limit: Annotated[int, doc(_LIMIT, ge=1, le=BRIEF_LIMIT)] = 50
    max_chars: Annotated[
        Positive, doc("Size budget: characters of content all entries together may have.")
    ] = 10_000
    scopes: Annotated[
        Scopes, doc("Further scopes whose memories are in it, too.", max_length=SCOPES)
    ] = ()

    def __post_init__(self) -> None:
        _parse_scopes(self)
        CheckedRequest.__post_init__(self)

    @property
    def others(self) -> tuple[Scope, ...]:
        """The further scopes."""
        return tuple(one for one in self.scopes if isinstance(one, Scope))


class _WithIds(CheckedRequest, frozen=True):
    """The ids may be given by position, all else by name."""

    ids: Annotated[Ids, doc("Ids of the memories or turns to erase.", max_length=FORGET_LIMIT)] = ()


class Forget(_WithIds, frozen=True, kw_only=True):
    """Erase memories for good: by ids, session, kinds, tags, age or words; exactly one of these."""

    session: Annotated[
        Name | None, doc("Session (conversation) to erase: all its memories and turns.")
    ] = None
    kinds: Annotated[
        KindSet,
        doc(
            "Kinds to erase: every memory of one of them, also those out of sight: "
            "past a limit, archived or hidden."
        ),
    ] = frozenset()
    tags: Annotated[TagSet, doc("Tags to erase by: memories that have all of them.")] = frozenset()
    where: Where = field(default_factory=dict)
    before: Annotated[
        Time | None,
        doc("End of the time range to erase: memories and turns from before this time."),
    ] = None
    query: Annotated[
        Words | None,
        doc("Words to erase by: memories that hold all; needs the token of a preview."),
    ] = None
    confirm: Annotated[
        Name | None,
        doc("Confirmation token of a preview: erases exactly the memories it listed, or nothing."),
    ] = None
    copies: Annotated[
        bool,
        doc(
            "Whether to erase copies as well: memories that say the same, and the "
            "same sentence in turns, which is cut out."
        ),
    ] = False
    unseen: Annotated[
        bool, doc("Tombstone ids that were never written, instead of refusing them.")
    ] = False

    def __post_init__(self) -> None:
        if isinstance(self.kinds, str):
            force_setattr(self, "kinds", (self.kinds,))
        CheckedRequest.__post_init__(self)
        named = (self.session, self.before, self.query)
        given = (self.ids, self.kinds, self.tags, metadata_labels(self.where))
        if sum(map(bool, given)) + sum(one is not None for one in named) != 1:
            raise InvalidRequest(
                "Forget takes exactly one target: "
                "ids, session, kinds, tags, where, before or a query.",
                hint='For example forget(["mem-…"]) or forget(session="…").',
            )
        if self.unseen and not self.ids:
            raise InvalidRequest("Only ids can be forgotten unseen.")

    def matches(self, found: Memory | Turn) -> bool:
        """Whether a target by tags, metadata or age covers a memory or turn."""
        if self.where:
            return metadata_labels(self.where) <= frozenset(found.labels)
        if self.kinds:
            return isinstance(found, Memory) and found.kind in self.kinds
        if isinstance(found, Turn):
            return self.before is not None and found.at < self.before
        if self.before is not None:
            return found.said_at < self.before
        return frozenset(self.tags) <= frozenset(found.tags)


class Revoke(CheckedRequest, frozen=True, kw_only=True):
    """Undo all writes of one session, of one channel or of one API key; exactly one of these."""

    session: Annotated[
        Name | None, doc("Session (conversation) to undo: all it wrote, and all derived from that.")
    ] = None
    channel: Annotated[
        Name | None, doc("Channel to undo: all that came in by it, and all derived from that.")
    ] = None
    key: Annotated[
        Name | None,
        doc("Id of an API key to undo: all written with it, and all derived from that."),
    ] = None

    def __post_init__(self) -> None:
        CheckedRequest.__post_init__(self)
        if sum(one is not None for one in (self.session, self.channel, self.key)) != 1:
            raise InvalidRequest("Revoke takes exactly one target: a session, a channel or a key.")

    def matches(self, where: Provenance | Turn | Entry | Document) -> bool:
        """Whether it came by the channel, or by the key."""
        if self.key is not None:
            return where.key_id == self.key
        return where.channel == self.channel


# -- one memory, and lists of them ---------------------------------------------------------------


class Get(_WithId, frozen=True, kw_only=True):
    """Read one memory by id, superseded or not."""

    as_of: Annotated[Time | None, doc("Point in time: the memory if it was current then.")] = None


class History(_WithId, frozen=True, kw_only=True):
    """Read all versions of a memory."""

    limit: PageLimit = 100
    cursor: Cursor = None


class LineageRequest(_WithId, frozen=True):
    """Read what one memory was derived from, and what was derived from it."""


class AuditRequest(Paged, frozen=True, kw_only=True):
    """Read the audit trail."""

    newest: Annotated[bool, doc("Return the newest events, instead of those after the cursor.")] = (
        False
    )


class StatisticsRequest(CheckedRequest, frozen=True, kw_only=True):
    """Count the memories by kind, origin, tag and week."""

    timezone: TimeZone = None

    def __post_init__(self) -> None:
        CheckedRequest.__post_init__(self)
        zone(self.timezone)


class Approve(_WithIdAndContent, frozen=True):
    """Release a memory from quarantine; the content is the exact text that was read."""


class Reject(_WithId, frozen=True):
    """Erase a memory that is in quarantine."""


# -- turns and sessions --------------------------------------------------------------------------


class TurnsRequest(Paged, frozen=True, kw_only=True):
    """Read turns, newest first: all or those of a session."""

    session: Annotated[Name | None, doc("Session (conversation) to match; None for all.")] = None
    before: Annotated[Time | None, doc("End of the time range: turns before this time.")] = None


class MarkTainted(CheckedRequest, frozen=True):
    """Taint a session: it has read text of an origin; what it infers is trusted no more."""

    session: Annotated[Name, doc("The session (conversation) that is tainted.")]
    origin: Annotated[OriginArg, doc("The origin of the text the session has read.")] = Origin.WEB


class Extract(CheckedRequest, frozen=True, kw_only=True):
    """Send waiting turns to the language model."""

    limit: Annotated[Positive, doc("Limit: how many turns are read at most.")] = 100
    seconds: Annotated[Seconds, doc("Time budget in seconds.")] = 20.0
    again: Annotated[bool, doc("Whether to read turns again that were read.")] = False


class PauseExtraction(CheckedRequest, frozen=True, kw_only=True):
    """Pause or resume extraction in the scope."""

    paused: Annotated[bool, doc("Whether to stop sending turns to the model.")] = True


# -- the scope as a whole ------------------------------------------------------------------------


class FreezeRequest(CheckedRequest, frozen=True):
    """Block writes, or writes and recall; `none` lifts it."""

    level: Annotated[LevelArg, doc("How much to stop: none, writes, or all.")] = Freeze.WRITES


class Purge(CheckedRequest, frozen=True, kw_only=True):
    """Delete memories that are expired, long superseded or long forgotten."""

    superseded_days: Annotated[
        Days | None, doc("For how many days superseded memories stay; None for what is set.")
    ] = None


class Export(CheckedRequest, frozen=True, kw_only=True):
    """Export every memory, or those with some metadata, as JSON or as a sealed bundle."""

    where: Where = field(default_factory=dict)
    sealed: Annotated[bool, doc("Whether to encrypt the file under a new key.")] = False
    passphrase: Annotated[
        Annotated[str, Meta(min_length=8, max_length=1024)] | None,
        doc("The passphrase that opens a sealed file, instead of a printed key."),
    ] = None

    def __post_init__(self) -> None:
        CheckedRequest.__post_init__(self)
        if self.passphrase is not None and not self.sealed:
            raise InvalidRequest("Only a sealed file has a passphrase.", hint="Seal it as well.")
        metadata_labels(self.where)

    def holds(self, found: Memory | Turn) -> bool:
        """Whether a memory or turn is in the file."""
        return not self.where or metadata_labels(self.where) <= frozenset(found.labels)


class Load(CheckedRequest, frozen=True):
    """Import an export: all of it or nothing."""

    content: Annotated[bytes, doc("The bytes of the file.")]
    key: Annotated[str | None, doc("The key of a sealed file.")] = None
    passphrase: Annotated[
        str | None, doc("The passphrase of a sealed file that was made with one.")
    ] = None


class Backup(CheckedRequest, frozen=True, kw_only=True):
    """Back up the scope: a sealed copy under a key of its own."""

    days: Annotated[int, doc("How many days the key of the backup is kept.", ge=1, le=36_500)] = 30


class Restore(Load, frozen=True):
    """Merge a backup; memories forgotten since stay forgotten."""

    anew: Annotated[bool, doc("Whether to begin again a scope that was destroyed.")] = False


class Destroy(Struct, frozen=True, kw_only=True):
    """Erase the whole scope, its keys first."""

    confirm: Annotated[str | None, doc("The full name of the scope.")] = None
    token: Annotated[
        str | None,
        doc(
            "Confirmation token of `destroy_token`, instead of the name: it holds for "
            "an hour, and until something is written."
        ),
    ] = None
