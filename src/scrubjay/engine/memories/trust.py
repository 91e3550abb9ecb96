"""Trust: quarantine with approval, and revoke, which undoes what a session or channel wrote."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from scrubjay.engine.memories import forget as forgetting
from scrubjay.engine.memories import targets
from scrubjay.engine.memories.forget import forget
from scrubjay.engine.memories.retain import read_live
from scrubjay.engine.memories.targets import scan
from scrubjay.engine.scope import cells
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import Conflict, Forbidden, KeyMissing, NotFound, SealBroken
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Caller, Forget, Revoke
from scrubjay.model.results import Erasure
from scrubjay.model.rows import Collection, Row
from scrubjay.model.text import check_id
from scrubjay.ports import Tx, View

_HUMANS = frozenset({Actor.USER, Actor.OPERATOR})


def quarantined(opened: OpenScope, *, actor: Actor) -> tuple[Memory, ...]:
    """Everything that waits for a human to look at it, oldest first."""
    now = opened.ports.clock.now()
    found = opened.read(
        lambda view: [
            memory
            for _, memory in scan(opened, view)
            if memory.quarantined and memory.live and not memory.expired(now)
        ]
    )
    opened.note_read("quarantine", actor)
    return tuple(sorted(found, key=lambda memory: memory.number))


def approve(opened: OpenScope, public_id: str, content: str, *, actor: Actor) -> Memory:
    """Let a memory out of quarantine; `content` is the text that was shown to who approves."""
    check_id(public_id)
    _check_human(actor)

    def store(tx: Tx) -> Memory:
        memory = read_live(opened, tx, public_id)
        if not hmac.compare_digest(memory.content.encode(), content.encode()):
            raise Conflict(
                f"{public_id} is not the text that was shown.",
                hint="Look at it again, then approve.",
            )
        if not memory.quarantined:
            return memory
        approved = replace(memory, approved=opened.sign(memory), version=memory.version + 1)
        row = cells.put(opened, tx, approved)
        opened.trail.record(tx, "approve", actor, (row.id,))
        return approved

    return opened.write(store)


def reject(opened: OpenScope, public_id: str, *, actor: Actor) -> Erasure:
    """Erase a memory that is in quarantine, with what was derived from it."""
    _check_human(actor)
    check_id(public_id)
    memory = opened.read(lambda view: read_live(opened, view, public_id))
    if not memory.quarantined:
        raise Conflict(
            f"{public_id} is not in quarantine.", hint="Use forget to erase any other memory."
        )
    return forget(opened, Forget(ids=(public_id,)), Caller(actor=actor))


def _check_human(actor: Actor) -> None:
    if actor not in _HUMANS:
        raise Forbidden("Only a user or an operator may decide what leaves quarantine.")


def revoke(opened: OpenScope, request: Revoke, caller: Caller) -> Erasure:
    """Undo what the request names; on return it is gone and cannot come back."""

    def erase(tx: Tx) -> forgetting.Taken:
        named = targets.Doomed(
            {row.id: row for row in _written(opened, tx, request)},
            {row.id: row for row in _spoken(opened, tx, request)},
        )
        doomed = targets.Doomed(dict(_with_derived(tx, named)), named.turns)
        _close_ranks(opened, tx, doomed.memories)
        return forgetting.take(
            opened, tx, doomed, named=len(named), verb="revoke", actor=caller.actor
        )

    return forgetting.carry_out(opened, erase, "revoke")


def _written(opened: OpenScope, view: View, request: Revoke) -> Iterator[Row]:
    """The rows the session or channel wrote."""
    if request.session is not None:
        session = opened.session_hash(request.session)
        yield from view.rows_of_session(Collection.MEMORY, session)
        return
    for row, memory in targets.scan(opened, view):
        if request.matches(memory):
            yield row


def _spoken(opened: OpenScope, view: View, request: Revoke) -> Iterator[Row]:
    """The turns of the session or channel."""
    if request.session is not None:
        session = opened.session_hash(request.session)
        yield from view.rows_of_session(Collection.TURN, session)
        return
    for row, turn in opened.turns(view):
        if turn.channel == request.channel:
            yield row


def _with_derived(tx: Tx, named: targets.Doomed) -> Iterator[tuple[bytes, Row]]:
    seen: set[bytes] = set()
    waiting = list(named.memories.values())
    waiting += [row for turn in named.turns for row in _derived(tx, turn)]
    while waiting:
        row = waiting.pop()
        if row.id in seen or row.erased:
            continue
        seen.add(row.id)
        yield row.id, row
        waiting += _derived(tx, row.id)


def _derived(tx: Tx, source: bytes) -> list[Row]:
    found = (tx.row(Collection.MEMORY, row_id) for row_id in tx.derived(source))
    return [row for row in found if row is not None]


def _close_ranks(opened: OpenScope, tx: Tx, doomed: Mapping[bytes, Row]) -> None:
    """Join what came before the doomed versions of a chain to what came after, or let it live."""
    for row in doomed.values():
        memory = _peek(opened, row)
        if memory is None or _is_doomed(opened, memory.superseded_by, doomed):
            continue  # damaged, or not the last of the doomed in its chain
        before = _version(opened, tx, memory.supersedes)
        while before is not None and _is_doomed(opened, before.id, doomed):
            before = _version(opened, tx, before.supersedes)
        after = _version(opened, tx, memory.superseded_by)
        _link(opened, tx, before, after)


def _link(opened: OpenScope, tx: Tx, before: Memory | None, after: Memory | None) -> None:
    if before is not None:
        retired = before.retired_at if after else None
        name = after.id if after else None
        _put(opened, tx, replace(before, superseded_by=name, retired_at=retired))
    if after is not None:
        _put(opened, tx, replace(after, supersedes=before.id if before else None))


def _put(opened: OpenScope, tx: Tx, memory: Memory) -> None:
    cells.put(opened, tx, replace(memory, version=memory.version + 1))


def _is_doomed(opened: OpenScope, public_id: str | None, doomed: Mapping[bytes, Row]) -> bool:
    return public_id is not None and opened.row_id(public_id) in doomed


def _version(opened: OpenScope, tx: Tx, public_id: str | None) -> Memory | None:
    row = None if public_id is None else tx.row(Collection.MEMORY, opened.row_id(public_id))
    return None if row is None or row.erased else _peek(opened, row)


def _peek(opened: OpenScope, row: Row) -> Memory | None:
    try:
        return opened.unseal(row)
    except (SealBroken, KeyMissing, NotFound):
        # A damaged row must still be erasable; what it replaced stays as it is.
        return None
