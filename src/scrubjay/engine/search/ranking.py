"""The ranking: features of every row, from 0 to about 1, and their weighted sum.

There are two profiles of weights, and a row's own properties choose: a turn of a session has others
around it that share its words, while a fact that stands alone is often asked for in other words.

Properties of the rows (speaker, time, place in the session) are arranged once after a change; each
question then computes its features over all rows at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from scrubjay.engine.search.question import NONE, ParsedQuery

Floats: TypeAlias = NDArray[np.float32]
Times: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int32]
Places: TypeAlias = NDArray[np.intp]
"""Row numbers for fancy indexing; intp, because numpy would convert them at every use."""
Mask: TypeAlias = NDArray[np.bool_]


class Weights(Struct, frozen=True, kw_only=True, dict=True):
    """What each feature adds to a row's score, before the score is brought to 0..1."""

    words: float = 2.06
    """BM25, as a share of the best row."""
    coverage: float = 2.06
    """Coverage: the share of the question's information the row holds."""
    meaning: float = 3.18
    """Cosine of the vectors, spread over 0..1."""
    answers: float = 1.69
    """Evidence of the turn before, if it is a question of another speaker."""
    session: float = 2.42
    """The evidence of the session's best row."""
    nearby: float = 2.49
    """Coverage by a neighboring turn beyond the row's own."""
    speaker: float = 2.5
    """Said by a speaker the question asks about."""
    dated: float = 2.35
    """In a time range of the question."""
    when: float = 1.43
    """The row names a time, and the question asks when."""
    short: float = -0.91
    """Penalty for a text under 120 characters, logarithmic."""
    question: float = -0.33
    """The row is a question itself."""
    bare: float = -24.0
    """The row is a short question: it states nothing, so it comes after all that do.

    One with a reply too short to be understood without it comes right behind that reply.
    """
    newest: float = 0.8
    """The last statement of those that hold as much of the question as any."""
    instruction: float = 2.15
    """The row is an instruction, and the question asks for help now."""
    preference: float = 1.57
    """The row is a preference, and the question asks for help now."""
    later: float = -2.0
    """Said after the question was asked."""
    age: float = -0.5
    """Age at the time of the question, logarithmic; a year is 1."""
    importance: float = 0.3
    """Above or below the usual 0.5."""
    distrust: float = -0.5
    """Distance of the origin from the most trusted one."""
    pinned: float = 0.1
    echo: float = -16.0
    """Is the question itself, asked before."""
    again: float = -0.075
    """Rows of its session before it, where the question asks for several things."""
    holds: float = 0.0
    """Coverage to the power of 1.5: a trivial match counts little, a nearly full one much."""

    @cached_property
    def ceiling(self) -> float:
        """Maximum of the weighted sum; scores are shares of it."""
        return sum(max(float(getattr(self, name)), 0.0) for name in _NAMES)


_NAMES: Final = Weights.__struct_fields__
WEIGHTS = Weights()
"""Of a turn in a session."""
ALONE = replace(
    WEIGHTS,
    words=0.0,
    coverage=0.0,
    holds=6.0,
    meaning=6.7,
    session=0.0,
    short=0.0,
    newest=2.0,
)
"""Of a memory without a session: its best match by words is often a trivial one."""


# -- what is known of every row ---------------------------------------------------------------

QUOTABLE = 250
"""Length up to which a turn passes its whole evidence to its neighbors."""
SHORT = 120
BARE = 70
"""Length up to which a question holds no statement besides."""
CURT = 30
"""Length up to which a reply says nothing without its question."""
LEAST = 5
"""Lower bound of the length of a turn."""


