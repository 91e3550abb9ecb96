"""LedgerVerbs: turns, sessions and extraction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from scrubjay.engine.open_scopes import LazyModule, OpenScopes
from scrubjay.model.origin import Origin
from scrubjay.model.requests import (
    AGENT,
    NOTHING,
    SYSTEM,
    USER,
    Caller,
    Extract,
    MarkTainted,
    NoFields,
    PauseExtraction,
    SessionsRequest,
    TimelineRequest,
    TurnsRequest,
)
from scrubjay.model.results import Extraction, ExtractionStatus, Outcome, Session
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record, Recorded, Timeline, Turn

if TYPE_CHECKING:
    from scrubjay.engine.ledger import extraction, sessions, turns
else:
    extraction = LazyModule("ledger.extraction")
    sessions = LazyModule("ledger.sessions")
    turns = LazyModule("ledger.turns")

Told = Callable[[Scope], None]


class LedgerVerbs(OpenScopes):
    """Verbs of the ledger: turns, sessions, and extraction by a language model."""

    _told: Told | None = None

    def record(self, scope: Scope, request: Record, caller: Caller = AGENT) -> Recorded:
        """Write a turn and derive memories from it; durable when this returns, idempotent by `id`.

        Without an id it is a new turn each time.
        """
        recorded = turns.record(self._begin(scope), request, caller)
        if recorded.outcome is Outcome.STORED:
            self._tell(scope)
        return recorded

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

    def timeline(
        self, scope: Scope, request: TimelineRequest = TimelineRequest(), caller: Caller = USER
    ) -> Timeline:
        """The timeline: when each turn was, and how it begins; oldest first."""
        return turns.timeline(self._look(scope), limit=request.limit, actor=caller.actor)

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

    @property
    def extracts(self) -> bool:
        """Whether a language model is configured."""
        return self._ports.extractor is not None

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
