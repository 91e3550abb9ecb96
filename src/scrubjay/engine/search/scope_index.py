"""In-memory index of one scope: segments, the newest memories, and the mask of live rows.

A changed memory is added again and its old row is masked. An erased one is masked here and left
out of every segment written later. A question is ranked on an immutable snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from scrubjay.engine.search import ranking
from scrubjay.engine.search.analysis import Wanted
from scrubjay.engine.search.postings import (
    Floats,
    Mask,
    Match,
    Places,
    Postings,
    Rows,
    TermCounts,
    TermRows,
    Terms,
)
from scrubjay.engine.search.ranking import RankColumns
from scrubjay.engine.search.segment import (
    KINDS,
    SIGNS,
    TRUST,
    TRUSTED,
    Columns,
    IndexEntry,
    Segment,
    Vectors,
)

Vectorize = Callable[[Sequence[IndexEntry]], Floats]
Rest = tuple[Postings, Vectors]
"""The parts of a segment that are loaded by the first recall."""
CountedVectors = tuple[Vectors, Mask | None]
"""Vectors and the mask of the live ones; None if all are."""
_ROW_BYTES: Final = 110
_ENTRY_BYTES: Final = 2_000
_HOLLOW: Final = 0.5
"""A segment with a smaller share of live rows is rewritten."""
_GROWTH: Final = 2
"""A segment less than this many times as large as the new rows is merged with them."""
_RARE: Final = 50
"""A language belongs to the scope if at least one memory in this many is written in it."""
_NEAREST: Final = 0.2
"""Below this distance from the mean a direction is mostly rounding, and counts less."""
_DENSE: Final = frozenset({"chinese", "japanese"})
"""Languages of which one character says about as much as three letters of an alphabet."""
_BEHAVIORAL: Final = np.array([kind.behavioral for kind in KINDS])
_LAST: Final = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()


def moment(seconds: float) -> datetime:
    """A time of a column."""
    # The last moment there is, as a float, would be one of the year 10000.
    return datetime.fromtimestamp(min(seconds, _LAST), UTC)


def arrange(held: Columns) -> RankColumns:
    """The columns of an index, arranged for the ranking."""
    dense = [code for code, name in enumerate(held.names) if name in _DENSE]
    return ranking.arrange(
        session=held.session,
        # Where nothing says which turn came first, the order of writing does.
        position=np.where(held.position < 0, held.born, held.position).astype(np.int64),
        speaker=held.speaker,
        time=held.said,
        length=np.where(np.isin(held.language, dense), 3 * held.length, held.length).astype(
            np.float32
        ),
        signs={name: held.shows(name) for name in SIGNS},
        importance=held.importance,
        trust=TRUST[held.origin],
        pinned=held.pinned,
    )


class Snapshot:
    """Immutable snapshot of the live rows of a scope; thread-safe."""

    def __init__(
        self,
        *,
        columns: Columns,
        terms: Terms,
        vectors: Sequence[CountedVectors],
        squares: Sequence[Floats],
        mean: Floats,
        bare: int,
        foreign: Mask | None = None,
        arranged: RankColumns | None = None,
    ) -> None:
        self.columns = columns
        self.bare = bare
        """How many rows have no vector."""
        self.arranged = arrange(columns) if arranged is None else arranged
        """The columns, arranged for the ranking."""
        counts = np.bincount(columns.language, minlength=len(columns.names))
        common = np.flatnonzero(counts * _RARE >= max(len(columns), 1))
        self.languages = tuple(columns.names[code] for code in common)
        """Languages of the scope."""
        self.speakers = columns.coded(columns.speaker)
        """The names of all speakers by their codes."""
        self.latest = moment(columns.said.max()) if len(columns) else None
        """Time of the latest memory."""
        self._terms = terms
        self._vectors = vectors
        self._squares = squares
        self._mean = mean
        """Mean of the vectors of all rows."""
        self._foreign = foreign
        """The rows in languages the embedder does not know; None where it knows all."""

    @classmethod
    def join(cls, parts: Sequence[Snapshot]) -> Snapshot:
        """One of several scopes: what is rare and what is usual is so in all of them together."""
        if len(parts) == 1:
            return parts[0]
        sizes = [len(part.columns) for part in parts]
        whole = Columns.join([part.columns for part in parts])
        # Sessions are told apart: one name in two scopes means two of them.
        moved = whole.session + np.repeat(np.arange(len(parts)), sizes) * len(whole.names)
        apart = np.where(whole.session < 0, -1, moved).astype(np.int32)
        means = [part._mean * np.float32(size) for part, size in zip(parts, sizes, strict=True)]
        masks = [
            np.zeros(size, np.bool_) if part._foreign is None else part._foreign
            for part, size in zip(parts, sizes, strict=True)
        ]
        foreign = np.concatenate(masks)
        return cls(
            columns=whole,
            terms=Terms.of([rows for part in parts for rows in part._terms.parts]),
            vectors=[vectors for part in parts for vectors in part._vectors],
            squares=[squares for part in parts for squares in part._squares],
            mean=np.sum(means, axis=0) / np.float32(max(sum(sizes), 1)),
            bare=sum(part.bare for part in parts),
            foreign=foreign if foreign.any() else None,
            arranged=arrange(replace(whole, session=apart)),
        )

    @property
    def unknown_share(self) -> float:
        """Share of the rows in languages the embedder does not know."""
        return 0.0 if self._foreign is None else float(self._foreign.mean())

    @cached_property
    def vouched(self) -> Mask:
        """Mask of the trusted rows: by their origin, or approved by a person."""
        trusted: Mask = TRUSTED[self.columns.origin] | self.columns.approved
        return trusted

    @cached_property
    def behavioral(self) -> Mask:
        """Mask of the rows of behavioral kinds."""
        told: Mask = _BEHAVIORAL[self.columns.kind]
        return told

    @cached_property
    def distances(self) -> tuple[Floats, Floats]:
        """One over each vector's distance from the mean, 0 for none; and its product with that."""
        common = self._dot(self._mean)
        pairs = zip(self._squares, self._vectors, strict=True)
        own = _joined([(squares, alive) for squares, (_, alive) in pairs])
        spread = own - 2 * common + np.float32(self._mean @ self._mean)
        distance = np.sqrt(np.maximum(spread, 0))
        return (own > 0) / np.maximum(distance, np.float32(_NEAREST)), common

    @cached_property
    def _understood(self) -> tuple[Mask, Places]:
        """Mask of the rows in languages the embedder knows, where not in all, and the others."""
        assert self._foreign is not None
        known: Mask = ~self._foreign
        return known, np.flatnonzero(self._foreign)

    def match(self, wanted: Sequence[Wanted]) -> Match:
        """Match every row with the query terms."""
        return self._terms.match(wanted)

    def cosine(self, vector: Floats) -> tuple[Floats, Floats]:
        """Cosine of every row with a vector, after subtracting the mean from both, and as it is.

        A row in a language the embedder does not know counts as the average of the others.
        """
        mean = self._mean
        turned = vector - mean
        length = float(np.sqrt(turned @ turned))
        unknown = self._foreign is not None and not self._understood[0].any()
        if not length or not vector.any() or not self._vectors or unknown:
            nothing = np.zeros(len(self.columns), np.float32)
            return nothing, nothing
        length = max(length, _NEAREST)
        turned /= np.float32(length)
        dots, (nearness, common) = self._dot(turned), self.distances
        found: Floats = (dots - np.float32(mean @ turned)) * nearness
        if self._foreign is not None:
            # As `mean` does it; that one would also count the rows anew.
            known, others = self._understood
            count = np.intp(len(known) - len(others))
            found[others] = np.float32(np.add.reduce(found, where=known) / count)
        return found, dots * np.float32(length) + common

    def _dot(self, query: Floats) -> Floats:
        """Dot products of every live vector with the query, or with each of its rows."""
        return _joined([(held.dot(query), alive) for held, alive in self._vectors])