class RankColumns(Struct, frozen=True, kw_only=True):
    """One array per property, a row per memory; made once, used by every query until a write."""

    speaker: Codes
    time: Times
    """Seconds since 1970; NaN where unknown."""
    latest: float
    """The last of these times: for a question asked after it, no row is `later`."""
    timed: Mask
    asks: Mask
    instructs: Mask
    prefers: Mask
    previous: Places
    following: Places
    by_session: Places
    """All rows, session after session."""
    session_starts: Places
    """Where each session begins in `by_session`."""
    session_of: Places
    """Which of these sessions each row belongs to."""
    gate: Floats
    """Share of its evidence that a turn passes to its neighbors, by its length."""
    replies: Mask
    """Turns that answer a question of another speaker."""
    curt: Places
    """Replies that say nothing without the short question before them."""
    manner: Mapping[str, Floats]
    """Features that do not depend on the question, by name; all-zero ones are left out."""
    weights: Mapping[str, np.float32 | Floats]
    """What each feature counts: one number, or one for each row where their profiles differ."""

    def __len__(self) -> int:
        return len(self.speaker)


def arrange(
    *,
    session: Codes,
    position: Codes,
    speaker: Codes,
    time: Times,
    length: Floats,
    signs: Mapping[str, Mask],
    importance: Floats | None = None,
    trust: Floats | None = None,
    pinned: Mask | None = None,
) -> RankColumns:
    """Columns of these rows; a row of no session is a session of its own.

    `signs` holds the signs of the texts (`timed`, `asks`, `instructs`, `prefers`);
    importance and trust run from 0 to 1 with 0.5 and 1 as the usual ones.
    """
    rows = len(session)
    own = np.where(session == NONE, -1 - np.arange(rows), session)  # as wide as an address
    order = _by_session(own, position)
    first = np.ones(rows, np.bool_)
    first[1:] = own[order[1:]] != own[order[:-1]]
    session_of = np.empty(rows, np.intp)
    session_of[order] = np.cumsum(first) - 1
    previous, following = np.full(rows, NONE, np.intp), np.full(rows, NONE, np.intp)
    inner = ~first[1:]
    previous[order[1:][inner]] = order[:-1][inner]
    following[order[:-1][inner]] = order[1:][inner]
    asks = signs["asks"]
    replies = (previous != NONE) & asks[previous] & (speaker[previous] != speaker)
    bare = asks & (length <= BARE)
    # Very short turns seldom hold the answer; questions neither.
    size = np.log(np.maximum(length, LEAST)).astype(np.float32)
    manner = {
        "short": np.maximum(np.float32(np.log(SHORT)) - size, 0),
        "question": asks.astype(np.float32),
        "bare": bare.astype(np.float32),
    }
    if importance is not None:
        manner["importance"] = importance - np.float32(0.5)
    if trust is not None:
        manner["distrust"] = 1 - trust
    if pinned is not None:
        manner["pinned"] = pinned.astype(np.float32)
    return RankColumns(
        speaker=speaker,
        time=time,
        latest=float(np.fmax.reduce(time, initial=-np.inf)),
        timed=signs["timed"],
        asks=asks,
        instructs=signs["instructs"],
        prefers=signs["prefers"],
        previous=previous,
        following=following,
        by_session=order,
        session_starts=np.flatnonzero(first),
        session_of=session_of,
        gate=np.minimum(1, QUOTABLE / np.maximum(length, 1)).astype(np.float32),
        replies=replies,
        curt=np.flatnonzero(replies & ~asks & (length <= CURT) & bare[previous]),
        manner={name: values for name, values in manner.items() if values.any()},
        weights=_weights(session == NONE),
    )


def _weights(alone: Mask) -> Mapping[str, np.float32 | Floats]:
    """The weights of the rows by what they have; features that count nowhere are left out."""
    chosen: dict[str, np.float32 | Floats] = {}
    some, every = bool(alone.any()), bool(alone.all())
    for name in _NAMES:
        talk, fact = np.float32(getattr(WEIGHTS, name)), np.float32(getattr(ALONE, name))
        if talk != fact and some and not every:
            chosen[name] = np.where(alone, fact, talk)
        elif weight := fact if some and every else talk:
            chosen[name] = weight
    return chosen


def _by_session(session: Places, position: Codes) -> Places:
    """The rows by session, then position; equal ones as they come."""
    if not len(session):
        return np.empty(0, np.intp)
    least, most = int(position.min()), int(position.max())
    span = most - least + 1
    if span * max(int(session.max()), -int(session.min()), 1) >= 2**62:
        return np.lexsort((position, session))
    # As one number: rows mostly come in this order, and a stable sort of those is one pass.
    return np.argsort(session * span + (position - least), kind="stable")


