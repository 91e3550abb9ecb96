"""Filter of memories: the same fields for every verb that lists, searches, counts or exports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, field
from msgspec.structs import force_setattr

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import CATEGORY, CategoryName, Json, Kind, Memory, label, plain_labels
from scrubjay.model.origin import Origin, OriginArg
from scrubjay.model.text import TAGS, CheckedRequest, Name, Tag, Time, doc

# As in `requests`: a type checker knows the words for members of enums, and any collection.
if TYPE_CHECKING:
    KindArg = (
        Kind
        | Literal["preference", "instruction", "correction", "procedure"]
        | Literal["fact", "context", "pattern", "episode", "summary"]
    )
    TagSet = Collection[str]
    KindSet = Collection[KindArg]
    OriginSet = Collection[OriginArg]
else:
    KindArg = Kind
    TagSet = Annotated[frozenset[Tag], Meta(max_length=TAGS)]
    KindSet, OriginSet = frozenset[Kind], frozenset[Origin]

Where = Annotated[
    Mapping[str, Json],
    doc(
        "Metadata to match: a memory must have every one of these names, with this "
        "text, number, boolean or null."
    ),
]
WHERE_NAMES: Final = 16
"""Maximum number of names in `where`."""


def metadata_labels(where: Mapping[str, Json]) -> frozenset[str]:
    """The labels that `where` asks for; InvalidRequest for what no label has."""
    if len(where) > WHERE_NAMES:
        raise InvalidRequest(f"where: it may have at most {WHERE_NAMES} names.")
    if any(isinstance(one, list | dict | tuple) for one in where.values()):
        raise InvalidRequest(
            "where: it must be an object of texts, numbers, booleans and nulls.",
            hint="Lists and objects within metadata are not filtered by.",
        )
    return frozenset(plain_labels(where))


class Filter(CheckedRequest, frozen=True, kw_only=True):
    """Filter of memories: a memory must match every field that is given."""

    kinds: Annotated[
        KindSet, doc("Kinds to match: a memory must have one of them; empty for all.")
    ] = frozenset()
    tags: Annotated[TagSet, doc("Tags to match: a memory must have all of them.")] = frozenset()
    origins: Annotated[
        OriginSet, doc("Origins to match: a memory must have one of them; empty for all.")
    ] = frozenset()
    category: Annotated[
        CategoryName | None,
        doc("Category to match: the name in a tag `category:<name>`; None for all."),
    ] = None
    channel: Annotated[Name | None, doc("Channel to match; None for all.")] = None
    where: Where = field(default_factory=dict)
    session: Annotated[Name | None, doc("Session (conversation) to match; None for all.")] = None
    since: Annotated[Time | None, doc("Start of the time range: said at this time or later.")] = (
        None
    )
    before: Annotated[Time | None, doc("End of the time range: said before this time.")] = None
    as_of: Annotated[
        Time | None, doc("Point in time: returns the memories that were current then.")
    ] = None
    superseded: Annotated[bool, doc("Include superseded memories, too.")] = False
    archived: Annotated[
        bool | None,
        doc(
            "Archived memories: left out unless given; true lists them alone, null with all "
            "others. They are never searched."
        ),
    ] = False

    def __post_init__(self) -> None:
        for name in ("kinds", "origins"):
            if isinstance(one := getattr(self, name), str):
                force_setattr(self, name, (one,))
        CheckedRequest.__post_init__(self)
        if self.where:
            metadata_labels(self.where)

    @property
    def labels(self) -> frozenset[str]:
        """The labels a memory must have: of metadata and channel."""
        named = [] if self.channel is None else [label("channel", self.channel)]
        return metadata_labels(self.where).union(named)

    @property
    def wanted_tags(self) -> frozenset[str]:
        """The tags a memory must have, that of its category included."""
        named = () if self.category is None else (f"{CATEGORY}{self.category}",)
        return frozenset((*self.tags, *named))

    def accepts(self, memory: Memory, now: datetime) -> bool:
        """Whether the memory matches."""
        if self.as_of is not None:
            shown = memory.visible(self.as_of)
        else:
            shown = (self.superseded or memory.current) and not memory.expired(now)
        archived = memory.archived_at is not None
        return shown and self.archived in (None, archived) and self._matches(memory)

    def _matches(self, memory: Memory) -> bool:
        return (
            (not self.kinds or memory.kind in self.kinds)
            and self.wanted_tags.issubset(memory.tags)
            and (not self.origins or memory.origin in self.origins)
            and (self.session is None or memory.provenance.session == self.session)
            and (self.since is None or memory.said_at >= self.since)
            and (self.before is None or memory.said_at < self.before)
            and (self.channel is None or memory.provenance.channel == self.channel)
            and (not self.where or metadata_labels(self.where) <= frozenset(memory.labels))
        )
