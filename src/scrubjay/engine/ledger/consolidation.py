"""consolidation: the oldest episodes become facts, some twenty at a time.

Episodes are marked in the transaction that writes their facts, so a crash loses none and doubles
no fact. Facts have their episodes as sources, are trusted no more than the least of them, and are
erased with any. Without a model, rules look for statements in episodes that came from no turn.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from scrubjay.engine.ledger import turns
from scrubjay.engine.ledger.jobs import Choice, Done, JobQueue, Task, derived_by, job_name
from scrubjay.engine.scope import purposes
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.scope.views import changes, derived, living
from scrubjay.engine.search import embedding
from scrubjay.guard.admission import admit
from scrubjay.model.jobs import Insight, JobKind
from scrubjay.model.memory import Json, Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin, lowest
from scrubjay.model.rows import Collection, Row
from scrubjay.model.turns import Piece, Turn, derived_id
from scrubjay.ports import Tx, View

MARK: Final = "consolidated"
"""Metadata key of an episode that was consolidated, with what did it."""
DERIVED_BY: Final = "derived_by"
"""Metadata key of a derived memory: the model or rules that derived it."""


def _unmarked(opened: OpenScope, view: View, after: int) -> Iterator[tuple[Row, Memory]]:
    """Episodes that wait, by their last change."""
    for row in changes(view, Collection.MEMORY, after):
        memory = None if row.erased else opened.unseal_sound(row)
        if memory is None or memory.kind is not Kind.EPISODE or not memory.shown:
            continue
        if MARK not in memory.metadata:
            yield row, memory


def waiting(opened: OpenScope, view: View) -> int:
    """How many episodes wait."""
    queue = JobQueue.of(ScopeValues(opened, view))
    return sum(1 for _ in _unmarked(opened, view, queue.passed))


def choose(opened: OpenScope, view: View, queue: JobQueue, *, most: int) -> Choice:
    """The oldest episodes that wait; only one process consolidates a scope at a time."""
    job = job_name(opened, JobKind.CONSOLIDATION)
    if not queue.is_free(job, opened.ports.clock.now()):
        return None, queue.passed
    found = list(islice(_unmarked(opened, view, queue.passed), most))
    if not found:
        return None, view.head().memory.seq
    # Trusted and untrusted ones apart: a text could have a model cite another for what it says.
    batch = [memory for _, memory in found if memory.trusted is found[0][1].trusted]
    task = Task(
        job=job,
        waits=lambda tx, _: _all_wait(opened, tx, batch),
        ask=lambda: _ask(opened, batch),
    )
    return task, found[0][0].seq - 1


def _all_wait(opened: OpenScope, tx: Tx, batch: Sequence[Memory]) -> bool:
    """Whether each episode is there, says what it said, and was not consolidated since."""
    now = [opened.peek(tx, episode.id) for episode in batch]
    return all(
        one is not None and one.shown and one.content == was.content and MARK not in one.metadata
        for one, was in zip(now, batch, strict=True)
    )


def _ask(opened: OpenScope, batch: Sequence[Memory]) -> Done:
    model, policy = opened.ports.extractor, opened.ports.policy
    if model is None:
        return _done(opened, batch, list(by_rules(opened, batch)), usable=True)
    deadline = opened.ports.clock.monotonic() + policy.extract_seconds
    texts = [f"({one.said_at:%Y-%m-%d}) {one.content}" for one in batch]
    answer = model.consolidate(texts, deadline=deadline)
    done = _done(opened, batch, answer.insights, usable=answer.usable)
    return replace(done, tokens_in=answer.tokens_in, tokens_out=answer.tokens_out)


def by_rules(opened: OpenScope, batch: Sequence[Memory]) -> Iterator[Insight]:
    """What rules find in episodes; from one of a turn they were derived with it."""
    for number, episode in enumerate(batch, 1):
        if episode.provenance.message_id is not None or episode.origin is Origin.QUOTED:
            continue
        said = Turn(id=episode.id, at=episode.said_at, user=episode.content)
        for piece in turns.distill(opened, said) or ():
            if piece.kind is not Kind.EPISODE:
                yield Insight(category=piece.kind.value, content=piece.content, of=(number,))


def again(opened: OpenScope, view: View, rest: Memory, *, going: Container[bytes]) -> Memory:
    """What is left of an episode, so that it is consolidated again, since its facts go along.

    Not if a fact of it was forgotten by itself: it would be told again, by a model in other words.
    """
    facts = [row for row in derived(view, opened.row_id(rest.id)) if row.id not in going]
    known = {fact.content for row in facts if (fact := opened.unseal_sound(row)) is not None}
    found = {" ".join(insight.content.split()) for insight in by_rules(opened, [rest])}
    if opened.ports.extractor is not None or not found <= known:
        return rest
    metadata = {name: value for name, value in rest.metadata.items() if name != MARK}
    return replace(rest, metadata=metadata)


def _done(
    opened: OpenScope, batch: Sequence[Memory], insights: Sequence[Insight], *, usable: bool
) -> Done:
    found = list(facts(opened, batch, insights))
    pieces = [
        Piece(part=one.id, kind=one.kind, content=one.content, tags=one.tags) for one in found
    ]
    vectors = embedding.vectors_of_pieces(opened, pieces, seconds=opened.ports.policy.embed_seconds)

    def keep(tx: Tx, values: ScopeValues) -> int:
        if not _all_wait(opened, tx, batch):
            return 0  # of one that is gone, no fact may stay: the others are asked again
        written = 0
        for fact in purposes.permitted(opened, values, found):
            row_id = opened.row_id(fact.id)
            if tx.buried([row_id]) or living(tx, Collection.MEMORY, row_id):
                continue
            opened.put(tx, fact, vectors.get(fact.id))
            for source in fact.sources:
                tx.link(opened.row_id(source), row_id)
            written += 1
        mark(tx, derived_by(opened))
        return written

    def mark(tx: Tx, by: Json) -> None:
        for episode in batch:
            if (current := opened.peek(tx, episode.id)) is not None:
                metadata = {**current.metadata, MARK: by}
                opened.put(tx, replace(current, metadata=metadata, version=current.version + 1))

    return Done(usable=usable, keep=keep, drop=lambda tx: mark(tx, None))


def facts(
    opened: OpenScope, batch: Sequence[Memory], insights: Sequence[Insight]
) -> Iterator[Memory]:
    """The facts as memories, without duplicates; the same batch and text give the same id."""
    seen = set[str]()
    for insight in insights:
        numbers = [n for n in dict.fromkeys(insight.of) if 0 < n <= len(batch)]
        sources = [batch[n - 1] for n in numbers] or batch
        piece = Piece(part="fact", kind=Kind.FACT, content=insight.content)
        admitted, _ = admit(piece, opened.ports.policy.placeholder)
        text = " ".join(admitted.content.split())
        if not text or text.lower() in seen:
            continue
        seen.add(text.lower())
        yield Memory(
            id=derived_id("/".join(one.id for one in batch), text),
            kind=Kind.FACT,
            content=text,
            recorded_at=opened.ports.clock.now(),
            origin=lowest([Origin.AGENT, *(one.origin for one in sources)]),
            provenance=Provenance(actor=Actor.SYSTEM),
            tags=(f"category:{insight.category}",),
            sources=tuple(one.id for one in sources),
            metadata={DERIVED_BY: derived_by(opened)},
        )
