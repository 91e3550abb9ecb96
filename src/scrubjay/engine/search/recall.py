"""recall: the memories that answer a question, best first.

catch up with the head → score every memory by words, meaning and structure → filter → unseal the
best → check again, fit the budgets → hits. No language model is asked, and a late embedder only
costs the part of the score that needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search import columns as index_columns
from scrubjay.engine.search import indexing, question, ranking
from scrubjay.engine.search.analysis import wanted
from scrubjay.engine.search.columns import KINDS, ORIGINS, Columns
from scrubjay.engine.search.indexing import Indexed, Peek, Ready
from scrubjay.engine.search.question import ParsedQuery
from scrubjay.engine.search.rank_columns import Columns as Arranged
from scrubjay.engine.search.ranking import Evidence, Ranked
from scrubjay.model.errors import EmbedderError, Frozen
from scrubjay.model.memory import Memory
from scrubjay.model.requests import Caller, Recall
from scrubjay.model.results import Hit, Recalled
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope

SHARE: Final = 0.3
"""How much of an answer's characters may come from one untrusted source."""
_WORD: Final = 4
"""Characters of an alphabet that make a token, roughly; of other scripts each one is one."""

Source = tuple[str, str | None]
"""An origin and the channel by which it came: what whoever wrote it cannot choose."""


