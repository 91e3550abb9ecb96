"""rotate: new keys for everything, and no trace of that for who reads."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.scope import rotate
from scrubjay.model.pages import Paged
from scrubjay.model.requests import NOTHING, Amend, Destroy, Get
from scrubjay.model.rows import Due
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import (
    ALICE,
    LONG,
    address,
    everything,
    forget,
    head,
    retain,
    rows,
    slots,
    supersede,
)

LATER = Policy(rotate_below=0, slice_seconds=0)
"""Every rotation is left due, and a verb does one batch of it: that much is always done."""


def test_old_slots_are_gone_and_new_ones_are_there(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    rotated = engine.rotate(ALICE)
    assert slots(home) == ["memory.2", "session.2", "turn.2"]
    assert rotated.epochs == {"memory": 2, "session": 2, "turn": 2}
    assert rotated.resealed == 1


def test_contents_are_the_same_before_and_after(home: MemoryHome, engine: Kernel) -> None:
    old = retain(engine, "tea", tags=("a",), key="k", session="s")
    supersede(engine, old, LONG)
    engine.amend(ALICE, Amend(old, pinned=True))
    before = everything(engine)
    engine.rotate(ALICE)
    assert everything(engine) == before
    assert everything(home.engine()) == before
    assert engine.verify(ALICE).sound


def test_only_cells_blobs_and_epochs_change(home: MemoryHome, engine: Kernel) -> None:
    """Neither seq nor version: nobody who follows the changes is told of a rotation."""
    supersede(engine, retain(engine, "tea", key="k", session="s"), LONG)
    forget(engine, retain(engine, "gone"))
    before = rows(home)
    engine.rotate(ALICE)
    after = rows(home)
    for old, new in zip(before, after, strict=True):
        assert new == (old if old.erased else replace(old, cell=new.cell, blob=new.blob, epoch=3))
        assert old.erased or new.cell != old.cell
    assert engine.follow(ALICE, Paged(cursor=f"{head(home).memory.seq}.0")).memories == ()


def test_every_blob_is_sealed_anew(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, LONG)
    before = home.blobs.names(address(home))
    engine.rotate(ALICE)
    after = home.blobs.names(address(home))
    assert len(after) == 1
    assert before != after


def test_an_empty_scope_rotates_too(home: MemoryHome, engine: Kernel) -> None:
    engine.open(ALICE)
    assert engine.rotate(ALICE).resealed == 0
    assert slots(home) == ["memory.2", "session.2", "turn.2"]


def test_many_rotations_leave_one_key_each(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    for _ in range(5):
        engine.rotate(ALICE)
    assert slots(home) == ["memory.6", "session.6", "turn.6"]
    assert head(home).due is Due.NOTHING


def test_another_process_reads_and_writes_across_a_rotation(home: MemoryHome) -> None:
    engine, other = home.engine(), home.engine()
    public_id = retain(other, "tea")
    engine.rotate(ALICE)
    assert other.get(ALICE, Get(public_id)).content == "tea"
    other.amend(ALICE, Amend(public_id, pinned=True))
    assert engine.get(ALICE, Get(public_id)).pinned
    assert engine.verify(ALICE).sound


# -- large scopes ----------------------------------------------------------------------------


@pytest.fixture
def large(home: MemoryHome) -> Kernel:
    """A scope of several batches that counts as too large to rotate at once."""
    engine = home.engine(LATER)
    for number in range(400):
        retain(engine, str(number))
    return engine


def test_a_large_scope_leaves_its_rotation_due(home: MemoryHome, large: Kernel) -> None:
    receipt = forget(large, retain(large, "gone"))
    assert not receipt.rotated
    assert head(home).due == Due.ROTATE
    assert head(home).due_since is not None
    assert slots(home)[:2] == ["memory.1", "memory.2"]
    assert not large.verify_erased(ALICE, receipt).sound


def test_verbs_finish_a_due_rotation_in_slices(home: MemoryHome, large: Kernel) -> None:
    receipt = forget(large, retain(large, "gone"))
    steps = 0
    while head(home).due:
        large.timeline(ALICE)
        steps += 1
        assert steps < 20
    assert steps == 5
    assert slots(home) == ["memory.2", "session.1", "turn.1"]
    assert head(home).due_since is None
    assert large.verify_erased(ALICE, receipt).sound
    assert large.verify(ALICE).sound


def test_the_next_process_goes_on_with_it(home: MemoryHome, large: Kernel) -> None:
    forget(large, retain(large, "gone"))
    stale = sum(row.epoch == 1 for row in rows(home))
    successor = home.engine(LATER)
    successor.open(ALICE)
    successor.timeline(ALICE)
    left = sum(row.epoch == 1 for row in rows(home) if not row.erased)
    assert 0 < left < stale
    successor.finish_due(ALICE)
    assert head(home).due is Due.NOTHING


def test_a_second_erasure_while_one_is_due_takes_both_keys(home: MemoryHome, large: Kernel) -> None:
    receipts = [forget(large, retain(large, content)) for content in ("one", "two")]
    large.finish_due(ALICE)
    assert slots(home) == ["memory.3", "session.1", "turn.1"]
    assert all(large.verify_erased(ALICE, receipt).sound for receipt in receipts)


def test_a_rotation_on_top_of_a_half_done_one_ends_both(home: MemoryHome, large: Kernel) -> None:
    """What was sealed anew in the first half is sealed anew once more."""
    forget(large, retain(large, "gone"))
    large.timeline(ALICE)
    epochs = {row.epoch for row in rows(home) if not row.erased}
    assert epochs == {1, 2}
    large.rotate(ALICE)
    assert head(home).due is Due.NOTHING
    assert slots(home) == ["memory.3", "session.2", "turn.2"]
    assert {row.epoch for row in rows(home) if not row.erased} == {3}


def test_two_processes_finish_one_rotation_together(home: MemoryHome, large: Kernel) -> None:
    other = home.engine(LATER)
    other.open(ALICE)
    forget(large, retain(large, "gone"))
    while head(home).due:
        large.timeline(ALICE)
        other.audit(ALICE)
    assert slots(home) == ["memory.2", "session.1", "turn.1"]
    assert large.verify(ALICE).sound


@pytest.mark.parametrize("verb", ["rotate", "destroy"])
def test_progress_is_told_never_falls_and_ends_at_the_total(
    large: Kernel, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotate, "_BATCH", 50)
    told = list[tuple[int, int]]()
    fields = Destroy(confirm=str(ALICE)) if verb == "destroy" else NOTHING
    getattr(large, verb)(ALICE, fields, progress=lambda done, total: told.append((done, total)))
    assert len(set(told)) >= 5
    assert told == sorted(told)
    assert len({total for _, total in told}) == 1
    assert told[-1][0] == told[-1][1]
