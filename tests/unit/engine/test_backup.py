"""backup and restore: what is lost comes back, what was forgotten does not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import (
    Destroyed,
    InvalidRequest,
    KeyMissing,
    NotFound,
    ScrubjayError,
    StoreError,
    WrongKey,
)
from scrubjay.model.requests import Backup, Destroy, Export, Get, Load, Restore, Retain
from scrubjay.model.results import Loaded, Outcome
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    LONG,
    address,
    contents,
    everything,
    forget,
    head,
    retain,
    rows,
    slots,
    supersede,
    verbs,
)

NAME = "local/alice"


def lose_file(home: MemoryHome) -> None:
    """The data file and its blobs are gone; keys and catalog are there."""
    home.store.remove(address(home))
    home.blobs.remove(address(home))


def test_the_receipt_names_the_backup_its_key_and_its_end(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    raw, made = engine.backup(ALICE, Backup(days=7))
    assert made.memories == 1
    assert made.expires == (home.clock.now() + timedelta(days=7)).date()
    assert f'"{made.name}"'.encode() in raw
    assert f"backup.{made.name}" in home.keyring.purposes(address(home))


@pytest.mark.parametrize("days", [0, -1, None, 1.5, True, "7", 10**9])
def test_a_backup_must_have_an_end(home: MemoryHome, engine: Kernel, days: Any) -> None:
    engine.open(ALICE)
    with pytest.raises(InvalidRequest):
        engine.backup(ALICE, Backup(days=days))
    assert home.store.catalog.backups(address(home)) == []


def test_a_backup_shows_nothing(engine: Kernel) -> None:
    retain(engine, "Nightingale")
    raw, made = engine.backup(ALICE)
    assert b"Nightingale" not in raw
    assert made.key.encode() not in raw


# -- into the scope that is still there ----------------------------------------------------------


def test_a_scope_that_lost_nothing_gains_nothing(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    raw, _ = engine.backup(ALICE)
    before = everything(engine)
    assert engine.restore(ALICE, Restore(raw)) == Loaded(known=1)
    assert everything(engine) == before
    assert engine.verify(ALICE).sound


def test_what_was_forgotten_since_stays_forgotten(engine: Kernel) -> None:
    kept, gone = retain(engine, "tea"), retain(engine, "coffee", key="k", id="mine")
    raw, _ = engine.backup(ALICE)
    forget(engine, gone)
    assert engine.restore(ALICE, Restore(raw)) == Loaded(known=1, forgotten=1)
    assert contents(engine, superseded=True) == ["tea"]
    assert engine.get(ALICE, Get(kept)).content == "tea"
    assert engine.verify(ALICE).sound


def test_what_changed_since_stays_changed(engine: Kernel) -> None:
    old = retain(engine, "tea")
    raw, _ = engine.backup(ALICE)
    supersede(engine, old, "coffee")
    engine.restore(ALICE, Restore(raw))
    assert contents(engine) == ["coffee"]


def test_a_backup_is_restored_by_the_next_process_without_its_printed_key(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, "tea")
    raw, _ = engine.backup(ALICE)
    assert home.engine().restore(ALICE, Restore(raw)).known == 1


# -- into a scope whose file was lost --------------------------------------------------------------


def test_a_lost_file_comes_back(home: MemoryHome, engine: Kernel) -> None:
    old = retain(engine, LONG, tags=("a",), session="s", key="k")
    supersede(engine, old, "coffee")
    forget(engine, retain(engine, "gone", id="gone"))
    before = everything(engine)
    engine.audit(ALICE)  # writes the read that was counted
    raw, _ = engine.backup(ALICE)
    trail = engine.audit(ALICE)
    lose_file(home)
    successor = home.engine()
    assert successor.restore(ALICE, Restore(raw)).loaded == 2
    after = everything(successor)
    assert [one.content for one in after] == [one.content for one in before]
    assert successor.audit(ALICE)[: len(trail) - 1] == trail[:-1]
    late = successor.retain(ALICE, Retain(content="gone", id="gone"))
    assert late.outcome is Outcome.FORGOTTEN
    assert retain(successor, "again", key="k") == old


def test_what_was_forgotten_after_the_backup_does_not_come_back_with_the_file(
    home: MemoryHome, engine: Kernel
) -> None:
    """The catalog still knows what the lost file knew."""
    retain(engine, "tea")
    gone = retain(engine, "coffee", id="mine")
    raw, _ = engine.backup(ALICE)
    forget(engine, gone)
    lose_file(home)
    successor = home.engine()
    assert successor.restore(ALICE, Restore(raw)) == Loaded(loaded=1, forgotten=1)
    assert contents(successor) == ["tea"]
    late = successor.retain(ALICE, Retain(content="coffee", id="mine"))
    assert late.outcome is Outcome.FORGOTTEN


def test_a_restored_file_keeps_the_keys_it_needs_and_no_others(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, "tea")
    raw, _ = engine.backup(ALICE)
    for _ in range(3):
        engine.rotate(ALICE)
    lose_file(home)
    successor = home.engine()
    successor.restore(ALICE, Restore(raw))
    successor.finish_due(ALICE)
    position = head(home).memory
    assert f"memory.{position.epoch}" in slots(home)
    assert len(slots(home)) == 3
    assert forget(successor, everything(successor)[0].id).rotated
    assert [one for one in successor.verify(ALICE).problems if "udit" not in one] == []


def test_erasures_of_the_lost_file_stay_proven_after_its_restore(
    home: MemoryHome, engine: Kernel
) -> None:
    """No key of the restored file may pass for one that opened what was erased."""
    retain(engine, "tea")
    receipt = forget(engine, retain(engine, "gone"))
    raw, _ = engine.backup(ALICE)
    lose_file(home)
    successor = home.engine()
    successor.restore(ALICE, Restore(raw))
    successor.finish_due(ALICE)
    assert successor.verify_erased(ALICE, receipt).sound


def test_a_process_that_had_the_lost_file_open_goes_on_with_the_restored_one(
    home: MemoryHome,
) -> None:
    """What it writes must open for everybody: it may not seal under keys of the lost file."""
    engine, other = home.engine(), home.engine()
    retain(engine, "tea")
    raw, _ = engine.backup(ALICE)
    retain(other, "coffee")
    engine.rotate(ALICE)
    lose_file(home)
    engine.restore(ALICE, Restore(raw))
    public_id = retain(other, "water")
    assert engine.get(ALICE, Get(public_id)).content == "water"
    assert contents(home.engine()) == ["water", "tea"]


# -- elsewhere -----------------------------------------------------------------------------------


def test_another_machine_restores_it_with_the_printed_key(engine: Kernel) -> None:
    retain(engine, "tea", key="k")
    forget(engine, retain(engine, "gone", id="gone"))
    raw, made = engine.backup(ALICE)
    other = MemoryHome("another").engine()
    assert other.restore(ALICE, Restore(raw, key=made.key)).loaded == 1
    assert contents(other) == ["tea"]
    assert retain(other, "again", key="k") == everything(engine)[0].id
    late = other.retain(ALICE, Retain(content="gone", id="gone"))
    assert late.outcome is Outcome.FORGOTTEN
    assert other.verify(ALICE).sound
    assert verbs(other)[:2] == ["retain", "retain"]
    assert other.scopes() == (ALICE,)


def test_a_home_restored_from_an_older_backup_vouches_for_no_later_erasure(
    engine: Kernel,
) -> None:
    """It has the memory under other keys and nonces: that the old ones are gone proves nothing."""
    retain(engine, "tea")
    gone = retain(engine, "gone")
    raw, made = engine.backup(ALICE)
    forgotten = forget(engine, gone)
    destroyed = engine.destroy(ALICE, Destroy(confirm=NAME))
    other = MemoryHome("another").engine()
    other.restore(ALICE, Restore(raw, key=made.key))
    for receipt in (forgotten, destroyed):
        report = other.verify_erased(ALICE, receipt)
        assert (report.checked, report.found) == (0, ())
        (problem,) = report.problems
        assert "does not know this erasure" in problem
    assert other.verify_erased(ALICE, forget(other, gone)).sound
    ended = other.destroy(ALICE, Destroy(confirm=NAME))
    assert other.verify_erased(ALICE, ended).sound
    assert all(engine.verify_erased(ALICE, one).sound for one in (forgotten, destroyed))


def test_a_home_restored_from_a_later_backup_vouches_for_what_was_forgotten_before_it(
    engine: Kernel,
) -> None:
    """The trail came along, and with it the erasure."""
    retain(engine, "tea")
    receipt = forget(engine, retain(engine, "gone"))
    raw, made = engine.backup(ALICE)
    other = MemoryHome("another").engine()
    other.restore(ALICE, Restore(raw, key=made.key))
    report = other.verify_erased(ALICE, receipt)
    assert report.sound
    assert any("another home" in one for one in report.seen)
    assert not other.verify_erased(ALICE, replace(receipt, audit_mac="00" * 32)).sound
    assert not other.verify_erased(ALICE, replace(receipt, audit_count=2**70)).sound
    assert not other.verify_erased(ALICE, replace(receipt, verb="destroy")).sound


def test_another_machine_cannot_without_it(engine: Kernel) -> None:
    raw, _ = engine.backup(ALICE)
    other = MemoryHome("another").engine()
    with pytest.raises(WrongKey):
        other.restore(ALICE, Restore(raw))
    assert other.scopes() == ()


def test_a_wrong_key_restores_nothing(engine: Kernel) -> None:
    raw, _ = engine.backup(ALICE)
    _, another = engine.backup(ALICE)
    other = MemoryHome("another").engine()
    with pytest.raises(WrongKey):
        other.restore(ALICE, Restore(raw, key=another.key))
    assert other.scopes() == ()


def test_a_backup_of_another_scope_is_refused(engine: Kernel) -> None:
    """Its hashes and its trail are bound to its own name."""
    retain(engine, "tea")
    raw, made = engine.backup(ALICE)
    with pytest.raises(InvalidRequest, match=NAME):
        engine.restore(BOB, Restore(raw, key=made.key))
    assert engine.scopes() == (ALICE,)
    assert engine.load(BOB, Load(raw, key=made.key)).loaded == 1


@pytest.mark.parametrize(
    "raw", [b"", b"tea", b"{}", b"[" * 2000, b'{"format": "scrubjay-bundle", "version": 1}\n']
)
@pytest.mark.parametrize("key", [None, "-".join(["AAAA"] * 13)])
def test_what_is_no_backup_is_refused(engine: Kernel, raw: bytes, key: str | None) -> None:
    with pytest.raises(InvalidRequest, match="damaged at the beginning"):
        engine.restore(ALICE, Restore(raw, key=key))
    assert engine.scopes() == ()


def test_an_export_is_no_backup(engine: Kernel) -> None:
    retain(engine, "tea")
    sealed = engine.export(ALICE, Export(sealed=True))
    with pytest.raises(InvalidRequest, match="export"):
        engine.restore(ALICE, Restore(sealed.content, key=sealed.key))
    with pytest.raises(InvalidRequest):
        engine.restore(ALICE, Restore(engine.export(ALICE).content))


def test_a_damaged_backup_restores_nothing(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, LONG)
    raw, made = engine.backup(ALICE)
    other_home = MemoryHome("another")
    for at in range(0, len(raw), len(raw) // 50):
        damaged = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        with pytest.raises(ScrubjayError):
            other_home.engine().restore(ALICE, Restore(damaged, key=made.key))
    assert other_home.engine().scopes() == ()


# -- its end -------------------------------------------------------------------------------------


def test_without_its_kept_key_the_printed_one_still_opens_it(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, "tea")
    raw, made = engine.backup(ALICE, Backup(days=1))
    home.clock.advance(days=3)
    engine.purge(ALICE)
    with pytest.raises(WrongKey):
        engine.restore(ALICE, Restore(raw))
    assert engine.restore(ALICE, Restore(raw, key=made.key)).known == 1


def test_receipts_no_longer_name_a_backup_that_has_ended(home: MemoryHome, engine: Kernel) -> None:
    gone = retain(engine, "tea")
    engine.backup(ALICE, Backup(days=1))
    home.clock.advance(days=3)
    engine.purge(ALICE)
    assert forget(engine, gone).backups == ()


def test_a_destroyed_scope_is_restored_only_anew(engine: Kernel) -> None:
    retain(engine, "tea")
    raw, made = engine.backup(ALICE)
    engine.destroy(ALICE, Destroy(confirm=NAME))
    with pytest.raises(KeyMissing):
        engine.restore(ALICE, Restore(raw))
    with pytest.raises(Destroyed):
        engine.restore(ALICE, Restore(raw, key=made.key))
    assert engine.restore(ALICE, Restore(raw, key=made.key, anew=True)).loaded == 1
    assert contents(engine) == ["tea"]
    assert engine.verify(ALICE).sound


def test_what_was_forgotten_before_a_destroy_stays_so_anew(engine: Kernel) -> None:
    """The catalog keeps the tombstones of a life that is over, and the backup its lookup key."""
    retain(engine, "tea")
    gone = retain(engine, "coffee", key="k")
    raw, made = engine.backup(ALICE)
    forget(engine, gone)
    engine.destroy(ALICE, Destroy(confirm=NAME))
    assert engine.restore(ALICE, Restore(raw, key=made.key, anew=True)) == Loaded(
        loaded=1, forgotten=1
    )
    assert contents(engine) == ["tea"]


def test_a_file_older_than_its_keys_says_so(home: MemoryHome, engine: Kernel) -> None:
    """A copy of the data file from before a rotation is noise: that is the point."""
    public_id = retain(engine, "tea")
    place = address(home)
    copy = home.store._scopes[place]
    forget(engine, retain(engine, "gone"))
    home.store._scopes[place] = copy
    successor = home.engine()
    with pytest.raises(StoreError, match="older than"):
        successor.get(ALICE, Get(public_id))
    with pytest.raises(StoreError, match="older than"):
        retain(successor, "new")
    assert any("gone" in problem for problem in successor.verify(ALICE).problems)
    assert rows(home)


def test_a_purge_leaves_what_a_restore_needs(home: MemoryHome) -> None:
    engine = home.engine(Policy(drop_days=0))
    retain(engine, "tea")
    gone = retain(engine, "coffee")
    raw, _ = engine.backup(ALICE)
    forget(engine, gone)
    engine.purge(ALICE)
    assert engine.restore(ALICE, Restore(raw)) == Loaded(known=1, forgotten=1)
    with pytest.raises(NotFound):
        engine.get(ALICE, Get(gone))
