"""SearchVerbs: recall, brief and reindex."""

from __future__ import annotations

from scrubjay.engine.open_scopes import OpenScopes
from scrubjay.engine.search import shelf
from scrubjay.engine.search.shelf import Short
from scrubjay.model.requests import NOTHING, USER, BriefRequest, Caller, NoFields, Recall
from scrubjay.model.results import Brief, Recalled, Reindexed
from scrubjay.model.scope import Scope
from scrubjay.ports import Progress, no_progress


class SearchVerbs(OpenScopes):
    """Verbs of search: recall, brief, reindex."""

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

    def check_embedder(self) -> None:
        """Ask the embedder for one vector; EmbedderError if it gives none in time."""
        ports = self._check_open()
        deadline = ports.clock.monotonic() + ports.policy.embed_seconds
        ports.embedder.embed(["scrub jay"], deadline=deadline)
