"""The memory: one stored unit, and the kinds it comes in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from scrubjay.model.origin import Actor, Origin

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
else:  # msgspec resolves hints at run time and knows no recursive alias
    Json = Any
Edition: TypeAlias = tuple[int, int]
"""One state of a memory, by its number and its version: no two states have the same."""


class Kind(StrEnum):
    """What a memory is about; the first four steer behavior."""

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
    """What a memory is found by: what it says, and its tags."""
    return " ".join((content, *tags))


class Provenance(Struct, frozen=True, kw_only=True):
    """Where a memory came from."""

    actor: Actor = Actor.USER
    session: str | None = None
    channel: str | None = None
    message_id: str | None = None
    said_at: datetime | None = None
    reason: str | None = None


class Memory(Struct, frozen=True, kw_only=True):
    """One stored unit, as its owner sees it."""

    id: str
    kind: Kind
    content: str
    recorded_at: datetime
    origin: Origin = Origin.USER
    provenance: Provenance = Provenance()
    speaker: str | None = None
    position: int | None = None
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    pinned: bool = False
    approved: str | None = None
    """The signature of a human's approval, where the memory was in quarantine."""
    key: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    sources: tuple[str, ...] = ()
    retired_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    metadata: Mapping[str, Json] = {}
    number: int = 0
    """Its place in the order of creation within the scope."""
    version: int = 1
    """Raised by every change; the row's own, so not part of the cell."""

    @property
    def edition(self) -> Edition:
        """Which of all states it is."""
        return self.number, self.version

    @property
    def live(self) -> bool:
        """Whether it is the head of its chain."""
        return self.superseded_by is None

    @property
    def quarantined(self) -> bool:
        """Whether it tells an agent how to act, nobody vouches for it, and no human has seen it."""
        return self.kind.behavioral and not self.origin.trusted and self.approved is None

    @property
    def said_at(self) -> datetime:
        """When it was said, or else recorded: the time it is about to its reader."""
        return self.provenance.said_at or self.recorded_at

    def age_days(self, now: datetime) -> int:
        """How many whole days ago it was said; 0 for what is said to be from the future."""
        return max(0, (now - self.said_at).days)

    def expired(self, now: datetime) -> bool:
        """Whether its time is over at `now`."""
        return self.expires_at is not None and self.expires_at <= now

    def visible(self, as_of: datetime) -> bool:
        """Whether a reader at `as_of` would have seen it as current."""
        retired = self.retired_at is not None and self.retired_at <= as_of
        return self.recorded_at <= as_of and not retired and not self.expired(as_of)
