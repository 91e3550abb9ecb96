"""Segments: an index on disk that saves time, and never costs more than time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.search import manifest, segment
from scrubjay.model.errors import Busy, Changed, Full
from scrubjay.model.requests import Amend, Destroy, FreezeRequest, Purge
from scrubjay.model.results import Recalled
from scrubjay.model.rows import Due, Freeze
from scrubjay.ports import Blobs, Failpoint
from scrubjay.testing.embedder_contract import FakeEmbedder
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.unit.engine.asking import (
    EAGER,
    LAZY,
    FullBlobs,
    MoodyStore,
    ask,
    damage_blob,
    damage_manifest,
    fill,
    holds,
    listed,
    listing,
    rows_alone,
    said,
)
from tests.unit.engine.scene import ALICE, BOB, LONG, address, forget, head, retain, supersede

QUESTION = "what of note7 and the heron?"


def answers(engine: Kernel) -> Recalled:
    """The answer to a question nearly every memory has a part in."""
    return ask(engine, QUESTION, limit=100)


def same(first: Recalled, second: Recalled) -> bool:
    """Whether two answers have the same hits with the same scores, up to rounding."""
    assert [hit.memory.id for hit in first] == [hit.memory.id for hit in second]
    scores = [[hit.score for hit in one] for one in (first, second)]
    return scores[0] == pytest.approx(scores[1], abs=1e-5)


@pytest.fixture
def published(home: MemoryHome) -> Kernel:
    """An engine on a scope whose twenty memories are in a segment."""
    engine = home.engine(EAGER)
    fill(engine, 20)
    answers(engine)
    assert len(listed(home)) == 1
    return engine


# -- when they are written ---------------------------------------------------------------------


def test_segments_are_written_above_the_threshold_only(home: MemoryHome) -> None:
    engine = home.engine(Policy(segment_rows=10))
    fill(engine, 10)
    answers(engine)
    assert listed(home) == ()
    assert home.blobs.names(address(home)) == []
    retain(engine, "one more")
    answers(engine)
    assert len(listed(home)) == 1


def test_a_recall_that_finds_nothing_new_writes_nothing(
    home: MemoryHome, published: Kernel
) -> None:
    before = listing(home)
    answers(published)
    answers(home.engine(EAGER))
    assert listing(home) == before


def test_few_segments_are_kept_however_often_one_is_written(home: MemoryHome) -> None:
    engine = home.engine(EAGER)
    for number in range(40):
        fill(engine, 1, first=number)
        answers(engine)
    assert len(listed(home)) <= 6
    assert sorted(home.blobs.names(address(home))) == sorted(
        name for one in listed(home) for name in one.blobs
    )
    assert same(answers(home.engine(EAGER)), answers(rows_alone(home)))


def test_segments_are_written_while_writes_are_frozen(home: MemoryHome) -> None:
    engine = home.engine(EAGER)
    fill(engine, 3)
    engine.freeze(ALICE, FreezeRequest(Freeze.WRITES))
    answers(engine)
    assert len(listed(home)) == 1


def test_an_index_that_makes_room_is_written(home: MemoryHome) -> None:
    engine = home.engine(Policy(shelf_bytes=1, evicted_rows=0))
    fill(engine, 5)
    answers(engine)
    assert listed(home) == ()
    fill(engine, 5, scope=BOB)
    ask(engine, QUESTION, scope=BOB)
    assert len(listed(home)) == 1
    assert same(answers(engine), answers(rows_alone(home)))


# -- what they hold ----------------------------------------------------------------------------


def test_a_fresh_engine_answers_from_segments_as_one_that_reads_rows(
    home: MemoryHome, published: Kernel
) -> None:
    fresh = home.engine(EAGER)
    assert same(answers(fresh), answers(rows_alone(home)))
    assert same(answers(fresh), answers(published))


def test_a_fresh_engine_reads_no_row_that_is_in_a_segment(
    home: MemoryHome, published: Kernel
) -> None:
    fresh = home.engine(EAGER)
    answers(fresh)
    index = fresh._indexed(ALICE).index
    assert index is not None
    assert [part.token for part in index._parts] == list(listed(home))
    assert index.unwritten == 0


def test_changes_after_a_segment_are_seen_by_a_fresh_engine(
    home: MemoryHome, published: Kernel
) -> None:
    """Old rows of what was pinned, superseded or expired count no more."""
    ids = [hit.memory.id for hit in answers(published)]
    published.amend(ALICE, Amend(ids[0], pinned=True))
    supersede(published, ids[1], "heron, corrected")
    published.amend(ALICE, Amend(ids[2], expires_at=home.clock.now()))
    expected = answers(rows_alone(home))
    assert same(answers(home.engine(EAGER)), expected)
    assert same(answers(published), expected)
    assert len({hit.memory.id for hit in expected}) == len(expected) == 19


def test_rows_that_count_no_more_are_noted_and_stay_so(home: MemoryHome) -> None:
    engine = home.engine(EAGER)
    first, *_ = fill(engine, 40)
    answers(engine)
    engine.amend(ALICE, Amend(first, pinned=True))
    answers(engine)
    old, new = listed(home)
    assert (len(old.dead), len(new.dead)) == (1, 0)
    assert same(answers(home.engine(EAGER)), answers(rows_alone(home)))


def test_long_memories_are_in_segments_too(home: MemoryHome) -> None:
    engine = home.engine(EAGER)
    retain(engine, LONG[: 30 * 1024] + " quagga")
    fill(engine, 3)
    answers(engine)
    assert said(home.engine(EAGER), "quagga")[0].endswith("quagga")


def test_nothing_of_a_segment_is_readable_at_rest(home: MemoryHome, published: Kernel) -> None:
    assert holds(home, "heron")
    for _, raw in home.blobs.raw(address(home)):
        assert b"heron" not in raw
        assert b"names" not in raw


# -- damage ------------------------------------------------------------------------------------

Damage = Callable[[MemoryHome], None]


def _flip(part: str) -> Damage:
    return lambda home: damage_blob(home, getattr(listed(home)[0], part))


def _lose(part: str) -> Damage:
    return lambda home: home.blobs.delete(address(home), getattr(listed(home)[0], part))


def _flip_manifest(at: int) -> Damage:
    return lambda home: damage_manifest(home, at)


DAMAGES = {
    "columns flipped": _flip("columns"),
    "postings flipped": _flip("postings"),
    "vectors flipped": _flip("vectors"),
    "columns lost": _lose("columns"),
    "postings lost": _lose("postings"),
    "vectors lost": _lose("vectors"),
    "manifest flipped": _flip_manifest(-1),
    "epoch of the manifest flipped": _flip_manifest(5),
    "first bytes of the manifest flipped": _flip_manifest(0),
}


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, home: MemoryHome, published: Kernel) -> Kernel:
    """An engine with an open index, whose segments were damaged since."""
    DAMAGES[request.param](home)
    return published


def test_damage_to_a_segment_costs_nothing_but_time(home: MemoryHome, damaged: Kernel) -> None:
    expected = answers(rows_alone(home))
    fresh = answers(home.engine(EAGER))
    assert same(fresh, expected)
    assert fresh.degraded == ()
    assert same(answers(damaged), expected)


def test_writing_goes_on_after_damage(home: MemoryHome, damaged: Kernel) -> None:
    fill(damaged, 5, first=20)
    assert len(answers(damaged)) == 25
    assert len(answers(home.engine(EAGER))) == 25


def test_verify_reports_damage_and_reindex_repairs_it(home: MemoryHome, damaged: Kernel) -> None:
    (problem,) = home.engine(LAZY).verify(ALICE).problems
    assert "eindex" in problem
    damaged.reindex(ALICE)
    assert damaged.verify(ALICE).problems == ()
    assert len(listed(home)) == 1
    assert same(answers(home.engine(EAGER)), answers(rows_alone(home)))


def test_forget_and_rotate_go_on_after_damage(home: MemoryHome, damaged: Kernel) -> None:
    (hit, *_) = ask(rows_alone(home), "note7").hits
    receipt = forget(damaged, hit.memory.id)
    assert receipt.rotated
    assert damaged.verify_erased(ALICE, receipt).sound
    damaged.rotate(ALICE)
    assert damaged.verify(ALICE).problems == ()
    assert hit.memory.content not in said(damaged, "note7", limit=100)
    assert not holds(home, "note7")


def test_purge_sweeps_what_damage_left(home: MemoryHome, damaged: Kernel) -> None:
    answers(home.engine(EAGER))
    damaged.purge(ALICE)
    used = {name for one in listed(home) for name in one.blobs}
    assert set(home.blobs.names(address(home))) == used


def test_an_empty_scope_with_a_damaged_manifest_is_repaired_by_reindex(
    home: MemoryHome, published: Kernel
) -> None:
    ids = [hit.memory.id for hit in answers(published)]
    forget(published, *ids)
    fill(published, 1)
    answers(published)
    forget(published, *(hit.memory.id for hit in answers(published)))
    if home.store._scopes[address(home)].values:
        damage_manifest(home)
    published.reindex(ALICE)
    assert published.verify(ALICE).problems == ()


def test_segments_of_another_analysis_are_made_again(
    home: MemoryHome, published: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = listing(home)
    monkeypatch.setattr(segment, "VERSION", "another")
    fresh = home.engine(EAGER)
    assert same(answers(fresh), answers(rows_alone(home)))
    after = listing(home)
    assert before is not None
    assert after is not None
    assert before.analyzer != after.analyzer == "another"
    assert not before.blobs & after.blobs


# -- another embedder --------------------------------------------------------------------------


def test_segments_of_another_embedder_degrade_and_reindex_makes_them_ours(
    home: MemoryHome,
) -> None:
    home.embedder = FakeEmbedder(home.clock, name="one", costly=False)
    fill(home.engine(EAGER), 5)
    answers(home.engine(EAGER))
    home.embedder = FakeEmbedder(home.clock, name="two", costly=False)
    for time in range(2):  # also after what is new could have been merged with the old
        engine = home.engine(EAGER)
        fill(engine, 5, first=5 * time + 5)
        told = answers(engine).degraded
        assert told == ("5 memories have vectors of another embedder; run reindex.",)
    engine.reindex(ALICE)
    assert answers(engine).degraded == ()
    assert answers(home.engine(EAGER)).degraded == ()


@pytest.mark.parametrize("costly", [True, False])
def test_where_the_policy_says_so_another_embedder_is_an_error_until_reindex(
    home: MemoryHome, costly: bool
) -> None:
    strict = Policy(segment_rows=0, raise_on_embedder_change=True)
    home.embedder = FakeEmbedder(home.clock, name="one")
    fill(home.engine(strict), 5)
    answers(home.engine(strict))
    home.embedder = FakeEmbedder(home.clock, name="two", costly=costly)
    engine = home.engine(strict)
    for _ in range(2):
        with pytest.raises(Changed):
            answers(engine)
    engine.reindex(ALICE)
    assert len(answers(engine)) == 5
    assert len(answers(home.engine(strict))) == 5


# -- erasure -----------------------------------------------------------------------------------


def test_after_a_forget_no_segment_holds_the_memory(home: MemoryHome, published: Kernel) -> None:
    (hit, *_) = ask(published, "note7").hits
    assert holds(home, "note7")
    before = listing(home)
    forget(published, hit.memory.id)
    after = listing(home)
    assert before is not None
    assert after is not None
    assert not before.blobs & after.blobs
    assert not holds(home, "note7")
    assert holds(home, "note8")


def test_the_receipt_names_the_cells_of_the_segments_that_held_it(
    home: MemoryHome, published: Kernel
) -> None:
    (hit, *_) = ask(published, "note7").hits
    names = [name for one in listed(home) for name in one.blobs]
    raw = {name: home.blobs.get(address(home), name) for name in names}
    receipt = forget(published, hit.memory.id)
    nonces = {bytes.fromhex(cell.nonce) for cell in receipt.cells}
    for name in names:
        assert any(nonce in raw[name] for nonce in nonces), name
    assert published.verify_erased(ALICE, receipt).sound
    home.blobs.put(address(home), names[1], raw[names[1]])
    assert published.verify_erased(ALICE, receipt).found


def test_a_receipt_does_not_name_segments_that_never_held_it(home: MemoryHome) -> None:
    engine = home.engine(EAGER)
    fill(engine, 40)
    answers(engine)
    late = retain(engine, "late")
    answers(engine)
    first, _ = listed(home)
    raw = home.blobs.get(address(home), first.postings)
    receipt = forget(engine, late)
    assert not any(bytes.fromhex(cell.nonce) in raw for cell in receipt.cells)


def test_a_forget_that_leaves_the_rotation_due_says_so_and_the_next_verbs_clean_the_segments(
    home: MemoryHome,
) -> None:
    slow = Policy(segment_rows=0, rotate_below=0, slice_seconds=0)
    engine = home.engine(slow)
    ids = fill(engine, 20)
    answers(engine)
    receipt = forget(engine, ids[7])
    assert not receipt.rotated
    assert "note7 on" not in " ".join(said(home.engine(slow), "note7", limit=100))
    engine.finish_due(ALICE)
    assert engine.verify_erased(ALICE, receipt).sound
    assert not holds(home, "note7")


def test_after_a_purge_no_segment_holds_what_it_took(home: MemoryHome, published: Kernel) -> None:
    (hit, *_) = ask(published, "note7").hits
    supersede(published, hit.memory.id, "corrected")
    answers(published)
    published.purge(ALICE, Purge(superseded_days=0))
    assert not holds(home, "note7")
    assert holds(home, "corrected")


def test_a_purge_that_died_before_the_segments_were_cleaned_is_made_good_by_the_next(
    home: MemoryHome, published: Kernel
) -> None:
    (hit, *_) = ask(published, "note7").hits
    supersede(published, hit.memory.id, "corrected")
    answers(published)
    home.crashes.at(Failpoint.PURGE_COMMITTED)
    with pytest.raises(SimulatedCrash):
        published.purge(ALICE, Purge(superseded_days=0))
    assert holds(home, "note7")
    home.engine().purge(ALICE)
    assert not holds(home, "note7")


def test_after_a_rotation_the_segments_open_with_the_new_key_alone(
    home: MemoryHome, published: Kernel
) -> None:
    expected = answers(published)
    published.rotate(ALICE)
    found = listing(home)
    assert found is not None
    assert found.epoch == head(home).memory.epoch == 2
    assert same(answers(home.engine(EAGER)), expected)
    assert same(answers(published), expected)


def test_a_destroyed_scope_leaves_no_segment(home: MemoryHome, published: Kernel) -> None:
    place = address(home)
    published.destroy(ALICE, Destroy(confirm=str(ALICE)))
    assert home.blobs.names(place) == []


# -- full, busy, late --------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 1, 2])
def test_a_disk_full_of_blobs_puts_the_segment_off_and_leaves_nothing_behind(
    home: MemoryHome, room: int
) -> None:
    home.blobs = blobs = FullBlobs()
    engine = home.engine(EAGER)
    fill(engine, 5)
    blobs.room = room
    assert len(answers(engine)) == 5
    assert listed(home) == ()
    assert blobs.names(address(home)) == []
    blobs.room = None
    fill(engine, 1, first=5)
    assert len(answers(engine)) == 6
    assert len(listed(home)) == 1


@pytest.mark.parametrize("failure", [Busy, Full])
def test_a_store_that_is_busy_or_full_puts_the_segment_off_and_leaves_nothing_behind(
    home: MemoryHome, failure: type[Busy] | type[Full]
) -> None:
    home.store = store = MoodyStore(reach=home.crashes)
    engine = home.engine(EAGER)
    fill(engine, 5)
    store.failure = failure
    assert len(answers(engine)) == 5
    assert home.blobs.names(address(home)) == []
    store.failure = None
    answers(engine)
    assert len(listed(home)) == 1


def test_a_full_disk_does_not_keep_a_forget_from_cleaning_the_segments(home: MemoryHome) -> None:
    """There is no room to write them anew, so they go."""
    home.blobs = blobs = FullBlobs()
    engine = home.engine(EAGER)
    ids = fill(engine, 10)
    answers(engine)
    blobs.room = 0
    receipt = forget(engine, ids[7])
    assert receipt.rotated
    assert engine.verify_erased(ALICE, receipt).sound
    assert listed(home) == ()
    assert len(answers(engine)) == 9


def test_who_comes_late_with_a_segment_gives_up_and_reads_that_of_the_other(
    home: MemoryHome,
) -> None:
    engine, other = home.engine(LAZY), home.engine(EAGER)
    fill(engine, 10)
    answers(engine)
    answers(other)
    found = listing(home)
    index = engine._indexed(ALICE)
    assert index.index is not None
    assert manifest.publish(engine._open(ALICE), index.index, None) is None
    assert listing(home) == found


class Overtaken:
    """Blobs that let something happen, once, before they take one."""

    def __init__(self, blobs: Blobs) -> None:
        self.action: Callable[[], object] | None = None
        self._blobs = blobs

    def put(self, address: str, name: str, content: bytes) -> None:
        """Keep a blob, after that happened."""
        if self.action is not None:
            action, self.action = self.action, None
            action()
        self._blobs.put(address, name, content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)


def test_a_key_that_is_rotated_away_while_a_segment_is_built_is_no_error(home: MemoryHome) -> None:
    """The recall has its answer; the segment comes too late, and nothing of it is kept."""
    other = home.engine(LAZY)
    fill(other, 10)
    blobs = Overtaken(home.blobs)
    engine = Kernel(replace(home.ports(LAZY), blobs=cast(Blobs, blobs)))
    assert len(answers(engine)) == 10
    index = engine._indexed(ALICE)
    blobs.action = lambda: other.rotate(ALICE)
    index.publish()
    assert blobs.action is None
    assert home.blobs.names(address(home)) == []
    assert len(answers(engine)) == 10
    assert engine.verify(ALICE).sound


def test_what_a_crash_between_blobs_and_commit_left_is_swept(home: MemoryHome) -> None:
    engine = home.engine(EAGER)
    fill(engine, 5)
    home.crashes.at(Failpoint.SEGMENT_WRITTEN)
    with pytest.raises(SimulatedCrash):
        answers(engine)
    assert len(home.blobs.names(address(home))) == 3
    home.clock.advance(days=2)  # as long as a blob may be pending
    home.engine().purge(ALICE)
    assert home.blobs.names(address(home)) == []


def test_renewing_segments_that_are_current_changes_nothing(
    home: MemoryHome, published: Kernel
) -> None:
    before = listing(home)
    manifest.renew(published._open(ALICE))
    assert listing(home) == before
    assert head(home).due is Due.NOTHING
