"""The verbs the service looks at twice: what a key limits, and what goes by HTTP's own words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from scrubjay import access as keyring
from scrubjay.access import Grant, Issued, Key, Keys
from scrubjay.engine import Engine
from scrubjay.engine.ledger.extraction import SECONDS, TURNS
from scrubjay.engine.memories import receipts
from scrubjay.engine.search.shelf import Short
from scrubjay.model.errors import Forbidden, NotFound
from scrubjay.model.memory import Edition, Memory
from scrubjay.model.origin import Actor, Origin, lowest
from scrubjay.model.requests import Forget, Recall
from scrubjay.model.results import AuditEvent, Erasure, Extraction, Loaded, Recalled, Report
from scrubjay.model.scope import Scope
from scrubjay.model.text import check_count

RECALL_SECONDS: Final = 20.0
"""How long a recall may take before it answers with what it has."""
FEW_HITS: Final = 20
"""How many hits a recall may ask for to be a short matter."""
LIST_LIMIT: Final = 10_000
"""How much of a list is in one answer; `after` so many there is more of it."""
One = TypeVar("One")


def open_scope(engine: Engine, scope: Scope, *, anew: bool = False, holder: Key) -> Scope:
    """Make the scope unless it is there; one that was destroyed only with `anew`."""
    if anew and Grant.ADMIN not in holder.grants:
        raise Forbidden("Only a key with the grant admin may begin a destroyed scope anew.")
    engine.open(scope, anew=anew)
    return scope


def scopes(
    engine: Engine, *, after: int = 0, limit: int = LIST_LIMIT, holder: Key
) -> tuple[Scope, ...]:
    """The scopes the key covers."""
    return _part(tuple(filter(holder.covers, engine.scopes())), after, limit)


def recall(engine: Engine, scope: Scope, request: Recall, *, holder: Key) -> Recalled:
    """The memories that answer a question, best first."""
    for other in request.scopes:
        check_covered(holder, other)
        engine.open(other, create=False)
    seconds = min(request.seconds or RECALL_SECONDS, RECALL_SECONDS)
    return engine.recall(scope, replace(request, seconds=seconds))


def recall_at_once(engine: Engine, scope: Scope, values: Mapping[str, Any]) -> Short | None:
    """A recall to be done at once, if these values ask for little of a scope that is at hand."""
    few = values.get("limit", 1) <= FEW_HITS and not values.get("scopes")
    return engine.at_once(scope) if few else None


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


def load(
    engine: Engine, scope: Scope, raw: bytes, *, key: str | None = None, holder: Key
) -> Loaded:
    """Add what an export holds, no more trusted than the key: all of it or nothing."""
    return engine.load(scope, raw, key=key, origin=holder.origin, actor=holder.actor)


def restore(
    engine: Engine,
    scope: Scope,
    raw: bytes,
    *,
    key: str | None = None,
    anew: bool = False,
    holder: Key,
) -> Loaded:
    """Merge a backup, no more trusted than the key; what was forgotten stays forgotten."""
    return engine.restore(scope, raw, key=key, anew=anew, origin=holder.origin, actor=holder.actor)


def audit(
    engine: Engine, scope: Scope, *, after: int = 0, limit: int = 1000
) -> tuple[AuditEvent, ...]:
    """The audit trail after a count, oldest first."""
    after, limit = _checked(after, limit)
    return engine.audit(scope, after=after, limit=limit)


def history(
    engine: Engine,
    scope: Scope,
    public_id: str,
    *,
    after: int = 0,
    limit: int = LIST_LIMIT,
    actor: Actor,
) -> tuple[Memory, ...]:
    """The chain of versions a memory belongs to, oldest first."""
    return _part(engine.history(scope, public_id, actor=actor), after, limit)


def quarantined(
    engine: Engine, scope: Scope, *, after: int = 0, limit: int = LIST_LIMIT, actor: Actor
) -> tuple[Memory, ...]:
    """Everything that waits for a human to look at it, oldest first."""
    return _part(engine.quarantined(scope, actor=actor), after, limit)


def kept_receipts(
    engine: Engine, scope: Scope, *, after: int = 0, limit: int = LIST_LIMIT
) -> tuple[Erasure, ...]:
    """The erasure receipts kept for a scope, oldest first, also after destroy."""
    return _part(engine.receipts(scope), after, limit)


def _part(found: tuple[One, ...], after: int, limit: int) -> tuple[One, ...]:
    after, limit = _checked(after, limit)
    return found[after : after + limit]


def _checked(after: int, limit: int) -> tuple[int, int]:
    check_count("The count after", after)
    check_count("The limit", limit, least=1)
    return after, min(limit, LIST_LIMIT)


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


def list_keys(
    _engine: Engine, *, after: int = 0, limit: int = LIST_LIMIT, keys: Keys, holder: Key
) -> tuple[Key, ...]:
    """The keys that cover nothing beyond what this one covers."""
    within = tuple(one for one in keys.all() if keyring.within(one, holder))
    return _part(within, after, limit)


def create_key(
    _engine: Engine,
    *,
    name: str,
    scopes: tuple[str, ...],
    grants: tuple[Grant, ...] = (Grant.READ, Grant.WRITE),
    as_actor: Actor = Actor.AGENT,
    origin: Origin | None = None,
    expires_at: datetime | None = None,
    keys: Keys,
    holder: Key,
) -> Issued:
    """Make a key that allows no more, and no longer, than the one it is made with."""
    until = keyring.narrowed(
        holder, scopes=scopes, grants=grants, actor=as_actor, expires_at=expires_at
    )
    own = lowest((holder.origin, keyring.own_origin(as_actor)))
    return keys.create(
        name=name,
        scopes=scopes,
        grants=grants,
        actor=as_actor,
        origin=own if origin is None else keyring.lowered(holder, origin),
        expires_at=until,
    )


def revoke_key(_engine: Engine, key_id: str, *, keys: Keys, holder: Key) -> Key:
    """Take a key back for good."""
    found = next((one for one in keys.all() if one.id == key_id), None)
    if found is None or not keyring.within(found, holder):
        raise NotFound("There is no such key.", hint="GET /v1/keys lists them.")
    return keys.revoke(key_id)