def tokens(text: str) -> int:
    """Roughly how many tokens a language model makes of a text."""
    ascii_chars = sum(char.isascii() for char in text) if not text.isascii() else len(text)
    return -(-ascii_chars // _WORD) + len(text) - ascii_chars


def fit(hits: Sequence[Hit], request: Recall) -> list[Hit]:
    """The best hits that keep to the limits of the request, in their order.

    A hit that does not fit is left out and a later one may take its place. One untrusted source
    gets no more than its share, unless what somebody vouches for could not fill half the places:
    where there is hardly anything else, holding it back would only hide it.
    """
    left = list(hits)
    chosen = _within(left, request)
    if 2 * sum(hit.memory.origin.trusted for hit in hits) < request.limit:
        return chosen
    while (excess := _excess(chosen)) is not None:
        left.remove(excess)
        chosen = _within(left, request)
    return chosen


def _within(hits: Iterable[Hit], request: Recall) -> list[Hit]:
    """The first hits that keep to the number, the bytes and the tokens asked for."""
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


def _excess(chosen: Sequence[Hit]) -> Hit | None:
    """The worst hit of a source that has more than its share; None if none has."""
    total = sum(len(hit.memory.content) for hit in chosen)
    said: dict[Source, int] = {}
    worst: dict[Source, Hit] = {}
    for hit in chosen:
        if not hit.memory.origin.trusted:
            source = (hit.memory.origin.value, hit.memory.provenance.channel)
            said[source] = said.get(source, 0) + len(hit.memory.content)
            worst[source] = hit
    return next((worst[one] for one in said if said[one] > SHARE * total), None)


QUERY_CHARS = 4_000
"""How much of a query is used: what it asks, it asks early."""
_SPARE = 100
"""How many more are looked at where some of the first were changed meanwhile or do not fit."""
_STANDING = 2
"""How many behavioral memories may be added that the ranking alone left out."""
_TOPICAL = 0.15
"""The share of the question's information a behavioral memory on its topic holds, at least,"""
_AKIN = 0.3
"""or how near its meaning is to the question's."""
_BEHAVIORAL = np.array([kind.behavioral for kind in KINDS])
_TRUSTED = np.array([origin.trusted for origin in ORIGINS])
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """One scope of a recall: what is read of it, and where its rows begin among those of all."""

    opened: OpenScope
    indexed: Indexed
    ready: Ready
    base: int = 0

    @property
    def held(self) -> Columns:
        """Its columns."""
        return self.ready.index.columns


@dataclass(slots=True)
class Found:
    """Everything needed to rank all rows of all scopes."""

    columns: Columns
    arranged: Arranged
    evidence: Evidence
    allowed: Mask


def recall(
    scopes: Sequence[tuple[OpenScope, Indexed]],
    request: Recall,
    caller: Caller,
    *,
    local: bool = False,
    also: frozenset[str] = frozenset(),
) -> Recalled:
    """The memories of one or several scopes that answer the question.

    `local` does without a costly embedder, such as one on another machine. `also` are tags that
    get a second quota: up to `limit` more hits that have them all.
    """
    first, clock = scopes[0][0], scopes[0][0].ports.clock
    deadline = None if request.seconds is None else clock.monotonic() + request.seconds
    degraded: list[str] = []
    searched = _caught_up(scopes, deadline, degraded)
    spared = local and first.ports.embedder.costly
    vector = None if spared else _embed(first, request, deadline, degraded)
    found = search(searched, request, vector)
    query = parse(searched, request, clock.now())
    hits = _hits(searched, request, query, found, also)
    for one in searched:
        if broken := len(one.indexed.broken):
            degraded.append(f"{broken:,} memories could not be opened; run verify.")
        one.opened.note_read("recall", caller.actor)
    return Recalled(hits=tuple(hits), degraded=tuple(degraded))


# -- scores -----------------------------------------------------------------------------------


def _caught_up(
    scopes: Sequence[tuple[OpenScope, Indexed]], deadline: float | None, told: list[str]
) -> list[Searched]:
    """What to search in: every index up to its head; `told` is what could not be used."""
    searched: list[Searched] = []
    base = 0
    for opened, indexed in scopes:
        ready = catch_up(opened, indexed, told, deadline)
        searched.append(Searched(opened=opened, indexed=indexed, ready=ready, base=base))
        base += len(ready.index.columns)
    return searched


def catch_up(
    opened: OpenScope, indexed: Indexed, told: list[str], deadline: float | None = None
) -> Ready:
    """What to rank one scope by; the index is locked only until then, so that others may rank."""
    with indexed.lock:
        left = indexing.catch_up(opened, indexed, deadline=deadline)
        if opened.frozen is Freeze.ALL:
            raise Frozen(f"The scope {opened.scope} is frozen, recall included.")
        indexing.settle(opened, indexed, write=not left)
        told += _shortcomings(indexed, left)
        return indexed.made()


def search(
    searched: Sequence[Searched], request: Recall, vector: NDArray[np.float32] | None
) -> Found:
    """Score every memory of indexes that are caught up, and say which the filter lets through."""
    query = request.query[:QUERY_CHARS]
    evidence = [_evidence(one.ready, query, vector) for one in searched]
    single = len(searched) == 1
    whole = searched[0].held if single else index_columns.join([one.held for one in searched])
    joined = evidence[0] if single else _joined(evidence)
    allowed = _allowed(whole, request, searched[0].opened)
    return Found(
        columns=whole,
        arranged=searched[0].ready.arranged
        if single
        else indexing.arrange(_apart(searched, whole)),
        evidence=joined,
        allowed=allowed & (joined.words > 0) if request.worded else allowed,
    )


def _apart(searched: Sequence[Searched], whole: Columns) -> Columns:
    """The columns with the sessions told apart: one name in two scopes means two of them."""
    scope = np.repeat(np.arange(len(searched)), [len(one.held) for one in searched])
    moved = whole.session + scope * len(whole.names)
    return replace(whole, session=np.where(whole.session < 0, -1, moved).astype(np.int32))


def _shortcomings(indexed: Indexed, left: int) -> Iterator[str]:
    if left:
        yield f"{left:,} changes were not looked at in the time allowed."
    if indexed.bare:
        yield f"{indexed.bare:,} memories have no vector, because the embedder failed."
    if indexed.ready.foreign:
        yield f"{indexed.ready.foreign:,} memories have vectors of another embedder; run reindex."


def _embed(
    opened: OpenScope, request: Recall, deadline: float | None, degraded: list[str]
) -> NDArray[np.float32] | None:
    embedder, query = opened.ports.embedder, request.query[:QUERY_CHARS]
    if not embedder.dimensions:
        return None
    try:
        vector: NDArray[np.float32] = embedder.embed([query], deadline=deadline)[0]
        return vector
    except EmbedderError as error:
        degraded.append(f"By words alone: {error.message}")
        return None


def _evidence(ready: Ready, query: str, vector: NDArray[np.float32] | None) -> Evidence:
    match = ready.index.match(wanted(query, ready.languages))
    meaning = None if vector is None else ready.index.cosine(vector)
    return Evidence(words=match.scores, coverage=match.coverage, meaning=meaning)


def _joined(evidence: Sequence[Evidence]) -> Evidence:
    meanings = [one.meaning for one in evidence if one.meaning is not None]
    return Evidence(
        words=np.concatenate([one.words for one in evidence]),
        coverage=np.concatenate([one.coverage for one in evidence]),
        meaning=np.concatenate(meanings) if meanings else None,
    )


def _allowed(held: Columns, request: Recall, opened: OpenScope) -> Mask:
    """Which rows the filter lets through; what is unsealed is checked again, exactly."""
    mask = _shown(held, request, opened.ports.clock.now())
    if request.kinds:
        mask &= np.isin(held.kind, [KINDS.index(kind) for kind in request.kinds])
    if request.tags:
        mask &= held.tagged(request.tags)
    if request.session is not None:
        mask &= (held.session == held.code(request.session)) & (held.session >= 0)
    if request.since is not None:
        mask &= held.said >= request.since.timestamp()
    if request.before is not None:
        mask &= held.said < request.before.timestamp()
    return mask


def _shown(held: Columns, request: Recall, now: datetime) -> Mask:
    if request.as_of is not None:
        moment = request.as_of.timestamp()
        visible: Mask = (
            (held.recorded <= moment) & (held.retired > moment) & (held.expires > moment)
        )
        return visible
    current = held.expires > now.timestamp()
    return current if request.superseded else current & np.isinf(held.retired)


# -- ranking ----------------------------------------------------------------------------------


def parse(searched: Sequence[Searched], request: Recall, now: datetime) -> ParsedQuery:
    """What the question is after; without a time of its own it is asked now.

    Dates in it count from the latest memory then: who asks about "last week" in a conversation
    of years ago means a week of that conversation.
    """
    single = len(searched) == 1
    times = [time for one in searched if (time := one.ready.latest) is not None]
    speakers = searched[0].ready.speakers if single else _speakers(searched)
    read = partial(question.parse, request.query[:QUERY_CHARS], speakers)
    try:
        query = read(asked_at=request.asked_at, latest=max(times, default=None))
    except (OverflowError, ValueError):
        # It names a time outside the years there are: that says nothing of any memory.
        query = read()
    return replace(query, asked_at=request.asked_at or now)


def _speakers(searched: Sequence[Searched]) -> Mapping[int, str]:
    joined = index_columns.join([one.held for one in searched])
    return joined.coded(joined.speaker)


def rank(query: ParsedQuery, found: Found, limit: int, count: int) -> list[Ranked]:
    """The best `count` rows, with places among the first `limit` kept for standing wishes.

    Instructions and preferences are seldom similar to the question they are about, so the best
    ones on its topic get the last places where the ranking alone would leave them out.
    """
    ranked = _best(query, found, count, found.allowed)
    topical = found.evidence.coverage >= _TOPICAL
    if found.evidence.meaning is not None:
        topical |= found.evidence.meaning >= _AKIN
    vouched = _TRUSTED[found.columns.origin] | found.columns.approved
    standing = found.allowed & topical & vouched & _BEHAVIORAL[found.columns.kind]
    if limit <= _STANDING or not standing.any():
        return ranked
    first = {one.row for one in ranked[:limit]}
    missing = _STANDING - sum(bool(standing[row]) for row in first)
    kept = [one for one in _best(query, found, _STANDING, standing) if one.row not in first]
    kept = kept[: max(missing, 0)]
    rest = [one for one in ranked if one not in kept]
    return [*rest[: limit - len(kept)], *kept, *rest[limit - len(kept) :]]


def _best(query: ParsedQuery, found: Found, count: int, allowed: Mask) -> list[Ranked]:
    return ranking.rank(query, found.arranged, found.evidence, limit=count, allowed=allowed)


# -- hits -------------------------------------------------------------------------------------


def _hits(
    searched: Sequence[Searched],
    request: Recall,
    query: ParsedQuery,
    found: Found,
    also: frozenset[str],
) -> list[Hit]:
    """The best that keep to the budgets; more are looked at only if some of the first do not."""
    if not found.allowed.any():
        return []
    ranked = rank(query, found, request.limit, request.limit)
    fitting = fit(_unseal(searched, request, ranked), request)
    # Whether an untrusted source has to leave room shows only when others were looked at, too.
    whole = len(fitting) == min(request.limit, len(ranked))
    if not whole or not all(hit.memory.origin.trusted for hit in fitting):
        fitting = fit(_unseal(searched, request, _more(query, found, request)), request)
    known = {hit.memory.id for hit in fitting}
    fitting += _also(searched, request, query, found, also=also, known=known)
    return sorted(fitting, key=lambda hit: -hit.score)


def _also(
    searched: Sequence[Searched],
    request: Recall,
    query: ParsedQuery,
    found: Found,
    *,
    also: frozenset[str],
    known: set[str],
) -> list[Hit]:
    """The best of those with the tags that are wanted besides, ranked by the same evidence."""
    if not also:
        return []
    ranked = _best(query, found, request.limit, found.allowed & found.columns.tagged(also))
    hits = fit(_unseal(searched, request, ranked), request)
    return [hit for hit in hits if hit.memory.id not in known]


def _more(query: ParsedQuery, found: Found, request: Recall) -> list[Ranked]:
    """More rows, with as many trusted ones among them as could fill the answer."""
    ranked = rank(query, found, request.limit, request.limit + _SPARE)
    known = {one.row for one in ranked}
    trusted = found.allowed & _TRUSTED[found.columns.origin]
    others = [one for one in _best(query, found, request.limit, trusted) if one.row not in known]
    return [*ranked, *others]


def _unseal(searched: Sequence[Searched], request: Recall, ranked: Sequence[Ranked]) -> list[Hit]:
    """The memories of the best rows as they are now; what no longer fits the filter is left out."""
    found: dict[int, Memory] = {}
    for one in searched:
        held = one.held
        rows = [r.row for r in ranked if one.base <= r.row < one.base + len(held)]
        ids = {row: held.row_id[row - one.base].tobytes() for row in rows}
        found |= indexing.read(one.indexed, partial(_memories, ids))
    now = searched[0].opened.ports.clock.now()
    return [
        Hit(memory=memory, score=r.score, why=r.parts, scope=_scope_of(searched, r.row))
        for r in ranked
        if (memory := found.get(r.row)) is not None and request.accepts(memory, now)
    ]


def _memories(ids: dict[int, bytes], peek: Peek) -> dict[int, Memory]:
    found = {number: peek(row_id) for number, row_id in ids.items()}
    return {number: memory for number, memory in found.items() if memory is not None}


def _scope_of(searched: Sequence[Searched], row: int) -> Scope:
    return next(one.opened.scope for one in reversed(searched) if row >= one.base)
