"""Short forms for tests of turns: a conversation, and everything that follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from scrubjay.engine import Kernel
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.pages import Paged
from scrubjay.model.rows import Collection, Row
from scrubjay.model.turns import Record, Recorded
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, address, everything

MORNING = datetime(2026, 3, 1, 9, tzinfo=UTC)


def said(number: int, user: str, assistant: str = "All right.", **fields: Any) -> Record:
    """The turn of this number: they are a minute apart."""
    at = MORNING + timedelta(minutes=number)
    return Record(id=f"turn-{number}", at=at, user=user, assistant=assistant, **fields)


def record(engine: Kernel, number: int, user: str, *args: str, **fields: Any) -> Recorded:
    """Record one turn."""
    return engine.record(ALICE, said(number, user, *args, **fields))


def recorded(records: Iterable[Record], home: MemoryHome | None = None) -> Kernel:
    """An engine that was told these turns, in this order."""
    engine = (home or MemoryHome()).engine()
    engine.open(ALICE)
    for one in records:
        engine.record(ALICE, one)
    return engine


def shown(engine: Kernel, kind: Kind | None = None) -> list[str]:
    """What the derived memories that are current say, by the time they were said."""
    found = sorted(everything(engine), key=lambda memory: (memory.said_at, memory.content))
    return [m.content for m in found if m.live and kind in (None, m.kind)]


def state(engine: Kernel) -> list[tuple[object, ...]]:
    """Everything that may depend on the turns: memories without their place in the store."""

    def plain(memory: Memory) -> tuple[object, ...]:
        links = (memory.supersedes, memory.superseded_by, memory.retired_at)
        where = (memory.provenance, memory.position, memory.recorded_at, memory.sources)
        return (memory.id, memory.kind, memory.content, memory.origin, *links, *where)

    timeline = [
        (m.id, m.at, m.state, m.gist) for m in engine.timeline(ALICE, Paged(10_000)).moments
    ]
    return [*sorted(map(plain, everything(engine)), key=str), *timeline]


def turn_rows(home: MemoryHome) -> list[Row]:
    """The rows of the ledger as the store holds them."""
    with home.store.read(address(home)) as view:
        return list(view.changes(Collection.TURN, 0, 2**31))
