"""recall: the memories that answer a question, best first.

catch up with the head → score every memory by words, meaning and structure → filter → unseal the
best → check again, fit the budgets → hits. No language model is used, and a late embedder only
costs its part of the score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from scrubjay.engine.scope import purposes
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search import question, ranking
from scrubjay.engine.search.analysis import (
    gist,
    language_of,
    pattern,
    proper_names,
    wanted,
    words,
)
from scrubjay.engine.search.open_index import OpenIndex, Peek, past_limits
from scrubjay.engine.search.postings import Floats, Mask
from scrubjay.engine.search.question import Asked, ParsedQuery
from scrubjay.engine.search.ranking import Evidence, Ranked, Scored
from scrubjay.engine.search.scope_index import Snapshot
from scrubjay.engine.search.segment import Columns
from scrubjay.model.errors import EmbedderError
from scrubjay.model.memory import Memory
from scrubjay.model.origin import excess
from scrubjay.model.purposes import UsePurpose
from scrubjay.model.requests import Caller, Recall
from scrubjay.model.results import INJECTED, Hit, Recalled
from scrubjay.model.text import tokens
from scrubjay.ports import Embedder


def fit(hits: Sequence[Hit], request: Recall, *, capped: bool) -> list[Hit]:
    """The best hits within the limits of the request, in their order.

    A hit that does not fit is skipped, and a later one may take its place. If it is `capped`,
    untrusted hits have at most their share of the characters, whatever their origins and channels.
    """
    left = list(hits)
    chosen = _within(left, request)
    while capped and (place := excess(_sizes(chosen))) is not None:
        left.remove(chosen[place])
        chosen = _within(left, request)
    return chosen


def _sizes(hits: Iterable[Hit]) -> list[tuple[int, bool]]:
    return [(len(hit.memory.content), hit.memory.trusted) for hit in hits]


def _within(hits: Iterable[Hit], request: Recall) -> list[Hit]:
    """The first hits within the limits of number, bytes and tokens."""
    chosen: list[Hit] = []
    bytes_left, tokens_left = request.max_bytes, request.max_tokens
    for hit in hits:
        if len(chosen) == request.limit:
            break
        size = 0 if bytes_left is None else len(hit.memory.content.encode())
        count = 0 if tokens_left is None else tokens(hit.memory.content)
        if size > (bytes_left or 0) or count > (tokens_left or 0):
            continue
        bytes_left = None if bytes_left is None else bytes_left - size
        tokens_left = None if tokens_left is None else tokens_left - count
        chosen.append(hit)
    return chosen


_PROBE = "dimensions"
QUERY_CHARS = 4_000
"""Characters of a query that are used; the rest is ignored."""
_SPARE = 100
"""Extra candidates, in case some of the first have changed or do not fit."""
_STANDING = 2
"""Maximum number of behavioral memories added beside the ranking."""
_TOPICAL = 0.15
"""The least coverage of the question by which a behavioral memory is on its topic."""
_AKIN = 0.3
"""The least cosine with the question by which it is on its topic, too."""
_DOUBTED = 0.9 * INJECTED
"""The most relevance of a memory nobody vouches for: below what is injected unasked, however well
it is made to match."""
_READ = 10
"""How many of the first hits are read for statements that end what an earlier one told."""
_STATEMENT_CHARS = 400
"""A longer text tells of more than the end of a state, and is dear to read."""


class ScopeSearch(Struct, frozen=True, kw_only=True):
    """One scope of a recall: its snapshot, and the offset of its rows among all."""

    indexed: OpenIndex
    snapshot: Snapshot
    base: int = 0

    @property
    def opened(self) -> OpenScope:
        """The scope."""
        return self.indexed.opened

    @property
    def held(self) -> Columns:
        """Its columns."""
        return self.snapshot.columns


class Candidates(Struct, dict=True):
    """Candidates of a recall: all rows of all scopes, with their scores."""

    query: ParsedQuery
    snapshot: Snapshot
    parts: Sequence[Evidence]
    """The evidence for each of the questions that it consists of."""
    allowed: Mask
    searched: int
    """How many rows the filter allows, near to the question or not."""

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence for any of its questions."""
        return Evidence.union(self.parts)

    @cached_property
    def scored(self) -> Scored:
        """The features and sums of all rows, computed once for all that is chosen by them."""
        return ranking.score(self.query, self.snapshot.arranged, self.parts)

    @property
    def backed(self) -> bool:
        """Whether a trusted row matches: it shares a content word, or is near in meaning."""
        about = self.evidence.words > 0
        if self.evidence.meaning is not None:
            about |= self.evidence.meaning >= _AKIN
        return bool((self.allowed & self.snapshot.vouched & about).any())

    def best(self, count: int, allowed: Mask | None = None) -> list[Ranked]:
        """The best rows among those the filter allows, or among some others."""
        chosen = self.allowed if allowed is None else allowed
        return ranking.best(self.scored, limit=count, allowed=chosen)


