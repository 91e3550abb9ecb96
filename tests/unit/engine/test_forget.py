"""forget: gone for good, with what came from it, and provably so."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.memories import receipts
from scrubjay.model.errors import InvalidRequest, NotFound, SealBroken
from scrubjay.model.requests import Backup, FreezeRequest, Get, Load, Retain
from scrubjay.model.results import Outcome
from scrubjay.model.rows import Due, Freeze
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    LONG,
    address,
    contents,
    flip_cell,
    forget,
    head,
    retain,
    rows,
    slots,
    supersede,
)

DAY = timedelta(days=1)

# -- what goes -----------------------------------------------------------------------------------


def test_what_is_named_is_gone_and_the_rest_stays(engine: Kernel) -> None:
    first, _, third = (retain(engine, content) for content in "abc")
    receipt = forget(engine, first, third)
    assert (receipt.erased, receipt.derived, receipt.already) == (2, 0, 0)
    assert contents(engine, superseded=True) == ["b"]


def test_a_session_is_forgotten_whole(engine: Kernel) -> None:
    for content, session in (("a", "s"), ("b", "t"), ("c", "s"), ("d", None)):
        retain(engine, content, session=session)
    assert forget(engine, session="s").erased == 2
    assert contents(engine) == ["d", "b"]


def test_tags_must_all_be_on_what_is_forgotten(engine: Kernel) -> None:
    for content, tags in (("a", ("x",)), ("b", ("x", "y")), ("c", ("y",))):
        retain(engine, content, tags=tags)
    assert forget(engine, tags=("x", "y")).erased == 1
    assert contents(engine) == ["c", "a"]


def test_what_is_older_than_a_time_is_forgotten(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "a")
    moment = home.clock.now()
    retain(engine, "b")
    assert forget(engine, before=moment).erased == 1
    assert contents(engine) == ["b"]


def test_what_expired_is_forgotten_like_any_other(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "a", expires_at=home.clock.now() + timedelta(days=1), tags=("x",))
    home.clock.advance(days=2)
    assert forget(engine, tags=("x",)).erased == 1


def test_a_target_that_meets_nothing_erases_nothing(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "a")
    before = head(home)
    for target in ({"session": "none"}, {"tags": ("none",)}, {"before": home.clock.now() - DAY}):
        assert forget(engine, **target).erased == 0
    assert head(home) == before
    assert engine.receipts(ALICE).data == ()


def test_earlier_versions_go_with_the_latest(engine: Kernel) -> None:
    """Nobody sees them, so nobody could name them; and they say what is to be forgotten."""
    first = retain(engine, "a")
    third = supersede(engine, supersede(engine, first, "b"), "c")
    receipt = forget(engine, third)
    assert (receipt.erased, receipt.derived) == (3, 2)
    assert contents(engine, superseded=True) == []


def test_a_later_version_outlives_an_earlier_one(engine: Kernel) -> None:
    first = retain(engine, "a")
    second = supersede(engine, first, "b")
    assert forget(engine, first).erased == 1
    assert contents(engine, superseded=True) == ["b"]
    assert engine.verify(ALICE).sound
    assert supersede(engine, second, "c")


def test_what_was_derived_goes_with_its_sources_at_any_depth(engine: Kernel) -> None:
    source, other = retain(engine, "a"), retain(engine, "b")
    summary = retain(engine, "ab", sources=(source, other))
    retain(engine, "abc", sources=(summary,))
    receipt = forget(engine, source)
    assert (receipt.erased, receipt.derived) == (3, 2)
    assert contents(engine) == ["b"]


def test_sources_stay_when_what_was_derived_goes(engine: Kernel) -> None:
    source = retain(engine, "a")
    forget(engine, retain(engine, "derived", sources=(source,)))
    assert contents(engine) == ["a"]


def test_what_was_derived_from_an_earlier_version_goes_too(engine: Kernel) -> None:
    first = retain(engine, "a")
    retain(engine, "derived from a", sources=(first,))
    forget(engine, supersede(engine, first, "b"))
    assert contents(engine, superseded=True) == []


def test_lineage_is_followed_after_a_load_as_well(engine: Kernel) -> None:
    source = retain(engine, "a")
    retain(engine, "derived", sources=(source,))
    engine.load(BOB, Load(engine.export(ALICE).content))
    assert forget(engine, source, scope=BOB).erased == 2


def test_a_blob_goes_with_its_memory(home: MemoryHome, engine: Kernel) -> None:
    kept, gone = retain(engine, LONG), retain(engine, LONG)
    forget(engine, gone)
    assert len(home.blobs.names(address(home))) == 1
    assert engine.get(ALICE, Get(kept)).content == LONG


def test_a_damaged_memory_can_still_be_forgotten(home: MemoryHome, engine: Kernel) -> None:
    damaged, _ = retain(engine, "a"), retain(engine, "b")
    flip_cell(home, 1)
    assert forget(engine, damaged).erased == 1
    assert contents(engine) == ["b"]
    assert engine.verify(ALICE).sound


def test_a_memory_whose_blob_is_gone_can_still_be_forgotten(
    home: MemoryHome, engine: Kernel
) -> None:
    damaged = retain(engine, LONG)
    home.blobs.remove(address(home))
    assert forget(engine, damaged).erased == 1


def test_a_damaged_memory_does_not_keep_another_from_being_forgotten(
    home: MemoryHome, engine: Kernel
) -> None:
    """It cannot be sealed anew, but the keys of the erased one go all the same."""
    damaged, gone = retain(engine, "a"), retain(engine, "b")
    flip_cell(home, 1)
    receipt = forget(engine, gone)
    assert receipt.rotated
    assert engine.verify_erased(ALICE, receipt).sound
    assert retain(engine, "c")
    with pytest.raises(SealBroken):
        engine.get(ALICE, Get(damaged))
    assert len(engine.verify(ALICE).problems) == 1
    assert forget(engine, damaged).erased == 1
    assert engine.verify(ALICE).sound


# -- what is said of ids that are not here ------------------------------------------------------


def test_what_was_forgotten_already_counts_as_such(home: MemoryHome, engine: Kernel) -> None:
    first, second = retain(engine, "a"), retain(engine, "b")
    forget(engine, first)
    before = head(home)
    again = forget(engine, first)
    assert (again.erased, again.already, again.cells) == (0, 1, ())
    assert head(home) == before
    both = forget(engine, first, second)
    assert (both.erased, both.already) == (1, 1)


def test_it_still_counts_when_its_row_was_dropped(home: MemoryHome) -> None:
    engine = home.engine(Policy(drop_days=0))
    gone = retain(engine, "a")
    forget(engine, gone)
    engine.purge(ALICE)
    assert rows(home) == []
    assert forget(engine, gone).already == 1


def test_an_unknown_id_is_refused_and_nothing_is_written(home: MemoryHome, engine: Kernel) -> None:
    known = retain(engine, "a")
    before, keys = head(home), slots(home)
    with pytest.raises(NotFound, match="mem-nowhere"):
        forget(engine, known, "mem-nowhere")
    assert (head(home), slots(home)) == (before, keys)
    assert contents(engine) == ["a"]


def test_an_id_is_forgotten_before_it_ever_comes(home: MemoryHome, engine: Kernel) -> None:
    receipt = forget(engine, "hist1_0af", unseen=True)
    assert receipt.erased == 0
    assert retain(engine, "a", id="hist1_0af")
    assert contents(engine) == []
    assert home.store.catalog.tombstones(address(home))
    assert engine.verify(ALICE).sound


def test_unseen_ids_are_buried_beside_those_that_are_erased(engine: Kernel) -> None:
    known = retain(engine, "a")
    receipt = forget(engine, known, "hist1_0af", unseen=True)
    assert (receipt.erased, receipt.already) == (1, 0)
    late = engine.retain(ALICE, Retain(content="b", id="hist1_0af"))
    assert late.outcome is Outcome.FORGOTTEN


# -- for good ----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [Freeze.WRITES, Freeze.ALL])
def test_forgetting_works_while_frozen(engine: Kernel, level: Freeze) -> None:
    public_id = retain(engine, "a")
    engine.freeze(ALICE, FreezeRequest(level))
    assert forget(engine, public_id).rotated


def test_the_key_that_opened_it_is_gone(home: MemoryHome, engine: Kernel) -> None:
    gone, _ = retain(engine, "a"), retain(engine, "b")
    forget(engine, gone)
    assert slots(home) == ["memory.2", "session.1", "turn.1"]
    assert head(home).memory.epoch == 2
    assert head(home).due is Due.NOTHING
    assert [row.epoch for row in rows(home) if not row.erased] == [2]


def test_nothing_but_an_empty_row_is_left(home: MemoryHome, engine: Kernel) -> None:
    forget(engine, retain(engine, "a", key="k", session="s"))
    (row,) = rows(home)
    assert row.erased
    assert (row.cell, row.vector, row.blob, row.key, row.session) == (None,) * 5
    assert head(home).memory.erased_seq == row.seq == 2


def test_tombstones_are_in_the_scope_and_in_the_catalog(home: MemoryHome, engine: Kernel) -> None:
    """Both the id and the idempotency key are buried."""
    forget(engine, retain(engine, "a", key="k"))
    with home.store.read(address(home)) as view:
        tombstones = frozenset(view.tombstones())
    assert len(tombstones) == 2
    assert home.store.catalog.tombstones(address(home)) == tombstones


def test_other_processes_cannot_bring_it_back(home: MemoryHome) -> None:
    engine, other = home.engine(), home.engine()
    gone = retain(engine, "a", id="mine", key="k")
    assert other.get(ALICE, Get(gone)).id == gone
    export = other.export(ALICE).content
    forget(engine, gone)
    assert other.load(ALICE, Load(export)).forgotten == 1
    assert other.retain(ALICE, Retain(content="a", id="mine")).outcome is Outcome.FORGOTTEN
    with pytest.raises(NotFound):
        other.get(ALICE, Get(gone))


# -- the receipt -------------------------------------------------------------------------------


def test_a_receipt_names_time_cells_and_audit_head(home: MemoryHome, engine: Kernel) -> None:
    first, second = retain(engine, "a"), retain(engine, "b")
    nonces = {row.cell[6:18].hex() for row in rows(home) if row.cell}
    before = home.clock.now()
    receipt = forget(engine, first, second)
    assert before < receipt.at < home.clock.now()
    assert {cell.nonce for cell in receipt.cells} == nonces
    assert {(cell.collection, cell.epoch) for cell in receipt.cells} == {("memory", 1)}
    assert receipt.address == address(home)
    assert (receipt.verb, receipt.rotated) == ("forget", True)
    assert receipt.audit_count == head(home).audit_count
    assert receipt.audit_mac == head(home).audit_mac.hex()


def test_a_receipt_names_every_cell_of_a_blob(engine: Kernel) -> None:
    """Two chunks, and the cell that points to them."""
    assert len(forget(engine, retain(engine, LONG)).cells) == 3


def test_a_receipt_names_the_backups_that_may_still_hold_it(
    home: MemoryHome, engine: Kernel
) -> None:
    gone = retain(engine, "a")
    _, made = engine.backup(ALICE, Backup(days=7))
    (note,) = forget(engine, gone).backups
    assert (note.name, note.expires) == (made.name, made.expires)
    assert made.expires == (home.clock.now() + timedelta(days=7)).date()


def test_receipts_are_kept_for_the_next_process(home: MemoryHome, engine: Kernel) -> None:
    made = [forget(engine, retain(engine, content)) for content in "abc"]
    assert list(home.engine().receipts(ALICE)) == made
    assert home.engine().receipts(BOB).data == ()


def test_a_receipt_reads_back_from_its_document(engine: Kernel) -> None:
    gone = retain(engine, LONG)
    engine.backup(ALICE)
    receipt = forget(engine, gone)
    assert receipts.from_json(receipts.to_json(receipt)) == receipt


def test_a_receipt_says_nothing_of_what_was_erased(engine: Kernel) -> None:
    gone = retain(engine, "Nightingale", id="Kestrel", tags=("Wagtail",), session="Siskin")
    document = receipts.to_json(forget(engine, gone))
    assert not [
        word for word in ("Nightingale", "Kestrel", "Wagtail", "Siskin") if word in document
    ]


@pytest.mark.parametrize(
    "text",
    ["", "tea", "[]", "7", "null", '"x"', "{}", '{"format": "scrubjay-receipt", "version": 2}',
     '{"format": "scrubjay-receipt", "version": 1}', "[" * 100_000],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        receipts.from_json(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [("at", 7), ("at", "noon"), ("at", "2026-01-01T00:00:00"), ("address", None), ("address", 7),
     ("cells", 7), ("cells", [{}]), ("cells", [{"collection": "m", "epoch": 1, "nonce": "xyz"}]),
     ("cells", [{"collection": "m", "epoch": 1, "nonce": ""}]),
     ("cells", [{"collection": "m", "epoch": 1, "nonce": "00"}]), ("cells", [7]),
     ("backups", [{"name": "b"}]), ("extra", 1), ("erased", "many"), ("verb", 7)],
    ids=range(15),
)  # fmt: skip
def test_a_receipt_with_a_wrong_field_is_refused(engine: Kernel, field: str, value: object) -> None:
    document = json.loads(receipts.to_json(forget(engine, retain(engine, "a"))))
    with pytest.raises(InvalidRequest):
        receipts.from_json(json.dumps({**document, field: value}))
