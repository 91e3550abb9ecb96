"""amend, which pins and lets expire, and freeze: small changes that keep the content."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import Frozen, InvalidRequest, NotFound, Stale
from scrubjay.model.requests import (
    Amend,
    Destroy,
    Forget,
    FreezeRequest,
    Get,
    History,
    Load,
    Restore,
    Retain,
)
from scrubjay.model.results import Outcome
from scrubjay.model.rows import Freeze
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    LONG,
    address,
    contents,
    forget,
    head,
    retain,
    supersede,
    verbs,
)

LATER = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_pin_is_seen_and_raises_the_version(engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    pinned = engine.amend(ALICE, Amend(public_id, pinned=True))
    assert (pinned.pinned, pinned.version) == (True, 2)
    assert engine.get(ALICE, Get(public_id)) == pinned


def test_a_pin_is_taken_off(engine: Kernel) -> None:
    public_id = retain(engine, "tea", pinned=True)
    assert not engine.amend(ALICE, Amend(public_id, pinned=False)).pinned
    assert not engine.get(ALICE, Get(public_id)).pinned


def test_a_second_pin_changes_nothing(home: MemoryHome, engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    engine.amend(ALICE, Amend(public_id, pinned=True))
    before = head(home)
    engine.amend(ALICE, Amend(public_id, pinned=True))
    assert head(home) == before


def test_an_expiry_is_set_and_lifted(engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    assert engine.amend(ALICE, Amend(public_id, expires_at=LATER)).expires_at == LATER
    assert engine.get(ALICE, Get(public_id)).expires_at == LATER
    assert engine.amend(ALICE, Amend(public_id, expires_at=None)).expires_at is None


def test_an_expiry_in_the_past_is_at_once(home: MemoryHome, engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    engine.amend(ALICE, Amend(public_id, expires_at=home.clock.now() - timedelta(days=1)))
    assert contents(engine) == []


def test_an_expired_memory_can_be_had_back_until_it_is_purged(
    home: MemoryHome, engine: Kernel
) -> None:
    public_id = retain(engine, "tea", expires_at=home.clock.now() + timedelta(days=1))
    home.clock.advance(days=2)
    engine.amend(ALICE, Amend(public_id, expires_at=None))
    assert contents(engine) == ["tea"]


def test_a_time_without_a_zone_is_refused(engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    with pytest.raises(InvalidRequest):
        engine.amend(ALICE, Amend(public_id, expires_at=datetime(2030, 1, 1)))  # noqa: DTZ001


def test_what_is_not_here_can_be_neither_pinned_nor_expired(engine: Kernel) -> None:
    gone = retain(engine, "tea")
    forget(engine, gone)
    for public_id in (gone, "mem-nowhere"):
        with pytest.raises(NotFound):
            engine.amend(ALICE, Amend(public_id, pinned=True))
        with pytest.raises(NotFound):
            engine.amend(ALICE, Amend(public_id, expires_at=LATER))


def test_a_change_to_a_long_memory_leaves_one_blob(home: MemoryHome, engine: Kernel) -> None:
    public_id = retain(engine, LONG)
    engine.amend(ALICE, Amend(public_id, pinned=True))
    engine.finish_due(ALICE)
    assert engine.get(ALICE, Get(public_id)).content == LONG
    assert len(home.blobs.names(address(home))) == 1


def test_a_pin_and_an_expiry_are_one_change(engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    both = engine.amend(ALICE, Amend(id=public_id, pinned=True, expires_at=LATER))
    assert (both.pinned, both.expires_at, both.version) == (True, LATER, 2)
    assert engine.get(ALICE, Get(public_id)) == both
    assert verbs(engine) == ["retain", "pin", "expire", "get"]


def test_what_an_amendment_does_not_say_stays_as_it_is(engine: Kernel) -> None:
    public_id = retain(engine, "tea", expires_at=LATER)
    assert engine.amend(ALICE, Amend(id=public_id, pinned=True)).expires_at == LATER
    assert engine.amend(ALICE, Amend(id=public_id, expires_at=None)).pinned


def test_an_amendment_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        Amend(id="mem-1")


# -- what is expected --------------------------------------------------------------------------


def test_a_memory_is_amended_by_who_has_seen_it_as_it_is(engine: Kernel) -> None:
    seen = engine.get(ALICE, Get(retain(engine, "tea")))
    expected = frozenset({(0, 0), seen.edition})
    assert engine.amend(ALICE, Amend(id=seen.id, pinned=True), expected=expected).pinned


def test_a_memory_that_another_process_changed_is_not_amended(home: MemoryHome) -> None:
    engine, other = home.engine(), home.engine()
    seen = engine.get(ALICE, Get(retain(engine, "tea")))
    changed = other.amend(ALICE, Amend(seen.id, pinned=True))
    for expected in (frozenset({seen.edition}), frozenset[tuple[int, int]]()):
        with pytest.raises(Stale):
            engine.amend(ALICE, Amend(id=seen.id, pinned=False), expected=expected)
    assert engine.get(ALICE, Get(seen.id)) == changed


def test_a_memory_that_another_process_changed_is_not_forgotten(home: MemoryHome) -> None:
    engine, other = home.engine(), home.engine()
    seen = engine.get(ALICE, Get(retain(engine, "tea")))
    changed = other.amend(ALICE, Amend(seen.id, pinned=True))
    with pytest.raises(Stale):
        engine.forget(ALICE, Forget(ids=(seen.id,)), expected=frozenset({seen.edition}))
    assert engine.get(ALICE, Get(seen.id)) == changed
    expected = frozenset({changed.edition})
    assert engine.forget(ALICE, Forget(ids=(seen.id,)), expected=expected).erased == 1


def test_a_memory_that_another_process_forgot_is_not_found(home: MemoryHome) -> None:
    engine = home.engine()
    seen = engine.get(ALICE, Get(retain(engine, "tea")))
    forget(home.engine(), seen.id)
    expected = frozenset({seen.edition})
    with pytest.raises(NotFound):
        engine.amend(ALICE, Amend(id=seen.id, pinned=True), expected=expected)
    with pytest.raises(NotFound):
        engine.forget(ALICE, Forget(ids=(seen.id,)), expected=expected)


def test_a_state_is_expected_of_one_memory_only(engine: Kernel) -> None:
    targets: list[dict[str, Any]] = [{"ids": ("a", "b")}, {"session": "s"}]
    for target in targets:
        with pytest.raises(InvalidRequest):
            engine.forget(ALICE, Forget(**target), expected=frozenset({(1, 1)}))


# -- freeze ------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [Freeze.WRITES, Freeze.ALL])
def test_a_frozen_scope_takes_no_write(engine: Kernel, level: Freeze) -> None:
    public_id = retain(engine, "tea", expires_at=LATER)
    export = engine.export(ALICE).content
    raw, _ = engine.backup(ALICE)
    engine.freeze(ALICE, FreezeRequest(level))
    for write in (
        lambda: retain(engine, "coffee"),
        lambda: supersede(engine, public_id, "coffee"),
        lambda: engine.amend(ALICE, Amend(public_id, pinned=True)),
        lambda: engine.amend(ALICE, Amend(public_id, expires_at=None)),
        lambda: engine.load(ALICE, Load(export)),
        lambda: engine.restore(ALICE, Restore(raw)),
        lambda: engine.purge(ALICE),
    ):
        with pytest.raises(Frozen):
            write()
    assert contents(engine, superseded=True) == ["tea"]


@pytest.mark.parametrize("level", [Freeze.WRITES, Freeze.ALL])
def test_a_frozen_scope_is_still_its_owners_to_see_take_and_erase(
    engine: Kernel, level: Freeze
) -> None:
    public_id, other = retain(engine, "tea"), retain(engine, "coffee")
    engine.freeze(ALICE, FreezeRequest(level))
    assert engine.get(ALICE, Get(public_id)).content == "tea"
    assert contents(engine) == ["coffee", "tea"]
    assert len(engine.history(ALICE, History(public_id))) == 1
    assert engine.export(ALICE).memories == 2
    assert engine.backup(ALICE)[1].memories == 2
    assert engine.verify(ALICE).sound
    assert forget(engine, public_id).erased == 1
    assert engine.rotate(ALICE).resealed == 1
    assert contents(engine) == ["coffee"]
    assert engine.head(ALICE).frozen is level
    assert engine.destroy(ALICE, Destroy(confirm="local/alice")).erased == 1
    assert other


def test_freeze_answers_with_the_level_before(engine: Kernel) -> None:
    engine.open(ALICE)
    assert engine.freeze(ALICE) is Freeze.NONE
    assert engine.freeze(ALICE, FreezeRequest(Freeze.ALL)) is Freeze.WRITES
    assert engine.freeze(ALICE, FreezeRequest(Freeze.NONE)) is Freeze.ALL
    assert retain(engine, "tea")


def test_the_same_level_again_is_not_an_event(engine: Kernel) -> None:
    engine.freeze(ALICE)
    engine.freeze(ALICE)
    assert verbs(engine) == ["freeze.writes"]


def test_a_freeze_holds_for_every_process_and_the_next_ones(home: MemoryHome) -> None:
    engine, other = home.engine(), home.engine()
    other.open(ALICE)
    engine.freeze(ALICE)
    for one in (other, home.engine()):
        with pytest.raises(Frozen):
            retain(one, "tea")


def test_a_freeze_stops_its_own_scope_only(engine: Kernel) -> None:
    engine.freeze(ALICE)
    assert engine.retain(BOB, Retain(content="tea")).outcome is Outcome.STORED
