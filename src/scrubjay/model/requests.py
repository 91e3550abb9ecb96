"""Requests of the verbs; each is validated when it is made, before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from scrubjay.model import text
from scrubjay.model.errors import InvalidRequest
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
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.model.turns import TIMELINE_LIMIT, TURNS_LIMIT, Turn

BROWSE_LIMIT = 10_000
RECALL_LIMIT = 1_000
BRIEF_LIMIT = 1_000
FORGET_LIMIT = 10_000
LIST_LIMIT = 10_000
"""Maximum number of entries of a list in one answer; `after` continues it."""
SESSIONS_LIMIT = 100_000
One = TypeVar("One")
AS_IT_IS = datetime.max.replace(tzinfo=UTC)
"""Sentinel time: leave the expiry as it is."""


# A caller may write a word for a member of an enum, and any sequence for a tuple: a type checker
# knows these, and finds a word that is not known. What a request holds is what the codec made.
if TYPE_CHECKING:
    KindArg = (
        Kind
        | Literal["preference", "instruction", "correction", "procedure"]
        | Literal["fact", "context", "pattern", "episode", "summary"]
    )
    LevelArg = Freeze | Literal["none", "writes", "all"]
    Texts = Sequence[str]
    TextSet = Collection[str]
    KindSet = Collection[KindArg]
    OriginSet = Collection[OriginArg]
    Scopes = Sequence[Scope | str]
else:
    KindArg, LevelArg = Kind, Freeze
    Texts, TextSet, Scopes = tuple[str, ...], frozenset[str], tuple[Scope, ...]
    KindSet, OriginSet = frozenset[Kind], frozenset[Origin]

Limit = Annotated[int, Meta(description="Limit: how many memories are returned at most.")]
TagFilter = Annotated[TextSet, Meta(description="Tags to match: a memory must have all of them.")]


OriginOfText = Annotated[
    OriginArg, Meta(description="The origin: by which channel the text came in; it decides trust.")
]


class Allowance(Struct, frozen=True, kw_only=True):
    """Quota of a session: how many calls it may make; counted durably with each call."""

    session: Annotated[str, Meta(description="The session (conversation) the quota belongs to.")]
    name: Annotated[
        str, Meta(description="The name of the quota: calls under the same name share one count.")
    ]
    limit: Annotated[int, Meta(description="Limit: how many calls the session may make in all.")]

    def __post_init__(self) -> None:
        text.check_name("The session", self.session)
        text.check_name("The name of the allowance", self.name)
        text.check_count("The limit of the allowance", self.limit)


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


class NoFields(Struct, frozen=True):
    """Request of a verb that takes no fields."""


NOTHING: Final = NoFields()


class _WithContent(Struct, frozen=True):
    """The text may be given by position, all else by name."""

    content: Content


class _WithId(Struct, frozen=True):
    """The id may be given by position, all else by name."""

    id: MemoryId


class _WithIdAndContent(_WithId, frozen=True):
    """The id and the text may be given by position, all else by name."""

    content: Content


class Retain(_WithContent, frozen=True, kw_only=True):
    """Write one memory; durable when the verb returns."""

    kind: Annotated[
        KindArg, Meta(description="The kind of memory; behavioral kinds tell the agent how to act.")
    ] = Kind.FACT
    tags: Annotated[
        Texts, Meta(description="Tags: labels to filter by, searched like the content.")
    ] = ()
    importance: Importance = 0.5
    pinned: Pinned = False
    key: IdempotencyKey = None
    id: Annotated[
        str | None,
        Meta(
            description="The id of the memory, if the caller brings "
            "a stable one; None makes a new id."
        ),
    ] = None
    session: SessionName = None
    speaker: SpeakerName = None
    position: PlaceInSession = None
    origin: OriginOfText = Origin.USER
    channel: ChannelName = None
    message_id: MessageId = None
    said_at: SaidAt = None
    sources: Annotated[
        Texts, Meta(description="Ids of the memories it is derived from; it is erased with them.")
    ] = ()
    valid_from: ValidFrom = None
    valid_to: ValidTo = None
    expires_at: ExpiresAt = None
    metadata: MetadataMap = {}

    def __post_init__(self) -> None:
        text.check_content(self.content)
        _set(self, "kind", text.check_choice("The kind", self.kind, Kind))
        _set(self, "origin", text.check_choice("The origin", self.origin, Origin))
        _set(self, "tags", text.check_tags(self.tags))
        _set(self, "sources", text.check_ids("Sources", self.sources))
        text.check_flag("Pinned", self.pinned)
        _set(self, "importance", text.check_share("The importance", self.importance))
        text.check_metadata(self.metadata)
        text.check_count("The position", self.position)
        _check_names(self, ("key", "session", "speaker", "channel", "message_id"))
        _check_times(self, ("said_at", "valid_from", "valid_to", "expires_at"))
        if self.id is not None:
            text.check_id(self.id)

    def memory(self, public_id: str, recorded_at: datetime, caller: Caller) -> Memory:
        """The memory this request describes; its other fields have the names of a memory's."""
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        where = {name: told.pop(name) for name in _PROVENANCE & told.keys()}
        told |= {"id": public_id, "metadata": dict(self.metadata)}
        provenance = Provenance(actor=caller.actor, key_id=caller.key, **where)
        return Memory(**told, recorded_at=recorded_at, provenance=provenance)