# -- features ---------------------------------------------------------------------------------

WORD_SHARE = 0.75
"""Share of words, against vectors, in the evidence that neighbors and sessions pass on."""
SPREAD = 0.5
"""Cosines that differ by less than this are not spread over all of 0..1: they hardly differ."""
BROAD = 0.5
"""A time range with a larger share of all rows is ignored."""
AGREES = 0.05
"""The least cosine by which a row without a word of the question agrees with it at all."""
STATED = 0.5
"""The least coverage by which a row states what is asked for."""
EQUAL = 0.99
"""The share of the best coverage that counts as the same."""
ABOUT = 0.05
"""The least share of the question's information by which a standing wish is about it."""
ALIKE = 0.15
"""The least cosine with the question by which a standing wish is about it, too."""
SAME = 0.9
"""The cosine from which on two questions are the same."""
EXACT = 6
"""How much more a day counts that nobody mistakes, such as yesterday."""
BEHIND = 1e-3
"""How much lower a question stands than the short reply that it completes."""
SPARE = 10
"""How many more rows are looked at where a question asks for several things."""
DAY = 86400.0
OLD_DAYS = 365


class Evidence(Struct, frozen=True, kw_only=True):
    """How well each row matches the query by itself."""

    words: Floats
    """BM25, 0 or more."""
    coverage: Floats
    """The share of the query's information the row holds, 0 to 1."""
    meaning: Floats | None = None
    """Cosine to the query with the scope's mean vector removed; None when there are no vectors."""
    likeness: Floats | None = None
    """Cosine to the query as it is."""
    terms: int = 0
    """How many terms the query has."""
    nats: float = 0.0
    """The information of those that some row holds."""
    topical: bool = True
    """Whether any term is more than small talk."""
    shared: Floats | None = None
    """How many of them the row holds, by how much they tell."""

    @classmethod
    def union(cls, parts: Sequence[Evidence]) -> Evidence:
        """That of several questions together: of each row the best match with any of them."""
        if len(parts) == 1:
            return parts[0]

        def best(name: str) -> Any:
            values = [getattr(one, name) for one in parts]
            return None if values[0] is None else np.maximum.reduce(values)

        return cls(**{name: best(name) for name in cls.__struct_fields__})


def compute(
    query: ParsedQuery, columns: RankColumns, evidence: Evidence, whole: Evidence | None = None
) -> Mapping[str, Floats]:
    """All features by name; all-zero ones are left out.

    `whole` is the evidence for all questions of a text, if this is one of several.
    """
    whole = whole or evidence
    words, coverage = evidence.words, evidence.coverage
    if (top := float(words.max(initial=0))) > 0:
        words = words / np.float32(top)
    meaning = np.zeros_like(words)
    if evidence.meaning is not None and len(words):
        low, high = float(evidence.meaning.min()), float(evidence.meaning.max())
        meaning = (evidence.meaning - np.float32(low)) / np.float32(max(high - low, SPREAD))
    own = WORD_SHARE * words + (1 - WORD_SHARE) * meaning
    found = {"words": words, "coverage": coverage, "meaning": meaning}
    if "holds" in columns.weights:
        found["holds"] = coverage * np.sqrt(coverage)
    # What the turns around a row and its session add.
    held = _passed(coverage, columns)
    around = np.maximum(held.take(columns.previous), held.take(columns.following))
    passed = _passed(own, columns).take(columns.previous)
    found["answers"] = passed * columns.gate * columns.replies
    if len(own):
        best = np.maximum.reduceat(own.take(columns.by_session), columns.session_starts)
        found["session"] = best.take(columns.session_of)
    found["nearby"] = np.maximum(around * columns.gate - coverage, 0)
    masks = _aims(query, columns)
    if whole.meaning is not None:
        # Who said it and what stands beside it count where the row itself agrees at all.
        agrees = (whole.coverage > 0) | (whole.meaning > AGREES)
        for name in ("answers", "session", "nearby"):
            found[name] = found[name] * agrees
        if "speaker" in masks:
            masks["speaker"] &= agrees
    last = _last_statement(evidence, columns)
    if len(last):
        found["newest"] = np.zeros(len(coverage), np.float32)
        found["newest"][last] = 1
    _keep_about(masks, evidence)
    found |= {name: mask.astype(np.float32) for name, mask in masks.items()}
    if "dated" in found and any(window.exact for window in query.windows):
        found["dated"] *= np.float32(EXACT)
    found |= columns.manner
    if evidence.likeness is not None and (same := evidence.likeness >= SAME).any():
        # Asked before in the same words: it says nothing, whatever it matches.
        found["echo"] = (same & columns.asks).astype(np.float32)
    if query.asked_at is not None:
        # How long ago a row was said when the question is asked: a day 0.1, a month 0.6, a year 1.
        days = ((query.asked_at.timestamp() - columns.time) / DAY).astype(np.float32)
        # A float's `log` is vectorized where `log1p` is not; below a day both say next to nothing.
        age = np.log(np.fmax(days, 0) + np.float32(1)) / np.float32(np.log1p(OLD_DAYS))
        found["age"] = np.minimum(age, 1)
    return found