def recall(
    scopes: Sequence[OpenIndex],
    request: Recall,
    caller: Caller,
    *,
    local: bool = False,
    also: frozenset[str] = frozenset(),
    counted: bool = True,
) -> Recalled:
    """Ranked memories of one or several scopes for a question; the hits are `counted`, or not.

    `local` uses no costly embedder, such as a remote one. `also` are tags with a second quota: up
    to `limit` more hits that have all of them.
    """
    first = scopes[0].opened
    clock, embedder = first.ports.clock, first.ports.embedder
    began = clock.monotonic()
    deadline = None if request.seconds is None else began + request.seconds
    degraded: list[str] = []
    asked = request.query[:QUERY_CHARS]
    questions = question.questions(asked)
    embeds = not (local and embedder.costly)
    if embeds and embedder.costly:  # it is elsewhere, and the question would be sent there
        allowed = (purposes.may(one.opened, UsePurpose.EMBEDDING) for one in scopes)
        if not (embeds := all(allowed)):
            degraded.append("By words alone: the embedder is not allowed.")
    if embeds and embedder.costly and not embedder.dimensions:
        try:
            embedder.embed([_PROBE], deadline=deadline)
        except EmbedderError as error:
            degraded.append(f"By words alone: {error.message}")
    embeds = embeds and embedder.dimensions > 0  # before the indexes are made, which take it on
    searched: list[ScopeSearch] = []
    for indexed in scopes:
        base = searched[-1].base + len(searched[-1].held) if searched else 0
        snapshot = catch_up(indexed, degraded, deadline)
        searched.append(ScopeSearch(indexed=indexed, snapshot=snapshot, base=base))
    vectors: Mapping[str, Floats] | None = None
    if embeds and _understands(embedder, asked, searched):
        try:
            vectors = embed(embedder, questions, deadline)
        except EmbedderError as error:
            degraded.append(f"By words alone: {error.message}")
    found = search(searched, request, questions, vectors)
    hits = _hits(searched, request, found, also) if found.allowed.any() else []
    for one in searched:
        if broken := len(one.indexed.broken):
            degraded.append(f"{broken:,} memories could not be opened; run verify.")
        one.opened.note_read("recall", caller.actor)
        if counted:
            one.opened.counters.note(hit.memory for hit in hits if hit.scope == one.opened.scope)
    return Recalled(
        hits=tuple(hits),
        degraded=tuple(degraded),
        searched=found.searched,
        milliseconds=(clock.monotonic() - began) * 1000,
    )


def _understands(embedder: Embedder, asked: str, searched: Sequence[ScopeSearch]) -> bool:
    """Whether the embedder knows the language of the question, which may be one of the scopes'."""
    if embedder.languages is None:
        return True
    languages = {language for one in searched for language in one.snapshot.languages}
    return language_of(words(asked), languages) in embedder.languages


# -- scores -----------------------------------------------------------------------------------


