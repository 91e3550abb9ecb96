"""The memory: one stored unit, and the kinds it comes in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

from msgspec import Meta, Struct

from scrubjay.model import text
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.text import doc

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
else:  # msgspec resolves hints at run time and knows no recursive alias
    Json = Any
Edition: TypeAlias = tuple[int, int]
"""Edition: one state of a memory, by its number and version; the basis of the ETag."""


class Kind(StrEnum):
    """The kind of a memory; the first four are behavioral: they tell the agent how to act."""

    PREFERENCE = "preference"
    INSTRUCTION = "instruction"
    CORRECTION = "correction"
    PROCEDURE = "procedure"
    FACT = "fact"
    CONTEXT = "context"
    PATTERN = "pattern"
    EPISODE = "episode"
    SUMMARY = "summary"

    @property
    def behavioral(self) -> bool:
        """Whether memories of this kind tell the agent how to act."""
        return self in _BEHAVIORAL


_BEHAVIORAL = frozenset({Kind.PREFERENCE, Kind.INSTRUCTION, Kind.CORRECTION, Kind.PROCEDURE})


def wording(content: str, tags: Iterable[str]) -> str:
    """Searchable text of a memory: content and tags."""
    return " ".join((content, *tags))


ANSWERED = "\n→ "
"""Between the two sides of a turn in the episode that is derived from it."""
PREFIX_CHARS = 8
"""The least characters of the beginning of an id that may stand for it."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_CHARS = 36


def made_id(id: str) -> bool:
    """Whether an id ends with a UUID, as every id that is not the caller's own."""
    return _UUID.fullmatch(id[-_UUID_CHARS:]) is not None


def abbreviated(id: str) -> bool:
    """Whether it may stand for a longer id that was made here."""
    return len(id) >= PREFIX_CHARS and not made_id(id)


def label(sort: str, *parts: Json) -> str:
    """A label as text, equal for equal values: 1 and 1.0 are, 1 and true are not."""
    if all(type(part) is str for part in parts):  # the usual one, written in a fifth of the time
        return f'["{sort}", {", ".join(map(encode_basestring, cast("tuple[str]", parts)))}]'
    whole = (int(p) if isinstance(p, float) and p.is_integer() else p for p in parts)
    return json.dumps([sort, *whole], ensure_ascii=False)


def plain_labels(metadata: Mapping[str, Json]) -> list[str]:
    """The labels of metadata: of its plain values, not of lists and objects."""
    plain = (pair for pair in metadata.items() if not isinstance(pair[1], list | dict | tuple))
    return [label("metadata", name, value) for name, value in plain]


CATEGORY = "category:"
"""A tag that begins with this names the category of a memory; it has at most one."""
CategoryName = Annotated[str, Meta(min_length=1, max_length=128 - len(CATEGORY), pattern=r"\S")]


def check_category(tags: Iterable[str]) -> None:
    """InvalidRequest if several tags name a category."""
    if sum(tag.startswith(CATEGORY) for tag in tags) > 1:
        raise InvalidRequest(
            "tags: a memory has at most one category.", hint="Keep one tag `category:<name>`."
        )


# Fields that several Structs have, each declared once with its help.

MemoryId = Annotated[text.Id, doc("The id of the memory: stable and unique in its scope.")]
MemoryKind = Annotated[Kind, doc("The kind of memory; behavioral kinds tell the agent how to act.")]
Content = Annotated[text.Text, doc("The text of the memory.")]
Tags = Annotated[text.Tags, doc("Tags: labels to filter by, searched like the content.")]
Importance = Annotated[text.Share, doc("Number from 0 to 1; breaks near-ties in ranking.")]
Pinned = Annotated[bool, doc("Pin: a pinned memory comes first in the brief.")]
IdempotencyKey = Annotated[
    text.Name | None, doc("The idempotency key: a second write under the same key changes nothing.")
]
SessionName = Annotated[text.Name | None, doc("The session (conversation) it was said in.")]
ChannelName = Annotated[
    text.Name | None, doc("Channel: a label by its writer, such as an app; revoke can undo it.")
]
KeyId = Annotated[
    text.Name | None, doc("The id of the API key it came by, by the engine; revoke can undo a key.")
]
MessageId = Annotated[
    text.Name | None, doc("The id of the message it was said in, as the channel names it.")
]
SpeakerName = Annotated[text.Name | None, doc("The name of the person or agent who said it.")]
PlaceInSession = Annotated[
    text.Count | None, doc("Its place in the session, a whole number from 0.")
]
TextOrigin = Annotated[
    Origin, doc("The origin: by which channel the text came in; it decides trust.")
]
SourceIds = Annotated[
    text.Ids, doc("Ids of the memories it was derived from; it is erased with them.")
]
ChangeReason = Annotated[
    text.Name | None, doc("The reason for the replacement, in the caller's words.")
]
SaidAt = Annotated[text.Time | None, doc("The time it was said; None for the time of recording.")]
ValidFrom = Annotated[
    text.Time | None, doc("Start of the time it is true for; stored, not filtered by.")
]
ValidTo = Annotated[
    text.Time | None, doc("End of the time it is true for; stored, not filtered by.")
]
ExpiresAt = Annotated[
    text.Time | None, doc("Time of expiry: hidden from then on, erased by purge; None for never.")
]
MetadataMap = Annotated[
    Mapping[str, Json],
    doc("JSON object of the caller's own: returned as it is, filtered by with `where`."),
]


