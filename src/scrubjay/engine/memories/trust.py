"""Trust: quarantine with approval, and revoke, which undoes the writes of a session or channel."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from msgspec.structs import replace

from scrubjay.engine.ledger import derivation
from scrubjay.engine.ledger.derivation import outdated
from scrubjay.engine.memories.forget import (
    ErasureResult,
    carry_out,
    closure,
    forget,
    held,
    of_session,
    present,
    take,
)
from scrubjay.engine.memories.read import read_live
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.scope.views import living
from scrubjay.model.conversations import Conversation
from scrubjay.model.errors import Conflict, Forbidden
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import Caller, Forget, Revoke
from scrubjay.model.results import Erasure
from scrubjay.model.rows import Collection, Row
from scrubjay.ports import Tx

_HUMANS = frozenset({Actor.USER, Actor.OPERATOR})


def quarantined(opened: OpenScope, *, actor: Actor) -> tuple[Memory, ...]:
    """Memories in quarantine, which wait for a person, oldest first."""
    now = opened.ports.clock.now()
    found = opened.read(
        lambda view: [
            memory
            for _, memory in opened.memories(view)
            if memory.quarantined
            and opened.limits.seen(view, memory).shown
            and not memory.expired(now)
        ]
    )
    opened.note_read("quarantine", actor)
    return tuple(sorted(found, key=lambda memory: memory.number))


def approve(opened: OpenScope, public_id: str, content: str, *, actor: Actor) -> Memory:
    """Release a memory from quarantine; `content` is the text that the person saw."""
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
        if memory.origin is Origin.QUOTED:
            raise Forbidden(
                f"{public_id} is a quotation, which never tells an agent how to act.",
                hint="Say it in your own words, or reject it.",
            )
        approved = replace(memory, approved=opened.sign(memory), version=memory.version + 1)
        row = opened.put(tx, approved)
        opened.trail.record(tx, "approve", actor, (row.id,))
        return approved

    return opened.write(store)


def reject(opened: OpenScope, public_id: str, *, actor: Actor) -> Erasure:
    """Erase a memory that is in quarantine, with what was derived from it."""
    _check_human(actor)
    memory = opened.read(lambda view: read_live(opened, view, public_id))
    if not memory.quarantined:
        raise Conflict(
            f"{public_id} is not in quarantine.", hint="Use forget to erase any other memory."
        )
    return forget(opened, Forget((public_id,)), Caller(actor=actor))


def _check_human(actor: Actor) -> None:
    if actor not in _HUMANS:
        raise Forbidden("Only a user or an operator can approve or reject a memory in quarantine.")


def revoke(opened: OpenScope, request: Revoke, caller: Caller) -> Erasure:
    """Undo the writes of a session or channel; on return they are gone and cannot come back."""

    def erase(tx: Tx) -> ErasureResult:
        if request.session is not None:
            named = of_session(opened, tx, request.session)
        else:
            memories, turns = opened.memories(tx), opened.turns(tx)
            written = [row.id for row, memory in memories if request.matches(memory.provenance)]
            written += [row.id for row, turn in turns if request.matches(turn)]
            written += [
                row.id
                for row, one in held(opened, tx)
                if not isinstance(one, Conversation) and request.matches(one)
            ]
            named = present(tx, written)
        doomed = closure(opened, tx, named, versions=False)
        revived = _close_ranks(opened, tx, doomed.memories)
        taken = take(opened, tx, doomed, named, verb="revoke", actor=caller.actor)
        values = ScopeValues(opened, tx)
        for memory in revived:
            derivation.refresh(opened, tx, values, memory)
        values.write(tx)
        return taken

    return carry_out(opened, erase, "revoke")


def _close_ranks(opened: OpenScope, tx: Tx, doomed: Mapping[bytes, Row]) -> list[Memory]:
    """Relink the version before erased ones to the version after, or make it the newest again.

    Returns those that are current again.
    """
    revived: list[Memory] = []

    def version(public_id: str | None) -> Memory | None:
        row = public_id and living(tx, Collection.MEMORY, opened.row_id(public_id))
        return opened.unseal_sound(row) if row else None

    def is_doomed(public_id: str | None) -> bool:
        return public_id is not None and opened.row_id(public_id) in doomed

    for row in doomed.values():
        memory = opened.unseal_sound(row)
        if memory is None or is_doomed(memory.superseded_by):
            continue  # damaged, so what it replaced stays as it is; or not the last of its chain
        name = memory.supersedes
        before, after = version(name), version(memory.superseded_by)
        while before is not None and is_doomed(before.id):
            name = before.supersedes
            before = version(name)
        if before is not None:
            linked = replace(
                before,
                superseded_by=after.id if after else None,
                retired_at=before.retired_at if after or outdated(opened, tx, before) else None,
                version=before.version + 1,
            )
            opened.put(tx, linked)
            revived += [linked] if linked.current else []
        if after is not None:
            opened.put(tx, replace(after, supersedes=name, version=after.version + 1))
    return revived
