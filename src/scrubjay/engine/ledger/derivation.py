"""Derivation: what was derived from a memory is hidden when that is corrected, and due again.

What is due stands in one note of the scope, changed in the transaction that causes it. It holds
ids and no text. A language model, if there is one, derives the texts again later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from scrubjay.engine.scope.open_scope import OpenScope, derived
from scrubjay.engine.scope.scope_values import Notes
from scrubjay.model.memory import Memory
from scrubjay.ports import Tx, View

_NAME: Final = "derivations"


class Derivation(Struct, frozen=True, kw_only=True):
    """Job: a text to be derived again, from the newest versions of its sources."""

    sources: tuple[str, ...]
    """Ids of the memories it is made of."""
    hidden: str | None = None
    """The id of the memory that it takes the place of; None if that was erased."""


def due(notes: Notes) -> list[Derivation]:
    """The texts that wait to be derived again."""
    return convert(notes.get(_NAME) or [], list[Derivation])


def leave_due(notes: Notes, jobs: Iterable[Derivation]) -> None:
    """Note exactly these as due, each once."""
    wanted = list(dict.fromkeys(jobs))
    if wanted != due(notes):
        notes.put(_NAME, to_builtins(wanted) or None)


def hide_new(opened: OpenScope, tx: Tx, memory: Memory) -> None:
    """Leave a memory due that was derived from an outdated value, and so is written hidden."""
    notes = Notes(opened, tx)
    leave_due(notes, [*due(notes), Derivation(sources=memory.sources, hidden=memory.id)])
    notes.write(tx)


def refresh(opened: OpenScope, tx: Tx, notes: Notes, source: Memory) -> int:
    """Hide what was derived from a memory that was replaced, or show it if that is undone.

    How many are hidden now. What somebody corrected by hand since stays as they wrote it.
    """
    jobs = [job for job in due(notes) if job.hidden != source.id]
    hidden, waiting = 0, [source]
    while waiting:
        changed = waiting.pop()
        for row in derived(tx, opened.row_id(changed.id)):
            memory = opened.unseal_sound(row)
            if memory is None or not memory.live or memory.current is changed.current:
                continue
            if memory.hidden and outdated(opened, tx, memory):
                continue  # another of its sources was corrected, too
            moment = None if memory.hidden else opened.ports.clock.now()
            memory = replace(memory, retired_at=moment, version=memory.version + 1)
            opened.put(tx, memory)
            jobs = [job for job in jobs if job.hidden != memory.id]
            if memory.hidden:
                jobs.append(Derivation(sources=memory.sources, hidden=memory.id))
                hidden += 1
            waiting.append(memory)
    leave_due(notes, jobs)
    return hidden


def outdated(opened: OpenScope, view: View, memory: Memory) -> bool:
    """Whether a source of a memory is not current."""
    sources = (opened.peek(view, source) for source in memory.sources)
    return any(source is not None and not source.current for source in sources)


def erased(
    opened: OpenScope, tx: Tx, notes: Notes, gone: Iterable[Memory], named: Collection[bytes]
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
    for job in due(notes):
        if job.hidden in lost:
            waited.add(job.hidden)
        elif left := tuple(dict.fromkeys(remaining(job.sources))):
            jobs.append(replace(job, sources=left))
    before = len(jobs)
    for memory in lost.values():
        orphaned = memory.live and any(source in lost for source in memory.sources)
        if (orphaned or memory.id in waited) and opened.row_id(memory.id) not in named:
            left = tuple(dict.fromkeys(remaining(memory.sources)))
            jobs += [Derivation(sources=left)] if left else []
    leave_due(notes, jobs)
    return len(jobs) - before
