"""What a caller asks for: every request is checked as it is made, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from scrubjay.model import text
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import (
    ActingAs,
    ChangeReason,
    ChannelName,
    Content,
    Edition,
    ExpiresAt,
    IdempotencyKey,
    Importance,
    Kind,
    Memory,
    MemoryId,
    MemoryKind,
    MessageId,
    MetadataMap,
    Pinned,
    PlaceInSession,
    Provenance,
    SaidAt,
    SessionName,
    SourceIds,
    SpeakerName,
    Tags,
    TextOrigin,
    ValidFrom,
    ValidTo,
)
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.scope import Scope

BROWSE_LIMIT = 10_000
RECALL_LIMIT = 1_000
BRIEF_LIMIT = 1_000
FORGET_LIMIT = 10_000
AS_IT_IS = datetime.max.replace(tzinfo=UTC)
"""A time nobody means: what was not said stays as it is."""


Limit = Annotated[int, Meta(description="Limit: how many memories are returned at most.")]
TagFilter = Annotated[
    frozenset[str], Meta(description="Tags to match: a memory must have all of them.")
]
ExpectedEditions = Annotated[
    frozenset[Edition] | None,
    Meta(
        description="Optimistic lock: editions the memory may be in, Stale otherwise; None for any."
    ),
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


Allowances = Annotated[
    tuple[Allowance, ...],
    Meta(description="Quotas this call counts against; LimitReached when one is used up."),
]


class Retain(Struct, frozen=True, kw_only=True):
    """Write one memory; durable when the verb returns."""

    content: Content
    kind: MemoryKind = Kind.FACT
    tags: Tags = ()
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
    origin: TextOrigin = Origin.USER
    actor: ActingAs = Actor.USER
    channel: ChannelName = None
    message_id: MessageId = None
    said_at: SaidAt = None
    sources: SourceIds = ()
    valid_from: ValidFrom = None
    valid_to: ValidTo = None
    expires_at: ExpiresAt = None
    metadata: MetadataMap = {}
    allowances: Allowances = ()

    def __post_init__(self) -> None:
        text.check_content(self.content)
        _set(self, "kind", text.check_choice("The kind", self.kind, Kind))
        _set(self, "origin", text.check_choice("The origin", self.origin, Origin))
        _set(self, "actor", text.check_choice("The actor", self.actor, Actor))
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

    def memory(self, public_id: str, recorded_at: datetime) -> Memory:
        """The memory this request describes."""
        return Memory(
            id=public_id,
            kind=self.kind,
            content=self.content,
            recorded_at=recorded_at,
            origin=self.origin,
            provenance=self.provenance(),
            speaker=self.speaker,
            position=self.position,
            tags=self.tags,
            importance=self.importance,
            pinned=self.pinned,
            key=self.key,
            sources=self.sources,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            expires_at=self.expires_at,
            metadata=dict(self.metadata),
        )

    def provenance(self) -> Provenance:
        """Where the memory comes from, as far as the caller says."""
        return Provenance(
            actor=self.actor,
            session=self.session,
            channel=self.channel,
            message_id=self.message_id,
            said_at=self.said_at,
        )


class Supersede(Struct, frozen=True, kw_only=True):
    """Replace one memory by a new text; fields left out are taken from the old one."""

    id: Annotated[str, Meta(description="The id of the memory to replace.")]
    content: Annotated[str, Meta(description="The new text.")]
    kind: Annotated[Kind | None, Meta(description="The new kind; None keeps the old one.")] = None
    tags: Annotated[
        tuple[str, ...] | None, Meta(description="The new tags; None keeps the old ones.")
    ] = None
    importance: Annotated[
        float | None,
        Meta(
            description="Number from 0 to 1; breaks near-ties in ranking; None keeps the old one."
        ),
    ] = None
    key: IdempotencyKey = None
    session: SessionName = None
    reason: ChangeReason = None
    origin: TextOrigin = Origin.USER
    actor: ActingAs = Actor.USER
    allowances: Allowances = ()

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
        _set(self, "actor", text.check_choice("The actor", self.actor, Actor))
        _check_names(self, ("key", "session", "reason"))

    def memory(self, old: Memory, public_id: str, recorded_at: datetime) -> Memory:
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
            provenance=Provenance(actor=self.actor, session=self.session, reason=self.reason),
            key=self.key,
            supersedes=old.id,
            superseded_by=None,
            retired_at=None,
            version=1,
        )


class Amend(Struct, frozen=True, kw_only=True):
    """Change pin or expiry of one memory in one transaction; fields left out stay as they are."""

    id: MemoryId
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
    expected: ExpectedEditions = None
    actor: ActingAs = Actor.USER

    def __post_init__(self) -> None:
        text.check_id(self.id)
        _set(self, "actor", text.check_choice("The actor", self.actor, Actor))
        if self.pinned is not None:
            text.check_flag("Pinned", self.pinned)
        if self.expires_at is not AS_IT_IS:
            _set(self, "expires_at", text.check_time("The time of expiry", self.expires_at))
        elif self.pinned is None:
            raise InvalidRequest("Say what to change.", hint="Give pinned, or expires_at.")

    def memory(self, old: Memory) -> Memory:
        """What becomes of `old`."""
        pinned = old.pinned if self.pinned is None else self.pinned
        expires_at = old.expires_at if self.expires_at is AS_IT_IS else self.expires_at
        return replace(old, pinned=pinned, expires_at=expires_at)


class Filter(Struct, frozen=True, kw_only=True):
    """Filter of memories: a memory must match every field that is given."""

    kinds: Annotated[
        frozenset[Kind],
        Meta(description="Kinds to match: a memory must have one of them; empty for all."),
    ] = frozenset()
    tags: TagFilter = frozenset()
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
        kinds = (self.kinds,) if isinstance(self.kinds, str) else self.kinds or ()
        checked = frozenset(
            text.check_choice("The kind", kind, Kind) for kind in text.each("Kinds", kinds)
        )
        _set(self, "kinds", checked)
        _set(self, "tags", frozenset(text.check_tags(self.tags)))
        text.check_name("The session", self.session)
        _check_times(self, ("since", "before", "as_of"))
        text.check_flag("Superseded", self.superseded)

    def accepts(self, memory: Memory, now: datetime) -> bool:
        """Whether the memory belongs in the list."""
        if self.as_of is not None:
            shown = memory.visible(self.as_of)
        else:
            shown = (self.superseded or memory.live) and not memory.expired(now)
        return shown and self._matches(memory)

    def _matches(self, memory: Memory) -> bool:
        return (
            (not self.kinds or memory.kind in self.kinds)
            and self.tags <= frozenset(memory.tags)
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


class Recall(Filter, frozen=True, kw_only=True):
    """Search: the memories that answer a question, ranked."""

    query: Annotated[str, Meta(description="The question to search by, in words.")]
    limit: Limit = 10
    asked_at: Annotated[
        datetime | None,
        Meta(description="The time the question is asked, which ages count from; None for now."),
    ] = None
    scopes: Annotated[
        tuple[Scope, ...], Meta(description="Further scopes to search, besides the scope itself.")
    ] = ()
    worded: Annotated[
        bool,
        Meta(
            description="Keyword filter: leaves out memories with "
            "no word of the query, nor a near one."
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
    local: Annotated[
        bool,
        Meta(
            description="Local only: does without a costly embedder, "
            "such as one on another machine."
        ),
    ] = False
    also: Annotated[
        frozenset[str],
        Meta(
            description="Tags that get a second quota: up to `limit` more hits that have them all."
        ),
    ] = frozenset()
    actor: ActingAs = Actor.USER

    def __post_init__(self) -> None:
        Filter.__post_init__(self)
        text.check_query(self.query)
        text.check_flag("Worded", self.worded)
        _set(self, "also", frozenset(text.check_tags(self.also)))
        text.check_limit(self.limit, RECALL_LIMIT)
        _check_times(self, ("asked_at",))
        text.check_count("The limit of bytes", self.max_bytes, least=1)
        text.check_count("The limit of tokens", self.max_tokens, least=1)
        text.check_seconds("The time allowed", self.seconds)
        _set(self, "scopes", _check_scopes(self.scopes))
        _set(self, "actor", text.check_choice("The actor", self.actor, Actor))


class BriefRequest(Struct, frozen=True, kw_only=True):
    """Ask for the brief: the memories to put before a session's first prompt."""

    limit: Limit = 50
    max_chars: Annotated[
        int, Meta(description="Size budget: characters of content all entries together may have.")
    ] = 10_000
    actor: ActingAs = Actor.USER

    def __post_init__(self) -> None:
        text.check_limit(self.limit, BRIEF_LIMIT)
        text.check_count("The limit of characters", self.max_chars, least=1)
        _set(self, "actor", text.check_choice("The actor", self.actor, Actor))