_PROVENANCE: Final = frozenset(Provenance.__struct_fields__)


class Supersede(_WithIdAndContent, frozen=True, kw_only=True):
    """Replace one memory by a new text; fields left out are taken from the old one."""

    kind: Annotated[KindArg | None, Meta(description="The new kind; None keeps the old one.")] = (
        None
    )
    tags: Annotated[Texts | None, Meta(description="The new tags; None keeps the old ones.")] = None
    importance: Annotated[
        float | None,
        Meta(
            description="Number from 0 to 1; breaks near-ties in ranking; None keeps the old one."
        ),
    ] = None
    key: IdempotencyKey = None
    session: SessionName = None
    reason: ChangeReason = None
    origin: OriginOfText = Origin.USER

    def __post_init__(self) -> None:
        text.check_id(self.id)
        text.check_content(self.content)
        if self.kind is not None:
            _set(self, "kind", text.check_choice("The kind", self.kind, Kind))
        if self.tags is not None:
            _set(self, "tags", text.check_tags(self.tags))
        if self.importance is not None:
            _set(self, "importance", text.check_share("The importance", self.importance))
        _set(self, "origin", text.check_choice("The origin", self.origin, Origin))
        _check_names(self, ("key", "session", "reason"))

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
            origin=self.origin,
            provenance=Provenance(
                actor=caller.actor,
                key_id=caller.key,
                session=self.session,
                reason=self.reason,
            ),
            key=self.key,
            supersedes=old.id,
            superseded_by=None,
            retired_at=None,
            version=1,
        )


class Amend(_WithId, frozen=True, kw_only=True):
    """Change pin or expiry of one memory in one transaction; fields left out stay as they are."""

    pinned: Annotated[
        bool | None,
        Meta(description="Pin or unpin: a pinned memory comes first in the brief; None keeps it."),
    ] = None
    expires_at: Annotated[
        datetime | None,
        Meta(
            description="Time of expiry, in the past for at once; None for never; kept if left out."
        ),
    ] = AS_IT_IS

    def __post_init__(self) -> None:
        text.check_id(self.id)
        if self.pinned is not None:
            text.check_flag("Pinned", self.pinned)
        if self.expires_at is not AS_IT_IS:
            _set(self, "expires_at", text.check_time("The time of expiry", self.expires_at))
        elif self.pinned is None:
            raise InvalidRequest("The request names no change.", hint="Give pinned, or expires_at.")

    def memory(self, old: Memory) -> Memory:
        """The changed memory."""
        pinned = old.pinned if self.pinned is None else self.pinned
        expires_at = old.expires_at if self.expires_at is AS_IT_IS else self.expires_at
        return replace(old, pinned=pinned, expires_at=expires_at)


