"""Allowances: how often a session may do something, counted with what is done."""

from __future__ import annotations

from typing import Any

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import Conflict, InvalidRequest, LimitReached
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Allowance, Caller, Forget, MarkTainted, Supersede
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, BOB, contents, retain, verbs

STORES = Allowance(session="s", name="stores", limit=2)
DELETES = Allowance(session="s", name="deletes", limit=1)


@pytest.fixture
def home() -> MemoryHome:
    return MemoryHome()


@pytest.fixture
def engine(home: MemoryHome) -> Kernel:
    return home.engine()


def store(engine: Kernel, content: str, **fields: Any) -> str:
    return retain(engine, content, caller=Caller(allowances=(STORES,)), **fields)


def test_an_allowance_is_used_up_by_successes_and_survives_a_restart(
    home: MemoryHome, engine: Kernel
) -> None:
    store(engine, "one")
    store(home.engine(), "two")
    with pytest.raises(LimitReached):
        store(home.engine(), "three")
    assert sorted(contents(engine)) == ["one", "two"]
    assert engine.spent(ALICE, "s") == {"stores": 2}


def test_what_fails_or_changes_nothing_is_not_counted(engine: Kernel) -> None:
    first = store(engine, "one", key="k")
    store(engine, "one", key="k")
    with pytest.raises(InvalidRequest):
        store(engine, "")
    engine.supersede(ALICE, Supersede(id=first, content="uno"))
    with pytest.raises(Conflict):
        engine.supersede(ALICE, Supersede(id=first, content="un"), Caller(allowances=(STORES,)))
    assert engine.spent(ALICE, "s") == {"stores": 1}


def test_one_write_may_be_counted_against_several_and_all_count_or_none(engine: Kernel) -> None:
    both = (STORES, Allowance(session="s", name="supersedes", limit=1))
    first = retain(engine, "one")
    second = engine.supersede(ALICE, Supersede(id=first, content="two"), Caller(allowances=both)).id
    with pytest.raises(LimitReached):
        engine.supersede(ALICE, Supersede(id=second, content="three"), Caller(allowances=both))
    assert engine.spent(ALICE, "s") == {"stores": 1, "supersedes": 1}
    assert contents(engine) == ["two"]


def test_forgetting_is_counted_once_however_often_it_is_repeated(engine: Kernel) -> None:
    one, two = retain(engine, "one"), retain(engine, "two")
    for _ in range(3):
        engine.forget(ALICE, Forget(ids=(one,)), Caller(allowances=(DELETES,)))
    with pytest.raises(LimitReached):
        engine.forget(ALICE, Forget(ids=(two,)), Caller(allowances=(DELETES,)))
    assert contents(engine) == ["two"]


def test_a_session_that_was_idle_for_a_day_begins_anew(home: MemoryHome, engine: Kernel) -> None:
    store(engine, "one")
    store(engine, "two")
    home.clock.advance(seconds=23 * 3600)
    with pytest.raises(LimitReached):
        store(engine, "three")
    home.clock.advance(seconds=3600)
    store(engine, "three")
    assert engine.spent(ALICE, "s") == {"stores": 1}


def test_sessions_and_scopes_have_allowances_of_their_own(engine: Kernel) -> None:
    store(engine, "one")
    store(engine, "two")
    other = Allowance(session="t", name="stores", limit=2)
    retain(engine, "three", caller=Caller(allowances=(other,)))
    retain(engine, "four", scope=BOB, caller=Caller(allowances=(STORES,)))
    assert engine.spent(ALICE, "t") == engine.spent(BOB, "s") == {"stores": 1}
    assert engine.spent(ALICE, "unheard of") == {}


def test_counts_survive_a_rotation_beside_a_taint(engine: Kernel) -> None:
    store(engine, "one")
    engine.mark_tainted(ALICE, MarkTainted("s"))
    engine.rotate(ALICE)
    store(engine, "two", session="s", origin="agent")
    assert engine.spent(ALICE, "s") == {"stores": 2}
    assert {memory.origin.value for memory in engine.follow(ALICE).memories} == {"user", "web"}


def test_a_refused_call_can_be_noted_in_the_trail(home: MemoryHome, engine: Kernel) -> None:
    engine.note(ALICE, "tool.refused", session="s", actor=Actor.AGENT)
    event = engine.audit(ALICE)[-1]
    assert (event.verb, event.actor) == ("tool.refused", "agent")
    assert len(event.subjects) == 1
    with pytest.raises(InvalidRequest):
        engine.note(ALICE, 'x","y', actor=Actor.AGENT)
    assert "tool.refused" in verbs(engine)
