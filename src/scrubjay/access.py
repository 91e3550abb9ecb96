"""API keys, their grants, and `Access`: the engine as the holder of a key may use it.

A key is a memory of the scope `system/keys`, which no key covers and no surface shows: it is
sealed, audited and forgotten like any other. Its secret is 256 random bits, so a fast keyed hash
is enough.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import threading
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.engine.memories import receipts
from scrubjay.engine.search.verbs import InlineRecall
from scrubjay.guard.admission import check_claim
from scrubjay.model import text
from scrubjay.model.conversations import Append, Appended, NewEntry
from scrubjay.model.documents import Put
from scrubjay.model.errors import Forbidden, InvalidRequest, NotFound, ScrubjayError
from scrubjay.model.jobs import Work, Worked
from scrubjay.model.memory import Edition, Json, Kind, Memory, Result
from scrubjay.model.origin import Actor, Origin, lowest
from scrubjay.model.pages import PAGE_LIMIT, Order, Page, Paged, every, paged
from scrubjay.model.purposes import PurposeState, SetPurpose
from scrubjay.model.requests import (
    AS_IT_IS,
    SYSTEM,
    Amend,
    AuditRequest,
    BriefRequest,
    Browse,
    Caller,
    Extract,
    Forget,
    FreezeRequest,
    Get,
    NoFields,
    Recall,
    Reject,
    Retain,
    Supersede,
)
from scrubjay.model.results import (
    AuditEvent,
    Brief,
    Erasure,
    Extraction,
    Holdings,
    Recalled,
    Report,
)
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Quota, Scope
from scrubjay.model.text import doc
from scrubjay.model.turns import Record
from scrubjay.model.user_keys import Held, Hold, Unlock, Unlocked
from scrubjay.ports import Clock

SYSTEM_TENANT: Final = "system"
"""Reserved tenant: no key covers it."""
PODS: Final = "pod"
"""Tenant of unnamed pods, and prefix of the tenants of all others."""
KEYS: Final = Scope(SYSTEM_TENANT, "keys")
PREFIX: Final = "sj"
ANY: Final = "*"
LOCAL_ID: Final = "local"
"""Key id without authentication; no real key has it, because those have eight characters."""
RECALL_SECONDS: Final = 20.0
"""Deadline of a recall, after which it answers with what it has found."""
FEW_HITS: Final = 20
"""Maximum limit of a short recall, which runs on the event loop."""
_OPERATOR: Final = Caller(actor=Actor.OPERATOR)
_SPOKEN: Final = (Retain, Supersede, Record, Append, Put)
"""Requests whose origin is no more trusted than the key."""
_TAG: Final = "api-key"
_SIGNING: Final = "signing-secret"
_RANKS: Final = (Actor.AGENT, Actor.USER, Actor.OPERATOR, Actor.SYSTEM)
"""Actors from low to high: a key may create keys for its own and lower ones."""
_OWN_ORIGIN: Final = {
    Actor.AGENT: Origin.AGENT,
    Actor.USER: Origin.USER,
    Actor.OPERATOR: Origin.OPERATOR,
    Actor.SYSTEM: Origin.OPERATOR,
}
_FRESH_SECONDS: Final = 0.5
"""Cache lifetime of the keys: how long a key revoked by another process may work."""
_USE_DAYS: Final = 400
"""How long the day of a key's last use is kept."""
_log = logging.getLogger(__name__)


class Grant(StrEnum):
    """Permission of a key: a group of verbs it may be used for."""

    READ = "read"
    WRITE = "write"
    FORGET = "forget"
    EXPORT = "export"
    ADMIN = "admin"
    EXTRACT = "extract"
    """Send turns to the model that is configured; apart from admin, which makes no such key."""


_QUOTA: Final = "Most that a scope, or a tenant, may hold for the key to write there."
ScopeGrants = Mapping[str, tuple[Grant, ...]]
_BY_SCOPE: Final = (
    "Permissions in further scopes, each with its own, such as read in `team/x`, write in `me/y`."
)