class Filter(Struct, frozen=True, kw_only=True):
    """Filter of memories: a memory must match every field that is given."""

    kinds: Annotated[
        KindSet,
        Meta(description="Kinds to match: a memory must have one of them; empty for all."),
    ] = frozenset()
    tags: TagFilter = frozenset()
    origins: Annotated[
        OriginSet,
        Meta(description="Origins to match: a memory must have one of them; empty for all."),
    ] = frozenset()
    session: Annotated[
        str | None, Meta(description="Session (conversation) to match; None for all.")
    ] = None
    since: Annotated[
        datetime | None, Meta(description="Start of the time range: said at this time or later.")
    ] = None
    before: Annotated[
        datetime | None, Meta(description="End of the time range: said before this time.")
    ] = None
    as_of: Annotated[
        datetime | None,
        Meta(description="Point in time: returns the memories that were current then."),
    ] = None
    superseded: Annotated[
        bool, Meta(description="Whether to include superseded memories, too.")
    ] = False

    def __post_init__(self) -> None:
        _set(self, "kinds", text.check_choices("The kind", self.kinds, Kind))
        _set(self, "origins", text.check_choices("The origin", self.origins, Origin))
        _set(self, "tags", frozenset(text.check_tags(self.tags)))
        text.check_name("The session", self.session)
        _check_times(self, ("since", "before", "as_of"))
        text.check_flag("Superseded", self.superseded)

    def accepts(self, memory: Memory, now: datetime) -> bool:
        """Whether the memory matches."""
        if self.as_of is not None:
            shown = memory.visible(self.as_of)
        else:
            shown = (self.superseded or memory.current) and not memory.expired(now)
        return shown and self._matches(memory)

    def _matches(self, memory: Memory) -> bool:
        return (
            (not self.kinds or memory.kind in self.kinds)
            and frozenset(self.tags) <= frozenset(memory.tags)
            and (not self.origins or memory.origin in self.origins)
            and (self.session is None or memory.provenance.session == self.session)
            and (self.since is None or memory.said_at >= self.since)
            and (self.before is None or memory.said_at < self.before)
        )


class Browse(Filter, frozen=True, kw_only=True):
    """List memories, newest first."""

    limit: Limit = 50
    cursor: Annotated[
        int | None, Meta(description="Pagination cursor: the `next` of the page before this one.")
    ] = None

    def __post_init__(self) -> None:
        Filter.__post_init__(self)
        text.check_limit(self.limit, BROWSE_LIMIT)
        text.check_count("The cursor", self.cursor)


class _WithQuery(Filter, frozen=True):
    """The question may be given by position, all else by name."""

    query: Annotated[str, Meta(description="The question to search by, in words.")]


class Recall(_WithQuery, frozen=True, kw_only=True):
    """Search: the memories that answer a question, ranked."""

    limit: Limit = 10
    asked_at: Annotated[
        datetime | None,
        Meta(description="The time the question is asked, which ages count from; None for now."),
    ] = None
    timezone: Annotated[
        str | None,
        Meta(description="Time zone whose days count, by its IANA name; None for UTC."),
    ] = None
    scopes: Annotated[
        Scopes, Meta(description="Further scopes to search, besides the scope itself.")
    ] = ()
    worded: Annotated[
        bool,
        Meta(
            description="Keyword filter: leaves out memories with "
            "no word of the query, nor a near one."
        ),
    ] = False
    untrusted: Annotated[
        bool,
        Meta(
            description="Whether untrusted memories may fill the answer, quarantined ones too; "
            "so may they with `origins`."
        ),
    ] = False
    max_bytes: Annotated[
        int | None, Meta(description="Size budget: bytes of content all hits together may have.")
    ] = None
    max_tokens: Annotated[
        int | None,
        Meta(description="Token budget: tokens all hits together may have, roughly counted."),
    ] = None
    seconds: Annotated[
        float | None,
        Meta(
            description="Time budget in seconds; steps that did not finish are named in `degraded`."
        ),
    ] = None

    def __post_init__(self) -> None:
        Filter.__post_init__(self)
        text.check_query(self.query)
        text.check_flag("Worded", self.worded)
        text.check_flag("Untrusted", self.untrusted)
        text.check_limit(self.limit, RECALL_LIMIT)
        _check_times(self, ("asked_at",))
        text.zone(self.timezone)
        text.check_count("The limit of bytes", self.max_bytes, least=1)
        text.check_count("The limit of tokens", self.max_tokens, least=1)
        text.check_seconds("The time allowed", self.seconds)
        _set(self, "scopes", _check_scopes(self.scopes))

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
        return text.zone(self.timezone)

    @property
    def others(self) -> tuple[Scope, ...]:
        """The further scopes."""
        return tuple(one for one in self.scopes if isinstance(one, Scope))