def _joined(parts: Sequence[tuple[Floats, Mask | None]]) -> Floats:
    """Live values of all parts, concatenated."""
    pieces = [values if alive is None else values[..., alive] for values, alive in parts]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=-1)


class LoadedSegment(Struct):
    """A segment in memory, with the mask of its live rows."""

    columns: Columns
    alive: Mask
    load: Callable[[], Rest] | None = None
    """Loader of the postings and vectors, until the first recall."""
    token: object | None = None
    """Identity of the segment on disk; None if it is only in memory."""
    rest: Rest | None = None
    _total: Floats | None = None
    _squares: Floats | None = None
    _counting: _CountedPostings | None = None

    @property
    def size(self) -> int:
        """Roughly how many bytes it takes."""
        size = _ROW_BYTES * len(self.columns)
        if self.rest is not None:
            size += self.vectors.steps.nbytes + self.postings.nbytes
        return size

    @property
    def postings(self) -> Postings:
        """Its postings, once they are loaded."""
        assert self.rest is not None
        return self.rest[0]

    @property
    def vectors(self) -> Vectors:
        """Its vectors, once they are loaded."""
        assert self.rest is not None
        return self.rest[1]

    @property
    def whole(self) -> bool:
        """Whether every row is live."""
        return bool(self.alive.all())

    @property
    def counting(self) -> int:
        """Number of live rows."""
        return int(self.alive.sum())

    def erase(self, row_id: bytes) -> None:
        """Mask the rows of one id."""
        rows = self.columns.places(row_id)
        if len(rows):
            # On a copy: a snapshot that somebody still ranks by goes on counting them.
            self.alive = self.alive.copy()
            self.alive[rows] = False
            self._total = self._counting = None

    def terms(self) -> TermRows:
        """Its postings without masked rows."""
        if self.whole:
            return self.postings
        if self._counting is None:
            numbers = (np.cumsum(self.alive) - 1).astype(np.uint32)
            lengths = self.postings.lengths[self.alive]
            self._counting = _CountedPostings(self.postings, self.alive, lengths, numbers)
        return self._counting

    def total(self) -> Floats:
        """Sum of the vectors of the live rows; computed once."""
        if self._total is None:
            held = self.vectors
            self._total = (held if self.whole else Vectors.join([held], [self.alive])).total()
        return self._total

    def squares(self) -> Floats:
        """Squared lengths of its vectors; computed once."""
        if self._squares is None:
            self._squares = self.vectors.squares()
        return self._squares