def _last_statement(evidence: Evidence, columns: RankColumns) -> Places:
    """The last of several statements about one thing, which holds; of equal times the last written.

    They are about one thing where they hold as much of the question, and that is more than half of
    its terms: a name alone is not what a question is about.
    """
    coverage = evidence.coverage
    most = float(coverage.max(initial=0))
    if most < STATED:
        return np.empty(0, np.intp)
    states = (coverage >= EQUAL * most) & ~columns.asks
    if evidence.shared is not None:
        states &= 2 * evidence.shared > evidence.terms
    equal = np.flatnonzero(states)
    if len(equal) < 2:
        return equal[:0]
    times = columns.time[equal]
    last: Places = equal[times == np.fmax.reduce(times)][-1:]
    return last


def _keep_about(masks: dict[str, Mask], evidence: Evidence) -> None:
    """Of standing wishes, keep those that have anything to do with the question."""
    if "instruction" in masks:
        about = evidence.coverage >= ABOUT
        if evidence.meaning is not None:
            about |= evidence.meaning >= ALIKE
        for name in ("instruction", "preference"):
            masks[name] &= about


def _passed(values: Floats, columns: RankColumns) -> Floats:
    """Evidence that each row passes to its neighbors; the last row stands for no neighbor."""
    passed = np.zeros(len(values) + 1, np.float32)
    np.multiply(values, columns.gate, out=passed[:-1])
    return passed


def _aims(query: ParsedQuery, columns: RankColumns) -> dict[str, Mask]:
    """Features by the aims of the question: speaker, time range, instruction or preference."""
    found: dict[str, Mask] = {}
    if query.asked:
        found["speaker"] = _said_by(columns, query.asked)
    if query.windows:
        inside = np.zeros(len(columns), np.bool_)
        for window in query.windows:
            first, last = window.start.timestamp(), window.end.timestamp()
            inside |= (columns.time >= first) & (columns.time < last)
        if len(inside) and inside.mean() <= BROAD:
            found["dated"] = inside
    if query.asked_at is not None and query.asked_at.timestamp() < columns.latest:
        found["later"] = columns.time > query.asked_at.timestamp()
    if query.when:
        found["when"] = columns.timed
    if query.advice:
        # Standing instructions and wishes count where help is asked, similar or not.
        people = ~_said_by(columns, query.assistants)
        found["instruction"] = columns.instructs & people
        found["preference"] = columns.prefers & people
    return found


def _said_by(columns: RankColumns, speakers: Iterable[int]) -> Mask:
    said = np.zeros(len(columns), np.bool_)
    for speaker in speakers:
        said |= columns.speaker == speaker
    return said


