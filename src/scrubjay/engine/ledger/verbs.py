"""LedgerVerbs: turns, sessions and extraction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from scrubjay.engine.open_scopes import LazyModule, OpenScopes
from scrubjay.model.compaction import Compact, Compacted
from scrubjay.model.conversations import (
    Append,
    Appended,
    Branch,
    Conversation,
    DeleteConversation,
    ListConversations,
    ReadConversation,
    Rewind,
    Transcript,
)
from scrubjay.model.documents import (
    Document,
    ListDocuments,
    Move,
    Put,
    ReadDocument,
    Remove,
    Removed,
    Stored,
)
from scrubjay.model.errors import UserLocked
from scrubjay.model.jobs import AllowJobs, JobKind, JobStatus, Work, Worked
from scrubjay.model.origin import Origin
from scrubjay.model.pages import FIRST, Page, Paged
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
    TurnsRequest,
)
from scrubjay.model.results import Erasure, Extraction, ExtractionStatus, Outcome, Session
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record, Recorded, Timeline, Turn
from scrubjay.ports import Progress, no_progress

if TYPE_CHECKING:
    from scrubjay.engine.ledger import (
        compaction,
        conversations,
        documents,
        extraction,
        inbox,
        jobs,
        sessions,
        turns,
    )
    from scrubjay.engine.memories import forget as forgetting
else:
    compaction = LazyModule("ledger.compaction")
    conversations = LazyModule("ledger.conversations")
    documents = LazyModule("ledger.documents")
    forgetting = LazyModule("memories.forget")
    extraction = LazyModule("ledger.extraction")
    inbox = LazyModule("ledger.inbox")
    jobs = LazyModule("ledger.jobs")
    sessions = LazyModule("ledger.sessions")
    turns = LazyModule("ledger.turns")

Told = Callable[[Scope], None]


class LedgerVerbs(OpenScopes):
    """Verbs of the ledger: turns, sessions, and extraction by a language model."""

    _told: Told | None = None

    def record(self, scope: Scope, request: Record, caller: Caller = AGENT) -> Recorded:
        """Write a turn and derive memories from it; durable when this returns, idempotent by `id`.

        Without an id it is a new turn each time. While its user has the scope locked, it waits in
        the inbox.
        """
        opened = self._begin(scope)
        with suppress(UserLocked):  # another process may just have put it under keys of its user
            if not opened.locked:
                return self._recorded(scope, turns.record(opened, request, caller))
        return inbox.post_turn(opened, request, caller)

    def _recorded(self, scope: Scope, recorded: Recorded) -> Recorded:
        if recorded.outcome is Outcome.STORED:
            self._tell(scope)
        return recorded

    def turns(
        self, scope: Scope, request: TurnsRequest = TurnsRequest(), caller: Caller = USER
    ) -> Page[Turn]:
        """List turns, newest first: all or those of a session.

        Long turns may come fewer at a time than the limit.
        """
        return turns.turns(self._look(scope, caller), request, actor=caller.actor)

    def append(self, scope: Scope, request: Append, caller: Caller = AGENT) -> Appended:
        """Add entries to a conversation, and make it if it is not there; durable on return.

        `expected_revision` is an optimistic lock: Stale if it was written to since.
        """
        return conversations.append(self._begin(scope), request, caller)

    def conversation(
        self, scope: Scope, request: ReadConversation, caller: Caller = USER
    ) -> Transcript:
        """Read a history: the last entries of a conversation, or those up to one entry.

        Long entries may come fewer at a time than the limit. Untrusted ones taint the session.
        """
        return conversations.read(self._look(scope, caller), request, actor=caller.actor)

    def conversations(
        self,
        scope: Scope,
        request: ListConversations = ListConversations(),
        caller: Caller = USER,
    ) -> Page[Conversation]:
        """List conversations, the last written first, without opening their entries."""
        return conversations.listed(self._look(scope, caller), request, actor=caller.actor)

    def branch(self, scope: Scope, request: Branch, caller: Caller = AGENT) -> Conversation:
        """Begin a new conversation with the history of another one, whose entries it shares."""
        return conversations.branch(self._begin(scope), request, caller)

    def rewind(self, scope: Scope, request: Rewind, caller: Caller = AGENT) -> Conversation:
        """Continue a conversation from an earlier entry; what is left stays stored as a branch."""
        return conversations.rewind(self._begin(scope), request, caller)

    def delete_conversation(
        self, scope: Scope, request: DeleteConversation, caller: Caller = USER
    ) -> Erasure:
        """Erase a conversation for good, with the entries that no other one shares.

        Its session's memories and turns stay: forget erases all of a session.
        """
        return forgetting.delete_conversation(self._begin(scope), request, caller)

    def put(self, scope: Scope, request: Put, caller: Caller = USER) -> Stored:
        """Write a document under a name, new or in place of the one that is there.

        `expected_revision` is an optimistic lock: Stale if it was written to since.
        """
        return documents.put(self._begin(scope), request, caller)

    def document(self, scope: Scope, request: ReadDocument, caller: Caller = USER) -> Document:
        """Read one document by its name."""
        return documents.read(self._look(scope, caller), request, actor=caller.actor)

    def documents(
        self, scope: Scope, request: ListDocuments = ListDocuments(), caller: Caller = USER
    ) -> Page[Document]:
        """List the documents of a folder that match a filter, in the order of their names."""
        return documents.listed(self._look(scope, caller), request, actor=caller.actor)

    def move(self, scope: Scope, request: Move, caller: Caller = USER) -> tuple[Document, ...]:
        """Give a document, or a folder of them, another name, which must be free."""
        return documents.move(self._begin(scope), request, caller)

    def remove(self, scope: Scope, request: Remove, caller: Caller = USER) -> Removed:
        """Remove a document, or a folder of them; the name may be used again.

        Its row is erased. Only forget deletes the keys as well, and gives a receipt.
        """
        return documents.remove(self._begin(scope), request, caller)

    def timeline(self, scope: Scope, request: Paged = FIRST, caller: Caller = USER) -> Timeline:
        """The timeline: when each turn was, and how it begins; oldest first, the last page first.

        No turn is decrypted.
        """
        return turns.timeline(self._look(scope, caller), request, actor=caller.actor)

    def sessions(
        self, scope: Scope, request: Paged = FIRST, caller: Caller = USER
    ) -> Page[Session]:
        """List the sessions, the most recently active first."""
        from scrubjay.engine.search import (  # load numpy, which many never need
            open_index,
            overview,
        )

        opened = self._look(scope, caller)
        try:
            return overview.sessions(opened, self._indexed(scope), request, actor=caller.actor)
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
        """Usage of a session: the number of calls counted against each of its quotas."""
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
        """Pause or resume extraction and all other jobs of this scope."""
        opened = self._begin(scope)
        status = extraction.pause(opened, paused=request.paused, actor=caller.actor)
        if not request.paused:
            self._tell(scope)
        return status

    def work(self, scope: Scope, request: Work = Work(), caller: Caller = SYSTEM) -> Worked:
        """Do the jobs that are due: extraction, consolidation, derivation; each under a lease.

        Without a model, rules consolidate what they can; `derived_by` says so.
        """
        return jobs.work(self._begin(scope), request, actor=caller.actor)

    def compact(
        self,
        scope: Scope,
        request: Compact = Compact(),
        caller: Caller = USER,
        *,
        progress: Progress = no_progress,
    ) -> Compacted:
        """Compact older episodes into summaries and archive them, if recall does not suffer.

        Questions made of the memories are asked before and after; a fall of more than two points
        is not applied. Originals stay in export and history.
        """
        return compaction.compact(
            self._begin(scope, create=False), request, progress=progress, actor=caller.actor
        )

    def jobs(self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER) -> JobStatus:
        """State of the jobs: what is allowed, waits and runs, and the tokens of the day."""
        return jobs.status(self._look(scope))

    def allow_jobs(
        self, scope: Scope, request: AllowJobs = AllowJobs(), caller: Caller = USER
    ) -> JobStatus:
        """Set which kinds of jobs run by themselves in this scope; without it, extraction only."""
        kinds = tuple(JobKind(kind) for kind in dict.fromkeys(request.kinds))
        status = jobs.allow(self._begin(scope), kinds, actor=caller.actor)
        self._tell(scope)
        return status
