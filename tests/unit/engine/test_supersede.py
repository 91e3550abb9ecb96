"""supersede and history: one line of versions, the newest in sight."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, ScrubjayError
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import AGENT, Get, History, Supersede
from scrubjay.model.results import Outcome
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import (
    ALICE,
    LONG,
    address,
    contents,
    forget,
    head,
    ids,
    retain,
    supersede,
)


def test_the_new_one_is_in_sight_and_the_old_one_is_history(engine: Kernel) -> None:
    old = retain(engine, "tea")
    new = supersede(engine, old, "coffee")
    assert contents(engine) == ["coffee"]
    assert ids(engine.history(ALICE, History(old))) == [old, new]


def test_both_sides_name_each_other_and_the_moment(engine: Kernel) -> None:
    old = retain(engine, "tea")
    new = supersede(engine, old, "coffee", reason="changed her mind", caller=AGENT)
    before, after = engine.history(ALICE, History(old))
    assert (before.superseded_by, after.supersedes) == (new, old)
    assert before.retired_at == after.recorded_at
    assert after.retired_at is None
    assert (after.provenance.reason, after.provenance.actor) == ("changed her mind", Actor.AGENT)
    assert (before.version, after.version) == (2, 1)


def test_what_is_not_said_is_taken_over(home: MemoryHome, engine: Kernel) -> None:
    later = home.clock.now() + timedelta(days=9)
    old = retain(
        engine, "tea", kind=Kind.PREFERENCE, tags=("a",), importance=0.9, pinned=True,
        speaker="Alice", metadata={"a": 1}, expires_at=later,
    )  # fmt: skip
    before = engine.get(ALICE, Get(old))
    after = engine.get(ALICE, Get(supersede(engine, old, "coffee")))
    for name in ("kind", "tags", "importance", "pinned", "speaker", "metadata", "expires_at"):
        assert getattr(after, name) == getattr(before, name), name


def test_pin_and_expiry_are_set_with_the_new_text(home: MemoryHome, engine: Kernel) -> None:
    later = home.clock.now() + timedelta(days=9)
    old = retain(engine, "tea")
    new = engine.get(ALICE, Get(supersede(engine, old, "coffee", pinned=True, expires_at=later)))
    assert (new.pinned, new.expires_at, new.version) == (True, later, 1)
    last = engine.get(ALICE, Get(supersede(engine, new.id, "water", pinned=False)))
    assert (last.pinned, last.expires_at) == (False, later)
    with pytest.raises(InvalidRequest, match="expired already"):
        supersede(engine, last.id, "milk", expires_at=home.clock.now())
    assert contents(engine) == ["water"]


def test_a_superseded_memory_cannot_be_superseded_again(engine: Kernel) -> None:
    old = retain(engine, "tea")
    new = supersede(engine, old, "coffee")
    with pytest.raises(Conflict, match=new):
        supersede(engine, old, "water")
    assert contents(engine) == ["coffee"]


def test_of_many_writers_on_one_head_exactly_one_wins(home: MemoryHome) -> None:
    engines = [home.engine() for _ in range(4)]
    old = retain(engines[0], "tea")

    def attempt(number: int) -> str | None:
        try:
            return supersede(engines[number % 4], old, f"version {number}")
        except Conflict:
            return None

    with ThreadPoolExecutor(8) as threads:
        won = [new for new in threads.map(attempt, range(16)) if new]
    assert len(won) == 1
    assert ids(engines[0].history(ALICE, History(old))) == [old, *won]
    assert engines[0].verify(ALICE).sound


def test_a_chain_is_shown_whole_and_in_order_from_any_of_its_links(engine: Kernel) -> None:
    chain = [retain(engine, "0")]
    for number in range(1, 5):
        chain.append(supersede(engine, chain[-1], str(number)))
    for public_id in chain:
        assert ids(engine.history(ALICE, History(public_id))) == chain


def test_history_of_a_memory_that_was_never_corrected_is_itself(engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    assert engine.history(ALICE, History(public_id)).data == (engine.get(ALICE, Get(public_id)),)


def test_what_was_forgotten_is_not_in_history(engine: Kernel) -> None:
    old = retain(engine, "tea")
    new = supersede(engine, old, "coffee")
    forget(engine, old)
    assert ids(engine.history(ALICE, History(new))) == [new]


@pytest.mark.parametrize(
    ("old", "new"),
    [(Origin.USER, Origin.OPERATOR), (Origin.USER, Origin.WEB), (Origin.AGENT, Origin.IMPORT)],
)
def test_a_less_trusted_origin_cannot_supersede(engine: Kernel, old: Origin, new: Origin) -> None:
    public_id = retain(engine, "tea", origin=old)
    with pytest.raises(Forbidden):
        supersede(engine, public_id, "coffee", origin=new)
    assert contents(engine) == ["tea"]


@pytest.mark.parametrize(("old", "new"), [(Origin.WEB, Origin.USER), (Origin.AGENT, Origin.AGENT)])
def test_an_origin_as_trusted_or_more_can_supersede(
    engine: Kernel, old: Origin, new: Origin
) -> None:
    public_id = retain(engine, "tea", origin=old)
    assert engine.get(ALICE, Get(supersede(engine, public_id, "x", origin=new))).origin is new


def test_an_unknown_or_forgotten_memory_cannot_be_superseded(engine: Kernel) -> None:
    gone = retain(engine, "tea")
    forget(engine, gone)
    for public_id in (gone, "mem-nowhere"):
        with pytest.raises(NotFound, match=public_id):
            supersede(engine, public_id, "coffee")


def test_an_expired_memory_cannot_be_superseded(home: MemoryHome, engine: Kernel) -> None:
    """The new one would take over its expiry, and be written only to be never seen."""
    gone = retain(engine, "tea", expires_at=home.clock.now() + timedelta(hours=1))
    home.clock.advance(seconds=3600)
    with pytest.raises(NotFound):
        supersede(engine, gone, "coffee")


def test_a_replay_under_the_same_key_changes_nothing(home: MemoryHome, engine: Kernel) -> None:
    old = retain(engine, "tea")
    new = supersede(engine, old, "coffee", key="correction")
    before = head(home)
    receipt = engine.supersede(ALICE, Supersede(id=old, content="coffee", key="correction"))
    assert (receipt.id, receipt.outcome) == (new, Outcome.KNOWN)
    assert head(home) == before


def test_a_replay_stays_a_replay_when_the_chain_has_moved_on(engine: Kernel) -> None:
    old = retain(engine, "tea")
    new = supersede(engine, old, "coffee", key="correction")
    supersede(engine, new, "water")
    receipt = engine.supersede(ALICE, Supersede(id=old, content="coffee", key="correction"))
    assert receipt.outcome is Outcome.KNOWN
    assert contents(engine) == ["water"]


def test_a_correction_that_was_forgotten_is_not_replayed(engine: Kernel) -> None:
    old = retain(engine, "tea")
    forget(engine, supersede(engine, old, "coffee", key="correction"))
    again = retain(engine, "tea")
    receipt = engine.supersede(ALICE, Supersede(id=again, content="x", key="correction"))
    assert receipt.outcome is Outcome.FORGOTTEN
    assert contents(engine) == ["tea"]


def test_a_key_in_use_is_answered_with_the_memory_that_has_it(engine: Kernel) -> None:
    other = retain(engine, "other", key="k")
    old = retain(engine, "tea")
    receipt = engine.supersede(ALICE, Supersede(id=old, content="coffee", key="k"))
    assert (receipt.id, receipt.outcome) == (other, Outcome.KNOWN)


def test_long_versions_keep_a_blob_each_and_no_more(home: MemoryHome, engine: Kernel) -> None:
    old = retain(engine, LONG)
    supersede(engine, old, LONG[:-1] + "x")
    engine.finish_due(ALICE)
    assert len(home.blobs.names(address(home))) == 2
    assert [len(memory.content) for memory in engine.history(ALICE, History(old))] == [
        32_768,
        32_768,
    ]


def test_a_failed_supersession_writes_nothing(home: MemoryHome, engine: Kernel) -> None:
    old = retain(engine, "tea")
    supersede(engine, old, "coffee")
    before = head(home)
    with pytest.raises(ScrubjayError):
        supersede(engine, old, "water")
    assert head(home) == before