class Result(Struct, frozen=True):
    """Base class of the results of verbs."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values, the same on every surface."""
        from scrubjay.model.records import plain  # which knows the results

        found: dict[str, Any] = plain(self)
        return found


class Provenance(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Provenance of a memory: who wrote it, and where and when it was said."""

    actor: Annotated[Actor, doc("The actor who wrote it.")] = Actor.USER
    session: SessionName = None
    channel: ChannelName = None
    key_id: KeyId = None
    message_id: MessageId = None
    said_at: SaidAt = None
    reason: ChangeReason = None


class Memory(Result, frozen=True, kw_only=True, gc=False):
    """A memory: one stored unit, decrypted, as its owner sees it."""

    id: MemoryId
    kind: MemoryKind
    content: Content
    recorded_at: Annotated[text.Time, doc("The time it was written, in UTC.")]
    origin: TextOrigin = Origin.USER
    provenance: Annotated[
        Provenance, doc("Provenance: who wrote it, and where and when it was said.")
    ] = Provenance()
    speaker: SpeakerName = None
    position: PlaceInSession = None
    tags: Tags = ()
    importance: Importance = 0.5
    pinned: Pinned = False
    approved: Annotated[
        text.Name | None,
        doc("Signature of a person's approval, if it was in quarantine; None otherwise."),
    ] = None
    key: IdempotencyKey = None
    supersedes: Annotated[
        text.Id | None, doc("The id of the version before this one; None for the first.")
    ] = None
    superseded_by: Annotated[
        text.Id | None,
        doc("The id of the version that replaced this one; None while it is current."),
    ] = None
    sources: SourceIds = ()
    retired_at: Annotated[
        text.Time | None,
        doc("The time it was superseded, or a source of it; None while it is current."),
    ] = None
    archived_at: Annotated[
        text.Time | None,
        doc("The time it was archived, and went out of search; None if it was not."),
    ] = None
    valid_from: ValidFrom = None
    valid_to: ValidTo = None
    expires_at: ExpiresAt = None
    metadata: Annotated[MetadataMap, Meta(extra={"most_bytes": text.NOTED_BYTES})] = {}
    number: Annotated[
        text.Count, doc("Sequence number: its place in the order of creation within the scope.")
    ] = 0
    version: Annotated[
        text.Positive,
        doc("Version of the row, raised by every change; not part of the sealed cell."),
    ] = 1

    @property
    def edition(self) -> Edition:
        """Its edition: number and version."""
        return self.number, self.version

    @property
    def live(self) -> bool:
        """Whether it is the newest version."""
        return self.superseded_by is None

    @property
    def trusted(self) -> bool:
        """Trust check: whether its origin is trusted, or a person approved it."""
        return self.origin.trusted or self.approved is not None

    @property
    def current(self) -> bool:
        """Whether it holds: the head of its chain, and derived from nothing outdated."""
        return self.live and self.retired_at is None

    @property
    def shown(self) -> bool:
        """Whether it is in sight: it holds, and was not archived."""
        return self.current and self.archived_at is None

    @property
    def hidden(self) -> bool:
        """Whether it was derived from a value that was corrected, and waits to be derived again."""
        return self.live and self.retired_at is not None

    @property
    def quarantined(self) -> bool:
        """Whether it is behavioral, untrusted, and not approved by a person."""
        return self.kind.behavioral and not self.trusted

    @property
    def said_at(self) -> datetime:
        """Time it was said, or else recorded."""
        return self.provenance.said_at or self.recorded_at

    @property
    def labels(self) -> list[str]:
        """Filter labels besides its other fields: metadata, channel, beginning of the id."""
        found = plain_labels(self.metadata)
        if self.provenance.channel is not None:
            found.append(label("channel", self.provenance.channel))
        if made_id(self.id):
            found.append(label("id", self.id[:PREFIX_CHARS]))
        return found

    def age_days(self, now: datetime) -> int:
        """Age in whole days; 0 for a time in the future."""
        return max(0, (now - self.said_at).days)

    def expired(self, now: datetime) -> bool:
        """Whether it has expired at `now`."""
        return self.expires_at is not None and self.expires_at <= now

    def visible(self, as_of: datetime) -> bool:
        """Whether a reader at `as_of` would have seen it as current."""
        retired = self.retired_at is not None and self.retired_at <= as_of
        return self.recorded_at <= as_of and not retired and not self.expired(as_of)