def catch_up(indexed: OpenIndex, told: list[str], deadline: float | None = None) -> Snapshot:
    """Snapshot of one scope, caught up with the head; `told` collects what could not be used.

    The index is locked only meanwhile, so that questions are ranked concurrently.
    """
    with indexed.lock:
        left = indexed.catch_up(deadline=deadline)
        indexed.opened.check_free()
        indexed.settle(write=not left)
        if left:
            told.append(f"{left:,} changes were not looked at in the time allowed.")
        if indexed.bare:
            told.append(f"{indexed.bare:,} memories have no vector, because the embedder failed.")
        if foreign := indexed.ready.foreign:
            told.append(f"{foreign:,} memories have vectors of another embedder; run reindex.")
        snapshot = indexed.snapshot()
        # Of a cheap embedder a vector of zeros means a text of unknown words, and nothing is amiss.
        embedder = indexed.opened.ports.embedder
        bare = snapshot.bare - foreign if embedder.costly and embedder.dimensions else 0
        if bare > 0:
            told.append(f"{bare:,} memories have no vector of this embedder; run reindex.")
        return snapshot


def embed(
    embedder: Embedder, asked: Sequence[Asked], deadline: float | None = None
) -> dict[str, Floats]:
    """The vectors of questions and of their subjects, by their texts."""
    texts = list(dict.fromkeys(text for one in asked for text in (one.text, one.subject)))
    return dict(zip(texts, embedder.embed(texts, deadline=deadline), strict=True))


def search(
    searched: Sequence[ScopeSearch],
    request: Recall,
    asked: Sequence[Asked],
    vectors: Mapping[str, Floats] | None,
) -> Candidates:
    """Score every memory of caught-up indexes by the questions of a query; apply the filter."""
    snapshot = Snapshot.join([one.snapshot for one in searched])
    parts, strange = match(snapshot, asked, vectors)
    evidence = Evidence.union(parts)
    now = searched[0].opened.ports.clock.now()
    allowed = _allowed(snapshot, request, now)
    for one in searched if request.as_of is None and not request.superseded else ():
        if (limits := one.indexed.limits) is not None:
            part = slice(one.base, one.base + len(one.held))
            allowed[part] &= ~past_limits(one.held, limits, now)
    searching = int(np.count_nonzero(allowed))
    if request.worded:
        allowed &= evidence.words > 0
    if request.min_similarity:
        likeness = evidence.likeness
        allowed &= False if likeness is None else likeness >= request.min_similarity
    return Candidates(
        query=parse(searched, request, now, strange),
        snapshot=snapshot,
        parts=parts,
        allowed=allowed,
        searched=searching,
    )


def match(
    snapshot: Snapshot, asked: Sequence[Asked], vectors: Mapping[str, Floats] | None
) -> tuple[list[Evidence], frozenset[str]]:
    """The evidence of every row for each question; and the names nothing holds."""
    parts, strange = list[Evidence](), set[str]()
    for one in asked:
        found = snapshot.match(wanted(one.text, snapshot.languages))
        strange |= found.strange
        meaning = likeness = None
        if vectors is not None:
            meaning, likeness = snapshot.cosine(vectors[one.text])
            if one.subject != one.text:
                meaning, _ = snapshot.cosine(vectors[one.subject])
        parts.append(
            Evidence(
                words=found.scores,
                coverage=found.coverage,
                meaning=meaning,
                likeness=likeness,
                terms=found.terms,
                nats=found.nats,
                topical=found.topical,
                shared=found.shared,
            )
        )
    return parts, frozenset(strange)


def _allowed(snapshot: Snapshot, request: Recall, now: datetime) -> Mask:
    """Mask of the rows the filter allows; decrypted memories are checked again, exactly."""
    mask = snapshot.columns.accepted(request, now)
    if not request.lifted:
        mask &= snapshot.vouched | ~snapshot.behavioral
    return mask


# -- ranking ----------------------------------------------------------------------------------