class BriefRequest(Struct, frozen=True, kw_only=True):
    """Ask for the brief: the memories to put before a session's first prompt."""

    limit: Limit = 50
    max_chars: Annotated[
        int, Meta(description="Size budget: characters of content all entries together may have.")
    ] = 10_000

    def __post_init__(self) -> None:
        text.check_limit(self.limit, BRIEF_LIMIT)
        text.check_count("The limit of characters", self.max_chars, least=1)


class _WithIds(Struct, frozen=True):
    """The ids may be given by position, all else by name."""

    ids: Annotated[Texts, Meta(description="Ids of the memories or turns to erase.")] = ()


class Forget(_WithIds, frozen=True, kw_only=True):
    """Erase memories for good: by ids, session, tags, age or words; exactly one of these."""

    session: Annotated[
        str | None, Meta(description="Session (conversation) to erase: all its memories and turns.")
    ] = None
    tags: Annotated[
        TextSet, Meta(description="Tags to erase by: memories that have all of them.")
    ] = frozenset()
    before: Annotated[
        datetime | None,
        Meta(
            description="End of the time range to erase: memories and turns from before this time."
        ),
    ] = None
    query: Annotated[
        str | None,
        Meta(description="Words to erase by: memories that hold all of them; needs `confirm`."),
    ] = None
    confirm: Annotated[
        str | None,
        Meta(
            description="Confirmation token of a preview: erases exactly "
            "the memories it listed, or nothing."
        ),
    ] = None
    copies: Annotated[
        bool,
        Meta(
            description="Whether to erase copies as well: memories that say the same, and the "
            "same sentence in turns, which is cut out."
        ),
    ] = False
    unseen: Annotated[
        bool, Meta(description="Tombstone ids that were never written, instead of refusing them.")
    ] = False

    def __post_init__(self) -> None:
        _set(self, "ids", text.check_ids("Forget", self.ids, FORGET_LIMIT))
        _set(self, "tags", frozenset(text.check_tags(self.tags)))
        _set(self, "before", text.check_time("The time before", self.before))
        text.check_name("The session", self.session)
        text.check_flag("Copies", self.copies)
        text.check_flag("Unseen", self.unseen)
        if self.query is not None:
            text.check_query(self.query)
        _check_names(self, ("confirm",))
        named = (self.session, self.before, self.query)
        targets = [bool(self.ids), bool(self.tags), *(one is not None for one in named)]
        if sum(targets) != 1:
            raise InvalidRequest(
                "Forget takes exactly one target: ids, session, tags, before or a query.",
                hint='For example forget(["mem-…"]) or forget(session="…").',
            )
        if self.unseen and not self.ids:
            raise InvalidRequest("Only ids can be forgotten unseen.")

    def matches(self, memory: Memory) -> bool:
        """Whether a target by tags or age covers the memory."""
        if self.before is not None:
            return memory.said_at < self.before
        return frozenset(self.tags) <= frozenset(memory.tags)


