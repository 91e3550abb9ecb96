"""The operations of personal memory on one scope, for the holder of a key.

Each is told in verbs of the engine. What the key does not allow is refused here as it is there; the
rights of the owner (forget, destroy, restrict) need the grant `forget` and a person, or `admin`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import cached_property
from itertools import islice
from typing import Any, Final

import msgspec

from scrubjay.access import Access, Grant
from scrubjay.engine import Kernel
from scrubjay.model.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NeedsConfirmation,
    Restricted,
)
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor
from scrubjay.model.overview import RecallCounter
from scrubjay.model.pages import Page, every
from scrubjay.model.purposes import UsePurpose, is_pattern
from scrubjay.model.requests import COUNTERS_LIMIT, FreezeRequest, Get
from scrubjay.model.results import Erasure, Hit, Holdings, Loaded, Outcome, Recalled
from scrubjay.model.retention import Duplicates, Retention
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.model.turns import model_ids
from scrubjay.ports import Clock, Progress, no_progress
from scrubjay.service.outbox import Delivery, Outbox
from scrubjay.surfaces.personal import categories, copies
from scrubjay.surfaces.personal import records as told
from scrubjay.surfaces.personal.exports import ExportJob, Exports
from scrubjay.surfaces.personal.register import Notices, OwnerNotice, Register, RightRequest
from scrubjay.verbs import VERBS, perform

_MATCHES: Final = 100
"""Most memories that a query to forget by lists."""
_OFFERED: Final = 1_000
"""Most memories that are offered for erasure when a purpose is withdrawn."""
_PAGE: Final = 1_000
_TRIES: Final = 5
"""How often a forget looks again, if something changes between the look and the erasure."""
Ready = Callable[..., object]


def memory_id(clock: Clock) -> str:
    """A fresh id: `mem_` and a UUID of version 7, which begins with the time."""
    millis = int(clock.now().timestamp() * 1000) & (1 << 48) - 1
    random = int.from_bytes(clock.random(10))
    number = millis << 80 | 0x7 << 76 | (random >> 68) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    digits = f"{number:032x}"
    return "mem_" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Personal:
    """The memory of one person, as the holder of a key may use it."""

    def __init__(
        self,
        engine: Kernel,
        access: Access,
        scope: Scope,
        clock: Clock,
        *,
        ready: Ready,
        link_secret: bytes = b"",
        outbox: Outbox | None = None,
    ) -> None:
        self.engine = engine
        self.access = access
        self.scope = scope
        self.clock = clock
        self._ready = ready
        self.notices = Notices(engine, clock)
        self._link_secret = link_secret
        self._outbox = outbox
        self.progress: Progress = no_progress
        """Told how far a destroy has come."""

    # -- who may do what -----------------------------------------------------------------

    def check_owner(self, request: msgspec.Struct) -> None:
        """Forbidden if the request names another person than the key covers."""
        named = (getattr(request, "org_id", None), getattr(request, "user_id", None))
        ours = (self.scope.tenant, self.scope.owner)
        if any(given not in (None, own) for given, own in zip(named, ours, strict=True)):
            raise Forbidden("The request names another person than its key is for.")

    def carry_out(self, verb: str, request: msgspec.Struct) -> Any:
        """Perform a verb that has the fields of an operation."""
        owner = told.OwnedRequest.__struct_fields__
        fields = {name: getattr(request, name) for name in request.__struct_fields__}
        given = {name: one for name, one in fields.items() if name not in owner}
        return self.do(verb, right=VERBS[verb].grant is Grant.ADMIN, **given)

    def check_right(self) -> None:
        """Forbidden unless a person asks who may erase, or an administrator."""
        granted = self.access.holder.granted(self.scope)
        if Grant.ADMIN in granted and self.access.holder.actor is not Actor.AGENT:
            return
        if self.access.owns(self.scope) and Grant.FORGET in granted:
            return
        raise Forbidden(
            "That is a right of the owner.",
            hint="Use the owner's key, with the grant forget, or an administrator's.",
        )

    def do(
        self, name: str, *, right: bool = False, beside: Mapping[str, Any] = {}, **fields: Any
    ) -> Any:
        """Perform a verb; with `right` as a right of the owner, whatever grant it needs."""
        verb = VERBS[name]
        if right:
            self.check_right()
        self.access.check_covered(self.scope, None if right else verb.grant)
        if not verb.beyond:
            self._ready(self.scope, create=verb.creates)
        return perform(self.access, verb, self.scope, fields, **beside)

    # -- the five operations, but for export -------------------------------------------------

    def store(self, request: told.StoreMemory) -> told.StoredMemory:
        """Store one memory; one that says the same takes the place of the one before."""
        self.access.check_covered(self.scope, Grant.WRITE)
        self._keep_latest()
        form, now = request.content_type, self.clock.now()
        kind = categories.kind_of(request.category, form)
        usual = categories.form_of(kind) is form
        try:
            ends = None if request.ttl is None else now + timedelta(0, request.ttl)
        except OverflowError as error:
            raise InvalidRequest("ttl: it ends after the year 9999.") from error
        retained = self.do(
            "retain",
            id=memory_id(self.clock),
            content=request.content,
            kind=kind,
            tags=request.topic_tags,
            importance=request.importance_score,
            session=request.session_id,
            channel=request.channel,
            message_id=request.source_msg_id,
            said_at=request.timestamp,
            expires_at=ends,
            metadata={} if usual else {categories.TYPE: form.value},
        )
        waits = retained.outcome is Outcome.WAITING
        # What was kept: secrets are left out, and its time is the engine's.
        kept = None if waits else self.engine.get(self.scope, Get(retained.id), self.access.caller)
        found = bool(self.engine.embedding.dimensions) and not retained.degraded
        return told.StoredMemory(
            memory_id=retained.id if kept is None else kept.id,
            embedding_generated=found and not waits,
            content_hash=categories.content_hash(request.content if kept is None else kept.content),
            created_at=now if kept is None else kept.recorded_at,
            waiting=waits,
        )

    def _keep_latest(self) -> None:
        """Before the first memory: of those that say the same, keep the latest."""
        self._ready(self.scope, create=True)
        if self.engine.head(self.scope).memory.seq:
            return
        if self.engine.retention(self.scope) == Retention():
            request = {"duplicates": Duplicates.LATEST}
            perform(self.access, VERBS["set_retention"], self.scope, request)

    def retrieve(self, request: told.RetrieveMemory) -> told.RetrievedMemories:
        """Find the memories that answer a question, best first."""
        least, source = request.min_similarity, "request"
        if least is None:
            least, source = self.engine.embedding.floor
        within = request.time_range or told.TimeRange()
        recalled: Recalled = self.do(
            "recall",
            query=request.query,
            limit=request.max_results,
            kinds=categories.kinds_of(request.category_filter),
            min_similarity=least,
            since=within.after,
            before=within.before,
        )
        return told.RetrievedMemories(
            memories=tuple(map(_found, recalled.hits)),
            total_searched=recalled.searched,
            query_time_ms=recalled.milliseconds,
            min_similarity=least,
            min_similarity_from=source,
            degraded=recalled.degraded,
        )

    def forget(self, request: told.ForgetMemories) -> told.ForgottenMemories:
        """Erase memories for good; a query first lists what it would erase."""
        target = request.target
        if target.query is not None:
            return self._forget_by_query(target, request.confirmation_token)
        named = {
            "ids": target.memory_ids,
            "session": target.session_id,
            "tags": target.topic_tags,
            "before": target.before,
        }
        fields: dict[str, Any] = {name: one for name, one in named.items() if one}
        fields["copies"] = bool(target.memory_ids)  # the others name no words
        for left in reversed(range(_TRIES)):
            shown = self.do("preview", **fields)
            ids = [one.id for one in (*shown.memories, *shown.others)]
            try:
                receipt = self.do("forget", **fields, confirm=shown.token)
            except Conflict:  # another writer was in between
                if not left:
                    raise
            else:
                return self._forgotten(ids, receipt)
        raise AssertionError("unreachable")

    def _forget_by_query(
        self, target: told.ForgetTarget, token: str | None
    ) -> told.ForgottenMemories:
        if token is not None:
            ids, confirm = _opened(token)
            return self._forgotten(ids, self.do("forget", ids=ids, copies=True, confirm=confirm))
        least, _ = self.engine.embedding.floor
        try:
            recalled: Recalled = self.do(
                "recall", query=target.query, limit=_MATCHES, min_similarity=least, untrusted=True
            )
            found = tuple(map(_found, recalled.hits))
        except Restricted:  # nothing is ranked then; those that hold the words are listed
            held = self.do("preview", query=target.query).memories
            found = tuple(map(_listed, held[:_MATCHES]))
        ids = [one.memory_id for one in found]
        if not ids:
            return told.ForgottenMemories()
        shown = self.do("preview", ids=ids, copies=True)
        return told.ForgottenMemories(
            copies=len(shown.copies) + len(shown.sentences),
            matches=found,
            confirmation_token=_sealed(ids, shown.token),
        )

    def _forgotten(self, ids: Iterable[str], receipt: Erasure) -> told.ForgottenMemories:
        return told.ForgottenMemories(
            deleted_count=receipt.erased,
            memory_ids=tuple(ids),
            copies=receipt.copies,
            audit_id=told.audit_id(receipt.audit_count),
            receipt=receipt,
        )

    def destroy(self, request: told.DestroyMemory) -> told.DestroyedMemory:
        """Destroy everything: the first call gives a token, the second is final."""
        if request.confirmation_token is None:
            asked = self.do("destroy_token", right=True)
            return told.DestroyedMemory(
                destroyed=False, confirmation_token=asked.token, expires_at=asked.expires_at
            )
        token, beside = request.confirmation_token, {"progress": self.progress}
        receipt: Erasure = self.do("destroy", right=True, beside=beside, token=token)
        self.notices.close(self.scope)
        return told.DestroyedMemory(
            destroyed=True,
            records_deleted=receipt.erased,
            vectors_deleted=receipt.memories if self.engine.embedding.dimensions else 0,
            blobs_deleted=receipt.blobs,
            audit_id=told.audit_id(receipt.audit_count),
            receipt=receipt,
        )

    # -- export and import -------------------------------------------------------------------

    @cached_property
    def exports(self) -> Exports:
        """The export jobs of the installation."""
        return Exports(self.engine, self.clock, self._link_secret)

    def export(self, request: told.ExportMemories) -> ExportJob:
        """Begin an export: a sealed file, behind a link that works once within 24 hours."""
        self.access.check_covered(self.scope, Grant.EXPORT)
        self._ready(self.scope, create=False)
        copies.check_reader(request.recipient, request.passphrase)
        id = self.exports.begin(
            self.order(request),
            request.format,
            self.access.holder.actor,
            passphrase=request.passphrase,
            recipient=request.recipient,
        )
        return self.exports.job(self.scope, id)

    def order(
        self, request: told.ExportMemories, progress: Progress = no_progress
    ) -> copies.CopyOrder:
        """What a request asks an export to hold."""
        choice = msgspec.convert(request, copies.CopyChoice, from_attributes=True)
        at = self.clock.now()
        return copies.CopyOrder(scope=self.scope, at=at, choice=choice, progress=progress)

    def exported(self, request: told.ViewExport) -> ExportJob:
        """The state of an export, with its link once it is ready."""
        self.access.check_covered(self.scope, Grant.EXPORT)
        return self.exports.job(self.scope, request.export_id)

    def load(self, request: told.ImportMemories) -> Loaded:
        """Import an export, all of it or nothing; a second time it changes nothing."""
        self.check_right()
        self.access.check_covered(self.scope, Grant.WRITE)
        self._ready(self.scope, create=True)
        raw = copies.opened(request.content, request.passphrase, request.identity)
        ours = copies.as_ours(raw, self.scope)
        phrase = request.passphrase if raw is ours else None
        loaded: Loaded = self.do("load", right=True, content=ours, passphrase=phrase)
        return loaded

    # -- the other rights --------------------------------------------------------------------

    def rectify(self, request: told.RectifyMemory) -> told.RectifiedMemory:
        """Correct a memory: the old text leaves recall, brief and what was derived at once."""
        made = self.do(
            "supersede", id=request.memory_id, content=request.content, reason=request.reason
        )
        kept: Memory = self.engine.get(self.scope, Get(made.id), self.access.caller)
        return told.RectifiedMemory(
            memory_id=made.id,
            replaces=kept.supersedes or request.memory_id,
            hidden=made.hidden,
            content_hash=categories.content_hash(kept.content),
        )

    def restrict(self, request: told.RestrictMemory) -> told.Restriction:
        """Restrict processing, or stop writes only; a milder level lifts no restriction."""
        self.check_right()
        self._ready(self.scope, create=False)
        if self._level is not Freeze.ALL:
            self.do("freeze", right=True, level=request.level.value)
        self.notices.close(self.scope)
        return told.Restriction(level=self._level.value)

    def lift(self, request: told.LiftRestriction) -> told.Restriction:
        """Lift a restriction once its owner has been informed of that."""
        self.check_right()
        self._ready(self.scope, create=False)
        if restricted := self._level is Freeze.ALL:
            notice = self.notices.announce(self.scope)
            if request.notice_id is None:
                return told.Restriction(
                    level=self._level.value, notice_id=notice.id, notice=notice.text
                )
            if request.notice_id != notice.id:
                raise NeedsConfirmation(
                    "That is not the notice of this restriction.",
                    hint="Lift it without one: the answer has it.",
                )
            if self.access.owns(self.scope):
                self.notices.read(self.scope)
            elif not notice.read:
                raise NeedsConfirmation(
                    "The owner has not read the notice yet.",
                    hint="It is lifted once the owner has read it at /v1/personal/notices.",
                )
        self.access.freeze(
            self.scope, FreezeRequest(Freeze.NONE), self.access.caller, informed=restricted
        )
        self.notices.close(self.scope)
        return told.Restriction(level=self._level.value)

    @property
    def _level(self) -> Freeze:
        level: Freeze = self.engine.head(self.scope).frozen
        return level

    def read_notice(self, _request: told.ViewStatus) -> Page[OwnerNotice]:
        """List the notices to the owner. One that the owner has listed counts as read."""
        self.check_right()
        own = self.access.owns(self.scope)
        found = self.notices.read(self.scope) if own else self.notices.find(self.scope)
        return Page(data=() if found is None else (found,))

    def recipients(self, _request: told.ViewStatus) -> tuple[Delivery, ...]:
        """List the recipients of notices of corrections and erasures, each delivered or pending."""
        self.check_right()
        return () if self._outbox is None else tuple(self._outbox.of(self.scope))

    def file(self, request: told.FileRequest) -> RightRequest:
        """Register a request of the owner under the GDPR; access is due in 24 hours."""
        self.check_right()
        return Register(self.engine, self.clock).file(self.scope, request.right)

    def answered(self, request: told.AnswerRequest) -> RightRequest:
        """Mark a request of the register as answered."""
        self.check_right()
        return Register(self.engine, self.clock).answer(self.scope, request.request_id)

    def requests(self, _request: told.ViewStatus) -> tuple[RightRequest, ...]:
        """List the register of requests, with the day each is due and when it was answered."""
        self.check_right()
        return Register(self.engine, self.clock).of(self.scope)

    def decide(self, request: told.DecidePurpose) -> told.DecidedPurpose:
        """Allow a purpose or withdraw it; then what was derived for it is offered to erase."""
        self.check_right()
        self._ready(self.scope, create=True)
        state = self.carry_out("set_purpose", request)
        if request.on or not self.access.owns(self.scope):
            return told.DecidedPurpose(state=state)
        return told.DecidedPurpose(state=state, memory_ids=tuple(self._derived(request.purpose)))

    def _derived(self, purpose: UsePurpose) -> Iterator[str]:
        """The ids of what was derived for a purpose."""
        tests: dict[UsePurpose, Callable[[Memory], bool]] = {
            UsePurpose.FACTS: lambda _: True,
            UsePurpose.PATTERNS: lambda one: is_pattern(one.kind, one.tags),
            UsePurpose.MODEL: _by_model,
        }

        def look(cursor: str | None) -> Page[Memory]:
            page: Page[Memory] = self.do(
                "browse", limit=_PAGE, cursor=cursor, superseded=True, archived=None
            )
            return page

        if (test := tests.get(purpose)) is not None:
            found = (one.id for one in every(look) if one.sources and test(one))
            yield from islice(found, _OFFERED)

    # -- looking -----------------------------------------------------------------------------

    def memories(self, request: told.ViewMemories) -> Page[told.PersonalRecord]:
        """List the memories of a person, newest first; also while processing is restricted."""
        page: Page[Memory] = self.do(
            "browse",
            limit=min(request.limit, COUNTERS_LIMIT),
            cursor=request.cursor,
            kinds=categories.kinds_of(request.categories),
            superseded=True,
            archived=None,
        )
        counted = self.do("counters", ids=[one.id for one in page]) if page.data else ()
        pairs = zip(page, counted, strict=True)
        data = tuple(told.record_of(self.scope, one, times) for one, times in pairs)
        return Page(data=data, next_cursor=page.next_cursor)

    def memory(self, id: str) -> told.PersonalRecord:
        """One memory as its owner sees it."""
        found: Memory = self.do("get", id=id)
        counted: tuple[RecallCounter, ...] = self.do("counters", ids=[found.id])
        return told.record_of(self.scope, found, counted[0])

    def audit(self, request: told.ViewAudit) -> Page[told.PersonalAuditEvent]:
        """Show the audit trail: what was done, by whom and when, without content."""
        page = self.do("audit", limit=request.limit, cursor=request.cursor)
        events = tuple(
            told.PersonalAuditEvent(
                audit_id=told.audit_id(one.count),
                operation=told.operation_of(one.verb),
                performed_by=told.performed_by(one.actor),
                performed_at=one.at,
                detail={"verb": one.verb, "actor": one.actor, "rows": one.number},
            )
            for one in page
        )
        return Page(data=events, next_cursor=page.next_cursor)

    def status(self, _request: told.ViewStatus) -> told.PersonalStatus:
        """Show numbers and state: all that an administrator may read."""
        rows: Holdings = self.do("holdings", right=True)
        return told.PersonalStatus(
            user_id=self.scope.owner,
            org_id=self.scope.tenant,
            restriction=rows.frozen.value,
            **{name: getattr(rows, name) for name in rows.__struct_fields__},
        )


def _by_model(memory: Memory) -> bool:
    """Whether a language model wrote it: it says so, or its id is one of a model's findings."""
    by = str(memory.metadata.get("derived_by", "rules")).partition("-")[0]
    return by not in ("rules", "extractive") or memory.id in model_ids(memory.sources[0])


def _found(hit: Hit) -> told.FoundMemory:
    return _listed(hit.memory, hit.similarity)


def _listed(memory: Memory, similarity: float | None = None) -> told.FoundMemory:
    category, form = categories.place_of(memory)
    return told.FoundMemory(
        memory_id=memory.id,
        category=category,
        content_type=form,
        content=memory.content,
        similarity_score=similarity,
        topic_tags=memory.tags,
        created_at=memory.recorded_at,
    )


def _sealed(ids: Iterable[str], token: str) -> str:
    """The token of a preview with the ids it confirms: it is worthless for any others."""
    return base64.urlsafe_b64encode(msgspec.json.encode([token, *ids])).decode().rstrip("=")


def _opened(token: str) -> tuple[list[str], str]:
    try:
        raw = base64.urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4))
        confirm, *ids = msgspec.json.decode(raw, type=list[str])
    except (ValueError, binascii.Error) as error:
        raise InvalidRequest(
            "That is not a confirmation token.", hint="Send the query without one first."
        ) from error
    return ids, confirm
