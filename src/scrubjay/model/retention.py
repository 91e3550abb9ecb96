"""Retention: how many memories of a kind a scope keeps, how long, and what becomes of repeats."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Kind, Memory, Result
from scrubjay.model.text import CheckedRequest, doc

NUMBER_LIMIT: Final = 10_000
"""The largest cap: the numbers of the memories below it are kept in one sealed value."""
_Days = Annotated[int, Meta(ge=1, le=36_500)]


class Duplicates(StrEnum):
    """Deduplication policy: whether a memory with the same text as an earlier one replaces it."""

    KEEP = "keep"
    """Both stay."""
    LATEST = "latest"
    """The latest takes the place of the one before, unless that is trusted more."""


if TYPE_CHECKING:
    DuplicatesArg = Duplicates | Literal["keep", "latest"]
else:
    DuplicatesArg = Duplicates


class Limit(CheckedRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one kind of thing; each that is None does not apply."""

    number: Annotated[
        Annotated[int, Meta(ge=1, le=NUMBER_LIMIT)] | None,
        doc(
            "Cap: how many are kept; the oldest beyond it are retired, of memories the untrusted "
            "ones apart."
        ),
    ] = None
    days: Annotated[_Days | None, doc("Age limit in days: older ones are retired.")] = None
    idle_days: Annotated[
        _Days | None,
        doc("Idle limit in days: purge erases what was neither recorded nor recalled for so long."),
    ] = None

    def expired(self, since: datetime, now: datetime) -> bool:
        """Whether something of this time is past the age limit."""
        return self.days is not None and since <= now - timedelta(days=self.days)

    def idle(self, used: datetime, now: datetime) -> bool:
        """Whether something last used at this time is past the idle limit."""
        return self.idle_days is not None and used <= now - timedelta(days=self.idle_days)


