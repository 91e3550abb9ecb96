"""Engine: every verb of scrubjay on any scope, for surfaces to translate to."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from scrubjay.engine.ledger import extraction, sessions, turns
from scrubjay.engine.memories import forget as forgetting
from scrubjay.engine.memories import purge as purging
from scrubjay.engine.memories import read, receipts, trust
from scrubjay.engine.memories import retain as retaining
from scrubjay.engine.memories import trust as revoking
from scrubjay.engine.scope import due_work, lifecycle
from scrubjay.engine.scope import rotate as rotating
from scrubjay.engine.scope.open_scope import OpenScope, Ports
from scrubjay.engine.search import shelf
from scrubjay.engine.search.shelf import Shelf, Short
from scrubjay.engine.transfer import audit, copies
from scrubjay.engine.transfer import verify as verifying
from scrubjay.model.errors import StoreError
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


class Checking:
    """What the engine can say about what is kept, and about what it stands on."""

    def _begin(self, scope: Scope) -> OpenScope:
        raise NotImplementedError

    def _check_open(self) -> Ports:
        raise NotImplementedError

    def verify(self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER) -> Report:
        """Open everything and check what was promised."""
        return verifying.verify(self._begin(scope))

    def verify_erased(self, receipt: Erasure) -> Report:
        """Search all that is kept for erased cells and prove that no key opens them."""
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
        opened = self._begin(scope)
        opened.flush_reads()
        return audit.trail(opened, request.after, request.limit)

    def verify_audit(
        self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER
    ) -> Report:
        """Whether the audit trail is whole."""
        return audit.verify(self._begin(scope))

    def check_embedder(self) -> None:
        """Ask the embedder for one vector; EmbedderError if it gives none in time."""
        ports = self._check_open()
        deadline = ports.clock.monotonic() + ports.policy.embed_seconds
        ports.embedder.embed(["scrub jay"], deadline=deadline)


Told = Callable[[Scope], None]


class Extracting:
    """What the engine can do with a model that reads turns."""

    _ports: Ports
    _told: Told | None = None

    @property
    def extracts(self) -> bool:
        """Whether there is a model that reads turns."""
        return self._ports.extractor is not None

    def _begin(self, scope: Scope) -> OpenScope:
        raise NotImplementedError

    def listen(self, told: Told | None) -> None:
        """Have somebody told of every scope with a turn to be read; it must not take long."""
        self._told = told

    def _tell(self, scope: Scope) -> None:
        if self._told is not None:
            self._told(scope)

    def extract(
        self, scope: Scope, request: Extract = Extract(), caller: Caller = SYSTEM
    ) -> Extraction:
        """Have the model read turns that wait; `again` also those it has read before."""
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
        """How far the model has come with the turns, and what that cost."""
        return extraction.status(self._begin(scope))

    def pause_extraction(
        self, scope: Scope, request: PauseExtraction = PauseExtraction(), caller: Caller = USER
    ) -> ExtractionStatus:
        """Send no turns of this scope to the model, or go on sending them."""
        opened = self._begin(scope)
        status = extraction.pause(opened, paused=request.paused, actor=caller.actor)
        if not request.paused:
            self._tell(scope)
        return status


if TYPE_CHECKING:
    from scrubjay.engine.search.open_index import OpenIndex


OPEN_SCOPES: Final = 512
"""How many scopes an engine keeps open: their keys, and what was decrypted of them lately."""


class Engine(Checking, Extracting):
    """All verbs on all scopes of one installation; safe for several threads."""

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
        """Make sure the scope is there and its keys open it."""
        with self._mutex:
            if anew:
                self._opened.pop(scope, None)
            opened = self._open(scope, create=create, anew=anew)
            opened.read(lambda view: view.head())  # it may have been open for long

    def _open(self, scope: Scope, *, create: bool = True, anew: bool = False) -> OpenScope:
        self._check_open()
        self._used[scope] = next(self._uses)
        found = self._opened.get(scope)
        if found is None:
            with self._mutex:
                found = self._opened.get(scope)
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

    def _begin(self, scope: Scope) -> OpenScope:
        """The open scope, after a slice of the work earlier verbs left due."""
        opened = self._open(scope)
        due_work.attempt(opened)
        return opened

    def scopes(self) -> tuple[Scope, ...]:
        """Every scope of this installation that is not destroyed."""
        return lifecycle.scopes(self._check_open())

    def head(self, scope: Scope) -> Head:
        """The scope's head: how far it has come, frozen or not, what is due."""
        return self._open(scope).read(lambda view: view.head())

    def close(self) -> None:
        """Write what is still to be written and let go of every file; again is fine."""
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
        """Write a memory; durable when this returns, and only once per key."""
        return retaining.retain(self._begin(scope), request, caller)

    def record(self, scope: Scope, request: Record, caller: Caller = AGENT) -> Recorded:
        """Write a turn, and what follows from it; durable when this returns, once per id.

        Without an id it is a new turn each time.
        """
        recorded = turns.record(self._begin(scope), request, caller)
        if recorded.outcome is Outcome.STORED:
            self._tell(scope)
        return recorded

    def supersede(self, scope: Scope, request: Supersede, caller: Caller = USER) -> Retained:
        """Replace a memory; what is not said is taken from the old one, which stays as history."""
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
        """Stop writes, or writes and recall; `none` lifts it. Returns the level before."""
        return retaining.freeze(self._begin(scope), Freeze(request.level), actor=caller.actor)

    def mark_tainted(self, scope: Scope, request: MarkTainted, caller: Caller = AGENT) -> Origin:
        """Note that a session has read something of an origin.

        What the agent infers in it from then on is trusted no more than that.
        """
        return sessions.mark_tainted(
            self._begin(scope), request.session, Origin(request.origin), actor=caller.actor
        )

    def spent(self, scope: Scope, session: str) -> Mapping[str, int]:
        """How often a session has done what is counted against its allowances."""
        return sessions.spent(self._begin(scope), session)

    def note(self, scope: Scope, verb: str, *, session: str | None = None, actor: Actor) -> None:
        """Put something in the audit trail that changed nothing, such as a call refused."""
        audit.note(self._begin(scope), verb, session=session, actor=actor)

    def approve(self, scope: Scope, request: Approve, caller: Caller = USER) -> Memory:
        """Let a memory out of quarantine, given the exact text that was shown."""
        return trust.approve(self._begin(scope), request.id, request.content, actor=caller.actor)

    def reject(self, scope: Scope, request: Reject, caller: Caller = USER) -> Erasure:
        """Erase a memory that is in quarantine."""
        return trust.reject(self._begin(scope), request.id, actor=caller.actor)

    # -- reading -----------------------------------------------------------------------

    def get(self, scope: Scope, request: Get, caller: Caller = USER) -> Memory:
        """One memory by id, superseded or not."""
        return read.get(self._begin(scope), request.id, as_of=request.as_of, actor=caller.actor)

    def browse(self, scope: Scope, request: Browse = Browse(), caller: Caller = USER) -> Page:
        """Memories by filter, newest first."""
        return read.browse(self._begin(scope), request, actor=caller.actor)

    def history(self, scope: Scope, request: History, caller: Caller = USER) -> tuple[Memory, ...]:
        """The chain of versions a memory belongs to, oldest first."""
        return request.part(read.history(self._begin(scope), request.id, actor=caller.actor))

    def turns(
        self, scope: Scope, request: TurnsRequest = TurnsRequest(), caller: Caller = USER
    ) -> tuple[Turn, ...]:
        """Turns as they happened, newest first: all or those of a session.

        The next ones are before the time and the id of the last; an empty answer is the end.
        Turns that say very much may come fewer at a time than the limit.
        """
        return turns.turns(
            self._begin(scope),
            limit=request.limit,
            session=request.session,
            end=turns.end(request.before, request.before_id),
            actor=caller.actor,
        )

    def sessions(
        self, scope: Scope, request: SessionsRequest = SessionsRequest(), caller: Caller = USER
    ) -> tuple[Session, ...]:
        """The sessions of which something is kept, the one that was spoken in last first."""
        from scrubjay.engine.search import (  # load numpy, which many never need
            open_index,
            session_list,
        )

        opened = self._begin(scope)
        try:
            return session_list.sessions(
                opened, self._indexed(scope), limit=request.limit, actor=caller.actor
            )
        finally:
            open_index.let_go(self._shelf.trim())

    def timeline(
        self, scope: Scope, request: TimelineRequest = TimelineRequest(), caller: Caller = USER
    ) -> Timeline:
        """When there were turns, and roughly what about."""
        return turns.timeline(self._begin(scope), limit=request.limit, actor=caller.actor)

    def quarantined(
        self, scope: Scope, request: Listing = ALL, caller: Caller = USER
    ) -> tuple[Memory, ...]:
        """Everything that waits for a human to look at it, oldest first."""
        return request.part(trust.quarantined(self._begin(scope), actor=caller.actor))

    def recall(
        self,
        scope: Scope,
        request: Recall,
        caller: Caller = USER,
        *,
        local: bool = False,
        also: frozenset[str] = frozenset(),
    ) -> Recalled:
        """The memories that answer a question, best first; each hit says why.

        `scopes` are others to look in as well. `seconds` bounds the time: what could not be used
        by then is named in `degraded`.
        """
        from scrubjay.engine.search import open_index, recall  # load numpy, which many never need

        scopes = dict.fromkeys((scope, *request.others))
        for one in scopes:
            self._begin(one)
        try:
            indexes = [self._indexed(one) for one in scopes]
            return recall.recall(indexes, request, caller, local=local, also=also)
        finally:
            open_index.let_go(self._shelf.trim())

    def full_score(self, *, by_words: bool) -> float:
        """The score of a memory that answers a question fully: by words, or by meaning too."""
        from scrubjay.engine.search import ranking  # loads numpy

        return ranking.full_score(by_words=by_words)

    def at_once(self, scope: Scope) -> Short | None:
        """A recall that takes a few milliseconds now and waits for nobody; None if it would."""
        self._check_open()
        opened = self._opened.get(scope)
        indexed = None if opened is None else self._shelf.find(opened.address)
        if opened is None or indexed is None or self._shelf.full:
            return None
        return shelf.short(indexed)

    def brief(
        self, scope: Scope, request: BriefRequest = BriefRequest(), caller: Caller = USER
    ) -> Brief:
        """What a session should know before its first word: `.entries`, and as `.markdown`."""
        from scrubjay.engine.search import brief, open_index  # load numpy, which many never need

        try:
            return brief.brief(self._begin(scope), self._indexed(scope), request, caller)
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
        """Make the index again from the rows, and derive what could not be derived before."""
        from scrubjay.engine.search import reindex  # loads numpy, which many a process never needs

        opened = self._begin(scope)
        indexed = self._indexed(scope)
        return reindex.reindex(opened, indexed, progress=progress, actor=caller.actor)

    def _indexed(self, scope: Scope) -> OpenIndex:
        from scrubjay.engine.search.open_index import OpenIndex

        opened = self._open(scope)
        return self._shelf.take(opened.address, lambda: OpenIndex(opened))

    def follow(self, scope: Scope, after: int = 0, *, min_seq: int = 0) -> Changes:
        """What changed after the `seq` and `min_seq` of the last answer, for who keeps a copy."""
        return read.follow(self._begin(scope), after, min_seq=min_seq)

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
        `confirm`, the token of a preview; with one, exactly what was shown goes, or nothing.
        """
        return forgetting.forget(
            self._begin(scope), request, caller, expected=expected, turns_only=turns_only
        )

    def preview(self, scope: Scope, request: Forget, caller: Caller = USER) -> Preview:
        """What a forget would erase, and the token that confirms exactly that."""
        return forgetting.preview(self._begin(scope), request, caller)

    def revoke(self, scope: Scope, request: Revoke, caller: Caller = USER) -> Erasure:
        """Undo what one session, or one channel, wrote, with everything derived from it.

        What it had superseded is the newest version again.
        """
        return revoking.revoke(self._begin(scope), request, caller)

    def purge(self, scope: Scope, request: Purge = Purge(), caller: Caller = SYSTEM) -> Purged:
        """Clean up what is expired, long superseded, or long forgotten."""
        days = request.superseded_days
        return purging.purge(self._begin(scope), superseded_days=days, actor=caller.actor)

    def rotate(self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER) -> Rotated:
        """Seal everything under new keys and delete the old ones."""
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
        """Every memory as JSON, or as a sealed bundle with a key of its own."""
        return copies.export(self._begin(scope), sealed=request.sealed, actor=caller.actor)

    def load(self, scope: Scope, request: Load, caller: Caller = USER) -> Loaded:
        """Add what an export holds, all or nothing; no more trusted than the caller."""
        return copies.load(
            self._begin(scope),
            request.content,
            key=request.key,
            origin=caller.ceiling,
            actor=caller.actor,
        )

    def backup(
        self,
        scope: Scope,
        request: Backup = Backup(),
        caller: Caller = USER,
        *,
        deliver: Callable[[bytes], None] = lambda _: None,
    ) -> tuple[bytes, BackedUp]:
        """A sealed copy of the scope under its own key, which expires; `deliver` puts it away."""
        return copies.backup(
            self._begin(scope), days=request.days, deliver=deliver, actor=caller.actor
        )

    def restore(self, scope: Scope, request: Restore, caller: Caller = USER) -> Loaded:
        """Merge a backup, no more trusted than the caller; what was forgotten stays forgotten."""
        with self._mutex:
            ports = self._check_open()
            if opened := self._opened.pop(scope, None):
                # The rows may be made anew, and their numbers then mean other changes.
                self._shelf.drop(opened.address)
                opened.close()
            return copies.restore(
                ports,
                scope,
                request.content,
                key=request.key,
                anew=request.anew,
                origin=caller.ceiling,
                actor=caller.actor,
            )
