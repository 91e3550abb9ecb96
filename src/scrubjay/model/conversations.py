"""Conversations: message histories of agents, as entries of JSON that each follow a parent.

An entry is whatever a framework calls a message, an item or a line. A conversation is a name, the
entry its history ends with (its head) and a revision that changes with every write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

from msgspec import Meta, field

from scrubjay.model.documents import ExpectedRevision, FilterMap, check_operators, matches
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import ChannelName, Json, KeyId, MetadataMap, Result, TextOrigin
from scrubjay.model.origin import Actor, Origin, OriginArg
from scrubjay.model.pages import Cursor, Paged
from scrubjay.model.results import Outcome, RedactedSecrets, WriteOutcome
from scrubjay.model.text import TURN_BYTES, CheckedRequest, Count, Id, Name, Time, doc

APPEND_LIMIT: Final = 1_000
"""Maximum number of entries in one append."""
BRANCHES: Final = 1_000
"""How many branches a conversation may have left, each of which keeps its entries."""
READ_LIMIT: Final = 10_000
READ_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of the entries in one answer, which ends early before it exceeds it."""

ConversationName = Annotated[
    Name, doc("The name of the conversation, which is also that of its session.")
]
EntryId = Annotated[Id, doc("The id of the entry: unique in its scope.")]
EntryBody = Annotated[
    Json,
    doc(
        "The message as any JSON value; secrets are removed from every text in it.",
        extra={"json": True, "most_bytes": TURN_BYTES},
    ),
]
NewRevision = Annotated[Name | None, doc("The revision to give to it; None makes a new one.")]
Title = Annotated[Name | None, doc("The title of the conversation, for people.")]
EntryCount = Annotated[int, doc("How many entries its history has.")]


class Entry(Result, frozen=True, kw_only=True):
    """Entry: one message of a conversation, and the entry it follows."""

    id: EntryId
    parent: Annotated[Id | None, doc("The entry before it; None for the first.")] = None
    body: EntryBody
    at: Annotated[Time, doc("The time it was written, in UTC.")]
    conversation: ConversationName
    origin: TextOrigin = Origin.AGENT
    channel: ChannelName = None
    key_id: KeyId = None
    actor: Annotated[Actor, doc("The actor who wrote it.")] = Actor.AGENT


class Conversation(Result, frozen=True, kw_only=True):
    """A conversation without its entries: where its history ends, and what is listed of it."""

    id: Annotated[Id, doc("The id of this generation: a name may be used again.")]
    name: ConversationName
    revision: Annotated[Name, doc("Changes with every write; compare it only.")]
    created_at: Annotated[Time, doc("The time of its first write, in UTC.")]
    updated_at: Annotated[Time, doc("The time of its last write, in UTC.")]
    head: Annotated[Id | None, doc("The entry its history ends with; None while it is empty.")] = (
        None
    )
    entries: EntryCount = 0
    title: Title = None
    metadata: MetadataMap = field(default_factory=dict)
    branches: Annotated[
        tuple[Id, ...], doc("The last entries of the branches it has left, oldest first.")
    ] = ()
    forked_from: Annotated[
        Name | None, doc("The conversation it was branched from, if it was.")
    ] = None
    forked_at: Annotated[Id | None, doc("The last entry of the history it began with.")] = None


class Transcript(Result, frozen=True, kw_only=True):
    """A history, oldest first: the last entries up to the head, or up to a given entry."""

    conversation: Annotated[Conversation | None, doc("The conversation, if it was named.")] = None
    entries: Annotated[tuple[Entry, ...], doc("Its entries, oldest first.")] = ()
    next_cursor: Annotated[
        str | None, doc("Pagination cursor of the earlier ones; None if there are none.")
    ] = None


class Appended(Result, frozen=True, kw_only=True):
    """Receipt of an append, given once it is durable."""

    conversation: Annotated[
        Conversation | None, doc("The conversation as it is now, if it exists.")
    ]
    ids: Annotated[tuple[str, ...], doc("The ids of the entries, in their order.")]
    outcome: WriteOutcome = Outcome.STORED
    redacted: RedactedSecrets = field(default_factory=dict)


# -- requests --------------------------------------------------------------------------------


