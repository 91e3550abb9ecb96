"""What every store must do with rows: order, lookups, erasure, and all that goes with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from operator import methodcaller
from typing import Any, Final, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from scrubjay.adapters.stores.memory import MemoryStore
from scrubjay.model.errors import Conflict, StoreError
from scrubjay.model.rows import AuditRow, Collection, Due, Freeze, Head, Position, Row
from scrubjay.ports import Store, Tx, View

Result = TypeVar("Result")
ALICE: Final = "alice-address"
BOB: Final = "bob-address"
MEMORY, TURN, SESSION = Collection.MEMORY, Collection.TURN, Collection.SESSION
ANY: Final = 1_000


def a_row(name: str, **fields: object) -> Row:
    """A row with an id and a cell made from `name`."""
    row = Row(
        id=name.encode().ljust(16, b"."), version=1, epoch=1, cell=b"cell of " + name.encode()
    )
    return replace(row, **fields)


def put(store: Store, *rows: Row, collection: Collection = MEMORY) -> list[Row]:
    """Write rows in one transaction; as stored."""
    return store.write(ALICE, lambda tx: [tx.put(collection, row) for row in rows])


def erase(store: Store, *rows: Row, drop_day: int = 7) -> None:
    """Erase memories in one transaction."""

    def work(tx: Tx) -> None:
        for row in rows:
            tx.erase(MEMORY, row.id, drop_day=drop_day)

    store.write(ALICE, work)


def look(store: Store, ask: Callable[[View], Result]) -> Result:
    """The answers of a fresh view."""
    with store.read(ALICE) as view:
        return ask(view)


def head(store: Store) -> Head:
    """The head as a fresh view has it."""
    return look(store, lambda view: view.head())


class RowContract:
    """Rows, their order and the head."""

    @pytest.fixture
    def store(self) -> Store:
        """A store with an empty scope for ALICE and one for BOB."""
        raise NotImplementedError("Say how to open the store.")

    def test_an_empty_scope_has_the_first_head_and_no_rows(self, store: Store) -> None:
        assert head(store) == Head()
        for collection in Collection:
            assert look(store, methodcaller("changes", collection, 0, ANY)) == []

    def test_a_row_is_stored_under_the_next_seq_and_found_by_its_id(self, store: Store) -> None:
        one, two = put(store, a_row("one"), a_row("two"))
        assert (one.seq, one.born, two.seq, two.born) == (1, 1, 2, 2)
        assert one == replace(a_row("one"), seq=1, born=1)
        assert look(store, lambda view: view.row(MEMORY, two.id)) == two
        assert head(store).memory.seq == 2

    def test_every_field_of_a_row_is_kept(self, store: Store) -> None:
        full = a_row(
            "full", version=2**40, epoch=2**31, cell=bytes(range(256)) * 300, vector=b"\x00v",
            blob="blob-1", session=b"s" * 16, key=b"k" * 16, expiry=20_000,
        )  # fmt: skip
        for row in (full, a_row("bare", cell=b"")):
            (stored,) = put(store, row)
            assert look(store, methodcaller("row", MEMORY, row.id)) == stored
            assert replace(stored, seq=0, born=0) == row

    def test_a_row_that_was_never_written_is_none(self, store: Store) -> None:
        put(store, a_row("one"))
        assert look(store, lambda view: view.row(MEMORY, b"?" * 16)) is None
        assert look(store, lambda view: view.row_by_key(MEMORY, b"?" * 16)) is None

    def test_rows_are_counted_without_erased_ones(self, store: Store) -> None:
        rows = put(store, a_row("one"), a_row("two"), a_row("three"))
        erase(store, rows[0])
        assert look(store, lambda view: view.count(MEMORY)) == 2

    def test_rows_are_found_by_their_ids_in_one_call(self, store: Store) -> None:
        one, two, three = put(store, *(a_row(name) for name in ("one", "two", "three")))
        erase(store, two)
        found = look(store, lambda view: view.rows(MEMORY, [three.id, two.id, b"no one".ljust(16)]))
        assert found.keys() == {two.id, three.id}
        assert (found[three.id], found[two.id].erased) == (three, True)
        assert look(store, lambda view: view.rows(MEMORY, [])) == {}
        assert look(store, lambda view: view.rows(TURN, [one.id])) == {}
        many = [b"%016d" % number for number in range(3000)]
        assert look(store, lambda view: view.rows(MEMORY, [*many, one.id])) == {one.id: one}

    def test_each_collection_has_an_order_of_its_own(self, store: Store) -> None:
        for number, collection in enumerate(Collection):
            for _ in range(number):
                (row,) = put(store, a_row("one"), collection=collection)
                assert row.born == 1
        assert look(store, lambda view: view.row(MEMORY, row.id)) is None
        assert [head(store).at(c).seq for c in Collection] == list(range(len(Collection)))

    def test_a_row_written_again_moves_to_the_end_and_keeps_its_birth(self, store: Store) -> None:
        one, two = put(store, a_row("one"), a_row("two"))
        (again,) = put(store, a_row("one", version=2, cell=b"new", session=b"s"))
        assert (again.seq, again.born) == (3, 1)
        assert look(store, lambda view: view.changes(MEMORY, 0, ANY)) == [two, again]
        assert look(store, lambda view: view.row(MEMORY, one.id)) == again

    def test_a_row_is_found_by_the_key_it_was_written_under(self, store: Store) -> None:
        (row,) = put(store, a_row("one", key=b"k"))
        assert look(store, lambda view: view.row_by_key(MEMORY, b"k")) == row
        assert look(store, lambda view: view.row_by_key(TURN, b"k")) is None

    def test_a_key_that_another_row_has_is_a_conflict(self, store: Store) -> None:
        (row,) = put(store, a_row("one", key=b"k"), collection=MEMORY)
        with pytest.raises(Conflict):
            put(store, a_row("two", key=b"k"))
        assert look(store, lambda view: view.changes(MEMORY, 0, ANY)) == [row]
        assert head(store).memory.seq == 1

    def test_a_conflict_leaves_the_transaction_as_it_was(self, store: Store) -> None:
        put(store, a_row("one", key=b"k"))

        def work(tx: Tx) -> None:
            with pytest.raises(Conflict):
                tx.put(MEMORY, a_row("two", key=b"k"))
            tx.put(MEMORY, a_row("three"))

        store.write(ALICE, work)
        names = [row.id[:5] for row in look(store, lambda view: view.changes(MEMORY, 0, ANY))]
        assert names == [b"one..", b"three"]
        assert head(store).memory.seq == 2

    def test_a_row_may_be_written_again_under_its_own_key(self, store: Store) -> None:
        put(store, a_row("one", key=b"k"))
        (again,) = put(store, a_row("one", key=b"k", version=2))
        assert look(store, lambda view: view.row_by_key(MEMORY, b"k")) == again

    def test_a_key_given_up_or_erased_is_free(self, store: Store) -> None:
        put(store, a_row("one", key=b"k"), a_row("two", key=b"l"))
        put(store, a_row("one", version=2))
        erase(store, a_row("two"))
        assert look(store, lambda view: view.row_by_key(MEMORY, b"l")) is None
        put(store, a_row("three", key=b"k"), a_row("four", key=b"l"))

    def test_the_same_key_in_another_collection_is_no_conflict(self, store: Store) -> None:
        put(store, a_row("one", key=b"k"))
        put(store, a_row("two", key=b"k"), collection=TURN)

    def test_rows_of_a_session_come_by_seq_without_erased_ones(self, store: Store) -> None:
        put(store, *(a_row(name, session=b"s") for name in ("one", "two", "three")))
        put(store, a_row("other", session=b"t"), a_row("none"), a_row("one", session=b"s"))
        erase(store, a_row("two"))
        rows = look(store, lambda view: view.rows_of_session(MEMORY, b"s"))
        assert [row.id[:5] for row in rows] == [b"three", b"one.."]
        assert look(store, lambda view: view.rows_of_session(TURN, b"s")) == []

    def test_changes_are_complete_and_ascending_with_erased_rows(self, store: Store) -> None:
        put(store, *(a_row(name) for name in ("one", "two", "three")))
        erase(store, a_row("one"))
        rows = look(store, lambda view: view.changes(MEMORY, 1, ANY))
        assert [(row.seq, row.erased) for row in rows] == [(2, False), (3, False), (4, True)]
        assert [row.seq for row in look(store, lambda view: view.changes(MEMORY, 2, 1))] == [3]
        assert look(store, lambda view: view.changes(MEMORY, 4, ANY)) == []

    def test_latest_is_descending_without_erased_rows(self, store: Store) -> None:
        put(store, *(a_row(name) for name in ("one", "two", "three", "four")))
        erase(store, a_row("three"))
        assert [r.seq for r in look(store, lambda view: view.latest(MEMORY, 99, ANY))] == [4, 2, 1]
        assert [r.seq for r in look(store, lambda view: view.latest(MEMORY, 4, 1))] == [2]

    def test_overdue_rows_come_by_seq_with_erased_ones(self, store: Store) -> None:
        put(store, a_row("late", expiry=9), a_row("now", expiry=5), a_row("never"))
        put(store, a_row("gone"), a_row("past", expiry=1))
        erase(store, a_row("gone"), drop_day=2)
        rows = look(store, lambda view: view.overdue(MEMORY, 5, ANY))
        assert [row.id[:4] for row in rows] == [b"now.", b"past", b"gone"]
        assert [row.seq for row in look(store, lambda view: view.overdue(MEMORY, 5, 1))] == [2]
        assert look(store, lambda view: view.overdue(MEMORY, 0, ANY)) == []

    def test_stale_rows_are_those_of_an_epoch_below_the_heads(self, store: Store) -> None:
        put(store, *(a_row(name) for name in ("one", "two", "three")))
        put(store, a_row("turn"), collection=TURN)
        assert look(store, lambda view: view.stale(MEMORY, 0, ANY)) == []
        raised = Head(memory=Position(epoch=2))
        store.write(ALICE, lambda tx: tx.set_head(raised))
        put(store, a_row("new", epoch=2))
        erase(store, a_row("one"))
        stale = look(store, lambda view: view.stale(MEMORY, 0, ANY))
        assert [row.seq for row in stale] == [2, 3]
        assert [row.seq for row in look(store, lambda view: view.stale(MEMORY, 2, 1))] == [3]
        assert look(store, lambda view: view.stale(TURN, 0, ANY)) == []

    def test_reseal_exchanges_what_is_sealed_and_nothing_else(self, store: Store) -> None:
        (row,) = put(store, a_row("one", session=b"s", key=b"k", expiry=5))
        sealed = replace(row, epoch=2, cell=b"new", vector=b"v", blob="b")
        impostor = replace(sealed, seq=9, born=9, session=b"t", key=b"l", expiry=6)
        done = store.write(ALICE, lambda tx: tx.reseal(MEMORY, [(row, impostor)]))
        assert done == {row.id}
        assert look(store, lambda view: view.row(MEMORY, row.id)) == sealed
        assert head(store).memory.seq == 1

    def test_what_changed_since_it_was_read_is_not_resealed(self, store: Store) -> None:
        names = ("changed", "gone", "moved", "embedded", "same")
        read = put(store, *map(a_row, names))
        changed, gone, moved, embedded, same = read
        put(store, replace(changed, version=2))
        erase(store, gone)
        newer = [(moved, replace(moved, epoch=2)), (embedded, replace(embedded, vector=b"v"))]
        store.write(ALICE, lambda tx: tx.reseal(MEMORY, newer))
        late = [(row, replace(row, epoch=3, cell=b"late")) for row in (*read, a_row("absent"))]
        assert store.write(ALICE, lambda tx: tx.reseal(MEMORY, late)) == {same.id}
        rows = look(store, lambda view: view.changes(MEMORY, 0, ANY))
        assert [row.id for row in rows if row.cell == b"late"] == [same.id]

    def test_a_transaction_sees_its_own_changes(self, store: Store) -> None:
        def work(tx: Tx) -> None:
            row = tx.put(MEMORY, a_row("one", key=b"k"))
            tx.append_audit(b"cell", b"m" * 32)
            tx.bury([b"t"])
            tx.link(row.id, b"d")
            assert tx.row_by_key(MEMORY, b"k") == row
            assert (tx.head().memory.seq, tx.head().audit_count) == (1, 1)
            assert (tx.tombstones(), tx.derived(row.id)) == ([b"t"], [b"d"])
            assert [found.count for found in tx.audit(0, ANY)] == [1]
            tx.erase(MEMORY, row.id, drop_day=1)
            assert tx.row_by_key(MEMORY, b"k") is None

        store.write(ALICE, work)

    def test_setting_the_head_sets_all_but_the_seqs(self, store: Store) -> None:
        put(store, a_row("one"), a_row("two"))
        erase(store, a_row("two"))
        wanted = Head(
            memory=Position(seq=77, epoch=3, erased_seq=77, min_seq=77),
            frozen=Freeze.ALL, destroyed=True, audit_count=4, audit_mac=b"m" * 32,
            due=Due.PUSH | Due.ROTATE, due_since=12,
        )  # fmt: skip
        store.write(ALICE, lambda tx: tx.set_head(wanted))
        moved = replace(wanted, memory=Position(seq=3, epoch=3, erased_seq=3))
        assert head(store) == moved

    def test_a_value_is_kept_by_name_until_it_is_set_anew_or_removed(self, store: Store) -> None:
        for name, cell in (("one", b"1"), ("two", b"2"), ("one", b"new"), ("two", None)):
            store.write(ALICE, methodcaller("set_value", name, cell))
        store.write(ALICE, lambda tx: tx.set_value("three", None))
        found = look(store, lambda view: [view.value(name) for name in ("one", "two", "three")])
        assert found == [b"new", None, None]
        assert head(store) == Head()

    def test_a_write_finds_the_value_that_the_last_one_left(self, store: Store) -> None:
        def read_then_set(cell: bytes | None, tx: Tx) -> bytes | None:
            found = tx.value("one")
            tx.set_value("one", cell)
            assert tx.value("one") == cell
            return found

        def undone(tx: Tx) -> None:
            read_then_set(b"undone", tx)
            raise ValueError("undone")

        for cell, before in ((b"1", None), (b"2", b"1"), (None, b"2"), (b"3", None)):
            assert store.write(ALICE, partial(read_then_set, cell)) == before
            with pytest.raises(ValueError, match="undone"):
                store.write(ALICE, undone)
            assert store.write(ALICE, lambda tx: tx.value("one")) == cell
        store.write(ALICE, lambda tx: tx.truncate(), erasing=True)
        assert store.write(ALICE, lambda tx: tx.value("one")) is None

    def test_audit_rows_are_appended_and_move_the_head(self, store: Store) -> None:
        for number in range(1, 4):
            mac = bytes([number]) * 32
            store.write(ALICE, methodcaller("append_audit", b"cell", mac))
        assert (head(store).audit_count, head(store).audit_mac) == (3, b"\x03" * 32)
        rows = look(store, lambda view: view.audit(1, ANY))
        assert rows == [AuditRow(count=n, cell=b"cell", mac=bytes([n]) * 32) for n in (2, 3)]
        assert [row.count for row in look(store, lambda view: view.audit(0, 1))] == [1]


class ErasureContract:
    """Erasing, dropping, tombstones and lineage."""

    def test_erasing_takes_everything_but_the_trace(self, store: Store) -> None:
        row = a_row("one", version=4, epoch=1, vector=b"v", blob="b", session=b"s", key=b"k")
        (row, *_) = put(store, row, a_row("two"))
        taken = store.write(ALICE, lambda tx: tx.erase(MEMORY, row.id, drop_day=30))
        assert taken == row
        assert look(store, lambda view: view.row(MEMORY, row.id)) == Row(
            id=row.id, version=4, epoch=1, cell=None, expiry=30, erased=True, seq=3, born=1
        )
        assert head(store).memory == Position(seq=3, erased_seq=3)

    def test_erasing_what_is_absent_or_erased_changes_nothing(self, store: Store) -> None:
        put(store, a_row("one"))
        erase(store, a_row("one"))
        before = head(store)
        for row_id in (a_row("one").id, a_row("absent").id):
            taken = store.write(ALICE, methodcaller("erase", MEMORY, row_id, drop_day=1))
            assert taken is None
        assert head(store) == before

    def test_erasing_cuts_the_links_on_both_sides(self, store: Store) -> None:
        one, two, three = put(store, a_row("one"), a_row("two"), a_row("three"))

        def work(tx: Tx) -> None:
            tx.link(one.id, two.id)
            tx.link(two.id, three.id)
            tx.link(one.id, three.id)

        store.write(ALICE, work)
        erase(store, two)
        assert look(store, lambda view: view.derived(one.id)) == [three.id]
        assert look(store, lambda view: view.derived(two.id)) == []

    def test_an_erased_row_may_be_written_again(self, store: Store) -> None:
        put(store, a_row("one", key=b"k"))
        erase(store, a_row("one"))
        (again,) = put(store, a_row("one", version=2, key=b"k"))
        assert (again.seq, again.born, again.erased) == (3, 1, False)
        assert look(store, lambda view: view.row_by_key(MEMORY, b"k")) == again

    def test_put_does_not_erase(self, store: Store) -> None:
        with pytest.raises(StoreError):
            put(store, a_row("one", cell=None, erased=True))

    def test_only_erased_rows_are_dropped_and_min_seq_says_so(self, store: Store) -> None:
        rows = put(store, a_row("one"), a_row("two"), a_row("three"))
        erase(store, *rows[:2])
        ids = [row.id for row in rows]
        wanted = [*ids, *ids, b"absent"]
        assert store.write(ALICE, lambda tx: tx.drop(MEMORY, wanted)) == 2
        assert head(store).memory == Position(seq=5, erased_seq=5, min_seq=5)
        assert look(store, lambda view: view.changes(MEMORY, 0, ANY)) == rows[2:]
        assert look(store, lambda view: view.row(MEMORY, rows[0].id)) is None

    def test_dropping_nothing_changes_nothing(self, store: Store) -> None:
        (row,) = put(store, a_row("one"))
        assert store.write(ALICE, lambda tx: tx.drop(MEMORY, [row.id])) == 0
        assert head(store).memory == Position(seq=1)

    def test_min_seq_is_never_lowered(self, store: Store) -> None:
        one, two = put(store, a_row("one"), a_row("two"))
        erase(store, one, two)
        for row, seq in ((two, 4), (one, 4)):
            store.write(ALICE, methodcaller("drop", MEMORY, [row.id]))
            assert head(store).memory.min_seq == seq

    def test_a_dropped_row_is_born_anew(self, store: Store) -> None:
        (row,) = put(store, a_row("one"))
        erase(store, row)
        store.write(ALICE, lambda tx: tx.drop(MEMORY, [row.id]))
        (again,) = put(store, a_row("one"))
        assert (again.seq, again.born) == (3, 3)

    def test_tombstones_are_added_once_and_outlive_the_row(self, store: Store) -> None:
        (row,) = put(store, a_row("one"))
        erase(store, row)
        store.write(ALICE, lambda tx: tx.bury([row.id, b"never-stored"]))
        store.write(ALICE, lambda tx: tx.bury([row.id]))
        store.write(ALICE, lambda tx: tx.drop(MEMORY, [row.id]))
        assert sorted(look(store, lambda view: view.tombstones())) == sorted(
            [row.id, b"never-stored"]
        )
        asked = [row.id, b"other"]
        assert look(store, lambda view: view.buried(asked)) == {row.id}

    def test_a_link_is_recorded_once(self, store: Store) -> None:
        for derived in (b"d", b"e", b"d"):
            store.write(ALICE, methodcaller("link", b"s", derived))
        assert sorted(look(store, lambda view: view.derived(b"s"))) == [b"d", b"e"]
        assert look(store, lambda view: view.derived(b"d")) == []

    def test_truncating_leaves_the_head_alone(self, store: Store) -> None:
        def work(tx: Tx) -> None:
            for collection in Collection:
                tx.put(collection, a_row("one"))
            tx.bury([b"t"])
            tx.link(b"s", b"d")
            tx.append_audit(b"cell", b"m" * 32)

        store.write(ALICE, work)
        before = head(store)
        store.write(ALICE, lambda tx: tx.truncate())
        assert head(store) == before
        with store.read(ALICE) as view:
            assert [view.changes(c, 0, ANY) for c in Collection] == [[]] * len(Collection)
            assert (view.tombstones(), view.derived(b"s"), view.audit(0, ANY)) == ([], [], [])


# -- the same history on two stores ----------------------------------------------------------------

_ids = st.sampled_from([bytes([number]) * 16 for number in range(1, 7)])
_hashes = st.none() | st.sampled_from([b"x", b"y"])
_COLLECTIONS: Final = (Collection.MEMORY, Collection.CONVERSATION, Collection.DOCUMENT)
_collections = st.sampled_from(_COLLECTIONS)
_days = st.integers(1, 5)
_names = st.sampled_from(["one", "two"])
_rows = st.builds(
    Row,
    id=_ids,
    version=st.integers(1, 3),
    epoch=st.integers(1, 3),
    cell=st.binary(max_size=8),
    vector=st.none() | st.binary(max_size=4),
    blob=st.none() | st.just("blob"),
    session=_hashes,
    key=_hashes,
    expiry=st.none() | _days,
)
Change = tuple[str, tuple[Any, ...]]
_changes: st.SearchStrategy[Change] = st.one_of(
    st.tuples(st.just("put"), st.tuples(_collections, _rows)),
    st.tuples(
        st.just("reseal"), st.tuples(_collections, st.lists(st.tuples(_rows, _rows), max_size=2))
    ),
    st.tuples(st.just("erase"), st.tuples(_collections, _ids, _days)),
    st.tuples(st.just("drop"), st.tuples(_collections, st.lists(_ids, max_size=3))),
    st.tuples(st.just("bury"), st.tuples(st.lists(_ids, max_size=2))),
    st.tuples(st.just("link"), st.tuples(_ids, _ids)),
    st.tuples(st.just("set_value"), st.tuples(_names, st.none() | st.binary(max_size=4))),
    st.tuples(st.just("append_audit"), st.tuples(st.binary(max_size=4), st.binary(max_size=4))),
    st.tuples(st.just("raise_epoch"), st.tuples(_collections)),
    st.tuples(st.just("destroy"), st.tuples()),
)
_numbers = count()


_STEPS: Final = 12


def check_model(open_store: Callable[[], Store]) -> None:
    """Run many histories, each on a store of its own; a quarter as many as of simpler examples."""

    class Model(StoreModel):
        def __init__(self) -> None:
            super().__init__(open_store())

    most = (settings.default or settings()).max_examples
    search = settings(stateful_step_count=_STEPS, max_examples=max(1, most // 4))
    run_state_machine_as_test(Model, settings=search)


class Undone(Exception):
    """Exception that rolls a transaction back."""


class StoreModel(RuleBasedStateMachine):
    """The same transactions on both stores, compared after each."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.address = f"model-{next(_numbers)}"
        self.store = store
        self.model: Store = MemoryStore()
        for tested in (self.store, self.model):
            tested.create(self.address)

    def teardown(self) -> None:
        """Every history leaves a scope in order."""
        assert self.store.check(self.address) == []
        self.store.remove(self.address)
        self.store.close()

    @rule(changes=st.lists(_changes, min_size=1, max_size=5), kept=st.booleans())
    def transact(self, changes: list[Change], kept: bool) -> None:
        """Some changes in one transaction, which is kept or not."""
        answers = [_run(tested, self.address, changes, kept) for tested in self._both()]
        assert answers[0] == answers[1]

    @rule()
    def settle(self) -> None:
        """Settle, which changes nothing that can be read."""
        self.store.settle(self.address)

    @invariant()
    def both_hold_the_same(self) -> None:
        """Whatever is asked, both answer alike."""
        for ask in _QUESTIONS:
            answers = []
            for tested in self._both():
                with tested.read(self.address) as view:
                    answers.append(ask(view))
            assert answers[0] == answers[1]

    def _both(self) -> tuple[Store, Store]:
        return self.store, self.model


