"""Purposes: what a person allows to be done with their words, in a sealed note.

Every transaction that derives, and the one before a text is sent, reads the note; so what is
switched off has no effect from the next transaction on, in whatever process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.model.memory import Json, Memory
from scrubjay.model.origin import Actor
from scrubjay.model.purposes import (
    LawfulBasis,
    PurposeState,
    SetPurpose,
    UsePurpose,
    is_pattern,
)
from scrubjay.model.requests import Caller
from scrubjay.model.turns import Piece
from scrubjay.ports import Tx

_NAME = "purposes"
Derived = TypeVar("Derived", Piece, Memory)


def is_on(opened: OpenScope, values: ScopeValues, purpose: UsePurpose) -> bool:
    """Whether a purpose is allowed, in a transaction."""
    return _state(opened, values, purpose).on


def may(opened: OpenScope, purpose: UsePurpose) -> bool:
    """Whether a purpose is allowed now; asked before a text is sent."""
    return opened.read(lambda view: is_on(opened, ScopeValues(opened, view), purpose))


def embeds(opened: OpenScope) -> bool:
    """Whether text may be given to the embedder: to one in this process always."""
    return not opened.ports.embedder.costly or may(opened, UsePurpose.EMBEDDING)


def derives(opened: OpenScope, values: ScopeValues) -> bool:
    """Whether anything may be derived now, by the model where there is one, else by rules."""
    by_model = opened.ports.extractor is not None
    return is_on(opened, values, UsePurpose.FACTS) and (
        not by_model or is_on(opened, values, UsePurpose.MODEL)
    )


def permitted(
    opened: OpenScope, values: ScopeValues, derived: Sequence[Derived]
) -> Sequence[Derived]:
    """What may be kept of what was derived."""
    if not derived or not is_on(opened, values, UsePurpose.FACTS):
        return ()
    if is_on(opened, values, UsePurpose.PATTERNS):
        return derived
    return [one for one in derived if not is_pattern(one.kind, one.tags)]


def purposes(opened: OpenScope, actor: Actor) -> tuple[PurposeState, ...]:
    """The state of every purpose."""
    found = opened.read(
        lambda view: tuple(
            _state(opened, values, one)
            for values in [ScopeValues(opened, view)]
            for one in UsePurpose
        )
    )
    opened.note_read("purposes", actor)
    return found


def set_purpose(opened: OpenScope, request: SetPurpose, caller: Caller) -> PurposeState:
    """Switch a purpose on or off, also while the scope is frozen."""
    purpose = UsePurpose(request.purpose)

    def store(tx: Tx) -> PurposeState:
        values = ScopeValues(opened, tx)
        kept = dict(cast(Mapping[str, Json], values.get(_NAME) or {}))
        kept[purpose.value] = {
            "on": request.on,
            "basis": LawfulBasis(request.basis).value,
            "at": opened.ports.clock.now().isoformat(),
            "by": caller.actor.value,
            "note": request.note,
        }
        values.put(_NAME, kept)
        values.write(tx)
        verb = f"purpose.{purpose.value}.{'on' if request.on else 'off'}"
        opened.trail.record(tx, verb, caller.actor)
        return _state(opened, values, purpose)

    return opened.write(store, frozen_too=True)


def _state(opened: OpenScope, values: ScopeValues, purpose: UsePurpose) -> PurposeState:
    kept = cast(Mapping[str, Any], values.get(_NAME) or {}).get(purpose.value)
    if kept is None:
        asked_first = purpose in opened.ports.policy.consent
        basis = LawfulBasis.CONSENT if asked_first else LawfulBasis.CONTRACT
        return PurposeState(purpose=purpose, on=not asked_first, basis=basis)
    return PurposeState(
        purpose=purpose,
        on=kept["on"],
        basis=LawfulBasis(kept["basis"]),
        at=datetime.fromisoformat(kept["at"]),
        by=Actor(kept["by"]),
        note=kept["note"],
    )