class NewEntry(CheckedRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry to append."""

    body: EntryBody
    id: Annotated[Id | None, doc("The id of the entry, if the caller brings one.")] = None
    origin: Annotated[
        OriginArg | None,
        doc("The origin of its text, such as `tool`; None for that of the append."),
    ] = None
    at: Annotated[Time | None, doc("The time it was said; None for now.")] = None


if TYPE_CHECKING:
    NewEntries = Sequence[NewEntry | Mapping[str, Json]]
else:
    NewEntries = Annotated[tuple[NewEntry, ...], Meta(max_length=APPEND_LIMIT)]


class _WithConversation(CheckedRequest, frozen=True):
    """The name may be given by position, all else by name."""

    conversation: ConversationName


class _WithEntries(_WithConversation, frozen=True):
    """The name and the entries may be given by position, all else by name."""

    entries: Annotated[
        NewEntries,
        doc("The entries to add, each following the one before it.", extra={"repeats": True}),
    ] = ()


class Append(_WithEntries, frozen=True, kw_only=True):
    """Add entries to a conversation, and make it if it is not there; durable on return."""

    parent: Annotated[
        Id | None,
        doc(
            "The entry the first one follows; None for the head. From another one "
            "on it is a new branch, and the head is remembered as one that was left."
        ),
    ] = None
    root: Annotated[bool, doc("Whether the first one follows none.")] = False
    expected_revision: ExpectedRevision = None
    revision: NewRevision = None
    title: Annotated[Name | None, doc("The new title; None keeps the old one.")] = None
    metadata: Annotated[
        Mapping[str, Json], doc("JSON object of the caller's own; an empty one keeps the old one.")
    ] = field(default_factory=dict)
    origin: Annotated[
        OriginArg, doc("The origin of the entries that name none; it decides trust.")
    ] = Origin.AGENT
    channel: ChannelName = None

    def __post_init__(self) -> None:
        CheckedRequest.__post_init__(self)
        if self.root and self.parent is not None:
            raise InvalidRequest("Append takes at most one of parent and root.")


class _AtEntry(_WithConversation, frozen=True, kw_only=True):
    """A place in a history, by its entry or by how many entries are kept."""

    entry: Annotated[
        Id | None, doc("The last entry to keep, of its history or a branch it left.")
    ] = None
    at: Annotated[Count | None, doc("How many entries of its history to keep, instead.")] = None
    expected_revision: ExpectedRevision = None
    revision: NewRevision = None


class Rewind(_AtEntry, frozen=True, kw_only=True):
    """Continue a conversation from an earlier entry; what is left stays stored as a branch."""

    def __post_init__(self) -> None:
        CheckedRequest.__post_init__(self)
        if (self.entry is None) is (self.at is None):
            raise InvalidRequest("Rewind takes exactly one of entry and at.")


class Branch(_AtEntry, frozen=True, kw_only=True):
    """Begin a new conversation with the history of another one, whose entries it shares."""

    into: Annotated[Name, doc("The name of the new conversation.")]
    title: Title = None
    metadata: Annotated[
        Mapping[str, Json], doc("JSON object of the caller's own; if empty, that of the other one.")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        CheckedRequest.__post_init__(self)
        if self.entry is not None and self.at is not None:
            raise InvalidRequest("Branch takes at most one of entry and at.")


class ReadConversation(CheckedRequest, frozen=True):
    """Read the last entries of a conversation, or those up to one entry."""

    conversation: Annotated[
        Name | None, doc("The name of the conversation; None with an entry.")
    ] = None
    entry: Annotated[Id | None, doc("The entry to end with; None for the head.")] = None
    limit: Annotated[int, doc("Limit: how many entries at most.", ge=0, le=READ_LIMIT)] = 1_000
    session: Annotated[
        Name | None,
        doc(
            "The session that reads it: untrusted entries taint it; "
            "None for that of the conversation."
        ),
    ] = None
    cursor: Cursor = None

    def __post_init__(self) -> None:
        CheckedRequest.__post_init__(self)
        if self.conversation is None and self.entry is None:
            raise InvalidRequest("Name a conversation, or an entry.")


class ListConversations(Paged, frozen=True, kw_only=True):
    """List conversations, the last written first, without opening their entries."""

    where: FilterMap = field(default_factory=dict)

    def __post_init__(self) -> None:
        Paged.__post_init__(self)
        check_operators(self.where)

    def accepts(self, conversation: Conversation) -> bool:
        """Whether its metadata matches."""
        return not self.where or matches(dict(conversation.metadata), self.where)


class DeleteConversation(_WithConversation, frozen=True, kw_only=True):
    """Erase a conversation for good, with the entries that no other one shares."""

    expected_revision: ExpectedRevision = None


def rest_of(public_id: str) -> str:
    """The id of what remains of an entry, a conversation or a document that is cut.

    Another one, because the id of the whole is buried: no load or backup brings that back.
    """
    digest = hashlib.sha256(f"scrubjay/rest\0{public_id}".encode()).digest()
    return f"{public_id.partition('-')[0][:8]}-{UUID(bytes=digest[:16], version=4)}"
