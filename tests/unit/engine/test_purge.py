"""purge: timed clean-up, each thing at its time, tombstones for good."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.memories import purge as purging
from scrubjay.model.conversations import Append
from scrubjay.model.errors import InvalidRequest, NotFound, WrongKey
from scrubjay.model.memory import Kind
from scrubjay.model.requests import Amend, Backup, Get, Purge, Restore, Retain, Revoke
from scrubjay.model.results import Outcome, Purged
from scrubjay.model.retention import KindLimit, Limit, SetRetention
from scrubjay.model.rows import Due
from scrubjay.ports import Failpoint
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.unit.engine.scene import (
    ALICE,
    LONG,
    address,
    contents,
    forget,
    head,
    retain,
    rows,
    slots,
    supersede,
)

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


def test_nothing_to_clean_up_is_fine(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    before = head(home)
    assert engine.purge(ALICE) == Purged()
    assert head(home) == before


def test_what_has_expired_is_erased_and_not_an_hour_before(
    home: MemoryHome, engine: Kernel
) -> None:
    public_id = retain(engine, "tea", expires_at=home.clock.now() + 2 * HOUR)
    home.clock.advance(HOUR)
    assert engine.purge(ALICE).expired == 0
    home.clock.advance(HOUR)
    assert engine.purge(ALICE).expired == 1
    assert [row.erased for row in rows(home)] == [True]
    with pytest.raises(NotFound):
        engine.amend(ALICE, Amend(public_id, expires_at=None))


def test_what_was_superseded_is_erased_after_its_window(home: MemoryHome, engine: Kernel) -> None:
    supersede(engine, retain(engine, "tea"), "coffee")
    home.clock.advance(29 * DAY)
    assert engine.purge(ALICE).superseded == 0
    home.clock.advance(1 * DAY)
    assert engine.purge(ALICE).superseded == 1
    assert contents(engine, superseded=True) == ["coffee"]
    assert engine.verify(ALICE).sound


def test_the_window_may_be_chosen(engine: Kernel) -> None:
    supersede(engine, retain(engine, "tea"), "coffee")
    assert engine.purge(ALICE, Purge(superseded_days=0)).superseded == 1


def test_the_policy_has_the_window_of_a_request_that_names_none() -> None:
    engine = MemoryHome().engine(Policy(superseded_days=0))
    engine.open(ALICE, create=True)
    supersede(engine, retain(engine, "tea"), "coffee")
    assert engine.purge(ALICE, Purge(superseded_days=1)).superseded == 0
    assert engine.purge(ALICE).superseded == 1


@pytest.mark.parametrize("days", [-1, 1.5, True, "7", 10**9, 2**52])
def test_a_window_that_is_no_number_of_days_is_refused(engine: Kernel, days: object) -> None:
    with pytest.raises(InvalidRequest):
        engine.purge(ALICE, Purge(superseded_days=days))  # type: ignore[arg-type]


def test_the_row_of_what_was_forgotten_goes_after_thirty_days(
    home: MemoryHome, engine: Kernel
) -> None:
    forget(engine, retain(engine, "tea"))
    home.clock.advance(29 * DAY)
    assert engine.purge(ALICE).dropped == 0
    home.clock.advance(1 * DAY)
    assert engine.purge(ALICE).dropped == 1
    assert rows(home) == []


def test_what_was_purged_goes_the_same_way(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea", expires_at=home.clock.now() + HOUR)
    home.clock.advance(DAY)
    assert engine.purge(ALICE) == Purged(expired=1)
    home.clock.advance(30 * DAY)
    assert engine.purge(ALICE) == Purged(dropped=1)


def test_tombstones_stay_when_rows_go(home: MemoryHome, engine: Kernel) -> None:
    forget(engine, retain(engine, "tea", id="mine", key="k"))
    home.clock.advance(31 * DAY)
    engine.purge(ALICE)
    for fields in ({"id": "mine"}, {"key": "k"}):
        receipt = engine.retain(ALICE, Retain(content="tea", **fields))  # type: ignore[arg-type]
        assert receipt.outcome is Outcome.FORGOTTEN


def test_tombstones_of_what_was_purged_reach_the_catalog(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea", expires_at=home.clock.now() + HOUR)
    home.clock.advance(DAY)
    engine.purge(ALICE)
    assert len(home.store.catalog.tombstones(address(home))) == 1
    assert head(home).due is Due.NOTHING


def test_neither_lineage_is_followed_nor_keys_rotated(home: MemoryHome, engine: Kernel) -> None:
    source = retain(engine, "tea", expires_at=home.clock.now() + HOUR)
    retain(engine, "derived", sources=(source,))
    home.clock.advance(DAY)
    engine.purge(ALICE)
    assert contents(engine) == ["derived"]
    assert slots(home) == ["memory.1", "session.1", "turn.1"]


def test_the_blob_of_what_was_purged_goes_too(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, LONG, expires_at=home.clock.now() + HOUR)
    home.clock.advance(DAY)
    engine.purge(ALICE)
    assert home.blobs.names(address(home)) == []


def test_a_blob_whose_writer_died_goes_too(home: MemoryHome) -> None:
    engine = home.engine()
    retain(engine, "tea")
    home.crashes.at(Failpoint.BLOB_WRITTEN)
    with pytest.raises(SimulatedCrash):
        retain(engine, LONG)
    assert len(home.blobs.names(address(home))) == 1
    home.engine().purge(ALICE)
    assert len(home.blobs.names(address(home))) == 1  # for all that is known, its writer lives
    home.clock.advance(2 * DAY)
    home.engine().purge(ALICE)
    assert home.blobs.names(address(home)) == []


@pytest.mark.parametrize("jump", [2 * DAY, -400 * DAY])
def test_a_writer_that_a_sweep_overtakes_stores_its_blob_again(
    home: MemoryHome, jump: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the clocks say, no row refers to a blob that was swept."""
    engine, other = home.engine(), home.engine()
    retain(engine, "tea")

    put, jumps = home.blobs.put, [jump]

    def overtaken(address: str, name: str, content: bytes) -> None:
        put(address, name, content)
        if jumps:
            home.clock.shift(jumps.pop())
            other.purge(ALICE)

    monkeypatch.setattr(home.blobs, "put", overtaken)
    kept = retain(engine, LONG)
    assert engine.get(ALICE, Get(kept)).content == LONG
    assert len(home.blobs.names(address(home))) == 1
    assert engine.verify(ALICE).sound


