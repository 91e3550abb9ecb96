"""SearchVerbs: recall, brief, count, statistics and reindex; and short recalls without a thread.

A recall is short if it takes a few milliseconds and waits for no lock. A surface with an event loop
may run it on the loop. The work is many small calls of numpy, each of which releases the GIL and
takes it again: in a thread, it and the loop would switch dozens of times, which doubles the cost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from scrubjay.engine.open_scopes import LazyModule, OpenScopes
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.filters import Filter
from scrubjay.model.overview import Statistics
from scrubjay.model.requests import (
    NOTHING,
    USER,
    BriefRequest,
    Caller,
    NoFields,
    Recall,
    StatisticsRequest,
)
from scrubjay.model.results import Brief, Recalled, Reindexed
from scrubjay.model.scope import Scope
from scrubjay.model.text import zone
from scrubjay.model.turns import Turn
from scrubjay.ports import Progress, no_progress

_log = logging.getLogger(__name__)
if TYPE_CHECKING:
    from scrubjay.engine.search import overview
    from scrubjay.engine.search.open_index import OpenIndex
else:
    overview = LazyModule("search.overview")

Found = TypeVar("Found")
EVERYTHING: Final = Filter()


# -- a recall on the event loop --------------------------------------------------------------------

ROWS: Final = 10_000
"""Maximum number of memories: more take longer, mostly outside the GIL."""
CHANGES: Final = 32
"""Maximum number of changes to catch up with."""


class InlineRecall:
    """A short recall of one scope; its index is locked until the end of the block.

    It neither advances due work nor evicts other indexes, which may take long; the next recall in
    a thread does.
    """

    def __init__(self, indexed: OpenIndex, held: ExitStack) -> None:
        self._indexed = indexed
        self._held = held

    def __enter__(self) -> InlineRecall:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def recall(
        self,
        scope: Scope,
        request: Recall,
        caller: Caller,
        *,
        local: bool = False,
        also: frozenset[str] = frozenset(),
    ) -> Recalled:
        """The memories that answer a question, best first."""
        from scrubjay.engine.search import recall  # loaded already, since the index was used

        assert scope == self._indexed.opened.scope
        assert not request.scopes
        return recall.recall([self._indexed], request, caller, local=local, also=also)


def short(indexed: OpenIndex) -> InlineRecall | None:
    """A short recall of the scope; None if it would take long or wait for a lock."""
    opened = indexed.opened
    if opened.ports.embedder.costly or not indexed.lock.acquire(blocking=False):
        return None
    with ExitStack() as held:
        held.callback(indexed.lock.release)
        index = indexed.index
        if index is None or indexed.late or not indexed.used or len(index) > ROWS:
            return None
        if index.unwritten + CHANGES > opened.ports.policy.segment_rows:
            return None  # a segment may be written
        try:
            head = opened.head()
        except ScrubjayError:
            return None  # the recall itself will say what is wrong
        # What is due is for a thread to advance: were it never asked, it would stay due.
        if not (head.due or opened.counters.late) and 0 <= head.memory.seq - index.seq <= CHANGES:
            indexed.seen = head
            return InlineRecall(indexed, held.pop_all())
    return None


FLOORS: Final = {"static": 0.15, "encoder": 0.15}
"""Cosine below which few memories answer: 9 of 10 that do are above it on facts_user, facts_small
and observations (0.15 to 0.29 at that place), and 9 of 10 others below it on facts_user."""


class Embedding(Struct, frozen=True, kw_only=True):
    """What gives the vectors of an engine."""

    identity: str
    dimensions: int
    floor: tuple[float, str]
    """The least similarity that is asked for by default, and where it is from."""


# -- the verbs -------------------------------------------------------------------------------------


class SearchVerbs(OpenScopes):
    """Verbs of search: recall, brief, count, statistics, reindex."""

    def recall(
        self,
        scope: Scope,
        request: Recall,
        caller: Caller = USER,
        *,
        local: bool = False,
        also: frozenset[str] = frozenset(),
        counted: bool = True,
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
            found = recall.recall(indexes, request, caller, local=local, also=also, counted=counted)
            for indexed in indexes:
                indexed.opened.counters.settle()
            return found
        finally:
            open_index.let_go(self._shelf.trim())

    @property
    def embedding(self) -> Embedding:
        """What gives the vectors, and the least cosine that is worth showing."""
        embedder, chosen = self._ports.embedder, self._ports.policy.min_similarity
        name = embedder.identity.partition(":")[0]
        floor = (FLOORS[name], name) if name in FLOORS else (0.0, f"{name}, not calibrated")
        return Embedding(
            identity=embedder.identity,
            dimensions=embedder.dimensions,
            floor=floor if chosen is None else (chosen, "setting"),
        )

    def full_score(self, *, by_words: bool) -> float:
        """Score of a memory that answers a question fully: by words, or with vectors."""
        from scrubjay.engine.search import ranking  # loads numpy

        return ranking.full_score(by_words=by_words)

    def at_once(self, scope: Scope) -> InlineRecall | None:
        """A short recall for the event loop; None if it would take long or wait for a lock."""
        self._check_open()
        opened = self._opened.get(scope)
        indexed = None if opened is None else self._shelf.find(opened.address)
        if opened is None or indexed is None or opened.user_held or self._shelf.full:
            return None
        return short(indexed)

    def brief(
        self, scope: Scope, request: BriefRequest = BriefRequest(), caller: Caller = USER
    ) -> Brief:
        """The brief for a session's first prompt: `.entries`, and as `.markdown`."""
        parts = {
            one: self._with_index(one, lambda index: overview.brief(index, request, caller))
            for one in dict.fromkeys((scope, *request.others))
        }
        return overview.joined(parts, request) if len(parts) > 1 else parts[scope]

    def count(self, scope: Scope, request: Filter = EVERYTHING, caller: Caller = USER) -> int:
        """How many memories a filter accepts."""
        self._look(scope, caller)
        return self._with_index(scope, lambda one: overview.count(one, request, caller.actor))

    def statistics(
        self, scope: Scope, request: StatisticsRequest = StatisticsRequest(), caller: Caller = USER
    ) -> Statistics:
        """Counts of the memories by kind, origin, tag and week; nothing is decrypted for it."""
        days = zone(request.timezone)
        self._look(scope, caller)
        return self._with_index(scope, lambda one: overview.statistics(one, days, caller.actor))

    def _with_index(self, scope: Scope, look: Callable[[OpenIndex], Found]) -> Found:
        """Run `look` on the index of a scope; the cache of indexes is trimmed afterwards."""
        from scrubjay.engine.search import open_index  # loads numpy, which many never need

        self._look(scope)
        try:
            return look(self._indexed(scope))
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

    def unknown_share(self, scope: Scope) -> float:
        """Share of the memories that are in languages the embedder was not made for."""
        from scrubjay.engine.search import recall  # loads numpy, which many a process never needs

        self._look(scope)
        return recall.catch_up(self._indexed(scope), []).unknown_share

    def warm_up(self, scope: Scope) -> None:
        """Load what the first recall of a scope would; nothing is read of its memories."""
        from scrubjay.engine.search import recall  # loads numpy

        recall.catch_up(self._indexed(scope), [])
        embedder = self._check_open().embedder
        if not embedder.costly:
            embedder.embed([""])

    def warm_up_distiller(self) -> None:
        """Load what the first turn would: meanwhile no recall would be answered in time."""
        ports = self._check_open()
        turn = Turn(id="warm-up", at=ports.clock.now(), user="I live in Rome. I like tea.")
        try:
            if ports.distiller is not None:
                ports.distiller.distill(turn)
        except Exception:  # seam: whatever a distiller trips over, the service starts
            _log.warning(
                "distill.failed", extra={"distiller": getattr(ports.distiller, "identity", None)}
            )

    def _take_in(self, scope: Scope, *, last: bool = True) -> None:
        """Let the index follow many writes; after the `last` of them it is written to disk.

        A failure costs the next recall time, and nothing else: the rows are durable.
        """
        from scrubjay.engine.search import open_index  # loads numpy, which many never need

        indexed = self._indexed(scope)
        try:
            with indexed.lock:
                indexed.catch_up()
                indexed.settle(write=last)
                if last and indexed.ready.dimensions and len(indexed.ready):
                    snapshot = indexed.snapshot()  # it is arranged for the ranking, and cached
                    _ = snapshot.distances, snapshot.vouched, snapshot.behavioral
        except ScrubjayError as error:
            _log.warning("index.not_followed", extra={"code": error.code})
        finally:
            open_index.let_go(self._shelf.trim())

    def check_embedder(self) -> None:
        """Ask the embedder for one vector; EmbedderError if it gives none in time."""
        ports = self._check_open()
        deadline = ports.clock.monotonic() + ports.policy.embed_seconds
        ports.embedder.embed(["scrub jay"], deadline=deadline)