class _CountedPostings(Struct, frozen=True):
    """Postings without masked rows; the live ones are numbered consecutively."""

    held: Postings
    alive: Mask
    lengths: Rows
    numbers: Rows

    def find(self, terms: Collection[str]) -> list[TermCounts]:
        """For each term the rows that hold it, ascending, and how often each does."""
        found = list[TermCounts]()
        for rows, counts in self.held.find(terms):
            kept = self.alive[rows]
            found.append((self.numbers[rows[kept]], counts[kept]))
        return found


class Plan(Struct, frozen=True, kw_only=True):
    """Write plan: one new segment that replaces some, beside those that stay."""

    kept: tuple[object, ...]
    segment: Segment
    first: int
    """Place of the first segment that the new one replaces."""


class ScopeIndex(Struct):
    """In-memory search index of one scope; not thread-safe."""

    identity: str
    dimensions: int
    vectorize: Vectorize
    """Vectors for new memories; called when something is recalled, not before."""
    known: frozenset[str] | None = None
    """The languages the embedder knows; None for any."""
    seq: int = 0
    """Last change that is indexed."""
    min_seq: int = 0
    foreign: int = 0
    """Number of rows loaded with vectors of another embedder, which are ignored."""
    _parts: list[LoadedSegment] = []
    _fresh: dict[bytes, IndexEntry] = {}
    _columns: Columns | None = None
    _snapshot: Snapshot | None = None

    def __len__(self) -> int:
        return sum(len(part.columns) for part in self._parts) + len(self._fresh)

    @property
    def size(self) -> int:
        """Roughly how many bytes it takes in memory."""
        joined = 0 if self._columns is None else _ROW_BYTES * len(self)
        return sum(part.size for part in self._parts) + _ENTRY_BYTES * len(self._fresh) + joined

    @property
    def unwritten(self) -> int:
        """How many rows are in no segment on disk."""
        loose = (len(part.columns) for part in self._parts if part.token is None)
        return sum(loose) + len(self._fresh)

    # -- taking in ---------------------------------------------------------------------

    def load(
        self, loaded: Columns, dead: Sequence[int], token: object, rest: Callable[[], Rest]
    ) -> None:
        """Add a segment from disk, newer than all before it, with its dead rows masked."""
        alive = np.ones(len(loaded), np.bool_)
        alive[list(dead)] = False
        self._parts.append(LoadedSegment(loaded, alive, rest, token))
        self._changed()

    def add(self, entries: Iterable[IndexEntry]) -> None:
        """Add memories that are new or have changed."""
        for entry in entries:
            if not entry.new:
                self.erase([entry.row_id])
            self._fresh[entry.row_id] = entry
        self._changed()

    def erase(self, ids: Iterable[bytes]) -> None:
        """Mask these memories; unknown ids are ignored."""
        for row_id in ids:
            self._fresh.pop(row_id, None)
            for part in self._parts:
                part.erase(row_id)
        self._changed()

    def settle(self) -> None:
        """Prepare for recall: load all segments, and index the newest memories in memory."""
        for part in self._parts:
            self._complete(part)
        if not self._fresh:
            return
        entries = list(self._fresh.values())
        self._push(Segment.of(entries, self.vectorize(entries), self.identity))
        self._fresh = {}
        # Neighbors of like size that are only in memory are merged, so that there are few.
        while len(self._parts) > 1:
            before, last = self._parts[-2:]
            if before.token is not None or len(before.columns) > _GROWTH * len(last.columns):
                return
            merged = self._merged([before, last])
            del self._parts[-2:]
            self._push(merged)

    def _complete(self, part: LoadedSegment) -> None:
        """Load postings and vectors; vectors of another embedder are ignored."""
        if part.load is None:
            return
        postings, made = part.load()
        if (made.identity, made.steps.shape[1]) != (self.identity, self.dimensions):
            self.foreign += len(made) if self.dimensions else 0
            none = np.zeros((len(made), self.dimensions), np.float32)
            made = Vectors.quantize(self.identity, none)
        part.rest, part.load = (postings, made), None

    def _push(self, one: Segment) -> None:
        alive = np.ones(len(one), np.bool_)
        self._parts.append(LoadedSegment(one.columns, alive, rest=(one.postings, one.vectors)))
        self._changed()

    def _merged(self, parts: Sequence[LoadedSegment]) -> Segment:
        for part in parts:
            self._complete(part)
        whole = [Segment(columns=p.columns, postings=p.postings, vectors=p.vectors) for p in parts]
        return Segment.merge(whole, [part.alive for part in parts])

    def _changed(self) -> None:
        self._columns = self._snapshot = None

    # -- giving out --------------------------------------------------------------------

    def fresh(self) -> list[IndexEntry]:
        """The newest memories, in no segment yet."""
        return list(self._fresh.values())

    def columns(self) -> Columns:
        """Columns of every live row in a segment, numbered like the scores."""
        if self._columns is None:
            kept = [part.columns.pick(part.alive) for part in self._parts]
            self._columns = Columns.join(kept) if kept else Columns.of([])
        return self._columns

    def snapshot(self) -> Snapshot:
        """Immutable snapshot for ranking; cached until a change."""
        self.settle()
        if self._snapshot is None:
            # The mean vector of the rows that have one: what all memories have in common.
            total, count = np.zeros(self.dimensions, np.float32), 0
            for part in self._parts:
                total += part.total()
                squares = part.squares() if part.whole else part.squares()[part.alive]
                count += int(np.count_nonzero(squares))
            held, known, foreign = self.columns(), self.known, None
            if known is not None and not known.issuperset(held.coded(held.language).values()):
                others = [code for code, name in enumerate(held.names) if name not in known]
                foreign = np.isin(held.language, others)
            self._snapshot = Snapshot(
                columns=held,
                terms=Terms.of([part.terms() for part in self._parts]),
                vectors=[(p.vectors, None if p.whole else p.alive) for p in self._parts],
                squares=[part.squares() for part in self._parts],
                mean=total / np.float32(max(count, 1)),
                foreign=foreign,
                bare=len(self.columns()) - count,
            )
        return self._snapshot

    # -- to disk -----------------------------------------------------------------------

    def plan(self, *, anew: bool = False) -> Plan | None:
        """Write plan that puts everything on disk; with `anew`, in one segment.

        Segments that are not much larger than the new rows, or have few live rows, are merged with
        them: so there are never more than a few, and each row is written a few times.
        """
        self.settle()
        loose = [place for place, part in enumerate(self._parts) if part.token is None]
        first = loose[0] if loose else len(self._parts)
        size = sum(part.counting for part in self._parts[first:])
        while first:
            before = self._parts[first - 1]
            hollow = before.counting < _HOLLOW * len(before.columns)
            if not (anew or hollow or before.counting <= _GROWTH * size):
                break
            first -= 1
            size += before.counting
        if first == len(self._parts):
            return None
        kept = tuple(part.token for part in self._parts[:first])
        return Plan(kept=kept, segment=self._merged(self._parts[first:]), first=first)

    def dead(self) -> list[list[int]]:
        """Masked rows of every segment."""
        return [np.flatnonzero(~part.alive).tolist() for part in self._parts]

    def adopt(self, plan: Plan, tokens: Sequence[object]) -> None:
        """Note that a plan was carried out: `tokens` are the segments now on disk."""
        del self._parts[plan.first :]
        self._push(plan.segment)
        for part, token in zip(self._parts, tokens, strict=True):
            part.token = token