def _run(store: Store, address: str, changes: list[Change], kept: bool) -> list[object]:
    answers: list[object] = []

    def work(tx: Tx) -> None:
        answers.extend(_apply(tx, *change) for change in changes)
        answers.append(tx.head())
        if not kept:
            raise Undone

    try:
        store.write(address, work)
    except Undone:
        answers.append("undone")
    return answers


def _apply(tx: Tx, verb: str, arguments: tuple[Any, ...]) -> object:
    try:
        match verb:
            case "erase":
                collection, row_id, day = arguments
                return tx.erase(collection, row_id, drop_day=day)
            case "raise_epoch":
                (collection,) = arguments
                position = tx.head().at(collection)
                moved = replace(position, epoch=position.epoch + 1)
                tx.set_head(tx.head().moved(collection, moved))
            case "destroy":
                tx.truncate()
                tx.set_head(replace(tx.head(), destroyed=True))
            case _:
                return getattr(tx, verb)(*arguments)
    except Conflict:
        return "conflict"
    return None


def _about(collection: Collection) -> tuple[Callable[[View], object], ...]:
    return (
        lambda view: view.changes(collection, 0, ANY),
        lambda view: view.changes(collection, 3, 2),
        lambda view: view.latest(collection, 5, 2),
        lambda view: view.latest(collection, ANY, ANY),
        lambda view: view.overdue(collection, 3, 4),
        lambda view: view.stale(collection, 1, 3),
        lambda view: [view.row_by_key(collection, key) for key in (b"x", b"y")],
        lambda view: [view.rows_of_session(collection, key) for key in (b"x", b"y")],
        lambda view: [view.row(collection, bytes([number]) * 16) for number in range(8)],
        lambda view: dict(view.rows(collection, [bytes([number]) * 16 for number in range(8)])),
    )


_QUESTIONS: tuple[Callable[[View], object], ...] = (
    lambda view: view.head(),
    lambda view: sorted(view.tombstones()),
    lambda view: [sorted(view.derived(bytes([number]) * 16)) for number in range(8)],
    lambda view: view.buried([bytes([number]) * 16 for number in range(8)]),
    lambda view: [view.value(name) for name in ("one", "two")],
    lambda view: view.audit(1, 5),
    *(question for collection in _COLLECTIONS for question in _about(collection)),
)