def parse(
    searched: Sequence[ScopeSearch],
    request: Recall,
    now: datetime,
    strange: frozenset[str] = frozenset(),
) -> ParsedQuery:
    """Parse the question; without `asked_at` it is asked now.

    A date without a year counts from the latest memory then: who asks about "in May" in a
    conversation of years ago means a month of that conversation.
    """
    times = [time for one in searched if (time := one.snapshot.latest) is not None]
    speakers = searched[0].snapshot.speakers
    if len(searched) > 1:
        joined = Columns.join([one.held for one in searched])
        speakers = joined.coded(joined.speaker)
    read = partial(question.parse, request.query[:QUERY_CHARS], speakers)
    try:
        query = read(
            asked_at=request.asked_at or now,
            latest=request.asked_at or max(times, default=None),
            zone=request.zone,
            strange=strange,
        )
    except (OverflowError, ValueError):
        # It names a time outside the years there are: that says nothing of any memory.
        query = read()
    return replace(query, asked_at=request.asked_at or now)


def rank(found: Candidates, limit: int, count: int) -> list[Ranked]:
    """The best `count` rows; some of the first `limit` places are for behavioral memories.

    Instructions and preferences are seldom similar to the question they are about, so the best
    ones on its topic get the last places if the ranking alone would leave them out.
    """
    ranked = found.best(count)
    topical = found.evidence.coverage >= _TOPICAL
    if found.evidence.meaning is not None:
        topical |= found.evidence.meaning >= _AKIN
    standing = found.allowed & topical & found.snapshot.vouched & found.snapshot.behavioral
    if limit <= _STANDING or not standing.any():
        return ranked
    first = {one.row for one in ranked[:limit]}
    missing = _STANDING - sum(bool(standing[row]) for row in first)
    kept = [one for one in found.best(_STANDING, standing) if one.row not in first]
    kept = kept[: max(missing, 0)]
    rest = [one for one in ranked if one not in kept]
    return [*rest[: limit - len(kept)], *kept, *rest[limit - len(kept) :]]


# -- hits -------------------------------------------------------------------------------------