class KindLimit(Limit, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of the memories of one kind; pinned ones are exempt."""

    kind: Annotated[Kind, doc("The kind of memory the limits are for.")]


_BY_KIND: Final = Meta(description="Limits by kind, at most one entry for each.")
LimitList = Annotated[tuple[KindLimit, ...], _BY_KIND]
if TYPE_CHECKING:
    LimitArgs = Sequence[KindLimit]
else:
    LimitArgs = tuple[KindLimit, ...]
TurnLimit = Annotated[
    Limit | None, doc("Limits of turns; purge erases them with their episodes. None for none.")
]
ConversationLimit = Annotated[
    Limit | None,
    doc(
        "Limits of conversations, by their last write; purge deletes them with the "
        "entries that no other one shares. None for none."
    ),
]
DuplicatePolicy = Annotated[
    DuplicatesArg, doc("What becomes of a memory that says the same as one before: keep or latest.")
]


class SetRetention(CheckedRequest, frozen=True, kw_only=True):
    """Set the retention of the scope, in place of what was set; without fields nothing applies."""

    limits: Annotated[LimitArgs, _BY_KIND] = ()
    turns: TurnLimit = None
    conversations: ConversationLimit = None
    duplicates: DuplicatePolicy = Duplicates.KEEP

    def __post_init__(self) -> None:
        CheckedRequest.__post_init__(self)
        repeated = [
            kind for kind, count in Counter(one.kind for one in self.limits).items() if count > 1
        ]
        if repeated:
            raise InvalidRequest(f"limits: there are several for {repeated[0]}.")
        for name, limit in (("turns", self.turns), ("conversations", self.conversations)):
            if limit is not None and limit.idle_days is not None:
                raise InvalidRequest(
                    f"{name}: they have no idle limit.", hint="They are not recalled; give days."
                )


class Retention(Result, frozen=True, kw_only=True):
    """The retention of a scope."""

    limits: LimitList = ()
    turns: TurnLimit = None
    conversations: ConversationLimit = None
    duplicates: DuplicatePolicy = Duplicates.KEEP

    def of(self, kind: Kind) -> Limit | None:
        """The limits of a kind of memory."""
        return next((one for one in self.limits if one.kind is kind), None)


class CapQueue(Struct, frozen=True, kw_only=True):
    """The memories of a kind with a cap that are in sight and not pinned, by their numbers."""

    numbers: tuple[int, ...] = ()
    """In the order of creation."""
    before: int = 0
    """Memories of this kind with a lower number are retired, unless they are pinned."""
    since: float | None = None
    """When the first of them was retired that no purge has erased yet."""

    def following(self, number: int, *, counts: bool, cap: int, now: float) -> CapQueue:
        """The queue after a memory was written that counts or, erased or pinned, does not.

        The oldest beyond the cap are retired. It is the same queue if nothing changes.
        """
        numbers, place = list(self.numbers), bisect_left(self.numbers, number)
        there = numbers[place : place + 1] == [number]
        if there is (counts and number >= self.before):
            return self
        if there:
            del numbers[place]
            return replace(self, numbers=tuple(numbers))
        numbers.insert(place, number)
        if len(numbers) <= cap:
            return replace(self, numbers=tuple(numbers))
        before = numbers[-cap - 1] + 1
        return CapQueue(numbers=tuple(numbers[-cap:]), before=before, since=self.since or now)


class RetentionState(Struct, frozen=True, kw_only=True):
    """The retention of a scope and how far its caps have come: one sealed value."""

    policy: Retention
    queues: dict[Kind, CapQueue] = {}
    untrusted: dict[Kind, CapQueue] = {}
    """Those of untrusted origin: however many there are, they push out nothing that is trusted."""

    def before(self, kind: Kind, *, trusted: bool) -> int:
        """The number below which memories of a kind are retired, trusted ones or others."""
        queue = self._queues(kind, trusted).get(kind)
        return 0 if queue is None else queue.before

    def _queues(self, kind: Kind, trusted: bool) -> dict[Kind, CapQueue]:
        return self.untrusted if not trusted and kind in self.untrusted else self.queues

    def retired(self, memory: Memory, now: datetime) -> bool:
        """Whether a memory is past the number or the age of its kind; no number is for archived."""
        if memory.pinned or (limit := self.policy.of(memory.kind)) is None:
            return False
        before = self.before(memory.kind, trusted=memory.origin.trusted)
        past = not memory.archived_at and memory.number < before
        return past or limit.expired(memory.recorded_at, now)

    def purged(self) -> RetentionState:
        """The state once no retired memory waits for its erasure any more."""
        both = (self.queues, self.untrusted)
        some, others = ({k: replace(one, since=None) for k, one in q.items()} for q in both)
        return replace(self, queues=some, untrusted=others)

    def waited(self, memory: Memory, now: datetime) -> bool:
        """Whether a retired memory has waited for its erasure for a day."""
        day_ago = now - timedelta(days=1)
        limit = self.policy.of(memory.kind)
        queue = self._queues(memory.kind, memory.origin.trusted).get(memory.kind)
        long_past = limit is not None and limit.expired(memory.recorded_at, day_ago)
        since = None if queue is None else queue.since
        return long_past or (since is not None and since <= day_ago.timestamp())

    def following(
        self, memory: Memory, number: int, *, erased: bool, now: datetime
    ) -> RetentionState:
        """The state after a memory was written or erased; the same if nothing changes."""
        limit = self.policy.of(memory.kind)
        queues = self._queues(memory.kind, memory.origin.trusted)
        queue = queues.get(memory.kind)
        if limit is None or limit.number is None or queue is None:
            return self
        counts = memory.shown and not memory.pinned and not erased
        then = queue.following(number, counts=counts, cap=limit.number, now=now.timestamp())
        if then is queue:
            return self
        followed = {**queues, memory.kind: then}
        if queues is self.untrusted:
            return replace(self, untrusted=followed)
        return replace(self, queues=followed)