def total(features: Mapping[str, Floats], columns: RankColumns) -> Floats:
    """The weighted sum of the features for every row."""
    sums = np.zeros(len(columns), np.float32)
    for name, weight in columns.weights.items():
        if name in features:
            sums += weight * features[name]
    return sums


# -- the best rows ----------------------------------------------------------------------------


class Ranked(Struct, frozen=True, kw_only=True):
    """One row of the answer: its score from 0 to 1 and the named parts that sum to it."""

    row: int
    score: float
    parts: Mapping[str, float]
    relevance: float = 0.0


class Scored(Struct, frozen=True, kw_only=True):
    """The features of every row for one question, and their weighted sum."""

    query: ParsedQuery
    columns: RankColumns
    evidence: Evidence
    features: Mapping[str, Floats]
    sums: Floats


def score(query: ParsedQuery, columns: RankColumns, parts: Sequence[Evidence]) -> Scored:
    """Score every row: once for a question, however often rows are chosen by it.

    `parts` are the questions it consists of. Each has features of its own, and their mean counts:
    of evidence for both together, the words of one would hide the other.
    """
    whole = Evidence.union(parts)
    features = _mean([compute(query, columns, evidence, whole) for evidence in parts])
    sums = total(features, columns)
    if len(columns.curt):
        _complete(features, sums, columns)
    return Scored(query=query, columns=columns, evidence=whole, features=features, sums=sums)


def _mean(parts: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    """The mean of each feature; one that is left out is zero."""
    if len(parts) == 1:
        return dict(parts[0])
    found: dict[str, Floats] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if name in part]
        found[name] = np.add.reduce(values) / np.float32(len(parts))
    return found


def best(scored: Scored, *, limit: int, allowed: Mask | None = None) -> list[Ranked]:
    """The best rows among those allowed, best first; equal ones in the order of their rows."""
    features, columns, sums = scored.features, scored.columns, scored.sums
    if allowed is not None:
        sums = np.where(allowed, sums, -np.inf)
    wide = limit + SPARE if scored.query.many else limit
    if wide < len(sums):
        # Ties at the edge are settled by row, so that the answer never depends on the partition.
        edge = np.partition(sums, len(sums) - wide)[len(sums) - wide]
        candidates = np.flatnonzero(sums >= edge)
    else:
        candidates = np.arange(len(sums))
    order = candidates[np.argsort(-sums[candidates], kind="stable")[:wide]]
    order = order[sums[order] > -np.inf]
    rows: list[int] = order.tolist()
    ceiling = WEIGHTS.ceiling
    parts: dict[int, dict[str, float]] = {row: {} for row in rows}
    names = [name for name in columns.weights if name in features]
    # In double precision, so that what is shown adds up and never rises.
    shares, held = np.empty((2, len(names), len(order)))
    for place, name in enumerate(names):
        weight = columns.weights[name]
        shares[place] = weight[order] if isinstance(weight, np.ndarray) else weight
        held[place] = features[name].take(order)
    shares = shares / ceiling * held
    for name, values in zip(names, shares.tolist(), strict=True):
        for row, part in zip(rows, values, strict=True):
            if part:
                parts[row][name] = part
    ranked = []
    scores = {row: sum(parts[row].values()) for row in rows}
    rows.sort(key=lambda row: (-scores[row], row))
    if scored.query.many:
        whole = dict(scores)
        rows = _spread(rows, scores, columns)[:limit]
        for row in rows:
            if scores[row] != whole[row]:
                parts[row]["again"] = scores[row] - whole[row]
    likely = relevance(scored.query, scored.evidence, sums, rows)
    for row in rows:
        score = scores[row]
        bounded = min(max(score, 0.0), 1.0)
        if bounded != score:
            # What had to be cut off is a part of its own.
            parts[row]["bound"] = bounded - score
        ranked.append(Ranked(row=row, score=bounded, parts=parts[row], relevance=likely[row]))
    return ranked


def _complete(features: dict[str, Floats], sums: Floats, columns: RankColumns) -> None:
    """Put each short question right behind its reply, if that says nothing without it."""
    asked = columns.previous[columns.curt]
    behind = sums[columns.curt] - np.float32(BEHIND) - sums[asked]
    features["bare"] = features["bare"].copy()
    features["bare"][asked] += behind / np.float32(WEIGHTS.bare)
    sums[asked] += behind