class Revoke(Struct, frozen=True, kw_only=True):
    """Undo all writes of one session, of one channel or of one API key; exactly one of these."""

    session: Annotated[
        str | None,
        Meta(
            description="Session (conversation) to undo: all it wrote, and all derived from that."
        ),
    ] = None
    channel: Annotated[
        str | None,
        Meta(description="Channel to undo: all that came in by it, and all derived from that."),
    ] = None
    key: Annotated[
        str | None,
        Meta(
            description="Id of an API key to undo: all written with it, and all derived from that."
        ),
    ] = None

    def __post_init__(self) -> None:
        _check_names(self, ("session", "channel", "key"))
        if sum(one is not None for one in (self.session, self.channel, self.key)) != 1:
            raise InvalidRequest("Revoke takes exactly one target: a session, a channel or a key.")

    def matches(self, where: Provenance | Turn) -> bool:
        """Whether it came by the channel, or by the key."""
        if self.key is not None:
            return where.key_id == self.key
        return where.channel == self.channel


# -- one memory, and lists of them ---------------------------------------------------------------


class Get(_WithId, frozen=True, kw_only=True):
    """Read one memory by id, superseded or not."""

    as_of: Annotated[
        datetime | None, Meta(description="Point in time: the memory if it was current then.")
    ] = None

    def __post_init__(self) -> None:
        text.check_id(self.id)
        _check_times(self, ("as_of",))


class Listing(Struct, frozen=True, kw_only=True):
    """Pagination of a list: the entries to skip, and the limit."""

    after: Annotated[
        int, Meta(description="Offset: how many to skip from the beginning of the list.")
    ] = 0
    limit: Annotated[int, Meta(description="Limit: how many entries are returned at most.")] = (
        LIST_LIMIT
    )

    def __post_init__(self) -> None:
        text.check_count("The count after", self.after)
        text.check_limit(self.limit, LIST_LIMIT)

    def part(self, found: tuple[One, ...]) -> tuple[One, ...]:
        """The requested part of a list."""
        return found[self.after : self.after + self.limit]


ALL: Final = Listing()


class History(Listing, frozen=True):
    """Read all versions of a memory."""

    id: MemoryId

    def __post_init__(self) -> None:
        Listing.__post_init__(self)
        text.check_id(self.id)


class Approve(_WithIdAndContent, frozen=True):
    """Release a memory from quarantine; the content is the exact text that was read."""

    def __post_init__(self) -> None:
        text.check_id(self.id)
        text.check_content(self.content)


class Reject(_WithId, frozen=True):
    """Erase a memory that is in quarantine."""

    def __post_init__(self) -> None:
        text.check_id(self.id)


# -- turns and sessions --------------------------------------------------------------------------


class _WithLimit(Struct, frozen=True):
    """The limit may be given by position, all else by name."""

    limit: Annotated[int, Meta(description="Limit: how many are returned at most.")] = 50


class TurnsRequest(_WithLimit, frozen=True, kw_only=True):
    """Read turns, newest first: all or those of a session."""

    session: Annotated[
        str | None, Meta(description="Session (conversation) to match; None for all.")
    ] = None
    before: Annotated[
        datetime | None, Meta(description="End of the time range: turns before this time.")
    ] = None
    before_id: Annotated[
        str | None,
        Meta(description="The id of the last turn of the answer before this one; needs `before`."),
    ] = None

    def __post_init__(self) -> None:
        text.check_limit(self.limit, TURNS_LIMIT)
        _check_names(self, ("session",))
        _check_times(self, ("before",))
        if self.before_id is not None:
            text.check_id(self.before_id)
            if self.before is None:
                raise InvalidRequest(
                    "`before_id` needs the time of the turn as well.", hint="Give before."
                )


class TimelineRequest(_WithLimit, frozen=True):
    """Read the timeline: times and topics of the turns."""

    def __post_init__(self) -> None:
        text.check_limit(self.limit, TIMELINE_LIMIT)


class SessionsRequest(_WithLimit, frozen=True):
    """List the sessions (conversations), the most recently active first."""

    def __post_init__(self) -> None:
        text.check_limit(self.limit, SESSIONS_LIMIT)


class MarkTainted(Struct, frozen=True):
    """Taint a session: it has read text of an origin; what it infers is trusted no more."""

    session: Annotated[str, Meta(description="The session (conversation) that is tainted.")]
    origin: Annotated[
        OriginArg, Meta(description="The origin of the text the session has read.")
    ] = Origin.WEB

    def __post_init__(self) -> None:
        text.check_name("The session", self.session)
        _set(self, "origin", text.check_choice("The origin", self.origin, Origin))


