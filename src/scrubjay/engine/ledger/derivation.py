"""Derivation: what was derived from a memory is hidden when that is corrected, and due again.

What is due stands in one value of the scope, changed in the transaction that causes it. It holds
ids and no text. A language model, if there is one, derives the texts again later, as a job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from scrubjay.engine.ledger.jobs import Choice, Done, JobQueue, Task, derived_by, job_name
from scrubjay.engine.scope import purposes
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.scope.views import derived
from scrubjay.engine.search import embedding
from scrubjay.guard.admission import admit
from scrubjay.model.jobs import JobKind
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin, lowest
from scrubjay.model.turns import Piece
from scrubjay.ports import Tx, View

_NAME: Final = "derivations"


class Derivation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Job: a text to be derived again, from the newest versions of its sources."""

    sources: tuple[str, ...]
    """Ids of the memories it is made of."""
    hidden: str | None = None
    """The id of the memory that it takes the place of; None if that was erased."""
    kind: Kind = Kind.SUMMARY


def due(values: ScopeValues) -> list[Derivation]:
    """The texts that wait to be derived again."""
    return convert(values.get(_NAME) or [], list[Derivation])


def leave_due(values: ScopeValues, jobs: Iterable[Derivation]) -> None:
    """Note exactly these as due, each once."""
    wanted = list(dict.fromkeys(jobs))
    if wanted != due(values):
        # `hidden` is written even where there is none, as it always was.
        values.put(_NAME, [to_builtins(job) | {"hidden": job.hidden} for job in wanted] or None)


def hide_new(opened: OpenScope, tx: Tx, memory: Memory) -> None:
    """Leave a memory due that was derived from an outdated value, and so is written hidden."""
    values = ScopeValues(opened, tx)
    leave_due(
        values,
        [*due(values), Derivation(sources=memory.sources, hidden=memory.id, kind=memory.kind)],
    )
    values.write(tx)


def refresh(opened: OpenScope, tx: Tx, values: ScopeValues, source: Memory) -> int:
    """Hide what was derived from a memory that was replaced, or show it if that is undone.

    How many are hidden now. What somebody corrected by hand since stays as they wrote it.
    """
    jobs = [job for job in due(values) if job.hidden != source.id]
    hidden, waiting = 0, [source]
    while waiting:
        changed = waiting.pop()
        for row in derived(tx, opened.row_id(changed.id)):
            memory = opened.unseal_sound(row)
            if memory is None or not memory.live or memory.current is changed.current:
                continue
            if memory.hidden and outdated(opened, tx, memory):
                continue  # another of its sources was corrected, too
            moment = None if memory.hidden else opened.moment()
            memory = replace(memory, retired_at=moment, version=memory.version + 1)
            opened.put(tx, memory)
            jobs = [job for job in jobs if job.hidden != memory.id]
            if memory.hidden:
                jobs.append(Derivation(sources=memory.sources, hidden=memory.id, kind=memory.kind))
                hidden += 1
            waiting.append(memory)
    leave_due(values, jobs)
    return hidden


def outdated(opened: OpenScope, view: View, memory: Memory) -> bool:
    """Whether a source of a memory is not current."""
    sources = (opened.peek(view, source) for source in memory.sources)
    return any(source is not None and not source.current for source in sources)


def erased(
    opened: OpenScope, tx: Tx, values: ScopeValues, gone: Iterable[Memory], named: Collection[bytes]
) -> int:
    """Leave due what was erased only because a source was; how many such texts.

    Of these, the ids of the remaining sources stay, and of no erased memory its id.
    """
    lost = {memory.id: memory for memory in gone}

    def remaining(sources: Iterable[str]) -> Iterable[str]:
        for source in sources:
            if (memory := lost.get(source)) is None:
                yield from (source,) if opened.peek(tx, source) is not None else ()
            elif memory.superseded_by is not None:
                yield from remaining((memory.superseded_by,))
            elif opened.row_id(source) not in named:
                yield from remaining(memory.sources)

    jobs, waited = list[Derivation](), set[str]()
    for job in due(values):
        if job.hidden in lost:
            waited.add(job.hidden)
        elif left := tuple(dict.fromkeys(remaining(job.sources))):
            jobs.append(replace(job, sources=left))
    before = len(jobs)
    for memory in lost.values():
        orphaned = memory.live and any(source in lost for source in memory.sources)
        if (orphaned or memory.id in waited) and opened.row_id(memory.id) not in named:
            left = tuple(dict.fromkeys(remaining(memory.sources)))
            jobs += [Derivation(sources=left, kind=memory.kind)] if left else []
    leave_due(values, jobs)
    return len(jobs) - before