def _spread(rows: Sequence[int], scores: dict[int, float], columns: RankColumns) -> list[int]:
    """The rows in their order, once each of a session has lowered those of it that follow.

    `scores` are lowered, too: what a list needs stands in several sessions more often than beside
    what was found already.
    """
    waiting = [(-scores[row], row, 0) for row in rows]
    taken: Counter[int] = Counter()
    spread = []
    while waiting:
        _, row, before = heappop(waiting)
        session = int(columns.session_of[row])
        if now := taken[session] - before:
            # The score is of an earlier moment; with its new one the row waits again.
            scores[row] += now * WEIGHTS.again / WEIGHTS.ceiling
            heappush(waiting, (-scores[row], row, taken[session]))
            continue
        taken[session] += 1
        spread.append(row)
    return spread


GATE = {
    "bias": -7.25,
    "likeness": 15.1,
    "shared": 3.72,
    "rows": -1.01,
    "terms": 1.3,
    "named": 10.4,
    "own": 3.46,
    "idle": -5.0,
}
"""Log-odds that a scope holds an answer at all, by the best of the hits."""
HIT = {"bias": -1.19, "behind": 0.324, "likeness": 0.303, "nats": 0.083, "place": -0.845}
"""Log-odds that one of its hits is that answer; docs/evaluation.md says how both were found."""
GUESSED = 0.5
"""The likeness of a row that holds all the words, where there are no vectors to compare."""
MOST_NATS = 25.0
FEWEST_ROWS = 250
"""A smaller scope is not easier to please: what nothing in it answers is as foreign."""
CALIBRATED = 10
"""How many places the fit looked at; later ones count as the last of them."""


_PLACES = np.log1p(np.arange(CALIBRATED))


def relevance(
    query: ParsedQuery, evidence: Evidence, sums: Floats, rows: Sequence[int]
) -> dict[int, float]:
    """How likely each of the best rows, in their order, is to answer.

    The gate asks whether anything here does: whether it is about the people here, how many words
    it shares that tell something, and the plain cosine. Of a larger scope chance gives more of it.
    """
    if not rows:
        return {}
    chosen = np.array(rows)
    held = evidence.coverage[chosen] * np.float32(evidence.nats)
    if evidence.likeness is None:
        alike = np.float32(GUESSED) * evidence.coverage[chosen]
    else:
        alike = evidence.likeness[chosen]
    first = slice(CALIBRATED)
    shared = 0.0 if evidence.shared is None else max(evidence.shared[chosen[first]].tolist())
    gate = GATE["bias"] + GATE["likeness"] * max(alike[first].tolist())
    gate += GATE["shared"] * math.log1p(shared)
    gate += GATE["named"] * query.named + GATE["own"] * (query.own and evidence.topical)
    gate += GATE["idle"] * (not evidence.topical and not query.windows)
    gate += GATE["rows"] * math.log(max(len(sums), FEWEST_ROWS))
    gate += GATE["terms"] * math.log(max(evidence.terms, 1))
    place = _PLACES[np.minimum(np.arange(len(rows)), CALIBRATED - 1)]
    hit = HIT["bias"] + HIT["behind"] * (sums[chosen] - sums[rows[0]]) + HIT["likeness"] * alike
    hit = hit + HIT["nats"] * np.minimum(held, MOST_NATS) + HIT["place"] * place
    odds = 1 / (1 + math.exp(-max(gate, -60.0))) / (1 + np.exp(-hit))
    return dict(zip(rows, odds.tolist(), strict=True))


def full_score(*, by_words: bool, weights: Weights = WEIGHTS) -> float:
    """Score of a row that matches a question fully.

    `by_words`: without vectors.
    """
    words = weights.words + weights.coverage
    if by_words:
        return (words + WORD_SHARE * weights.session) / weights.ceiling
    return (words + weights.meaning + weights.session) / weights.ceiling