def test_more_than_one_batch_is_cleaned_up(home: MemoryHome, engine: Kernel) -> None:
    for number in range(300):
        retain(engine, str(number), expires_at=home.clock.now() + HOUR)
    home.clock.advance(DAY)
    assert engine.purge(ALICE).expired == 300
    home.clock.advance(31 * DAY)
    assert engine.purge(ALICE).dropped == 300


def saved(engine: Kernel, public_id: str, **changes: Any) -> Callable[[], object]:
    return lambda: engine.amend(ALICE, Amend(public_id, **changes))


RESCUES: dict[str, Callable[[Kernel, str], Callable[[], object]]] = {
    "expired": lambda one, id: saved(one, id, expires_at=None),
    "superseded": lambda one, _: lambda: one.revoke(ALICE, Revoke(session="wrong")),
    "retired": lambda one, id: saved(one, id, pinned=True),
    "idle": lambda one, id: saved(one, id, pinned=True),
}


@pytest.mark.parametrize("reason", RESCUES)
def test_what_is_saved_while_a_purge_is_under_way_stays(
    home: MemoryHome, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two batches another process pins it, gives it more time, or undoes what ended it."""
    monkeypatch.setattr(purging, "_BATCH", 1)
    engine = home.engine()
    soon = home.clock.now() + timedelta(hours=1) if reason == "expired" else None
    ids = [retain(engine, text, expires_at=soon) for text in ("oak", "elm")]
    if reason == "superseded":
        for number, id in enumerate(ids):
            supersede(engine, id, f"tree {number}", session="wrong" if number else "right")
    elif reason == "retired":
        one = KindLimit(kind=Kind.FACT, number=1)
        engine.set_retention(ALICE, SetRetention(limits=[one]))
        retain(engine, "the latest")
    elif reason == "idle":
        one = KindLimit(kind=Kind.FACT, idle_days=10)
        engine.set_retention(ALICE, SetRetention(limits=[one]))
    home.clock.advance(days=40)
    rescue = [RESCUES[reason](engine, ids[1])]

    def reach(failpoint: Failpoint) -> None:
        if failpoint is Failpoint.PURGE_COMMITTED and rescue:
            rescue.pop()()

    done = Kernel(replace(home.ports(), reach=reach)).purge(ALICE, Purge(superseded_days=30))
    assert getattr(done, reason) == 1
    assert "elm" in contents(engine)
    assert engine.verify(ALICE).sound


def test_a_conversation_that_goes_on_while_a_purge_is_under_way_stays(home: MemoryHome) -> None:
    engine = home.engine()
    engine.set_retention(ALICE, SetRetention(conversations=Limit(days=5)))
    for name in ("old", "resumed"):
        engine.append(ALICE, Append(name, ({"body": 1},)))
    home.clock.advance(days=6)
    resume = [lambda: engine.append(ALICE, Append("resumed", ({"body": 2},)))]

    def reach(failpoint: Failpoint) -> None:
        if failpoint is Failpoint.PURGE_COMMITTED and resume:
            resume.pop()()

    done = Kernel(replace(home.ports(), reach=reach)).purge(ALICE, Purge())
    assert done.conversations == 1
    assert [one.name for one in engine.conversations(ALICE).data] == ["resumed"]


def test_the_key_of_a_backup_goes_the_day_after_it_expired(
    home: MemoryHome, engine: Kernel
) -> None:
    raw, _ = engine.backup(ALICE, Backup(days=7))
    home.clock.advance(7 * DAY)
    assert engine.purge(ALICE).backups == 0
    home.clock.advance(1 * DAY)
    assert engine.purge(ALICE).backups == 1
    assert home.store.catalog.backups(address(home)) == []
    with pytest.raises(WrongKey):
        engine.restore(ALICE, Restore(raw))


def test_a_purge_is_on_record_with_its_numbers(home: MemoryHome, engine: Kernel) -> None:
    supersede(engine, retain(engine, "tea"), "coffee", key="k")
    engine.amend(ALICE, Amend(contents_id(engine), expires_at=home.clock.now() + HOUR))
    home.clock.advance(31 * DAY)
    engine.purge(ALICE)
    events = [(event.verb, event.number) for event in engine.audit(ALICE)]
    assert events[-2:] == [("purge.expired", 1), ("purge.superseded", 1)]


def contents_id(engine: Kernel) -> str:
    return engine.follow(ALICE).memories[-1].id