class Extract(Struct, frozen=True, kw_only=True):
    """Send waiting turns to the language model."""

    limit: Annotated[int, Meta(description="Limit: how many turns are read at most.")] = 100
    seconds: Annotated[float, Meta(description="Time budget in seconds.")] = 20.0
    again: Annotated[bool, Meta(description="Whether to read turns again that were read.")] = False

    def __post_init__(self) -> None:
        text.check_count("The limit", self.limit, least=1)
        text.check_seconds("The time allowed", self.seconds)
        text.check_flag("Again", self.again)


class PauseExtraction(Struct, frozen=True, kw_only=True):
    """Pause or resume extraction in the scope."""

    paused: Annotated[bool, Meta(description="Whether to stop sending turns to the model.")] = True

    def __post_init__(self) -> None:
        text.check_flag("Paused", self.paused)


# -- the scope as a whole ------------------------------------------------------------------------


class FreezeRequest(Struct, frozen=True):
    """Block writes, or writes and recall; `none` lifts it."""

    level: Annotated[LevelArg, Meta(description="How much to stop: none, writes, or all.")] = (
        Freeze.WRITES
    )

    def __post_init__(self) -> None:
        _set(self, "level", text.check_choice("The level", self.level, Freeze))


class Purge(Struct, frozen=True, kw_only=True):
    """Delete memories that are expired, long superseded or long forgotten."""

    superseded_days: Annotated[
        int, Meta(description="For how many days superseded memories stay.")
    ] = 30

    def __post_init__(self) -> None:
        text.check_days("superseded_days", self.superseded_days)


class Export(Struct, frozen=True, kw_only=True):
    """Export every memory, as JSON or as a sealed bundle."""

    sealed: Annotated[bool, Meta(description="Whether to encrypt the file under a new key.")] = (
        False
    )

    def __post_init__(self) -> None:
        text.check_flag("Sealed", self.sealed)


class Load(Struct, frozen=True):
    """Import an export: all of it or nothing."""

    content: Annotated[bytes, Meta(description="The bytes of the file.")]
    key: Annotated[str | None, Meta(description="The key of a sealed file.")] = None


class Backup(Struct, frozen=True, kw_only=True):
    """Back up the scope: a sealed copy under a key of its own."""

    days: Annotated[int, Meta(description="How many days the key of the backup is kept.")] = 30

    def __post_init__(self) -> None:
        text.check_days("days", self.days, least=1)


class Restore(Load, frozen=True):
    """Merge a backup; memories forgotten since stay forgotten."""

    anew: Annotated[
        bool, Meta(description="Whether to begin again a scope that was destroyed.")
    ] = False


class AuditRequest(Listing, frozen=True, kw_only=True):
    """Read the audit trail, oldest first."""

    limit: Annotated[int, Meta(description="Limit: how many events are returned at most.")] = 1000


class Destroy(Struct, frozen=True, kw_only=True):
    """Erase the whole scope, its keys first."""

    confirm: Annotated[str | None, Meta(description="The full name of the scope.")] = None


def _check_scopes(scopes: object) -> tuple[Scope, ...]:
    named = (scopes,) if isinstance(scopes, str | Scope) else scopes or ()
    if not isinstance(named, Iterable):
        raise InvalidRequest("Scopes must be a list.", hint='For example scopes=["team"].')
    return tuple(one if isinstance(one, Scope) else Scope.parse(one) for one in named)


def _check_names(request: Struct, names: tuple[str, ...]) -> None:
    for name in names:
        if (value := getattr(request, name)) is not None:
            text.check_name(f"The {name}", value)


def _check_times(request: Struct, names: tuple[str, ...]) -> None:
    for name in names:
        if (value := getattr(request, name)) is not None:
            _set(request, name, text.check_time(f"The time {name}", value))


def _set(request: Struct, name: str, value: object) -> None:
    force_setattr(request, name, value)