class Forget(Struct, frozen=True, kw_only=True):
    """Erase memories for good: by ids, session, tags, age or words; exactly one of these."""

    ids: Annotated[tuple[str, ...], Meta(description="Ids of the memories or turns to erase.")] = ()
    session: Annotated[
        str | None, Meta(description="Session (conversation) to erase: all its memories and turns.")
    ] = None
    tags: Annotated[
        frozenset[str], Meta(description="Tags to erase by: memories that have all of them.")
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
    unseen: Annotated[
        bool, Meta(description="Tombstone ids that were never written, instead of refusing them.")
    ] = False
    turns_only: Annotated[
        bool,
        Meta(
            description="Take ids as those of turns: a memory not "
            "derived from a turn is left alone."
        ),
    ] = False
    expected: ExpectedEditions = None
    actor: ActingAs = Actor.USER
    allowances: Allowances = ()

    def __post_init__(self) -> None:
        _set(self, "ids", text.check_ids("Forget", self.ids, FORGET_LIMIT))
        _set(self, "tags", frozenset(text.check_tags(self.tags)))
        _set(self, "before", text.check_time("The time before", self.before))
        _set(self, "actor", text.check_choice("The actor", self.actor, Actor))
        text.check_name("The session", self.session)
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
        if (self.unseen or self.turns_only) and not self.ids:
            raise InvalidRequest("Only ids can be forgotten unseen, or be those of turns.")
        if self.expected is not None and len(self.ids) != 1:
            raise InvalidRequest("A state can be expected of one id only.")

    def matches(self, memory: Memory) -> bool:
        """Whether a target by tags or age covers the memory."""
        if self.before is not None:
            return memory.said_at < self.before
        return self.tags <= frozenset(memory.tags)


class Revoke(Struct, frozen=True, kw_only=True):
    """Undo all writes of one session or of one channel; exactly one of these."""

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
    actor: ActingAs = Actor.USER

    def __post_init__(self) -> None:
        _check_names(self, ("session", "channel"))
        _set(self, "actor", text.check_choice("The actor", self.actor, Actor))
        if (self.session is None) == (self.channel is None):
            raise InvalidRequest("Revoke takes exactly one target: a session or a channel.")

    def matches(self, memory: Memory) -> bool:
        """Whether it was written by the channel."""
        return memory.provenance.channel == self.channel


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
