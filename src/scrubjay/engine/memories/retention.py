"""retention: read and set the limits of a scope, and find what purge erases for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, TypeVar

from msgspec.structs import replace

from scrubjay.engine.ledger import conversations
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.views import changes, derived
from scrubjay.model.conversations import Conversation
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Caller
from scrubjay.model.retention import (
    CapQueue,
    Duplicates,
    Limit,
    Retention,
    RetentionState,
    SetRetention,
)
from scrubjay.model.rows import Collection, Row
from scrubjay.ports import Tx, View

One = TypeVar("One", bytes, Row)
BATCH: Final = 256
"""How many retired memories purge waits for, at most a day: an erasure rewrites segments."""


def retention(opened: OpenScope, actor: Actor) -> Retention:
    """The retention of a scope, as it was set."""
    state = opened.read(opened.limits.read)
    opened.note_read("retention", actor)
    return Retention() if state is None else state.policy


def set_retention(opened: OpenScope, request: SetRetention, caller: Caller) -> Retention:
    """Set the retention; what is beyond a cap is retired at once, the oldest first.

    The memories are read before the transaction, and only what is newer inside it.
    """
    policy = Retention(
        limits=tuple(request.limits),
        turns=request.turns,
        conversations=request.conversations,
        duplicates=Duplicates(request.duplicates),
    )
    seen = Census(opened, policy)
    opened.read(seen.follow)

    def store(tx: Tx) -> Retention:
        before = opened.limits.read(tx)
        seen.write(tx)
        if (Retention() if before is None else before.policy) != policy:
            opened.trail.record(tx, "set_retention", caller.actor)
        return policy

    return opened.write(store)


def adopt(opened: OpenScope, tx: Tx, policy: Retention) -> None:
    """Take over the retention of a backup, unless one is set here."""
    if opened.limits.read(tx) is None:
        Census(opened, policy).write(tx)


class Census:
    """The memories in sight, by row id: which of them count below a cap, and what each says."""

    def __init__(self, opened: OpenScope, policy: Retention) -> None:
        self._opened, self._policy = opened, policy
        self._caps = {one.kind: one.number for one in policy.limits if one.number is not None}
        self._latest = policy.duplicates is Duplicates.LATEST
        self._seen: dict[bytes, tuple[Memory, bytes]] = {}
        self._upto = 0

    def follow(self, view: View) -> None:
        """Take in the changes since the last look."""
        for row in (
            changes(view, Collection.MEMORY, self._upto) if self._caps or self._latest else ()
        ):
            self._seen.pop(row.id, None)
            memory = None if row.erased else self._opened.unseal_sound(row)
            if memory is not None and memory.shown:
                said = self._opened.said_hash(memory) if self._latest else b""
                self._seen[row.id] = (replace(memory, content="", metadata={}), said)
        self._upto = view.head().memory.seq

    def write(self, tx: Tx) -> None:
        """Write the retention, with the queues of its caps and the hashes of what is said."""
        self.follow(tx)
        queues, untrusted = (dict.fromkeys(self._caps, CapQueue()) for _ in range(2))
        state = RetentionState(policy=self._policy, queues=queues, untrusted=untrusted)
        now = self._opened.ports.clock.now()
        counted = sorted(self._seen.items(), key=lambda one: one[1][0].number)
        for row_id, (memory, said) in counted:
            state = state.following(memory, memory.number, erased=False, now=now)
            if said:
                tx.link(said, row_id)
        self._opened.limits.write(tx, None if self._policy == Retention() else state)


def same_before(opened: OpenScope, tx: Tx, memory: Memory) -> Memory | None:
    """The memory that a new one takes the place of, where only the latest is kept.

    It says the same, is of the same kind, and is trusted no more. One that something was derived
    from stays: what was derived would lose its source.
    """
    if not memory.shown:
        return None
    for row in derived(tx, opened.said_hash(memory)):
        old = opened.unseal_sound(row)
        if old is None or not old.shown or old.origin.trust > memory.origin.trust:
            continue
        if not tx.derived(row.id):
            return old
    return None


def past_limits(
    opened: OpenScope, view: View, now: datetime, *, at_once: bool = False
) -> list[bytes]:
    """The retired memories, `at_once` or if there are enough of them, or one has waited a day."""
    state = opened.limits.read(view)
    if state is None or not any(one.number or one.days for one in state.policy.limits):
        return []
    retired = retires(opened, view, now)
    found = [(row.id, memory) for row, memory in opened.memories(view) if retired(memory)]
    due = at_once or len(found) >= BATCH
    if not due and not any(state.waited(memory, now) for _, memory in found):
        return []
    return [row_id for row_id, _ in found]


def note_purged(opened: OpenScope) -> None:
    """Note that no retired memory waits for its erasure any more."""

    def store(tx: Tx) -> None:
        if (state := opened.limits.read(tx)) is not None:
            opened.limits.write(tx, state.purged())

    opened.write(store, erasing=True)


def retires(opened: OpenScope, view: View, now: datetime) -> Callable[[Memory], bool]:
    """Whether a memory is past the number or the age of its kind."""
    state = opened.limits.read(view)
    return lambda memory: state is not None and memory.current and state.retired(memory, now)


def past_use(opened: OpenScope, view: View, now: datetime) -> list[bytes]:
    """The memories that were neither written nor recalled within the idle limit of their kind."""
    state = opened.limits.read(view)
    if state is None or not any(one.idle_days for one in state.policy.limits):
        return []
    idle = idles(opened, view, now)
    return [row.id for row, memory in opened.memories(view) if idle(memory)]


def idles(opened: OpenScope, view: View, now: datetime) -> Callable[[Memory], bool]:
    """Whether a memory was neither written nor recalled within the idle limit of its kind."""
    state, recalled = opened.limits.read(view), opened.counters.every(view)

    def idle(memory: Memory) -> bool:
        limit = None if state is None else state.policy.of(memory.kind)
        if limit is None or memory.pinned or not memory.current:
            return False
        last = recalled.get(memory.number)
        used = memory.recorded_at if last is None else max(memory.recorded_at, last.at)
        return limit.idle(used, now)

    return idle


def past_turns(opened: OpenScope, view: View, now: datetime) -> list[bytes]:
    """The turns past the number or the age of turns, oldest first."""
    state = opened.limits.read(view)
    limit = None if state is None else state.policy.turns
    if limit is None or limit == Limit():
        return []
    said = sorted(((turn, row) for row, turn in opened.turns(view)), key=lambda one: one[0].place)
    return _past(limit, [(row.id, turn.at) for turn, row in said], now)


def past_conversations(opened: OpenScope, view: View, now: datetime) -> list[Row]:
    """The rows of the conversations past their number or age, by their last write, oldest first."""
    state = opened.limits.read(view)
    limit = None if state is None else state.policy.conversations
    if limit is None or limit == Limit():
        return []
    rows = [
        (row, conversations.opened_row(opened, row)) for row in conversations.records(opened, view)
    ]
    held = [(row, one.updated_at) for row, one in rows if isinstance(one, Conversation)]
    return _past(limit, sorted(held, key=lambda one: (one[1], one[0].id)), now)


def _past(limit: Limit, held: Sequence[tuple[One, datetime]], now: datetime) -> list[One]:
    """Those of some rows in the order of time that are past a number or an age."""
    beyond = max(0, len(held) - limit.number) if limit.number is not None else 0
    return [
        one for place, (one, time) in enumerate(held) if place < beyond or limit.expired(time, now)
    ]