# -- deriving again ------------------------------------------------------------------------------


def choose(opened: OpenScope, view: View, queue: JobQueue) -> Choice:
    """The first text that waits to be derived again."""
    now = opened.ports.clock.now()
    for wanted in due(ScopeValues(opened, view)):
        job = job_name(opened, JobKind.DERIVATION, "/".join((wanted.hidden or "", *wanted.sources)))
        if queue.is_free(job, now):
            return _task(opened, job, wanted, _newest(opened, view, wanted.sources)), 0
    return None, 0


def _newest(opened: OpenScope, view: View, sources: Iterable[str]) -> list[Memory]:
    """The newest versions of the sources, each once; without those that are out of sight."""
    found = dict[str, Memory]()
    for source in sources:
        memory = opened.peek(view, source)
        while memory is not None and memory.superseded_by is not None:
            memory = opened.peek(view, memory.superseded_by)
        if memory is not None and memory.current:
            found.setdefault(memory.id, memory)
    return list(found.values())


def _task(opened: OpenScope, job: str, wanted: Derivation, sources: Sequence[Memory]) -> Task:
    def ask() -> Done:
        model, policy = opened.ports.extractor, opened.ports.policy
        assert model is not None
        if not sources:  # nothing is left to derive it from
            return Done(keep=lambda tx, values: _keep(opened, tx, values, wanted))
        deadline = opened.ports.clock.monotonic() + policy.extract_seconds
        texts = [memory.content for memory in sources]
        answer = model.restate(wanted.kind, texts, deadline=deadline)
        piece = Piece(part="text", kind=wanted.kind, content=answer.text or "-")
        piece, _ = admit(piece, policy.placeholder)
        vectors = embedding.vectors_of_pieces(opened, [piece], seconds=policy.embed_seconds)
        text = Memory(
            id=f"mem-{opened.ports.clock.new_id()}",
            kind=wanted.kind,
            content=piece.content,
            recorded_at=opened.ports.clock.now(),
            origin=lowest([Origin.AGENT, *(memory.origin for memory in sources)]),
            provenance=Provenance(actor=Actor.SYSTEM),
            sources=tuple(memory.id for memory in sources),
            metadata={"derived_by": derived_by(opened)},
        )

        def keep(tx: Tx, values: ScopeValues) -> int:
            if _newest(opened, tx, wanted.sources) != list(sources):
                return 0  # a source was corrected meanwhile: it is derived once more
            return _keep(opened, tx, values, wanted, text=text, vector=vectors["text"])

        return Done(
            usable=bool(answer.text),
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            keep=keep,
        )

    return Task(job=job, waits=lambda _, values: wanted in due(values), ask=ask)


def _keep(
    opened: OpenScope,
    tx: Tx,
    values: ScopeValues,
    wanted: Derivation,
    *,
    text: Memory | None = None,
    vector: bytes | None = None,
) -> int:
    """Write the text in the place of the hidden one, and take the job off the list."""
    waiting = due(values)
    if wanted not in waiting:
        return 0
    leave_due(values, [job for job in waiting if job != wanted])
    if text is None:
        return 0
    hidden = opened.peek(tx, wanted.hidden)
    if not purposes.permitted(opened, values, [text if hidden is None else hidden]):
        return 0  # it told a pattern, and these are not wanted any more
    if hidden is not None and hidden.hidden:
        successor = replace(hidden, superseded_by=text.id, version=hidden.version + 1)
        opened.put(tx, successor)
        text = replace(text, supersedes=hidden.id, tags=hidden.tags, importance=hidden.importance)
    opened.put(tx, text, vector)
    for source in text.sources:
        tx.link(opened.row_id(source), opened.row_id(text.id))
    return 1
