"""destroy: keys first, everything after, and a name that must be taken up anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import (
    Busy,
    Damaged,
    Destroyed,
    Full,
    KeyMissing,
    NeedsConfirmation,
    NotFound,
    SchemaTooNew,
    StoreError,
)
from scrubjay.model.requests import Amend, Destroy, Get, History, Load, Recall, Retain
from scrubjay.ports import Failpoint, Result, Tx
from tests.support.engines import LastingStore, MemoryHome, SimulatedCrash, SqliteHome
from tests.unit.engine.scene import ALICE, BOB, LONG, address, contents, forget, retain

NAME = "local/alice"


@pytest.mark.parametrize("confirm", [None, "", "alice", "local/bob", "LOCAL/ALICE", True])
def test_without_the_full_name_nothing_is_destroyed(engine: Kernel, confirm: object) -> None:
    retain(engine, "tea")
    with pytest.raises(NeedsConfirmation) as refusal:
        engine.destroy(ALICE, Destroy(confirm=confirm))  # type: ignore[arg-type]
    assert NAME in refusal.value.hint
    assert contents(engine) == ["tea"]


def test_nothing_of_the_scope_is_left(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, LONG)
    place = address(home)
    engine.backup(ALICE)
    engine.destroy(ALICE, Destroy(confirm=NAME))
    assert not home.store.exists(place)
    assert home.keyring.purposes(place) == []
    assert home.blobs.names(place) == []
    assert engine.scopes() == ()


def test_the_receipt_says_how_much_there_was(home: MemoryHome, engine: Kernel) -> None:
    for content in "abc":
        retain(engine, content)
    gone = forget(engine, retain(engine, "d"))
    _, made = engine.backup(ALICE)
    receipt = engine.destroy(ALICE, Destroy(confirm=NAME))
    assert (receipt.verb, receipt.erased, receipt.rotated) == ("destroy", 3, True)
    assert [note.name for note in receipt.backups] == [made.name]
    assert receipt.audit_count == gone.audit_count + 1
    assert engine.receipts(ALICE).data == (gone, receipt)
    assert engine.verify_erased(ALICE, receipt).sound


def test_a_second_destroy_returns_the_same_receipt(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    first = engine.destroy(ALICE, Destroy(confirm=NAME))
    assert engine.destroy(ALICE, Destroy(confirm=NAME)) == first
    assert home.engine().destroy(ALICE, Destroy(confirm=NAME)) == first
    assert len(engine.receipts(ALICE)) == 1


def test_a_scope_that_never_was_cannot_be_destroyed(engine: Kernel) -> None:
    with pytest.raises(NotFound):
        engine.destroy(ALICE, Destroy(confirm=NAME))


def test_another_scope_is_not_touched(engine: Kernel) -> None:
    retain(engine, "tea")
    retain(engine, "coffee", scope=BOB)
    engine.destroy(ALICE, Destroy(confirm=NAME))
    assert contents(engine, scope=BOB) == ["coffee"]
    assert engine.scopes() == (BOB,)
    assert engine.verify(BOB).sound


def test_every_verb_says_that_it_was_destroyed(engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    export = engine.export(ALICE).content
    engine.destroy(ALICE, Destroy(confirm=NAME))
    for verb in (
        lambda: retain(engine, "tea"),
        lambda: engine.get(ALICE, Get(public_id)),
        lambda: contents(engine),
        lambda: engine.history(ALICE, History(public_id)),
        lambda: engine.amend(ALICE, Amend(public_id, pinned=True)),
        lambda: forget(engine, public_id),
        lambda: engine.freeze(ALICE),
        lambda: engine.rotate(ALICE),
        lambda: engine.purge(ALICE),
        lambda: engine.export(ALICE),
        lambda: engine.load(ALICE, Load(export)),
        lambda: engine.backup(ALICE),
        lambda: engine.verify(ALICE),
        lambda: engine.audit(ALICE),
        lambda: engine.follow(ALICE),
        lambda: engine.open(ALICE),
        lambda: engine.open(ALICE, create=False),
    ):
        with pytest.raises(Destroyed):
            verb()


def test_a_process_with_an_open_handle_is_told(home: MemoryHome) -> None:
    """Never an acknowledged write into nothing."""
    engine, other = home.engine(), home.engine()
    public_id = retain(other, "tea")
    engine.destroy(ALICE, Destroy(confirm=NAME))
    for verb in (
        lambda: retain(other, "coffee"),
        lambda: other.get(ALICE, Get(public_id)),
        lambda: forget(other, public_id),
        lambda: other.export(ALICE),
    ):
        with pytest.raises(Destroyed):
            verb()
    other.close()


def test_a_process_with_an_open_handle_is_told_while_it_happens(home: MemoryHome) -> None:
    engine, other = home.engine(), home.engine()
    retain(other, "tea")
    home.crashes.at(Failpoint.DESTROY_EMPTIED)
    with pytest.raises(SimulatedCrash):
        engine.destroy(ALICE, Destroy(confirm=NAME))
    with pytest.raises(Destroyed):
        retain(other, "coffee")


def test_a_file_put_back_after_a_destroy_opens_nothing(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    place = address(home)
    state = home.store._scopes[place]
    engine.destroy(ALICE, Destroy(confirm=NAME))
    home.store._scopes[place] = state
    successor = home.engine()
    with pytest.raises(Destroyed):
        contents(successor)
    assert successor.verify_erased(ALICE, successor.receipts(ALICE)[-1]).problems


# -- anew ----------------------------------------------------------------------------------------


def test_anew_makes_an_empty_scope_of_the_same_name(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea", key="k", id="mine")
    old = address(home)
    engine.destroy(ALICE, Destroy(confirm=NAME))
    engine.open(ALICE, anew=True)
    assert address(home) != old
    assert engine.audit(ALICE).data == ()
    assert contents(engine) == []
    assert retain(engine, "coffee", key="k", id="mine") == "mine"
    assert contents(home.engine()) == ["coffee"]
    assert engine.scopes() == (ALICE,)


def test_a_life_after_the_next_is_destroyed_on_its_own(engine: Kernel) -> None:
    receipts = []
    for content in "abc":
        engine.open(ALICE, anew=True)
        retain(engine, content)
        receipts.append(engine.destroy(ALICE, Destroy(confirm=NAME)))
    assert len({receipt.address for receipt in receipts}) == 3
    assert all(engine.verify_erased(ALICE, receipt).sound for receipt in receipts)


def test_anew_opens_a_scope_that_was_never_destroyed_as_it_is(engine: Kernel) -> None:
    retain(engine, "tea")
    engine.open(ALICE, anew=True)
    assert contents(engine) == ["tea"]


# -- opening -------------------------------------------------------------------------------------


def test_a_scope_is_made_by_the_first_who_opens_it(home: MemoryHome, engine: Kernel) -> None:
    engine.open(ALICE)
    assert engine.scopes() == (ALICE,)
    assert home.store.exists(address(home))


def test_a_scope_is_not_made_by_who_says_so(home: MemoryHome, engine: Kernel) -> None:
    with pytest.raises(NotFound):
        engine.open(ALICE, create=False)
    assert engine.scopes() == ()
    home.keyring.found()
    assert home.keyring.purposes(address(home)) == []


def test_scopes_are_listed_by_name(engine: Kernel) -> None:
    for scope in (BOB, ALICE):
        engine.open(scope)
    assert engine.scopes() == (ALICE, BOB)


def test_a_missing_data_file_is_an_error_and_no_empty_scope(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, "tea")
    home.store.remove(address(home))
    with pytest.raises(StoreError, match="missing"):
        home.engine().open(ALICE)


def test_missing_keys_are_an_error_and_destroy_nothing(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    place = address(home)
    keys = {one: home.keyring.get(place, one) for one in home.keyring.purposes(place)}
    home.keyring.remove(place)
    with pytest.raises(KeyMissing):
        home.engine().open(ALICE)
    for purpose, key in keys.items():
        home.keyring.add(place, purpose, key)
    assert contents(home.engine()) == ["tea"]


# -- cut off -------------------------------------------------------------------------------------

DESTROYING = [
    Failpoint.DESTROY_KEYS_DELETED,
    Failpoint.DESTROY_EMPTIED,
    Failpoint.DESTROY_UNLINKED,
]


@pytest.mark.parametrize("failpoint", DESTROYING)
def test_a_destroy_that_was_cut_off_is_carried_to_its_end(
    home: MemoryHome, failpoint: Failpoint
) -> None:
    engine = home.engine()
    engine.retain(ALICE, Retain(content=LONG))
    place = address(home)
    home.crashes.at(failpoint)
    with pytest.raises(SimulatedCrash):
        engine.destroy(ALICE, Destroy(confirm=NAME))
    successor = home.engine()
    with pytest.raises(Destroyed):
        successor.open(ALICE)
    assert home.keyring.purposes(place) == []
    assert not home.store.exists(place)
    assert home.blobs.names(place) == []
    (receipt,) = successor.receipts(ALICE)
    assert successor.destroy(ALICE, Destroy(confirm=NAME)) == receipt
    assert successor.verify_erased(ALICE, receipt).sound


@pytest.mark.parametrize("failpoint", DESTROYING)
def test_the_receipt_of_a_destroy_that_was_cut_off_says_how_much_there_was(
    home: MemoryHome, failpoint: Failpoint
) -> None:
    engine = home.engine()
    for content in "abc":
        retain(engine, content)
    home.crashes.at(failpoint)
    with pytest.raises(SimulatedCrash):
        engine.destroy(ALICE, Destroy(confirm=NAME))
    assert home.engine().destroy(ALICE, Destroy(confirm=NAME)).erased == 3


@pytest.mark.parametrize("failpoint", [Failpoint.CREATE_KEYS_ADDED, Failpoint.CREATE_STORED])
def test_making_a_scope_that_was_cut_off_is_made_by_the_next(
    home: MemoryHome, failpoint: Failpoint
) -> None:
    home.crashes.at(failpoint)
    with pytest.raises(SimulatedCrash):
        home.engine().open(ALICE)
    successor = home.engine()
    with pytest.raises(NotFound):
        successor.open(ALICE, create=False)
    retain(successor, "tea")
    assert contents(home.engine()) == ["tea"]
    assert successor.verify(ALICE).sound


class RefusingStore(LastingStore):
    """A store that fails once, before or after the work of a write was done."""

    error: StoreError | None = None
    late = False

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        error, self.error = self.error, None
        if error is None:
            return super().write(address, work, erasing=erasing)
        if not self.late:
            raise error

        def undone(tx: Tx) -> Result:
            work(tx)
            raise error

        return super().write(address, undone, erasing=erasing)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", [Busy, Full, SchemaTooNew, StoreError])
def test_a_failure_that_may_pass_stops_it_before_the_first_key(
    kind: type[StoreError], late: bool
) -> None:
    home = MemoryHome()
    home.store = store = RefusingStore(reach=home.crashes)
    engine, other = home.engine(), home.engine()
    retain(engine, "tea")
    retain(other, "milk")
    place = address(home)  # asked again, it would carry the destroy on
    keys = set(home.keyring.purposes(place))
    store.error, store.late = kind("It failed."), late
    with pytest.raises(kind):
        engine.destroy(ALICE, Destroy(confirm=NAME))
    assert keys <= set(home.keyring.purposes(place))
    assert other.get(ALICE, Get(retain(other, "acknowledged"))).content == "acknowledged"
    if not late:
        assert set(home.keyring.purposes(place)) == keys, "nothing was decided"
        assert contents(home.engine()) == ["acknowledged", "milk", "tea"]
    assert engine.destroy(ALICE, Destroy(confirm=NAME)).verb == "destroy"
    with pytest.raises(Destroyed):
        retain(other, "into nothing")
    assert home.keyring.purposes(place) == []


@pytest.mark.parametrize("kind", [Busy, Full, SchemaTooNew, StoreError])
def test_a_failure_when_a_destroy_goes_on_keeps_the_keys_that_are_left(
    kind: type[StoreError],
) -> None:
    home = MemoryHome()
    home.store = store = RefusingStore(reach=home.crashes)
    engine = home.engine()
    retain(engine, "tea")
    place = address(home)
    home.keyring.add(place, "destroyed", bytes(32))
    keys = home.keyring.purposes(place)
    store.error = kind("It failed.")
    with pytest.raises(kind):
        home.engine().open(ALICE)
    assert home.keyring.purposes(place) == keys
    with pytest.raises(Destroyed):
        home.engine().open(ALICE)
    assert home.keyring.purposes(place) == []


def test_damage_does_not_keep_the_keys() -> None:
    home = MemoryHome()
    home.store = store = RefusingStore(reach=home.crashes)
    engine = home.engine()
    retain(engine, "tea")
    place = address(home)
    store.error = Damaged("It is damaged.")
    engine.destroy(ALICE, Destroy(confirm=NAME))
    assert home.keyring.purposes(place) == []


@pytest.fixture(params=["memory", "sqlite"])
def two_engines(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Kernel, Kernel]:
    home = MemoryHome() if request.param == "memory" else SqliteHome(tmp_path)
    return home.engine(), home.engine()


@pytest.mark.parametrize(
    "verb",
    [
        lambda e: e.browse(ALICE),
        lambda e: e.retain(ALICE, Retain("late")),
        lambda e: e.recall(ALICE, Recall("tea")),
        lambda e: e.brief(ALICE),
        lambda e: e.verify(ALICE),
        lambda e: e.rotate(ALICE),
    ],
    ids=["browse", "retain", "recall", "brief", "verify", "rotate"],
)
def test_whoever_had_it_open_is_told_once_and_then_finds_its_next_life(
    two_engines: tuple[Kernel, Kernel], verb: Callable[[Kernel], object]
) -> None:
    engine, other = two_engines
    retain(engine, "tea")
    retain(other, "milk")
    engine.destroy(ALICE, Destroy(confirm=NAME))
    engine.open(ALICE, anew=True)
    new = retain(engine, "of the new life")
    with pytest.raises(Destroyed):
        verb(other)
    verb(other)
    assert other.get(ALICE, Get(new)).content == "of the new life"


def test_opening_it_finds_its_next_life_at_once(two_engines: tuple[Kernel, Kernel]) -> None:
    engine, other = two_engines
    retain(other, "milk")
    engine.destroy(ALICE, Destroy(confirm=NAME))
    for _ in range(2):
        with pytest.raises(Destroyed):
            other.open(ALICE)
        with pytest.raises(Destroyed):
            contents(other)
    engine.open(ALICE, anew=True)
    retain(engine, "of the new life")
    other.open(ALICE)
    assert contents(other) == ["of the new life"]
    assert retain(other, "mine") in {one.id for one in engine.browse(ALICE)}
