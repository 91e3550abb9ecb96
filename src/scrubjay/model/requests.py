"""What a caller asks for: every request is checked as it is made, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from scrubjay.model import text
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Edition, Json, Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.scope import Scope

BROWSE_LIMIT = 10_000
RECALL_LIMIT = 1_000
BRIEF_LIMIT = 1_000
FORGET_LIMIT = 10_000
AS_IT_IS = datetime.max.replace(tzinfo=UTC)
"""A time nobody means: what was not said stays as it is."""


class Allowance(Struct, frozen=True, kw_only=True):
    """How often a session may do something; counted durably, with what is done."""

    session: str
    name: str
    limit: int

    def __post_init__(self) -> None:
        text.check_name("The session", self.session)
        text.check_name("The name of the allowance", self.name)
        text.check_count("The limit of the allowance", self.limit)


class Retain(Struct, frozen=True, kw_only=True):
    """Write one memory."""

    content: str
    kind: Kind = Kind.FACT
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    pinned: bool = False
    key: str | None = None
    """Idempotency key: a second write under the same key changes nothing."""
    id: str | None = None
    """A stable id the caller brings; None makes a new one."""
    session: str | None = None
    speaker: str | None = None
    position: int | None = None
    origin: Origin = Origin.USER
    actor: Actor = Actor.USER
    channel: str | None = None
    message_id: str | None = None
    said_at: datetime | None = None
    sources: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    metadata: Mapping[str, Json] = {}
    allowances: tuple[Allowance, ...] = ()
    """What this is counted against; LimitReached when one is used up."""

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
    """Replace one memory by a new text; what is not said is taken from the old one."""

    id: str
    content: str
    kind: Kind | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    key: str | None = None
    session: str | None = None
    reason: str | None = None
    origin: Origin = Origin.USER
    actor: Actor = Actor.USER
    allowances: tuple[Allowance, ...] = ()

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
    """Change what is noted of one memory, all of it at once; what is not said stays as it is."""

    id: str
    pinned: bool | None = None
    expires_at: datetime | None = AS_IT_IS
    """When it expires, in the past for at once; None for never."""
    expected: frozenset[Edition] | None = None
    """The states it may be in, Stale if it is in another; None for whichever."""
    actor: Actor = Actor.USER

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
    """Which memories are wanted at all."""

    kinds: frozenset[Kind] = frozenset()
    tags: frozenset[str] = frozenset()
    """All of them must be on a memory."""
    session: str | None = None
    since: datetime | None = None
    before: datetime | None = None
    as_of: datetime | None = None
    superseded: bool = False
    """Whether to show what was superseded, too."""

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

    limit: int = 50
    cursor: int | None = None
    """Where the page before this one ended: its `next`."""

    def __post_init__(self) -> None:
        Filter.__post_init__(self)
        text.check_limit(self.limit, BROWSE_LIMIT)
        text.check_count("The cursor", self.cursor)


class Recall(Filter, frozen=True, kw_only=True):
    """Find the memories that answer a question."""

    query: str
    limit: int = 10
    asked_at: datetime | None = None
    """When the question is asked; None for now."""
    scopes: tuple[Scope, ...] = ()
    """Other scopes to look in as well."""
    worded: bool = False
    """Whether to leave out what holds no word of the query, nor one near it."""
    max_bytes: int | None = None
    """How many bytes of content all hits together may have."""
    max_tokens: int | None = None
    """The same in tokens of a language model, roughly counted."""
    seconds: float | None = None
    """How long it may take; what could not be used by then is named in `degraded`."""
    local: bool = False
    """Whether to do without an embedder that is costly, such as one on another machine."""
    also: frozenset[str] = frozenset()
    """Tags of memories of which as many again are found, whatever the question is about."""
    actor: Actor = Actor.USER

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
    """What a session should know before its first word."""

    limit: int = 50
    max_chars: int = 10_000
    """How many characters of content all entries together may have."""
    actor: Actor = Actor.USER

    def __post_init__(self) -> None:
        text.check_limit(self.limit, BRIEF_LIMIT)
        text.check_count("The limit of characters", self.max_chars, least=1)
        _set(self, "actor", text.check_choice("The actor", self.actor, Actor))


class Forget(Struct, frozen=True, kw_only=True):
    """Erase memories for good: by ids, session, tags, age or words; exactly one of these."""

    ids: tuple[str, ...] = ()
    session: str | None = None
    tags: frozenset[str] = frozenset()
    before: datetime | None = None
    query: str | None = None
    """Every memory that holds all words of this; needs the confirmation of a preview."""
    confirm: str | None = None
    """The token of a preview: then exactly what was shown is erased, or nothing."""
    unseen: bool = False
    """Tombstone ids that were never seen, instead of refusing them."""
    turns_only: bool = False
    """Take ids for those of turns: a memory that was not derived from one is left alone."""
    expected: frozenset[Edition] | None = None
    """The states the one id may be in, Stale if it is in another; None for whichever."""
    actor: Actor = Actor.USER
    allowances: tuple[Allowance, ...] = ()

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
    """Undo what one session, or everybody by one channel, wrote; exactly one of these."""

    session: str | None = None
    channel: str | None = None
    actor: Actor = Actor.USER

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
