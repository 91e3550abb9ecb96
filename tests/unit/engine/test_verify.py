"""verify: what is damaged shows, and an erasure can be proven or refuted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import InvalidRequest, StoreError
from scrubjay.model.requests import Amend, Destroy
from scrubjay.model.results import Erasure
from scrubjay.model.rows import Collection, Due
from scrubjay.ports import Tx
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    LONG,
    address,
    change,
    contents,
    flip_cell,
    forget,
    head,
    retain,
    rows,
    supersede,
)


@pytest.fixture
def lived_in(engine: Kernel) -> Kernel:
    """A scope with a bit of everything: chain, lineage, blob, tombstone, audit trail."""
    old = retain(engine, "tea", key="k", session="s")
    supersede(engine, old, "coffee")
    source = retain(engine, LONG)
    retain(engine, "derived", sources=(source,))
    forget(engine, retain(engine, "gone"))
    return engine


def test_a_sound_scope_is_sound_and_everything_was_looked_at(lived_in: Kernel) -> None:
    report = lived_in.verify(ALICE)
    assert report.sound
    assert report.problems == ()
    assert report.checked == 5 + len(lived_in.audit(ALICE))


def test_an_empty_scope_is_sound(engine: Kernel) -> None:
    engine.open(ALICE)
    assert engine.verify(ALICE).sound


@pytest.mark.parametrize("at", [0, 1, 2, 6, 17, 18, 60, -17, -1])
def test_a_flipped_bit_is_found_wherever_it_is(home: MemoryHome, engine: Kernel, at: int) -> None:
    """In the header, the nonce, the text or the tag."""
    retain(engine, "tea")
    retain(engine, "coffee")
    flip_cell(home, 1, at=at)
    (problem,) = engine.verify(ALICE).problems
    assert problem.startswith("memory row 1:")


def test_a_cell_cut_short_is_found(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    (row,) = rows(home)
    change(
        home,
        lambda tx: tx.reseal(Collection.MEMORY, [(row, replace(row, cell=(row.cell or b"")[:20]))]),
    )
    assert not engine.verify(ALICE).sound


def test_cells_that_changed_places_are_found(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    retain(engine, "milk")
    first, second = rows(home)

    def swap(tx: Tx) -> None:
        tx.reseal(Collection.MEMORY, [(first, replace(first, cell=second.cell))])
        tx.reseal(Collection.MEMORY, [(second, replace(second, cell=first.cell))])

    change(home, swap)
    assert len(engine.verify(ALICE).problems) == 2


def test_an_older_version_put_back_is_found(home: MemoryHome, engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    (old,) = rows(home)
    engine.amend(ALICE, Amend(public_id, pinned=True))
    (new,) = rows(home)
    change(home, lambda tx: tx.reseal(Collection.MEMORY, [(new, replace(new, cell=old.cell))]))
    assert not engine.verify(ALICE).sound


def test_a_missing_blob_is_found(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, LONG)
    home.blobs.remove(address(home))
    (problem,) = engine.verify(ALICE).problems
    assert "blob" in problem


def damage_last(blob: bytes) -> bytes:
    return blob[:-1] + bytes([blob[-1] ^ 1])


def drop_last_chunk(blob: bytes) -> bytes:
    return blob[: 64 * 1024 + 34]


def drop_first_chunk(blob: bytes) -> bytes:
    return blob[64 * 1024 + 34 :]


@pytest.mark.parametrize("damage", [damage_last, drop_last_chunk, drop_first_chunk, lambda _: b""])
def test_a_damaged_blob_is_found(
    home: MemoryHome, engine: Kernel, damage: Callable[[bytes], bytes]
) -> None:
    retain(engine, LONG)
    (name,) = home.blobs.names(address(home))
    home.blobs.put(address(home), name, damage(home.blobs.get(address(home), name)))
    (problem,) = engine.verify(ALICE).problems
    assert problem.startswith("memory row 1:")


def test_a_tombstone_missing_in_the_catalog_is_found(home: MemoryHome, engine: Kernel) -> None:
    forget(engine, retain(engine, "tea"))
    home.store.catalog._tombstones.clear()
    (problem,) = engine.verify(ALICE).problems
    assert "catalog" in problem


def test_a_tombstone_that_is_still_due_is_no_problem(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    change(home, lambda tx: tx.bury([bytes(16)]))
    change(home, lambda tx: tx.set_head(replace(tx.head(), due=Due.PUSH)))
    assert home.engine().verify(ALICE).sound


def test_a_buried_memory_that_is_still_there_is_found(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    (row,) = rows(home)
    change(home, lambda tx: tx.bury([row.id]))
    home.store.catalog.bury(address(home), [row.id])
    (problem,) = engine.verify(ALICE).problems
    assert "tombstoned" in problem


def test_a_chain_with_a_wrong_link_is_found(home: MemoryHome, engine: Kernel) -> None:
    """The old version is put back as it was before the correction: its successor shows it."""
    old = retain(engine, "tea")
    (before,) = rows(home)
    supersede(engine, old, "coffee")
    retired = next(row for row in rows(home) if row.id == before.id)
    live = replace(before, seq=retired.seq)
    change(home, lambda tx: tx.put(Collection.MEMORY, live))
    problems = home.engine().verify(ALICE).problems
    assert any("superseded" in problem for problem in problems)


# -- the audit trail -------------------------------------------------------------------------


def test_a_whole_trail_is_sound(lived_in: Kernel) -> None:
    report = lived_in.verify_audit(ALICE)
    assert report.sound
    assert report.checked == len(lived_in.audit(ALICE))


def alter_trail(home: MemoryHome, edit: Callable[[list], object], *, move_head: bool) -> None:  # type: ignore[type-arg]
    """Rewrite the trail in the store; the head may be moved along with its end."""
    place = address(home)
    state = home.store._scopes[place]
    trail = list(state.audit)
    edit(trail)
    new_head = state.head
    if move_head:
        new_head = replace(new_head, audit_count=trail[-1].count, audit_mac=trail[-1].mac)
    home.store._scopes[place] = replace(state, audit=tuple(trail), head=new_head)


def test_a_tail_cut_off_with_the_head_is_found_by_the_catalog(
    home: MemoryHome, lived_in: Kernel
) -> None:
    lived_in.close()
    alter_trail(home, lambda trail: trail.pop(), move_head=True)
    (problem,) = home.engine().verify_audit(ALICE).problems
    assert "catalog" in problem


def test_a_tail_cut_off_without_the_head_is_found(home: MemoryHome, lived_in: Kernel) -> None:
    alter_trail(home, lambda trail: trail.pop(), move_head=False)
    problems = lived_in.verify_audit(ALICE).problems
    assert any("head" in problem for problem in problems)


def test_an_event_taken_out_is_found(home: MemoryHome, lived_in: Kernel) -> None:
    alter_trail(home, lambda trail: trail.pop(2), move_head=False)
    assert lived_in.verify_audit(ALICE).problems == ("Audit event 3 is missing.",)


def test_an_altered_event_is_found(home: MemoryHome, lived_in: Kernel) -> None:
    def alter(trail: list) -> None:  # type: ignore[type-arg]
        cell = bytearray(trail[2].cell)
        cell[-1] ^= 1
        trail[2] = replace(trail[2], cell=bytes(cell))

    alter_trail(home, alter, move_head=False)
    assert lived_in.verify_audit(ALICE).problems == ("Audit event 3 was altered.",)
    assert not lived_in.verify(ALICE).sound


def test_an_event_made_up_is_found(home: MemoryHome, lived_in: Kernel) -> None:
    def repeat(trail: list) -> None:  # type: ignore[type-arg]
        trail.append(replace(trail[-1], count=trail[-1].count + 1))

    alter_trail(home, repeat, move_head=True)
    assert not lived_in.verify_audit(ALICE).sound


def test_a_trail_replaced_by_another_is_found(home: MemoryHome, engine: Kernel) -> None:
    """Even one of the right length, with a head that agrees: the catalog knows the real one."""
    retain(engine, "tea")
    other = home.engine()
    other.open(ALICE)
    place = address(home)
    state = home.store._scopes[place]
    retain(engine, "coffee")
    engine.close()
    home.store._scopes[place] = state
    retain(other, "milk")
    assert not home.engine().verify_audit(ALICE).sound
    with pytest.raises(StoreError, match="older than"):
        retain(home.engine(), "juice")


# -- erasures --------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["tea", LONG])
def test_an_erasure_is_proven(engine: Kernel, content: str) -> None:
    retain(engine, content)
    receipt = forget(engine, retain(engine, content))
    report = engine.verify_erased(ALICE, receipt)
    assert report.sound
    assert report.found == ()
    assert report.checked == len(receipt.cells)


def test_an_erased_cell_put_back_is_found_and_does_not_open(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, "tea")
    gone = retain(engine, "coffee")
    cell = rows(home)[1].cell
    receipt = forget(engine, gone)
    change(
        home,
        lambda tx: tx.reseal(
            Collection.MEMORY, [(rows(home)[0], replace(rows(home)[0], cell=cell))]
        ),
    )
    report = engine.verify_erased(ALICE, receipt)
    assert len(report.found) == 1
    assert address(home) in report.found[0]
    assert report.sound


def test_an_erased_blob_put_back_is_found(home: MemoryHome, engine: Kernel) -> None:
    gone = retain(engine, LONG)
    (name,) = home.blobs.names(address(home))
    blob = home.blobs.get(address(home), name)
    receipt = forget(engine, gone)
    home.blobs.put(address(home), "planted", blob)
    assert len(engine.verify_erased(ALICE, receipt).found) == 2


def test_a_key_that_is_still_there_is_a_problem(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    key = home.keyring.get(address(home), "memory.1")
    receipt = forget(engine, retain(engine, "coffee"))
    home.keyring.add(address(home), "memory.1", key)
    (problem,) = engine.verify_erased(ALICE, receipt).problems
    assert "epoch 1" in problem


def test_a_rotation_still_due_is_a_problem_until_it_is_done(home: MemoryHome) -> None:
    engine = home.engine(Policy(rotate_below=0))
    retain(engine, "tea")
    receipt = forget(engine, retain(engine, "coffee"))
    assert not engine.verify_erased(ALICE, receipt).sound
    engine.finish_due(ALICE)
    assert engine.verify_erased(ALICE, receipt).sound


def test_a_destroyed_scope_that_came_back_is_a_problem(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    place = address(home)
    receipt = engine.destroy(ALICE, Destroy(confirm="local/alice"))
    assert engine.verify_erased(ALICE, receipt).sound
    home.store.create(place)
    home.keyring.add(place, "memory.1", bytes(32))
    assert len(engine.verify_erased(ALICE, receipt).problems) == 2


@pytest.mark.parametrize("place", ["", "../etc", "a b", "a/b", "A" * 65])
def test_a_receipt_with_a_strange_address_is_refused(
    home: MemoryHome, engine: Kernel, place: str
) -> None:
    receipt = Erasure(address=place, verb="forget", at=home.clock.now(), erased=1)
    with pytest.raises(InvalidRequest):
        engine.verify_erased(ALICE, receipt)


def test_a_receipt_proves_nothing_of_another_scope(engine: Kernel) -> None:
    retain(engine, "tea", scope=BOB)
    receipt = forget(engine, retain(engine, "coffee"))
    destroyed = engine.destroy(ALICE, Destroy(confirm="local/alice"))
    for one in (receipt, destroyed):
        with pytest.raises(InvalidRequest, match="no receipt of local/bob"):
            engine.verify_erased(BOB, one)
        assert engine.verify_erased(ALICE, one).sound


def test_receipts_of_earlier_lives_prove_after_the_scope_was_begun_again(engine: Kernel) -> None:
    retain(engine, "tea")
    receipt = forget(engine, retain(engine, "coffee"))
    destroyed = engine.destroy(ALICE, Destroy(confirm="local/alice"))
    engine.open(ALICE, anew=True)
    retain(engine, "milk")
    assert engine.verify_erased(ALICE, receipt).sound
    assert engine.verify_erased(ALICE, destroyed).sound
    assert not engine.verify_erased(ALICE, replace(destroyed, audit_count=99)).problems
    altered = replace(receipt, cells=receipt.cells * 2)
    assert not engine.verify_erased(ALICE, altered).sound


def test_a_receipt_of_what_was_forgotten_before_proves_too(engine: Kernel) -> None:
    gone = retain(engine, "coffee")
    forget(engine, gone)
    again = forget(engine, gone)
    assert (again.erased, again.already) == (0, 1)
    assert engine.verify_erased(ALICE, again).sound


def test_verifying_changes_nothing(home: MemoryHome, lived_in: Kernel) -> None:
    contents(lived_in)
    lived_in.audit(ALICE)
    before = head(home)
    lived_in.verify(ALICE)
    lived_in.verify_audit(ALICE)
    lived_in.verify_erased(ALICE, lived_in.receipts(ALICE)[0])
    assert head(home) == before
