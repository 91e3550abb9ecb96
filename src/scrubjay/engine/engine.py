"""Engine: every verb of scrubjay on any scope, for surfaces to translate to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

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
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import (
    Amend,
    BriefRequest,
    Browse,
    Forget,
    Recall,
    Retain,
    Revoke,
    Supersede,
)
from scrubjay.model.results import (
    AuditEvent,
    BackedUp,
    Brief,
    Changes,
    Erasure,
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

    def verify(self, scope: Scope) -> Report:
        """Open everything and check what was promised."""
        return verifying.verify(self._begin(scope))

    def verify_erased(self, receipt: Erasure) -> Report:
        """Search all that is kept for erased cells and prove that no key opens them."""
        return verifying.verify_erased(self._check_open(), receipt)

    def receipts(self, scope: Scope) -> tuple[Erasure, ...]:
        """The erasure receipts kept for a scope, oldest first, also after destroy."""
        ports = self._check_open()
        address, _ = lifecycle.locate(ports, scope)
        return receipts.kept(ports, address)

    def audit(self, scope: Scope, *, after: int = 0, limit: int = 1000) -> tuple[AuditEvent, ...]:
        """The audit trail after a count, oldest first."""
        opened = self._begin(scope)
        opened.flush_reads()
        return audit.trail(opened, after, limit)

    def verify_audit(self, scope: Scope) -> Report:
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
        self,
        scope: Scope,
        *,
        limit: int = extraction.TURNS,
        seconds: float = extraction.SECONDS,
        again: bool = False,
        actor: Actor = Actor.SYSTEM,
    ) -> Extraction:
        """Have the model read turns that wait; `again` also those it has read before."""
        return extraction.extract(
            self._begin(scope), limit=limit, seconds=seconds, again=again, actor=actor
        )

    def extraction(self, scope: Scope) -> ExtractionStatus:
        """How far the model has come with the turns, and what that cost."""
        return extraction.status(self._begin(scope))

    def pause_extraction(
        self, scope: Scope, *, paused: bool = True, actor: Actor = Actor.USER
    ) -> ExtractionStatus:
        """Send no turns of this scope to the model, or go on sending them."""
        status = extraction.pause(self._begin(scope), paused=paused, actor=actor)
        if not paused:
            self._tell(scope)
        return status


if TYPE_CHECKING:
    from scrubjay.engine.search.open_index import OpenIndex


class Engine(Checking, Extracting):
    """All verbs on all scopes of one installation; safe for several threads."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._opened: dict[Scope, OpenScope] = {}
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
        found = self._opened.get(scope)
        if found is None:
            with self._mutex:
                found = self._opened.get(scope)
                if found is None:
                    found = lifecycle.open_scope(self._ports, scope, create=create, anew=anew)
                    self._opened[scope] = found
        return found

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

    def retain(self, scope: Scope, request: Retain) -> Retained:
        """Write a memory; durable when this returns, and only once per key."""
        return retaining.retain(self._begin(scope), request)

    def record(self, scope: Scope, request: Record) -> Recorded:
        """Write a turn, and what follows from it; durable when this returns, once per id."""
        recorded = turns.record(self._begin(scope), request)
        if recorded.outcome is Outcome.STORED:
            self._tell(scope)
        return recorded

    def supersede(self, scope: Scope, request: Supersede) -> Retained:
        """Replace a memory; the old one stays as history, out of sight."""
        return retaining.supersede(self._begin(scope), request)

    def amend(self, scope: Scope, request: Amend) -> Memory:
        """Pin or unpin a memory, or set when it expires; null lifts that."""
        return retaining.amend(self._begin(scope), request)

    def pin(
        self, scope: Scope, public_id: str, *, pinned: bool = True, actor: Actor = Actor.USER
    ) -> Memory:
        """Pin or unpin a memory."""
        return self.amend(scope, Amend(id=public_id, pinned=pinned, actor=actor))

    def expire(
        self, scope: Scope, public_id: str, at: datetime | None, *, actor: Actor = Actor.USER
    ) -> Memory:
        """Set or, with None, lift the time a memory expires."""
        return self.amend(scope, Amend(id=public_id, expires_at=at, actor=actor))

    def freeze(
        self, scope: Scope, level: Freeze = Freeze.WRITES, *, actor: Actor = Actor.USER
    ) -> Freeze:
        """Stop writes, or writes and recall; `none` lifts it. Returns the level before."""
        return retaining.freeze(self._begin(scope), level, actor=actor)

    def mark_tainted(
        self,
        scope: Scope,
        session: str,
        origin: Origin = Origin.WEB,
        *,
        actor: Actor = Actor.AGENT,
    ) -> Origin:
        """Note that a session has read something of this origin."""
        return sessions.mark_tainted(self._begin(scope), session, origin, actor=actor)

    def spent(self, scope: Scope, session: str) -> Mapping[str, int]:
        """How often a session has done what is counted against its allowances."""
        return sessions.spent(self._begin(scope), session)

    def note(self, scope: Scope, verb: str, *, session: str | None = None, actor: Actor) -> None:
        """Put something in the audit trail that changed nothing, such as a call refused."""
        audit.note(self._begin(scope), verb, session=session, actor=actor)

    def approve(
        self, scope: Scope, public_id: str, content: str, *, actor: Actor = Actor.USER
    ) -> Memory:
        """Let a memory out of quarantine, given the exact text that was shown."""
        return trust.approve(self._begin(scope), public_id, content, actor=actor)

    def reject(self, scope: Scope, public_id: str, *, actor: Actor = Actor.USER) -> Erasure:
        """Erase a memory that is in quarantine."""
        return trust.reject(self._begin(scope), public_id, actor=actor)

    # -- reading -----------------------------------------------------------------------

    def get(
        self,
        scope: Scope,
        public_id: str,
        *,
        as_of: datetime | None = None,
        actor: Actor = Actor.USER,
    ) -> Memory:
        """One memory by id."""
        return read.get(self._begin(scope), public_id, as_of=as_of, actor=actor)

    def browse(self, scope: Scope, request: Browse, *, actor: Actor = Actor.USER) -> Page:
        """Memories by filter, newest first."""
        return read.browse(self._begin(scope), request, actor=actor)

    def history(
        self, scope: Scope, public_id: str, *, actor: Actor = Actor.USER
    ) -> tuple[Memory, ...]:
        """The chain of versions a memory belongs to, oldest first."""
        return read.history(self._begin(scope), public_id, actor=actor)

    def turns(
        self,
        scope: Scope,
        limit: int = 50,
        *,
        session: str | None = None,
        before: datetime | None = None,
        before_id: str | None = None,
        actor: Actor = Actor.USER,
    ) -> tuple[Turn, ...]:
        """Turns, newest first: all or those of a session, before a time or the turn then."""
        end = turns.end(before, before_id)
        return turns.turns(self._begin(scope), limit=limit, session=session, end=end, actor=actor)

    def sessions(
        self, scope: Scope, limit: int = 50, *, actor: Actor = Actor.USER
    ) -> tuple[Session, ...]:
        """The sessions of which something is kept, the one that was spoken in last first."""
        from scrubjay.engine.search import (  # load numpy, which many never need
            open_index,
            session_list,
        )

        opened = self._begin(scope)
        try:
            return session_list.sessions(opened, self._indexed(scope), limit=limit, actor=actor)
        finally:
            open_index.let_go(self._shelf.trim())

    def timeline(self, scope: Scope, limit: int = 50, *, actor: Actor = Actor.USER) -> Timeline:
        """When there were turns, and roughly what about."""
        return turns.timeline(self._begin(scope), limit=limit, actor=actor)

    def quarantined(self, scope: Scope, *, actor: Actor = Actor.USER) -> tuple[Memory, ...]:
        """Everything that waits for a human to look at it, oldest first."""
        return trust.quarantined(self._begin(scope), actor=actor)

    def recall(self, scope: Scope, request: Recall) -> Recalled:
        """The memories that answer a question, best first."""
        from scrubjay.engine.search import open_index, recall  # load numpy, which many never need

        scopes = dict.fromkeys((scope, *request.scopes))
        for one in scopes:
            self._begin(one)
        try:
            return recall.recall([self._indexed(one) for one in scopes], request)
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

    def brief(self, scope: Scope, request: BriefRequest) -> Brief:
        """What a session should know before its first word."""
        from scrubjay.engine.search import brief, open_index  # load numpy, which many never need

        try:
            return brief.brief(self._begin(scope), self._indexed(scope), request)
        finally:
            open_index.let_go(self._shelf.trim())

    def reindex(
        self, scope: Scope, *, progress: Progress = no_progress, actor: Actor = Actor.USER
    ) -> Reindexed:
        """Make the index again from the rows, and derive what could not be derived before."""
        from scrubjay.engine.search import reindex  # loads numpy, which many a process never needs

        opened = self._begin(scope)
        return reindex.reindex(opened, self._indexed(scope), progress=progress, actor=actor)

    def _indexed(self, scope: Scope) -> OpenIndex:
        from scrubjay.engine.search.open_index import OpenIndex

        opened = self._open(scope)
        return self._shelf.take(opened.address, lambda: OpenIndex(opened))

    def follow(self, scope: Scope, after: int = 0, *, min_seq: int = 0) -> Changes:
        """What changed after the `seq` and `min_seq` of the last answer, for who keeps a copy."""
        return read.follow(self._begin(scope), after, min_seq=min_seq)

    # -- erasing -----------------------------------------------------------------------

    def forget(self, scope: Scope, request: Forget) -> Erasure:
        """Erase memories for good, with what was derived from them."""
        return forgetting.forget(self._begin(scope), request)

    def preview(self, scope: Scope, request: Forget) -> Preview:
        """What a forget would erase, and the token that confirms exactly that."""
        return forgetting.preview(self._begin(scope), request)

    def revoke(self, scope: Scope, request: Revoke) -> Erasure:
        """Undo what one session or channel wrote, with everything derived from it."""
        return revoking.revoke(self._begin(scope), request)

    def purge(
        self,
        scope: Scope,
        *,
        superseded_days: int = purging.SUPERSEDED_DAYS,
        actor: Actor = Actor.SYSTEM,
    ) -> Purged:
        """Clean up what is expired, long superseded, or long forgotten."""
        return purging.purge(self._begin(scope), superseded_days=superseded_days, actor=actor)

    def rotate(self, scope: Scope, *, actor: Actor = Actor.USER) -> Rotated:
        """Seal everything under new keys and delete the old ones."""
        return rotating.rotate(self._begin(scope), actor=actor)

    def destroy(self, scope: Scope, *, confirm: str | None) -> Erasure:
        """Erase the whole scope, its keys first."""
        with self._mutex:
            receipt = lifecycle.destroy(self._check_open(), scope, confirm)
            self._shelf.drop(receipt.address)
            self._opened.pop(scope, None)
            return receipt

    def finish_due(self, scope: Scope) -> None:
        """Finish all work that earlier verbs left due."""
        due_work.finish(self._open(scope))

    # -- whole scopes out and in ---------------------------------------------------------

    def export(
        self, scope: Scope, *, sealed: bool = False, actor: Actor = Actor.USER
    ) -> copies.Exported:
        """Every memory as JSON, or as a sealed bundle with a key of its own."""
        return copies.export(self._begin(scope), sealed=sealed, actor=actor)

    def load(
        self,
        scope: Scope,
        raw: bytes,
        *,
        key: str | None = None,
        origin: Origin | None = None,
        actor: Actor = Actor.USER,
    ) -> Loaded:
        """Add what an export holds, all or nothing; no more trusted than `origin`, if given."""
        return copies.load(self._begin(scope), raw, key=key, origin=origin, actor=actor)

    def backup(
        self,
        scope: Scope,
        *,
        days: int = copies.BACKUP_DAYS,
        deliver: Callable[[bytes], None] = lambda _: None,
        actor: Actor = Actor.USER,
    ) -> tuple[bytes, BackedUp]:
        """A sealed copy of the scope under its own key, which expires; `deliver` puts it away."""
        return copies.backup(self._begin(scope), days=days, deliver=deliver, actor=actor)

    def restore(
        self,
        scope: Scope,
        raw: bytes,
        *,
        key: str | None = None,
        anew: bool = False,
        origin: Origin | None = None,
        actor: Actor = Actor.USER,
    ) -> Loaded:
        """Merge a backup into its scope; what was forgotten since stays forgotten."""
        with self._mutex:
            ports = self._check_open()
            if opened := self._opened.pop(scope, None):
                # The rows may be made anew, and their numbers then mean other changes.
                self._shelf.drop(opened.address)
                opened.close()
            return copies.restore(ports, scope, raw, key=key, anew=anew, origin=origin, actor=actor)