class Key(Result, frozen=True, kw_only=True):
    """An API key without its secret: scopes, permissions and expiry."""

    id: Annotated[
        str, doc("The id of the key: its visible part, by which it is listed and revoked.")
    ]
    name: Annotated[str, doc("The name of the key, for people.")]
    scopes: Annotated[
        tuple[str, ...], doc("Scopes the key covers: `tenant/owner`, `tenant/*`, or `*` for all.")
    ]
    grants: Annotated[
        tuple[Grant, ...], doc("Permissions: the groups of verbs the key may be used for.")
    ]
    by_scope: Annotated[ScopeGrants, doc(_BY_SCOPE)] = field(default_factory=dict)
    actor: Annotated[Actor, doc("The actor of every call made with the key.")] = Actor.AGENT
    origin: Annotated[
        Origin, doc("The most trusted origin the key's holder may give to a text.")
    ] = Origin.AGENT
    created_at: Annotated[
        datetime | None, doc("The time it was created; None for the local user, who needs no key.")
    ] = None
    expires_at: Annotated[
        datetime | None, doc("Time of expiry: refused from then on; None for never.")
    ] = None
    quota: Annotated[Quota, doc(_QUOTA)] = Quota()
    used_on: Annotated[
        date | None, doc("Day of its last use with the service, in UTC; None if not for 400 days.")
    ] = None

    def order(self) -> Order:
        """Where it stands in the list of keys: they are in the order of their creation."""
        return (str(self.created_at), self.id)

    def covers(self, scope: Scope) -> bool:
        """Whether the key covers a scope: it allows something there."""
        return bool(self.granted(scope))

    @property
    def all_scopes(self) -> tuple[str, ...]:
        """Every scope it covers, as patterns."""
        return tuple(dict.fromkeys((*self.scopes, *self.by_scope)))

    def granted(self, scope: Scope | None = None) -> frozenset[Grant]:
        """Its permissions in a scope; without one, those it has anywhere."""
        if scope is None:
            return frozenset(self.grants).union(*self.by_scope.values())
        return frozenset() if scope.tenant == SYSTEM_TENANT else self.granted_over(str(scope))

    def granted_over(self, pattern: str) -> frozenset[Grant]:
        """Its permissions in all of the scopes that a pattern stands for."""
        if not self.by_scope and pattern in self.scopes:
            return frozenset(self.grants)
        around = {pattern, ANY} if pattern == ANY else {pattern, ANY, _tenant(pattern)}
        own = [self.grants] if around & set(self.scopes) else []
        further = [grants for one, grants in self.by_scope.items() if one in around]
        return frozenset[Grant]().union(*own, *further)

    @property
    def only_scope(self) -> Scope | None:
        """Its only scope, if it covers exactly one."""
        one, *others = self.all_scopes
        return None if others or ANY in one else Scope.parse(one)


class Issued(Result, frozen=True, kw_only=True):
    """A new API key with its token, which is shown only here."""

    key: Annotated[Key, doc("The key and its permissions.")]
    token: Annotated[
        str, doc("The bearer token, secret included: shown only here, stored as a hash.")
    ]


def everything(actor: Actor = Actor.USER) -> Key:
    """The key of a caller without authentication: everything is allowed."""
    return Key(
        id=LOCAL_ID,
        name="local",
        scopes=(ANY,),
        grants=tuple(Grant),
        actor=actor,
        origin=own_origin(actor),
    )


