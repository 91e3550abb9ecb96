"""retain_many: every check of retain, one receipt per item, chunks that are durable as a whole."""

from __future__ import annotations

import pytest

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.memories import retain as retaining
from scrubjay.engine.scope.audit_trail import SUBJECTS
from scrubjay.model import batches
from scrubjay.model.batches import RetainedMany, RetainMany
from scrubjay.model.errors import Frozen, InvalidRequest, LimitReached
from scrubjay.model.origin import Origin
from scrubjay.model.requests import (
    AGENT,
    USER,
    Allowance,
    AuditRequest,
    Caller,
    FreezeRequest,
    Get,
    Load,
    MarkTainted,
    Recall,
    Retain,
)
from scrubjay.model.results import Outcome
from scrubjay.ports import Failpoint
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.unit.engine.scene import ALICE, BOB, contents, forget, retain


def write(
    engine: Kernel, *items: object, caller: Caller = USER, atomic: bool = False
) -> RetainedMany:
    return engine.retain_many(ALICE, RetainMany(items, atomic=atomic), caller)  # type: ignore[arg-type]


def codes(done: RetainedMany) -> list[str | None]:
    return [one.refused.code if one.refused else None for one in done]


def test_what_was_forgotten_stays_forgotten_in_a_batch(engine: Kernel) -> None:
    one = retain(engine, "tea", key="k")
    forget(engine, one)
    (receipt,) = write(engine, {"content": "tea", "key": "k"})
    assert receipt.retained is not None
    assert receipt.retained.outcome is Outcome.FORGOTTEN
    assert contents(engine) == []


def test_an_agent_of_a_tainted_session_is_trusted_no_more_in_a_batch(engine: Kernel) -> None:
    engine.mark_tainted(ALICE, MarkTainted("s", Origin.WEB))
    item = {"content": "Prefer tabs", "session": "s", "origin": "agent"}
    (receipt,) = write(engine, item, caller=AGENT)
    assert receipt.retained is not None
    assert engine.get(ALICE, Get(receipt.retained.id)).origin is Origin.WEB


def test_an_allowance_counts_every_item_and_refuses_those_beyond_it(engine: Kernel) -> None:
    limited = Caller(allowances=(Allowance(session="s", name="notes", limit=2),))
    done = write(engine, "a", "b", "c", caller=limited)
    assert codes(done) == [None, None, "limit_reached"]
    assert engine.spent(ALICE, "s") == {"notes": 2}
    with pytest.raises(LimitReached, match="Item 0: "):
        write(engine, "d", caller=limited, atomic=True)


def test_an_item_that_is_refused_uses_up_no_allowance(engine: Kernel) -> None:
    both = tuple(
        Allowance(session="s", name=name, limit=limit) for name, limit in (("a", 9), ("b", 1))
    )
    limited = Caller(allowances=both)
    missing = {"content": "x", "sources": ["mem-missing"]}
    assert codes(write(engine, missing, "one", "two", caller=limited)) == [
        "not_found",
        None,
        "limit_reached",
    ]
    assert engine.spent(ALICE, "s") == {"a": 1, "b": 1}


def test_no_item_is_more_trusted_than_its_caller_may_claim(engine: Kernel) -> None:
    key = Caller(ceiling=Origin.TOOL, key="k1")
    done = write(
        engine,
        "a",
        {"content": "b", "origin": "web"},
        {"content": "c", "origin": "user"},
        caller=key,
    )
    assert codes(done) == [None, None, "forbidden"]
    found = [engine.get(ALICE, Get(one.retained.id)) for one in done if one.retained]
    assert [memory.origin for memory in found] == [Origin.TOOL, Origin.WEB]
    assert {memory.provenance.key_id for memory in found} == {"k1"}


def test_a_frozen_scope_takes_no_batch(engine: Kernel) -> None:
    engine.open(ALICE)
    engine.freeze(ALICE, FreezeRequest())
    with pytest.raises(Frozen):
        write(engine, "a")


def test_a_batch_that_is_too_large_is_refused_before_anything_is_written(
    engine: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_LIMIT", 3)
    with pytest.raises(InvalidRequest):
        RetainMany(str(number) for number in range(4))
    assert len(RetainMany(str(number) for number in range(3))) == 3


@pytest.mark.parametrize("wrong", ["text", {"content": "x"}, 5, None])
def test_what_is_no_list_of_memories_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidRequest):
        RetainMany(wrong)  # type: ignore[arg-type]


def test_an_item_that_is_nothing_like_a_memory_is_refused_by_itself(engine: Kernel) -> None:
    done = write(engine, 5, None, {1: 2, "a": 3}, {}, Retain(content="tea"))
    assert codes(done) == ["invalid_request"] * 4 + [None]


def test_the_trail_names_every_memory_of_a_batch(engine: Kernel) -> None:
    done = write(engine, *(f"memory {number}" for number in range(SUBJECTS + 3)))
    events = [one for one in engine.audit(ALICE, AuditRequest()) if one.verb == "retain"]
    assert [one.number for one in events] == [SUBJECTS, 3]
    assert sum(len(one.subjects) for one in events) == done.stored == SUBJECTS + 3


def test_a_batch_of_no_items_writes_nothing(engine: Kernel) -> None:
    engine.open(ALICE)
    before = engine.head(ALICE)
    assert (len(write(engine)), len(write(engine, atomic=True))) == (0, 0)
    assert engine.head(ALICE) == before


def test_a_process_that_dies_between_chunks_keeps_the_chunks_before(
    home: MemoryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retaining, "CHUNK", 4)
    items = [{"content": f"memory {number}", "key": f"k{number}"} for number in range(10)]
    home.crashes.at(Failpoint.RETAIN_COMMITTED, visit=2)
    with pytest.raises(SimulatedCrash):
        write(home.engine(), *items)
    engine = home.engine()
    assert len(contents(engine)) == 8
    assert write(engine, *items).stored == 2, "a repeat writes the rest, and nothing twice"


def test_the_index_has_followed_a_large_batch_when_it_returns(home: MemoryHome) -> None:
    engine = home.engine(Policy(segment_rows=8))
    write(engine, *(f"memory {number} of many" for number in range(20)))
    written = home.crashes.reached[Failpoint.SEGMENT_PUBLISHED]
    indexed = engine._indexed(ALICE)
    assert indexed.ready.seq == engine.head(ALICE).memory.seq
    assert (written, indexed.ready.unwritten) == (1, 0)
    assert len(engine.recall(ALICE, Recall("memory 7")).hits) == 10


def test_a_small_batch_loads_no_index(home: MemoryHome) -> None:
    engine = home.engine(Policy(segment_rows=8))
    write(engine, "a", "b")
    assert engine._indexed(ALICE).index is None


def test_the_index_has_followed_a_large_load_when_it_returns(home: MemoryHome) -> None:
    engine = home.engine(Policy(segment_rows=8))
    write(engine, *(f"memory {number} of many" for number in range(20)))
    exported = engine.export(ALICE)
    engine.load(BOB, Load(exported.content))
    indexed = engine._indexed(BOB)
    assert (indexed.ready.seq, indexed.ready.unwritten) == (engine.head(BOB).memory.seq, 0)