def _hits(
    searched: Sequence[ScopeSearch],
    request: Recall,
    found: Candidates,
    also: frozenset[str],
) -> list[Hit]:
    """The best hits within the budgets; more candidates are decrypted only if some do not fit."""
    limit = request.limit
    # Where trusted rows neither match nor could fill half of the answer, holding others back
    # would only hide them.
    vouched = found.allowed & found.snapshot.vouched
    enough = 2 * int(np.count_nonzero(vouched)) >= limit
    capped = not request.lifted and (enough or found.backed)
    ranked = rank(found, limit, max(limit, _READ))
    fitting = fit(_unseal(searched, request, found, ranked), request, capped=False)
    # Whether untrusted hits have to leave room shows only when others were looked at, too.
    whole = len(fitting) == min(limit, len(ranked))
    if not whole or (capped and not all(hit.memory.trusted for hit in fitting)):
        # More rows, with as many trusted ones among them as could fill the answer.
        ranked = rank(found, limit, limit + _SPARE)
        known = {one.row for one in ranked}
        trusted = found.best(limit, vouched)
        ranked += [one for one in trusted if one.row not in known]
        fitting = fit(_unseal(searched, request, found, ranked), request, capped=capped)
    if also:
        # The best of those with the tags that are wanted besides, ranked by the same evidence. Half
        # of the places are for behavioral ones: seldom like the question, they fit every question.
        mask = found.allowed & found.snapshot.columns.tagged(also)
        tagged = found.best(limit // 2, mask & found.snapshot.behavioral)
        taken = {one.row for one in tagged}
        tagged += [one for one in found.best(limit, mask) if one.row not in taken]
        del tagged[limit:]
        there = {hit.memory.id for hit in fitting}
        hits = fit(_unseal(searched, request, found, tagged), request, capped=capped)
        fitting += [hit for hit in hits if hit.memory.id not in there]
    fitting.sort(key=lambda hit: -hit.score)
    while also and capped and (place := excess(_sizes(fitting))) is not None:
        del fitting[place]  # what both lists held counts once
    return fitting


def _unseal(
    searched: Sequence[ScopeSearch], request: Recall, found: Candidates, ranked: Sequence[Ranked]
) -> list[Hit]:
    """Decrypt the best rows as they are now, and apply the filter again."""
    likeness = found.evidence.likeness
    now = searched[0].opened.ports.clock.now()
    hits: dict[int, Hit] = {}
    for one in searched:
        row_id, end = one.held.row_id, one.base + len(one.held)
        ids = {r.row: row_id[r.row - one.base].tobytes() for r in ranked if one.base <= r.row < end}

        def peek_all(peek: Peek, ids: dict[int, bytes] = ids) -> dict[int, Memory | None]:
            return {row: peek(row_id) for row, row_id in ids.items()}

        memories = one.indexed.read(peek_all, tuple(ids.values()))
        for r in ranked:
            memory = memories.get(r.row)
            doubted = memory is not None and not memory.origin.trusted
            likely = min(r.relevance, _DOUBTED) if doubted else r.relevance
            wanted = likely >= request.min_relevance
            if memory is not None and wanted and request.accepts(memory, now):
                alike = 0.0 if likeness is None else min(float(likeness[r.row]), 1.0)
                hits[r.row] = Hit(
                    memory=memory,
                    score=r.score,
                    why=r.parts,
                    scope=one.opened.scope,
                    relevance=likely,
                    similarity=alike or None,  # of a vector of zeros it would say nothing
                )
    return latest_first([hits[r.row] for r in ranked if r.row in hits], request.query)


def latest_first(hits: list[Hit], query: str) -> list[Hit]:
    """The hits with a statement that ends a state, such as "I left Acme", before what told of it.

    Of a question for what is so now. The later one names what the earlier one names (Acme), speaks
    of itself like it, and lacks at most one term of the question that the earlier one has (work).
    What is still to come ("we are moving") is no later state.
    """
    if not pattern("question", "present").search(query.lower()):
        return hits
    heads = hits[:_READ]
    if not pattern("signs", "coming").search(query.lower()):
        heads = _as_of_now(heads)
    short = [hit for hit in heads if len(hit.memory.content) <= _STATEMENT_CHARS]
    ending = [hit for hit in short if _ends(hit.memory.content.lower())]
    own, asked = pattern("question", "first_person"), gist(query) if ending else frozenset()
    for later in ending:
        text = later.memory.content
        lacking, names = asked - gist(text), proper_names(text)
        for place, hit in enumerate(heads[: heads.index(later)]):
            told = hit.memory.content
            if (
                hit.memory.said_at < later.memory.said_at
                and not names.isdisjoint(proper_names(told) - set(words(query)))
                and len(lacking & gist(told)) <= 1
                and bool(own.search(told.lower())) == bool(own.search(text.lower()))
            ):
                heads.remove(later)
                lift = later.why.get("newest", 0.0) + hit.score - later.score
                why = {**later.why, "newest": lift}
                heads.insert(place, replace(later, score=hit.score, why=why))
                break
    return heads + hits[_READ:]


def _as_of_now(heads: list[Hit]) -> list[Hit]:
    """These hits, without what one of what is to come was lifted by as the last statement."""
    for place, hit in enumerate(heads):
        lift, text = hit.why.get("newest", 0.0), hit.memory.content
        if 0 < lift <= hit.score and len(text) <= _STATEMENT_CHARS:
            if pattern("signs", "coming").search(text.lower()):
                why = {name: part for name, part in hit.why.items() if name != "newest"}
                rest, score = heads[place + 1 :], hit.score - lift
                behind = sum(one.score > score for one in rest)
                lowered = replace(hit, score=score, why=why)
                return [*heads[:place], *rest[:behind], lowered, *rest[behind:]]
            break  # only one is the last
    return heads


def _ends(text: str) -> bool:
    """Whether a text in lower case tells of an end."""
    names = ["ending"] if text.isascii() else ["ending", "ending_elsewhere"]
    return any(pattern("signs", name).search(text) for name in names)
