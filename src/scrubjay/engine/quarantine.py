"""quarantine: what tells an agent how to act and came from somewhere nobody vouches for.

It is stored and can be found, but stays out of the brief until a human has seen it. An approval
signs the exact text under the scope's lookup key; whoever changes the text loses it.
"""

from __future__ import annotations

import hmac
from dataclasses import replace

from scrubjay.domain.errors import Conflict, Forbidden
from scrubjay.domain.memory import Memory
from scrubjay.domain.origin import Actor
from scrubjay.domain.requests import Forget
from scrubjay.domain.results import Erasure
from scrubjay.domain.text import check_id
from scrubjay.engine import cells
from scrubjay.engine.forget import forget
from scrubjay.engine.opened import OpenScope
from scrubjay.engine.retain import read_live
from scrubjay.engine.targets import scan
from scrubjay.ports import Tx

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
    return forget(opened, Forget(ids=(public_id,), actor=actor))


def _check_human(actor: Actor) -> None:
    if actor not in _HUMANS:
        raise Forbidden("Only a user or an operator may decide what leaves quarantine.")
