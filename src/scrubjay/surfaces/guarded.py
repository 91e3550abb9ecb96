"""The verbs the service looks at twice: what a key limits, and what goes by HTTP's own words."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from scrubjay.domain.errors import Forbidden, NotFound
from scrubjay.domain.memory import Edition
from scrubjay.domain.origin import Actor, Origin
from scrubjay.domain.requests import Forget, Recall
from scrubjay.domain.results import AuditEvent, Erasure, Extraction, Recalled, Report
from scrubjay.domain.scope import Scope
from scrubjay.domain.text import check_count
from scrubjay.engine import Engine, receipts
from scrubjay.engine.extract import SECONDS, TURNS
from scrubjay.surfaces import keys as keyring
from scrubjay.surfaces.keys import Grant, Issued, Key, Keys

RECALL_SECONDS: Final = 20.0
"""How long a recall may take before it answers with what it has."""
AUDIT_LIMIT: Final = 10_000


def open_scope(engine: Engine, scope: Scope, *, anew: bool = False, holder: Key) -> Scope:
    """Make the scope unless it is there; one that was destroyed only with `anew`."""
    if anew and Grant.ADMIN not in holder.grants:
        raise Forbidden("Only a key with the grant admin may begin a destroyed scope anew.")
    engine.open(scope, anew=anew)
    return scope


def scopes(engine: Engine, *, holder: Key) -> tuple[Scope, ...]:
    """The scopes the key covers."""
    return tuple(scope for scope in engine.scopes() if holder.covers(scope))


def recall(engine: Engine, scope: Scope, request: Recall, *, holder: Key) -> Recalled:
    """The memories that answer a question, best first."""
    for other in request.scopes:
        check_covered(holder, other)
        engine.open(other, create=False)
    seconds = min(request.seconds or RECALL_SECONDS, RECALL_SECONDS)
    return engine.recall(scope, replace(request, seconds=seconds))


def check_covered(holder: Key, scope: Scope) -> None:
    """Refuse a scope that the key does not cover, whether it exists or not."""
    if not holder.covers(scope):
        raise Forbidden("This key does not cover that scope.", hint="Use a key made for it.")


def forget_one(
    engine: Engine,
    scope: Scope,
    public_id: str,
    *,
    expected: frozenset[Edition] | None = None,
    actor: Actor,
) -> Erasure:
    """Erase one memory for good, with its earlier versions and what was derived from it."""
    return engine.forget(scope, Forget(ids=(public_id,), expected=expected, actor=actor))


def destroy(engine: Engine, scope: Scope, *, confirm: str | None = None) -> Erasure:
    """Erase the whole scope, its keys first; `confirm` must be its full name."""
    return engine.destroy(scope, confirm=confirm)


def audit(
    engine: Engine, scope: Scope, *, after: int = 0, limit: int = 1000
) -> tuple[AuditEvent, ...]:
    """The audit trail after a count, oldest first."""
    check_count("The count after", after)
    check_count("The limit", limit, least=1)
    return engine.audit(scope, after=after, limit=min(limit, AUDIT_LIMIT))


def verify_erased(engine: Engine, scope: Scope, receipt: Erasure) -> Report:
    """Prove an erasure of this scope by its receipt."""
    checked = receipts.from_json(receipts.to_json(receipt))
    if checked.address not in {one.address for one in engine.receipts(scope)}:
        raise NotFound("No erasure of this scope has such a receipt.")
    return engine.verify_erased(checked)


def extract(
    engine: Engine,
    scope: Scope,
    *,
    limit: int = TURNS,
    seconds: float = SECONDS,
    again: bool = False,
    actor: Actor,
) -> Extraction:
    """Have the model read turns that wait, for no longer than a caller waits."""
    seconds = min(seconds, SECONDS)
    return engine.extract(scope, limit=limit, seconds=seconds, again=again, actor=actor)


# -- keys ----------------------------------------------------------------------------------


def own_key(_engine: Engine, *, holder: Key) -> Key:
    """The key that asks, without its secret."""
    return holder


def list_keys(_engine: Engine, *, keys: Keys, holder: Key) -> tuple[Key, ...]:
    """The keys that cover nothing beyond what this one covers."""
    return tuple(one for one in keys.all() if keyring.within(one, holder))


def create_key(
    _engine: Engine,
    *,
    name: str,
    scopes: tuple[str, ...],
    grants: tuple[Grant, ...] = (Grant.READ, Grant.WRITE),
    as_actor: Actor = Actor.AGENT,
    origin: Origin = Origin.USER,
    expires_at: datetime | None = None,
    keys: Keys,
    holder: Key,
) -> Issued:
    """Make a key that allows no more than the one it is made with; its token is shown once."""
    keyring.narrowed(holder, scopes, grants)
    if as_actor is not Actor.AGENT and holder.actor is Actor.AGENT:
        raise Forbidden("A key of an agent makes keys for agents only.")
    return keys.create(
        name=name,
        scopes=scopes,
        grants=grants,
        actor=as_actor,
        origin=keyring.lowered(holder, origin),
        expires_at=expires_at,
    )


def revoke_key(_engine: Engine, key_id: str, *, keys: Keys, holder: Key) -> Key:
    """Take a key back for good."""
    found = next((one for one in keys.all() if one.id == key_id), None)
    if found is None or not keyring.within(found, holder):
        raise NotFound("There is no such key.", hint="GET /v1/keys lists them.")
    return keys.revoke(key_id)
