"""Engine: every verb of scrubjay on any scope."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from scrubjay.engine.memories import read
from scrubjay.engine.scope import lifecycle
from scrubjay.engine.scope.open_scope import OpenScope, Ports
from scrubjay.engine.search import shelf
from scrubjay.engine.search.shelf import Shelf, Short
from scrubjay.model.errors import Frozen, StoreError
from scrubjay.model.memory import Edition, Memory
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import (
    AGENT,
    ALL,
    NOTHING,
    SYSTEM,
    USER,
    Amend,
    Approve,
    AuditRequest,
    Backup,
    BriefRequest,
    Browse,
    Caller,
    Destroy,
    Export,
    Extract,
    Forget,
    FreezeRequest,
    Get,
    History,
    Listing,
    Load,
    MarkTainted,
    NoFields,
    PauseExtraction,
    Purge,
    Recall,
    Reject,
    Restore,
    Retain,
    Revoke,
    SessionsRequest,
    Supersede,
    TimelineRequest,
    TurnsRequest,
)
from scrubjay.model.results import (
    AuditEvent,
    BackedUp,
    Brief,
    Changes,
    Erasure,
    Exported,
    Extraction,
    ExtractionStatus,
    Loaded,
    Outcome,
    Page,
    Preview,
    Purged,
    Recalled,
    Reindexed,
    Report,
    Retained,
    Rotated,
    Session,
)
from scrubjay.model.rows import Freeze, Head
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record, Recorded, Timeline, Turn
from scrubjay.ports import Progress, no_progress

_NEAR = 5
"""How many memories a preview shows that may say the same in other words."""
_NEAR_TARGETS = 3
"""For how many of the memories to be forgotten a preview looks for such."""
_NEAR_CHARS = 1_000
"""How many characters of each of them it looks by."""

if TYPE_CHECKING:
    from scrubjay.engine.ledger import extraction, sessions, turns
    from scrubjay.engine.memories import forget as forgetting
    from scrubjay.engine.memories import purge as purging
    from scrubjay.engine.memories import receipts, trust
    from scrubjay.engine.memories import retain as retaining
    from scrubjay.engine.scope import due_work
    from scrubjay.engine.scope import rotate as rotating
    from scrubjay.engine.search.open_index import OpenIndex
    from scrubjay.engine.transfer import audit, copies
    from scrubjay.engine.transfer import verify as verifying
else:

    class LazyModule:
        """A module imported at its first call: a process that only reads loads no writing code."""

        def __init__(self, name: str) -> None:
            self._name = f"scrubjay.engine.{name}"

        def __getattr__(self, function: str) -> Any:
            return getattr(import_module(self._name), function)

    extraction = LazyModule("ledger.extraction")
    sessions = LazyModule("ledger.sessions")
    turns = LazyModule("ledger.turns")
    forgetting = LazyModule("memories.forget")
    purging = LazyModule("memories.purge")
    receipts = LazyModule("memories.receipts")
    retaining = LazyModule("memories.retain")
    trust = LazyModule("memories.trust")
    due_work = LazyModule("scope.due_work")
    rotating = LazyModule("scope.rotate")
    audit = LazyModule("transfer.audit")
    copies = LazyModule("transfer.copies")
    verifying = LazyModule("transfer.verify")


class Checking:
    """Verbs that check: verify, receipts, audit, embedder."""

    def _open(self, scope: Scope, *, create: bool = True) -> OpenScope:
        raise NotImplementedError

    def _check_open(self) -> Ports:
        raise NotImplementedError

    def verify(self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER) -> Report:
        """Check the integrity of the scope: decrypt everything, and check every invariant."""
        return verifying.verify(self._open(scope, create=False))

    def verify_erased(self, receipt: Erasure) -> Report:
        """Prove an erasure: no stored byte is of an erased cell, and no key opens one."""
        return verifying.verify_erased(self._check_open(), receipt)

    def receipts(
        self, scope: Scope, request: Listing = ALL, caller: Caller = USER
    ) -> tuple[Erasure, ...]:
        """The erasure receipts kept for a scope, oldest first, also after destroy."""
        ports = self._check_open()
        address, _ = lifecycle.locate(ports, scope)
        return request.part(receipts.kept(ports, address))

    def audit(
        self, scope: Scope, request: AuditRequest = AuditRequest(), caller: Caller = USER
    ) -> tuple[AuditEvent, ...]:
        """The audit trail after a count, oldest first."""
        opened = self._open(scope, create=False)
        opened.flush_reads()
        return audit.trail(opened, request.after, request.limit)

    def verify_audit(
        self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER
    ) -> Report:
        """Whether the audit trail is whole."""
        return audit.verify(self._open(scope, create=False))

    def check_embedder(self) -> None:
        """Ask the embedder for one vector; EmbedderError if it gives none in time."""
        ports = self._check_open()
        deadline = ports.clock.monotonic() + ports.policy.embed_seconds
        ports.embedder.embed(["scrub jay"], deadline=deadline)


Told = Callable[[Scope], None]


class Extracting:
    """Verbs of extraction by a language model."""

    _ports: Ports
    _told: Told | None = None

    @property
    def extracts(self) -> bool:
        """Whether a language model is configured."""
        return self._ports.extractor is not None

    def _begin(self, scope: Scope, *, create: bool = True) -> OpenScope:
        raise NotImplementedError

    def _look(self, scope: Scope) -> OpenScope:
        raise NotImplementedError

    def listen(self, told: Told | None) -> None:
        """Register a callback for every scope with a waiting turn; it must not block."""
        self._told = told

    def _tell(self, scope: Scope) -> None:
        if self._told is not None:
            self._told(scope)

    def extract(
        self, scope: Scope, request: Extract = Extract(), caller: Caller = SYSTEM
    ) -> Extraction:
        """Send waiting turns to the model; with `again`, also those it has read before."""
        return extraction.extract(
            self._begin(scope),
            limit=request.limit,
            seconds=request.seconds,
            again=request.again,
            actor=caller.actor,
        )

    def extraction(
        self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER
    ) -> ExtractionStatus:
        """Progress of extraction, and its token cost."""
        return extraction.status(self._look(scope))

    def pause_extraction(
        self, scope: Scope, request: PauseExtraction = PauseExtraction(), caller: Caller = USER
    ) -> ExtractionStatus:
        """Pause or resume extraction of this scope."""
        opened = self._begin(scope)
        status = extraction.pause(opened, paused=request.paused, actor=caller.actor)
        if not request.paused:
            self._tell(scope)
        return status


OPEN_SCOPES: Final = 512
"""How many scopes an engine keeps open: their keys, and what was decrypted of them lately."""


class Engine(Checking, Extracting):
    """All verbs on all scopes of one installation; thread-safe."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._opened: dict[Scope, OpenScope] = {}
        self._used: dict[Scope, int] = {}
        self._uses = itertools.count()
        self._shelf: Shelf[OpenIndex] = Shelf(ports.policy.shelf_bytes)
        self._mutex = threading.RLock()
        self._closed = False

    # -- scopes ------------------------------------------------------------------------

    def open(self, scope: Scope, *, create: bool = True, anew: bool = False) -> None:
        """Open the scope, or create it, and check that its keys open it."""
        with self._mutex:
            if anew:
                self._opened.pop(scope, None)
            opened = self._open(scope, create=create, anew=anew)
            if not opened.is_there():  # it may have been open for long
                self._open(scope, create=create, anew=anew)

    def _open(self, scope: Scope, *, create: bool = True, anew: bool = False) -> OpenScope:
        self._check_open()
        self._used[scope] = next(self._uses)
        found = self._opened.get(scope)
        if found is None or found.ended:
            with self._mutex:
                found = self._opened.get(scope)
                if found is not None and found.ended:
                    # There may be another life of the scope, at another address, by now.
                    self._shelf.drop(found.address)
                    found = None
                if found is None:
                    found = lifecycle.open_scope(self._ports, scope, create=create, anew=anew)
                    self._opened[scope] = found
                    self._let_go()
        return found

    def _let_go(self) -> None:
        """LRU eviction of open scopes; a call that still has one in hand goes on with it."""
        while len(self._opened) > OPEN_SCOPES:
            idle = min(self._opened, key=lambda scope: self._used.get(scope, 0))
            opened = self._opened.pop(idle)
            self._used.pop(idle, None)
            self._shelf.drop(opened.address)
            opened.close()

    def _check_open(self) -> Ports:
        """What the engine stands on, unless it was closed."""
        if self._closed:
            raise StoreError("This engine is closed.", hint="Open the scope again.")
        return self._ports

    def _begin(self, scope: Scope, *, create: bool = True) -> OpenScope:
        """The open scope, after a slice of the work earlier verbs left due."""
        opened = self._open(scope, create=create)
        opened.check_current()
        if opened.due:
            due_work.attempt(opened)
        return opened

    def _look(self, scope: Scope) -> OpenScope:
        """The open scope for a verb that only reads: it makes none."""
        return self._begin(scope, create=False)

    def scopes(self) -> tuple[Scope, ...]:
        """Every scope of this installation that is not destroyed, of those whose names open."""
        return lifecycle.scopes(self._check_open())[0]

    def unreadable_scopes(self) -> tuple[str, ...]:
        """The addresses in the catalog that the installation key does not open."""
        return lifecycle.scopes(self._check_open())[1]

    def head(self, scope: Scope) -> Head:
        """The scope's head: sequence numbers, freeze level, due work."""
        return self._open(scope, create=False).read(lambda view: view.head())

    def close(self) -> None:
        """Write pending audit counts and close every file; idempotent."""
        with self._mutex:
            if self._closed:
                return
            for opened in self._opened.values():
                opened.close()
            self._closed = True
            self._opened.clear()
            self._ports.store.close()

    # -- writing -----------------------------------------------------------------------

    def retain(self, scope: Scope, request: Retain, caller: Caller = USER) -> Retained:
        """Write a memory; durable when this returns, idempotent by `key`."""
        return retaining.retain(self._begin(scope), request, caller)

    def record(self, scope: Scope, request: Record, caller: Caller = AGENT) -> Recorded:
        """Write a turn and derive memories from it; durable when this returns, idempotent by `id`.

        Without an id it is a new turn each time.
        """
        recorded = turns.record(self._begin(scope), request, caller)
        if recorded.outcome is Outcome.STORED:
            self._tell(scope)
        return recorded

    def supersede(self, scope: Scope, request: Supersede, caller: Caller = USER) -> Retained:
        """Replace a memory; fields left out are taken from the old one, which stays as history."""
        return retaining.supersede(self._begin(scope), request, caller)

    def amend(
        self,
        scope: Scope,
        request: Amend,
        caller: Caller = USER,
        *,
        expected: frozenset[Edition] | None = None,
    ) -> Memory:
        """Pin or unpin a memory, or set when it expires; null lifts that.

        `expected` is an optimistic lock: Stale if the memory is in none of these editions.
        """
        return retaining.amend(self._begin(scope), request, caller, expected)

    def freeze(
        self, scope: Scope, request: FreezeRequest = FreezeRequest(), caller: Caller = USER
    ) -> Freeze:
        """Block writes, or writes and recall; `none` lifts it. Returns the level before."""
        return retaining.freeze(self._begin(scope), Freeze(request.level), actor=caller.actor)

    def mark_tainted(self, scope: Scope, request: MarkTainted, caller: Caller = AGENT) -> Origin:
        """Taint a session: it has read text of an origin.

        What the agent infers in it from then on is trusted no more than that text.
        """
        return sessions.mark_tainted(
            self._begin(scope), request.session, Origin(request.origin), actor=caller.actor
        )

    def spent(self, scope: Scope, session: str) -> Mapping[str, int]:
        """How often a session has used each of its allowances."""
        return sessions.spent(self._look(scope), session)

    def note(self, scope: Scope, verb: str, *, session: str | None = None, actor: Actor) -> None:
        """Write an event to the audit trail that changed nothing, such as a refused call."""
        audit.note(self._begin(scope), verb, session=session, actor=actor)

    def approve(self, scope: Scope, request: Approve, caller: Caller = USER) -> Memory:
        """Release a memory from quarantine, given the exact text that was shown."""
        return trust.approve(self._begin(scope), request.id, request.content, actor=caller.actor)

    def reject(self, scope: Scope, request: Reject, caller: Caller = USER) -> Erasure:
        """Erase a memory that is in quarantine."""
        return trust.reject(self._begin(scope), request.id, actor=caller.actor)

    # -- reading -----------------------------------------------------------------------

    def get(self, scope: Scope, request: Get, caller: Caller = USER) -> Memory:
        """One memory by id, superseded or not."""
        return read.get(self._look(scope), request.id, as_of=request.as_of, actor=caller.actor)

    def browse(self, scope: Scope, request: Browse = Browse(), caller: Caller = USER) -> Page:
        """Memories by filter, newest first."""
        return read.browse(self._look(scope), request, actor=caller.actor)

    def history(self, scope: Scope, request: History, caller: Caller = USER) -> tuple[Memory, ...]:
        """The chain of versions a memory belongs to, oldest first."""
        return request.part(read.history(self._look(scope), request.id, actor=caller.actor))

    def turns(
        self, scope: Scope, request: TurnsRequest = TurnsRequest(), caller: Caller = USER
    ) -> tuple[Turn, ...]:
        """List turns, newest first: all or those of a session.

        Pagination: `before` and `before_id` of the last one; an empty answer is the end. Long turns
        may come fewer at a time than the limit.
        """
        return turns.turns(
            self._look(scope),
            limit=request.limit,
            session=request.session,
            end=turns.end(request.before, request.before_id),
            actor=caller.actor,
        )

    def sessions(
        self, scope: Scope, request: SessionsRequest = SessionsRequest(), caller: Caller = USER
    ) -> tuple[Session, ...]:
        """List the sessions, the most recently active first."""
        from scrubjay.engine.search import (  # load numpy, which many never need
            open_index,
            session_list,
        )

        opened = self._look(scope)
        try:
            return session_list.sessions(
                opened, self._indexed(scope), limit=request.limit, actor=caller.actor
            )
        finally:
            open_index.let_go(self._shelf.trim())

    def timeline(
        self, scope: Scope, request: TimelineRequest = TimelineRequest(), caller: Caller = USER
    ) -> Timeline:
        """The timeline: times and topics of the turns."""
        return turns.timeline(self._look(scope), limit=request.limit, actor=caller.actor)

    def quarantined(
        self, scope: Scope, request: Listing = ALL, caller: Caller = USER
    ) -> tuple[Memory, ...]:
        """List the memories in quarantine, which wait for a person, oldest first."""
        return request.part(trust.quarantined(self._look(scope), actor=caller.actor))

    def recall(
        self,
        scope: Scope,
        request: Recall,
        caller: Caller = USER,
        *,
        local: bool = False,
        also: frozenset[str] = frozenset(),
    ) -> Recalled:
        """Search: the memories that answer a question, best first, with the parts of their scores.

        `scopes` are further scopes to search. `seconds` is the deadline: what could not be used by
        then is named in `degraded`.
        """
        from scrubjay.engine.search import open_index, recall  # load numpy, which many never need

        scopes = dict.fromkeys((scope, *request.others))
        for one in scopes:
            self._look(one)
        try:
            indexes = [self._indexed(one) for one in scopes]
            return recall.recall(indexes, request, caller, local=local, also=also)
        finally:
            open_index.let_go(self._shelf.trim())

    def full_score(self, *, by_words: bool) -> float:
        """Score of a memory that answers a question fully: by words, or with vectors."""
        from scrubjay.engine.search import ranking  # loads numpy

        return ranking.full_score(by_words=by_words)

    def at_once(self, scope: Scope) -> Short | None:
        """A short recall for the event loop; None if it would take long or wait for a lock."""
        self._check_open()
        opened = self._opened.get(scope)
        indexed = None if opened is None else self._shelf.find(opened.address)
        if opened is None or indexed is None or self._shelf.full:
            return None
        return shelf.short(indexed)

    def brief(
        self, scope: Scope, request: BriefRequest = BriefRequest(), caller: Caller = USER
    ) -> Brief:
        """The brief for a session's first prompt: `.entries`, and as `.markdown`."""
        from scrubjay.engine.search import brief, open_index  # load numpy, which many never need

        try:
            return brief.brief(self._look(scope), self._indexed(scope), request, caller)
        finally:
            open_index.let_go(self._shelf.trim())

    def reindex(
        self,
        scope: Scope,
        request: NoFields = NOTHING,
        caller: Caller = USER,
        *,
        progress: Progress = no_progress,
    ) -> Reindexed:
        """Rebuild the index from the rows, and distill the turns that failed before."""
        from scrubjay.engine.search import reindex  # loads numpy, which many a process never needs

        opened = self._begin(scope)
        indexed = self._indexed(scope)
        return reindex.reindex(opened, indexed, progress=progress, actor=caller.actor)

    def _indexed(self, scope: Scope) -> OpenIndex:
        from scrubjay.engine.search.open_index import OpenIndex

        opened = self._open(scope)
        return self._shelf.take(opened.address, lambda: OpenIndex(opened))

    def follow(self, scope: Scope, after: int = 0, *, min_seq: int = 0) -> Changes:
        """Change feed: the changes after the `seq` and `min_seq` of the last answer."""
        return read.follow(self._look(scope), after, min_seq=min_seq)

    # -- erasing -----------------------------------------------------------------------

    def forget(
        self,
        scope: Scope,
        request: Forget,
        caller: Caller = USER,
        *,
        expected: frozenset[Edition] | None = None,
        turns_only: bool = False,
    ) -> Erasure:
        """Erase memories for good, with their earlier versions and what was derived from them.

        Exactly one target. `query` means every memory that holds all its words, and needs
        `confirm`, the token of a preview: exactly what was shown is erased, or nothing.
        """
        return forgetting.forget(
            self._begin(scope), request, caller, expected=expected, turns_only=turns_only
        )

    def preview(self, scope: Scope, request: Forget, caller: Caller = USER) -> Preview:
        """What a forget would erase, and the token that confirms exactly that."""
        found = forgetting.preview(self._look(scope), request, caller)
        shown = {one.id for one in (*found.memories, *found.others, *found.copies)}
        near: dict[str, Memory] = {}
        with suppress(Frozen):
            for memory in found.memories[:_NEAR_TARGETS]:
                asked = Recall(memory.content[:_NEAR_CHARS], limit=_NEAR + len(shown))
                for hit in self.recall(scope, asked, caller, local=True).hits:
                    near.setdefault(hit.memory.id, hit.memory)
        others = [one for one in near.values() if one.id not in shown]
        return replace(found, near=tuple(others[:_NEAR]))

    def revoke(self, scope: Scope, request: Revoke, caller: Caller = USER) -> Erasure:
        """Undo all writes of one session, channel or key, with everything derived from them.

        Memories that they had superseded become the newest version again.
        """
        return trust.revoke(self._begin(scope), request, caller)

    def purge(self, scope: Scope, request: Purge = Purge(), caller: Caller = SYSTEM) -> Purged:
        """Delete memories that are expired, long superseded or long forgotten."""
        return purging.purge(self._begin(scope), request.superseded_days, actor=caller.actor)

    def rotate(self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER) -> Rotated:
        """Rotate the keys: re-encrypt everything under new ones and delete the old ones."""
        return rotating.rotate(self._begin(scope), actor=caller.actor)

    def destroy(self, scope: Scope, request: Destroy = Destroy(), caller: Caller = USER) -> Erasure:
        """Erase the whole scope, its keys first; `confirm` must be its full name."""
        with self._mutex:
            receipt = lifecycle.destroy(self._check_open(), scope, request.confirm)
            self._shelf.drop(receipt.address)
            self._opened.pop(scope, None)
            return receipt

    def finish_due(self, scope: Scope) -> None:
        """Finish all work that earlier verbs left due."""
        due_work.finish(self._open(scope))

    # -- whole scopes out and in ---------------------------------------------------------

    def export(self, scope: Scope, request: Export = Export(), caller: Caller = USER) -> Exported:
        """Every memory as JSON, or as a sealed bundle with a key of its own or a passphrase."""
        return copies.export(self._look(scope), request, caller.actor)

    def load(self, scope: Scope, request: Load, caller: Caller = USER) -> Loaded:
        """Import an export, all or nothing; trusted no more than the caller."""
        return copies.load(self._begin(scope), request, caller)

    def backup(
        self,
        scope: Scope,
        request: Backup = Backup(),
        caller: Caller = USER,
        *,
        deliver: Callable[[bytes], None] = lambda _: None,
    ) -> tuple[bytes, BackedUp]:
        """A sealed copy of the scope under its own key, which expires; `deliver` stores it."""
        return copies.backup(
            self._begin(scope), days=request.days, deliver=deliver, actor=caller.actor
        )

    def restore(self, scope: Scope, request: Restore, caller: Caller = USER) -> Loaded:
        """Merge a backup, trusted no more than the caller; forgotten memories stay forgotten."""
        with self._mutex:
            ports = self._check_open()
            if opened := self._opened.pop(scope, None):
                # The rows may be made anew, and their numbers then mean other changes.
                self._shelf.drop(opened.address)
                opened.close()
            return copies.restore(ports, scope, request, caller)