class Keys:
    """API keys of one installation, with a cache; thread-safe."""

    def __init__(self, engine: Kernel, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._mutex = threading.Lock()
        self._known: Mapping[str, tuple[Key, bytes]] = {}
        self._seq = -1
        self._looked_at = float("-inf")
        self._noted: dict[str, date] = {}
        """Keys whose use on a day is noted already."""

    def create(
        self,
        *,
        name: str,
        scopes: Iterable[str],
        grants: Iterable[Grant | str] = (Grant.READ, Grant.WRITE),
        by_scope: Mapping[str, Iterable[Grant | str]] | None = None,
        actor: Actor | str = Actor.AGENT,
        origin: Origin | str | None = None,
        expires_at: datetime | None = None,
        quota: Quota = Quota(),
    ) -> Issued:
        """Create a key; its token is only in the answer.

        The default origin is that of the actor: an agent's text is not the user's.
        """
        now = self._clock.now()
        who = text.check("actor", Actor, actor)
        text.check("name", text.Name, name)
        expires: datetime | None = text.check("expires_at", text.Time | None, expires_at)
        if expires is not None and expires <= now:
            raise InvalidRequest("The key would have expired already.")
        patterns, further = _patterns(scopes), _scope_grants(by_scope or {})
        if not patterns and not further:
            raise InvalidRequest(
                "A key names the scopes it is for.", hint="For example acme/alice."
            )
        key = Key(
            id=_word(self._clock.random(5)),
            name=name,
            scopes=patterns,
            grants=_grants(grants) if patterns else (),
            by_scope=further,
            actor=who,
            origin=text.check("origin", Origin, origin or own_origin(who)),
            created_at=now,
            expires_at=expires,
            quota=quota,
        )
        secret = _word(self._clock.random(32))
        self._write(f"key-{key.id}", _record(key, secret), expires)
        self._looked_at = float("-inf")
        return Issued(key=key, token=f"{PREFIX}_{key.id}_{secret}")

    def all(self) -> tuple[Key, ...]:
        """Every key that is neither revoked nor expired, oldest first, with its last use."""
        self.refresh()
        found = [key for key, _ in self._known.values() if not self._expired(key)]
        found.sort(key=Key.order)
        return tuple(replace(key, used_on=self._used_on(key)) for key in found)

    def noted(self, key: Key) -> bool:
        """Whether it is noted that the key was used today."""
        return self._noted.get(key.id) == self._clock.now().date()

    def note_use(self, key: Key) -> None:
        """Note in the shared state that the key was used today: one write a day and process.

        A day says enough to find keys that nobody needs; a time would be a diary.
        """
        now = self._clock.now()
        self._noted[key.id] = today = now.date()
        shared, at = self._engine.shared, now.timestamp()
        until = (now + timedelta(days=_USE_DAYS)).timestamp()
        if key.id not in self._known:  # it was revoked a moment ago
            return
        name = self._use_name(key)
        try:
            held = shared.get(name, at)
            if held != (told := today.isoformat().encode()):
                shared.exchange(name, held, told, now=at, until=until)
        except ScrubjayError as error:  # a full store still answers what it can
            _log.warning("keys.use_not_noted", extra={"code": error.code})

    def _used_on(self, key: Key) -> date | None:
        held = self._engine.shared.get(self._use_name(key), self._clock.now().timestamp())
        return None if held is None else date.fromisoformat(held.decode())

    def _use_name(self, key: Key) -> str:
        """The name of its last use, hashed with what only the key's own record holds."""
        _, digest = self._known[key.id]
        return f"used/{hashlib.sha256(b'used' + digest).hexdigest()[:32]}"

    def revoke(self, key_id: str) -> Key:
        """Revoke a key for good: at once in this process, within a second in others."""
        self.refresh()
        if key_id not in self._known:
            raise NotFound("There is no such key.", hint="`scrubjay keys list` shows them.")
        key, _ = self._known[key_id]  # before somebody else's look finds it gone
        self._engine.forget(KEYS, Forget((f"key-{key_id}",)), _OPERATOR)
        self._looked_at = float("-inf")
        return key

    @property
    def stale(self) -> bool:
        """Whether the cache is older than its lifetime."""
        return self._clock.monotonic() - self._looked_at > _FRESH_SECONDS

    def find(self, token: str) -> Key | None:
        """The key of a token from the cache; None if it is unknown or expired."""
        prefix, _, rest = token.partition("_")
        key_id, _, secret = rest.partition("_")
        key, digest = self._known.get(key_id, (None, bytes(32)))
        fits = hmac.compare_digest(_digest(key_id, secret), digest)
        if key is None or not fits or prefix != PREFIX or self._expired(key):
            return None
        return key

    def refresh(self) -> None:
        """Refresh the cache; usually only one number is compared."""
        with self._mutex:
            looked_at = self._clock.monotonic()
            try:
                seq = self._engine.head(KEYS).memory.seq
            except NotFound:  # no key was ever made, and looking makes nothing
                return
            if seq != self._seq:
                self._known = dict(map(_read, every(self._page)))
                self._seq = seq
            self._looked_at = looked_at

    def _page(self, cursor: str | None) -> Page[Memory]:
        wanted = Browse(tags=frozenset({_TAG}), limit=PAGE_LIMIT, cursor=cursor)
        return self._engine.browse(KEYS, wanted, SYSTEM)

    def signing_secret(self) -> bytes:
        """Secret for cursors and pseudonyms of this installation, created on first use."""
        try:
            kept = self._engine.get(KEYS, Get(_SIGNING), SYSTEM)
        except NotFound:
            # Of two processes that begin at once, the second is told that it is known.
            fresh = list(self._clock.random(32))
            self._write(_SIGNING, {"secret": cast(Json, fresh)}, None, tag=_SIGNING)
            kept = self._engine.get(KEYS, Get(_SIGNING), SYSTEM)
        return bytes(cast(list[int], kept.metadata["secret"]))

    def _write(
        self, id: str, metadata: Mapping[str, Json], expires: datetime | None, *, tag: str = _TAG
    ) -> None:
        request = Retain(
            content=id,
            id=id,
            kind=Kind.CONTEXT,
            tags=(tag,),
            metadata=metadata,
            expires_at=expires,
            origin=Origin.OPERATOR,
        )
        self._engine.retain(KEYS, request, _OPERATOR)

    def _expired(self, key: Key) -> bool:
        return key.expires_at is not None and key.expires_at <= self._clock.now()


class OpenRequest(text.CheckedRequest, frozen=True, kw_only=True):
    """Create the scope unless it exists."""

    anew: Annotated[
        bool, doc("Whether to begin again a scope that was destroyed; needs admin.")
    ] = False
    warm: Annotated[
        bool, doc("Whether to load its index before its user speaks: no recall waits for it then.")
    ] = False


class VerifyErased(text.CheckedRequest, frozen=True):
    """Prove an erasure by its receipt."""

    receipt: Annotated[Erasure, doc("The receipt of the erasure to prove.")]


class CreateKey(text.CheckedRequest, frozen=True, kw_only=True):
    """Create a key that allows no more, and no longer, than the key of the request."""

    name: Annotated[text.Name, doc("The name of the key, for people.")]
    scopes: Annotated[
        tuple[str, ...], doc("Scopes the key covers: `tenant/owner`, `tenant/*`, or `*` for all.")
    ] = ()
    grants: Annotated[
        tuple[Grant, ...],
        doc("Permissions in `scopes`: the groups of verbs the key may be used for."),
    ] = (Grant.READ, Grant.WRITE)
    by_scope: Annotated[ScopeGrants, doc(_BY_SCOPE)] = field(default_factory=dict)
    as_actor: Annotated[Actor, doc("The actor of every call made with the key.")] = Actor.AGENT
    origin: Annotated[
        Origin | None,
        doc("The most trusted origin its holder may give to a text; None for its own."),
    ] = None
    expires_at: Annotated[
        text.Time | None, doc("Time of expiry: refused from then on; None for never.")
    ] = None
    quota: Annotated[Quota, doc(_QUOTA)] = Quota()


class RevokeKey(text.CheckedRequest, frozen=True):
    """Revoke a key for good."""

    key_id: Annotated[str, doc("The id of the key.")]


class Access:
    """The engine as the holder of a key may use it: a decorator with the same verbs.

    Most verbs are the engine's own. Those here are limited by the key, or are about keys.
    """

    def __init__(self, engine: Kernel | InlineRecall, keys: Keys, holder: Key) -> None:
        self._engine = cast(Kernel, engine)  # inline, only recall is asked of it
        self._keys = keys
        self.holder = holder
        stamp = None if holder.id == LOCAL_ID else holder.id
        self.caller = Caller(actor=holder.actor, ceiling=holder.origin, key=stamp)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def admitted(self, kind: type[Struct], fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of a request; an origin that is left out is the key's own."""
        if not issubclass(kind, _SPOKEN):
            return fields
        return {**fields, "origin": lowered(self.holder, fields.get("origin"))}

    def check_covered(self, scope: Scope, grant: Grant | None = None) -> None:
        """Refuse a scope that the key does not cover, or not for this, whether it exists or not."""
        granted = self.holder.granted(scope)
        if not granted:
            raise Forbidden("This key does not cover that scope.", hint="Use a key made for it.")
        if grant is not None and grant not in granted:
            raise Forbidden(f"This key lacks the grant {grant}.", hint="Use a key that has it.")

    def at_once(self, scope: Scope, fields: Mapping[str, Any]) -> InlineRecall | None:
        """A short recall for the event loop; None if it would take long or wait."""
        few = fields.get("limit", 1) <= FEW_HITS and not fields.get("scopes")
        return self._engine.at_once(scope) if few else None

    def recall(self, scope: Scope, request: Recall, caller: Caller) -> Recalled:
        """The memories that answer a question, best first."""
        self._check_others(request.others)
        seconds = min(request.seconds or RECALL_SECONDS, RECALL_SECONDS)
        return self._engine.recall(scope, replace(request, seconds=seconds), caller)

    def amend(
        self,
        scope: Scope,
        request: Amend,
        caller: Caller,
        *,
        expected: frozenset[Edition] | None = None,
    ) -> Memory:
        """Pin, archive or expire; a memory more trusted than the key goes out of sight by `forget`.

        Else who may only write could have it erased, by an expiry in the past, or without its pin
        by a cap.
        """
        unpins, ends = request.pinned is False, request.expires_at not in (AS_IT_IS, None)
        hides = unpins or request.archived or ends
        if hides and not {Grant.FORGET, Grant.ADMIN} & set(self.holder.granted(scope)):
            old = self._engine.get(scope, Get(request.id), caller)
            if old.origin.trust > self.holder.origin.trust:
                raise Forbidden(
                    "The memory is more trusted than this key.",
                    hint="To archive, expire or unpin it, use a key with the grant forget.",
                )
        return self._engine.amend(scope, request, caller, expected=expected)

    def append(self, scope: Scope, request: Append, caller: Caller) -> Appended:
        """Add entries to a conversation; none of them is more trusted than the key."""
        for entry in request.entries:
            if isinstance(entry, NewEntry) and entry.origin is not None:
                lowered(self.holder, Origin(entry.origin))
        return self._engine.append(scope, request, caller)

    def brief(self, scope: Scope, request: BriefRequest, caller: Caller) -> Brief:
        """The brief for a session's first prompt: `.entries`, and as `.markdown`."""
        self._check_others(request.others)
        return self._engine.brief(scope, request, caller)

    def _check_others(self, scopes: Iterable[Scope]) -> None:
        for other in scopes:
            self.check_covered(other, Grant.READ)
            self._engine.open(other, create=False)

    def owns(self, scope: Scope) -> bool:
        """Whether it is the key of the person whose memory it is: a person's, that may read.

        Who administers can make no key that reads, and so none that passes for the owner's.
        """
        return self.holder.actor is Actor.USER and Grant.READ in self.holder.granted(scope)

    def freeze(
        self, scope: Scope, request: FreezeRequest, caller: Caller, *, informed: bool = False
    ) -> Freeze:
        """Block writes, or writes and recall; a restriction is lifted by its owner alone.

        `informed` says that its owner was told before (Art. 18 (3) GDPR): then others may, too.
        """
        return self._engine.freeze(scope, request, caller, lifts=informed or self.owns(scope))

    def hold(self, scope: Scope, request: Hold, caller: Caller) -> Held:
        """Put a scope under keys of its user: only the person whose memory it is does that."""
        self._check_owner(scope)
        return self._engine.hold(scope, request, caller)

    def unlock(self, scope: Scope, request: Unlock, caller: Caller) -> Unlocked:
        """Unlock a scope that its user holds."""
        self._check_owner(scope)
        return self._engine.unlock(scope, request, caller)

    def lock(self, scope: Scope, request: NoFields, caller: Caller) -> Holdings:
        """Lock a scope that its user holds."""
        self._check_owner(scope)
        return self._engine.lock(scope, request, caller)

    def _check_owner(self, scope: Scope) -> None:
        if not self.owns(scope):
            raise Forbidden("Keys of a user are for the person whose memory it is.")

    def set_purpose(self, scope: Scope, request: SetPurpose, caller: Caller) -> PurposeState:
        """Switch a purpose on or off; only a person allows one."""
        if self.holder.actor is Actor.AGENT or (request.on and not self.owns(scope)):
            raise Forbidden("Consent is given by the person whose memory it is.")
        return self._engine.set_purpose(scope, request, caller)

    def audit(self, scope: Scope, request: AuditRequest, caller: Caller) -> Page[AuditEvent]:
        """The audit trail, oldest first; for people, not for agents."""
        if self.holder.actor is Actor.AGENT:
            raise Forbidden(
                "An agent's key does not read the audit trail.",
                hint="Use a key of a user or an operator.",
            )
        return self._engine.audit(scope, request, caller)

    def extract(self, scope: Scope, request: Extract, caller: Caller) -> Extraction:
        """Send waiting turns to the model, within the deadline of a request."""
        seconds = min(request.seconds, Extract().seconds)
        return self._engine.extract(scope, replace(request, seconds=seconds), caller)

    def work(self, scope: Scope, request: Work, caller: Caller) -> Worked:
        """Do the jobs that are due, within the deadline of a request."""
        seconds = min(request.seconds, Work().seconds)
        return self._engine.work(scope, replace(request, seconds=seconds), caller)

    def forget_one(
        self,
        scope: Scope,
        request: Reject,
        caller: Caller,
        *,
        expected: frozenset[Edition] | None = None,
    ) -> Erasure:
        """Erase one memory for good, with its earlier versions and what was derived from it."""
        return self._engine.forget(scope, Forget((request.id,)), caller, expected=expected)

    def verify_erased(self, scope: Scope, request: VerifyErased, caller: Caller) -> Report:
        """Prove an erasure of this scope by its receipt."""
        checked = receipts.from_json(receipts.to_json(request.receipt))
        return self._engine.verify_erased(scope, checked)

    def open(self, scope: Scope, request: OpenRequest, caller: Caller) -> Scope:
        """Create the scope unless it exists; a destroyed one only with `anew`."""
        if request.anew and Grant.ADMIN not in self.holder.granted(scope):
            raise Forbidden("Only a key with the grant admin can create a destroyed scope again.")
        self._engine.open(scope, anew=request.anew)
        if request.warm:
            self._engine.warm_up(scope)
        return scope

    def scopes(self, scope: Scope, request: Paged, caller: Caller) -> Page[Scope]:
        """List the scopes that the key covers."""
        found = tuple(filter(self.holder.covers, self._engine.scopes()))
        return paged(found, request.limit, request.cursor, Scope.order)

    def own_key(self, scope: Scope, request: NoFields, caller: Caller) -> Key:
        """The key of the request, without its secret."""
        return self.holder

    def list_keys(self, scope: Scope, request: Paged, caller: Caller) -> Page[Key]:
        """List the keys that cover no more than this one."""
        found = tuple(one for one in self._keys.all() if within(one, self.holder))
        return paged(found, request.limit, request.cursor, Key.order)

    def create_key(self, scope: Scope, request: CreateKey, caller: Caller) -> Issued:
        """Create a key that allows no more, and no longer, than the key of the request."""
        until = narrowed(
            self.holder,
            scopes=request.scopes,
            grants=request.grants,
            by_scope=request.by_scope,
            actor=request.as_actor,
            expires_at=request.expires_at,
        )
        own = lowest((self.holder.origin, own_origin(request.as_actor)))
        return self._keys.create(
            name=request.name,
            scopes=request.scopes,
            grants=request.grants,
            by_scope=request.by_scope,
            actor=request.as_actor,
            origin=own if request.origin is None else lowered(self.holder, request.origin),
            expires_at=until,
            quota=request.quota.within(self.holder.quota),
        )

    def revoke_key(self, scope: Scope, request: RevokeKey, caller: Caller) -> Key:
        """Revoke a key for good."""
        found = next((one for one in self._keys.all() if one.id == request.key_id), None)
        if found is None or not within(found, self.holder):
            raise NotFound("There is no such key.", hint="GET /v1/keys lists them.")
        reads = (Grant.READ in self.holder.granted_over(one) for one in found.all_scopes)
        if found.actor is Actor.USER and not (self.holder.actor is Actor.USER and all(reads)):
            raise Forbidden(
                "The key of a person is revoked by a person.",
                hint="Its owner revokes it; nobody else can take the owner's rights away.",
            )
        return self._keys.revoke(request.key_id)


def own_origin(actor: Actor) -> Origin:
    """Default origin of an actor."""
    return _OWN_ORIGIN[actor]


def narrowed(
    issuer: Key,
    *,
    scopes: Iterable[str],
    grants: Iterable[Grant | str],
    actor: Actor,
    expires_at: datetime | None,
    by_scope: Mapping[str, Iterable[Grant | str]] | None = None,
) -> datetime | None:
    """Expiry of a key made with another key; Forbidden if it would allow more."""
    wanted = [(one, _grants(grants)) for one in _patterns(scopes)]
    wanted += _scope_grants(by_scope or {}).items()
    if any(not set(some) <= issuer.granted() for _, some in wanted):
        raise Forbidden("A key cannot grant what its maker was not granted.")
    for pattern, some in wanted:
        # Keys are made only for scopes in which the maker is an administrator.
        there = issuer.granted_over(pattern)
        if Grant.ADMIN not in there:
            raise Forbidden("A key cannot cover scopes its maker does not.")
        if not set(some) <= there:
            raise Forbidden("A key cannot grant what its maker was not granted.")
    if _RANKS.index(actor) > _RANKS.index(issuer.actor):
        raise Forbidden(f"A key of actor {issuer.actor} cannot create one for actor {actor}.")
    if expires_at is None or issuer.expires_at is None:
        return expires_at or issuer.expires_at
    return min(expires_at, issuer.expires_at)


def within(key: Key, issuer: Key) -> bool:
    """Whether a key covers no more than the scopes another administers."""
    return all(Grant.ADMIN in issuer.granted_over(pattern) for pattern in key.all_scopes)


def _tenant(pattern: str) -> str:
    """The pattern of all scopes of a tenant."""
    return f"{pattern.partition('/')[0]}/{ANY}"


def lowered(key: Key, asked: Origin | None) -> Origin:
    """Origin of a write with the key; Forbidden if the claimed one is too trusted."""
    if asked is None:
        return key.origin
    check_claim(asked, key.origin)
    return asked


def _patterns(scopes: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(_pattern(one) for one in text.check("scopes", tuple[str, ...], scopes))
    )


def _scope_grants(given: Mapping[str, Iterable[Grant | str]]) -> dict[str, tuple[Grant, ...]]:
    return {_pattern(one): _grants(grants) for one, grants in given.items()}


def _pattern(one: str) -> str:
    if one == ANY:
        return one
    wild = one.endswith(f"/{ANY}")
    scope = Scope.parse(f"{one[:-1]}any" if wild else one)
    if scope.tenant == SYSTEM_TENANT:
        raise Forbidden("The tenant system is scrubjay's own.")
    return f"{scope.tenant}/{ANY}" if wild else str(scope)


def _grants(grants: Iterable[Grant | str]) -> tuple[Grant, ...]:
    chosen = {text.check("grants", Grant, one) for one in grants}
    if not chosen:
        raise InvalidRequest("A key needs at least one grant.", hint=f"Of: {', '.join(Grant)}.")
    return tuple(grant for grant in Grant if grant in chosen)


def _word(random: bytes) -> str:
    return base64.b32encode(random).decode().rstrip("=").lower()


def _digest(key_id: str, secret: str) -> bytes:
    return hmac.digest(key_id.encode(), secret.encode(), hashlib.sha256)


def _record(key: Key, secret: str) -> dict[str, Json]:
    """The key as metadata; its hash as numbers, since text like a secret would be removed."""
    return {
        "name": key.name,
        "created_at": key.created_at.isoformat() if key.created_at else None,
        "scopes": cast(Json, list(key.scopes)),
        "grants": cast(Json, [grant.value for grant in key.grants]),
        "by_scope": {one: [grant.value for grant in some] for one, some in key.by_scope.items()},
        "actor": key.actor.value,
        "origin": key.origin.value,
        "quota": {name: getattr(key.quota, name) for name in Quota.__struct_fields__},
        "digest": cast(Json, list(_digest(key.id, secret))),
    }


def _read(memory: Memory) -> tuple[str, tuple[Key, bytes]]:
    record = cast(Mapping[str, Any], memory.metadata)
    key = Key(
        id=memory.id.removeprefix("key-"),
        name=record["name"],
        scopes=tuple(record["scopes"]),
        grants=tuple(map(Grant, record["grants"])),
        by_scope={one: tuple(map(Grant, some)) for one, some in record.get("by_scope", {}).items()},
        actor=Actor(record["actor"]),
        origin=Origin(record["origin"]),
        created_at=datetime.fromisoformat(record["created_at"]),
        expires_at=memory.expires_at,
        quota=Quota(**record.get("quota", {})),
    )
    return key.id, (key, bytes(record["digest"]))
