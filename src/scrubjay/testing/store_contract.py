"""What every Store must do. Subclass the contract, say how to open one, and run pytest.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return partial(MyStore, tmp_path)

A store whose rows outlive the object subclasses `DurableStoreContract`; there `open_store` opens
the same scopes each time it is called, as another process would.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from operator import methodcaller
from typing import Final, Protocol

import pytest
from msgspec.structs import replace

from scrubjay.engine.transfer.move import digest, mirror
from scrubjay.model.errors import NotFound, StoreError
from scrubjay.model.rows import BackupEntry, CatalogEntry
from scrubjay.ports import Failpoint, Reach, Slots, Store, Tx, every_entry, pass_by
from scrubjay.testing.store_rows import (
    ALICE,
    ANY,
    BOB,
    MEMORY,
    ErasureContract,
    RowContract,
    a_row,
    check_model,
    erase,
    head,
    look,
    put,
)

PATIENCE: Final = 30.0
OVERLAP: Final = 64


class OpenStore(Protocol):
    """How to open the store under test."""

    def __call__(self, *, reach: Reach = pass_by) -> Store:
        """A store that calls `reach` at each failpoint."""


class Stop(BaseException):
    """What a test raises where a process would die."""


def _small_things(tx: Tx) -> None:
    tx.bury([b"t"])
    tx.link(b"s", b"d")
    tx.link(b"s", b"e")
    tx.set_value("note", b"cell")
    tx.set_value("other", b"cell")
    tx.append_audit(b"cell", b"m" * 32)


def _copy(store: Store) -> int:
    """Make the second scope what the first one is; how many rows both have."""
    with store.read(ALICE) as view:
        store.write(BOB, lambda tx: mirror(view, tx))
        with store.read(BOB) as copy:
            here, there = digest(view, ""), digest(copy, "")
    assert here == there
    return here.rows


class TransactionContract:
    """Reads beside writes, and writes that happen once, alone, wholly or not at all."""

    def test_the_head_is_read_in_one_call(self, store: Store) -> None:
        put(store, a_row("one"))
        assert store.head(ALICE) == head(store)
        with pytest.raises(NotFound):
            store.head("nobody")

    def test_a_scope_is_copied_exactly_as_it_is(self, store: Store) -> None:
        """Rows with their places, links, tombstones, values, audit and head; and again later."""
        store.create(BOB)
        for name in ("one", "two", "three", "four"):
            put(store, a_row(name, key=name.encode(), session=b"s"))
        erase(store, a_row("two"))
        put(store, a_row("one", key=b"one"))
        store.write(ALICE, _small_things)
        assert _copy(store) == 4
        erase(store, a_row("three"))
        put(store, a_row("five", key=b"three"))
        store.write(ALICE, lambda tx: tx.drop(MEMORY, [a_row("two").id]))
        store.write(ALICE, lambda tx: tx.unlink(b"s", b"d"))
        store.write(ALICE, lambda tx: tx.set_value("note", None))
        store.write(ALICE, lambda tx: tx.append_audit(b"cell 2", b"n" * 32))
        assert _copy(store) == 4
        assert store.head(BOB) == store.head(ALICE)
        assert store.check(BOB) == []

    def test_nobody_knows_a_commit_that_never_was(self, store: Store) -> None:
        assert store.resolve(ALICE, "1") is not True

    def test_it_says_in_sentences_what_it_cannot_promise(self, store: Store) -> None:
        assert all(sentence.endswith(".") for sentence in store.warnings())

    def test_what_was_acknowledged_lasts(self, store: Store) -> None:
        put(store, a_row("one"))
        assert store.lasting(ALICE)

    def test_without_slots_beside_the_rows_none_is_set(self, store: Store) -> None:
        if store.slots is None:
            with pytest.raises(StoreError):
                store.write(ALICE, lambda tx: tx.set_slot("memory.1", b"slot"))
            assert store.write(ALICE, lambda tx: tx.slots()) == {}

    def test_a_write_returns_what_its_work_returns(self, store: Store) -> None:
        assert store.write(ALICE, lambda tx: (tx.head().memory.seq, "result")) == (0, "result")

    @pytest.mark.parametrize("kind", [ValueError, NotFound, Stop, KeyboardInterrupt])
    def test_what_work_raises_is_raised_and_nothing_is_kept(
        self, store: Store, kind: type[BaseException]
    ) -> None:
        runs = []

        def work(tx: Tx) -> None:
            runs.append(1)
            tx.put(MEMORY, a_row("one", key=b"k"))
            tx.bury([b"t"])
            tx.link(b"s", b"d")
            tx.append_audit(b"cell", b"m" * 32)
            raise kind("on purpose")

        before = head(store)
        with pytest.raises(kind, match="on purpose"):
            store.write(ALICE, work)
        assert runs == [1]
        assert head(store) == before
        assert look(store, lambda view: view.changes(MEMORY, 0, ANY)) == []
        assert look(store, lambda view: (view.tombstones(), view.derived(b"s"))) == ([], [])
        assert put(store, a_row("two"))[0].seq == 1

    def test_nothing_is_kept_of_what_fails_before_the_commit(self, open_store: OpenStore) -> None:
        store = _stopping(open_store, Failpoint.STORE_BEFORE_COMMIT)
        with pytest.raises(Stop):
            put(store, a_row("one"))
        assert look(store, lambda view: view.changes(MEMORY, 0, ANY)) == []
        store.close()

    def test_what_fails_after_the_commit_is_kept(self, open_store: OpenStore) -> None:
        store = _stopping(open_store, Failpoint.STORE_AFTER_COMMIT)
        with pytest.raises(Stop):
            put(store, a_row("one"))
        assert len(look(store, lambda view: view.changes(MEMORY, 0, ANY))) == 1
        store.close()

    def test_a_view_does_not_see_what_is_written_later(self, store: Store) -> None:
        put(store, a_row("one"))
        with store.read(ALICE) as view:
            before = view.head(), view.changes(MEMORY, 0, ANY), view.tombstones()
            put(store, a_row("two"))
            erase(store, a_row("one"))
            store.write(ALICE, lambda tx: tx.bury([b"t"]))
            after = view.head(), view.changes(MEMORY, 0, ANY), view.tombstones()
        assert after == before
        assert head(store).memory.seq == 3

    def test_a_view_is_of_the_moment_of_its_first_read(self, store: Store) -> None:
        with store.read(ALICE) as view:
            put(store, a_row("one"))
            assert view.head().memory.seq == 1

    def test_reads_go_on_beside_a_write(self, store: Store) -> None:
        put(store, a_row("one"))

        def work(tx: Tx) -> int:
            tx.put(MEMORY, a_row("two"))
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(head, store).result(PATIENCE).memory.seq

        assert store.write(ALICE, work) == 1

    def test_a_write_inside_a_write_is_refused(self, store: Store) -> None:
        with pytest.raises(StoreError):
            store.write(ALICE, lambda _: put(store, a_row("inner")))
        assert put(store, a_row("one"))[0].seq == 1

    def test_writes_of_many_threads_run_once_each_and_one_at_a_time(self, store: Store) -> None:
        inside = threading.Lock()
        runs: list[int] = []

        def write(number: int) -> int:
            def work(tx: Tx) -> int:
                assert inside.acquire(blocking=False), "two works at the same time"
                try:
                    runs.append(number)
                    tx.append_audit(b"cell", b"m" * 32)
                    return tx.put(MEMORY, a_row(f"row {number}")).seq
                finally:
                    inside.release()

            return store.write(ALICE, work)

        with ThreadPoolExecutor(16) as pool:
            seqs = list(pool.map(write, range(320)))
        assert sorted(seqs) == list(range(1, 321))
        assert sorted(runs) == list(range(320))
        assert (head(store).memory.seq, head(store).audit_count) == (320, 320)
        assert len(look(store, lambda view: view.changes(MEMORY, 0, ANY))) == 320

    def test_a_failing_write_does_not_hurt_those_beside_it(self, store: Store) -> None:
        def write(number: int) -> bool:
            def work(tx: Tx) -> None:
                tx.put(MEMORY, a_row(f"row {number}"))
                if number % 3 == 0:
                    raise (ValueError if number % 2 else Stop)(number)

            try:
                store.write(ALICE, work)
            except (ValueError, Stop) as error:
                return error.args != (number,)
            return True

        with ThreadPoolExecutor(12) as pool:
            kept = list(pool.map(write, range(120)))
        assert kept == [number % 3 != 0 for number in range(120)]
        rows = look(store, lambda view: view.changes(MEMORY, 0, ANY))
        assert sorted(row.seq for row in rows) == list(range(1, 81))
        assert {row.id for row in rows} == {
            a_row(f"row {number}").id for number in range(120) if number % 3
        }

    def test_views_of_many_threads_are_each_of_one_moment(self, store: Store) -> None:
        def write(number: int) -> None:
            put(store, a_row(f"one {number}"), a_row(f"two {number}"))

        def read(_: int) -> bool:
            with store.read(ALICE) as view:
                seq = view.head().memory.seq
                return seq % 2 == 0 and len(view.changes(MEMORY, 0, ANY)) == seq

        with ThreadPoolExecutor(8) as pool:
            writes = [pool.submit(write, number) for number in range(40)]
            assert all(pool.map(read, range(80)))
            for done in writes:
                done.result()


def _stopping(open_store: OpenStore, failpoint: Failpoint) -> Store:
    armed = False

    def reach(reached: Failpoint) -> None:
        if armed and reached is failpoint:
            raise Stop

    store = open_store(reach=reach)
    store.create(ALICE)
    armed = True
    return store


class ScopeContract:
    """Scopes, their bytes and the end of a store."""

    def test_a_scope_exists_from_creation_to_removal(self, store: Store) -> None:
        assert not store.exists("carol")
        store.create("carol")
        assert store.exists("carol")
        store.remove("carol")
        assert not store.exists("carol")
        store.remove("carol")

    def test_creating_what_exists_changes_nothing(self, store: Store) -> None:
        put(store, a_row("one"))
        store.create(ALICE)
        assert head(store).memory.seq == 1

    def test_of_many_who_create_a_scope_at_once_all_get_the_same(self, store: Store) -> None:
        def create_and_put(number: int) -> int:
            address = f"scope-{number // 8}"
            store.create(address)
            return store.write(address, lambda tx: tx.put(MEMORY, a_row(f"row {number}"))).seq

        with ThreadPoolExecutor(8) as pool:
            seqs = list(pool.map(create_and_put, range(160)))
        assert sorted(seqs) == sorted([*range(1, 9)] * 20)

    def test_a_scope_made_anew_is_empty(self, store: Store) -> None:
        put(store, a_row("one"))
        store.remove(ALICE)
        store.create(ALICE)
        assert look(store, lambda view: view.changes(MEMORY, 0, ANY)) == []
        assert put(store, a_row("one"))[0].seq == 1

    def test_scopes_do_not_mix(self, store: Store) -> None:
        put(store, a_row("one"))
        with store.read(BOB) as view:
            assert view.changes(MEMORY, 0, ANY) == []
        store.remove(BOB)
        assert head(store).memory.seq == 1

    @pytest.mark.parametrize("verb", ["read", "write", "settle", "size", "check"])
    def test_an_absent_scope_is_not_found(self, store: Store, verb: str) -> None:
        calls: dict[str, Callable[[], object]] = {
            "read": lambda: store.read("carol").__enter__().head(),
            "write": lambda: store.write("carol", lambda _: None),
            "settle": lambda: store.settle("carol"),
            "size": lambda: store.size("carol"),
            "check": lambda: store.check("carol"),
        }
        with pytest.raises(NotFound):
            calls[verb]()
        assert not store.exists("carol")

    def test_a_sound_scope_has_nothing_wrong(self, store: Store) -> None:
        put(store, a_row("one", key=b"k"), a_row("two"))
        erase(store, a_row("one"))
        store.write(ALICE, lambda tx: tx.append_audit(b"cell", b"m" * 32))
        assert store.check(ALICE) == []

    def test_size_grows_with_what_is_stored(self, store: Store) -> None:
        before = store.size(ALICE)
        put(store, a_row("one", cell=bytes(200_000)))
        assert store.size(ALICE) > before + 150_000

    def test_raw_shows_every_byte_kept(self, store: Store) -> None:
        row = a_row("one", cell=b"needle cell", vector=b"needle vector", blob="needle-blob")
        put(store, row)
        store.write(ALICE, lambda tx: tx.append_audit(b"needle audit", b"m" * 32))
        store.catalog.enroll(CatalogEntry(address=ALICE, name=b"needle name"))
        store.catalog.add_receipt(ALICE, b"needle receipt")
        kept = b"\n".join(piece for _, piece in store.raw(ALICE))
        for needle in ("cell", "vector", "audit", "name", "receipt"):
            assert b"needle " + needle.encode() in kept
        assert b"needle-blob" in kept

    def test_inspecting_a_scope_counts_its_rows_and_needs_one(self, store: Store) -> None:
        put(store, a_row("one"), a_row("two"))
        shown = store.inspect(ALICE)
        assert ("memory rows", "2") in shown.facts
        with pytest.raises(NotFound):
            store.inspect("nobody")

    def test_raw_pieces_of_one_place_overlap(self, store: Store) -> None:
        marks = [b"<mark %06d of a long cell>" % number for number in range(100_000)]
        put(store, a_row("long", cell=b"".join(marks)))
        store.settle(ALICE)
        last: dict[str, bytes] = {}
        for place, piece in store.raw(ALICE):
            if last.get(place):
                assert piece.startswith(last[place][-OVERLAP:])
            last[place] = piece

    def test_what_was_erased_is_gone_once_settled(self, store: Store) -> None:
        rows = [a_row(f"row {n}", cell=b"<needle %d>" % n * 50, key=b"k%d" % n) for n in range(40)]
        put(store, *rows)
        put(store, *(a_row(f"other {n}", cell=b"other" * 50) for n in range(40)))
        store.settle(ALICE)
        erase(store, *rows)
        store.settle(ALICE)
        kept = b"\n".join(piece for _, piece in store.raw(ALICE))
        assert b"needle" not in kept
        assert b"other" in kept

    def test_settling_tolerates_a_reader(self, store: Store) -> None:
        put(store, a_row("one"))
        with store.read(ALICE) as view:
            before = view.changes(MEMORY, 0, ANY)
            erase(store, a_row("one"))
            store.settle(ALICE)
            assert view.changes(MEMORY, 0, ANY) == before

    def test_nothing_is_left_of_a_removed_scope_but_the_catalog(self, store: Store) -> None:
        store.catalog.enroll(CatalogEntry(address=ALICE, name=b"needle name"))
        put(store, a_row("one", cell=b"needle cell"))
        store.remove(ALICE)
        kept = b"\n".join(piece for _, piece in store.raw(ALICE))
        assert b"needle cell" not in kept
        assert b"needle name" in kept

    def test_a_closed_store_is_an_error_to_use(self, store: Store) -> None:
        put(store, a_row("one"))
        store.close()
        store.close()
        calls: tuple[Callable[[], object], ...] = (
            lambda: store.create("carol"),
            lambda: store.exists(ALICE),
            lambda: store.read(ALICE).__enter__(),
            lambda: put(store, a_row("two")),
            lambda: list(store.raw(ALICE)),
            lambda: store.remove(ALICE),
            lambda: store.catalog,
        )
        for call in calls:
            with pytest.raises(StoreError):
                call()


class CatalogContract:
    """The catalog: what is known of all scopes."""

    def test_an_address_is_enrolled_once(self, store: Store) -> None:
        first = CatalogEntry(address=ALICE, name=b"sealed name")
        assert store.catalog.entry(ALICE) is None
        assert store.catalog.enroll(first) == first
        assert store.catalog.enroll(CatalogEntry(address=ALICE, name=b"another")) == first
        assert store.catalog.entry(ALICE) == first

    def test_of_many_who_enroll_at_once_all_get_the_same(self, store: Store) -> None:
        wanted = [CatalogEntry(address=ALICE, name=bytes([number])) for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            held = set(pool.map(store.catalog.enroll, wanted))
        assert held == {store.catalog.entry(ALICE)}

    def test_entries_come_by_address(self, store: Store) -> None:
        for address in ("b", "c", "a"):
            store.catalog.enroll(CatalogEntry(address=address, name=b"name"))
        assert [entry.address for entry in store.catalog.entries()] == ["a", "b", "c"]

    def test_a_scope_is_marked_destroyed_for_good(self, store: Store) -> None:
        for address in (ALICE, BOB):
            store.catalog.enroll(CatalogEntry(address=address, name=b"name"))
        store.catalog.mark_destroyed(ALICE)
        held = store.catalog.enroll(CatalogEntry(address=ALICE, name=b"name"))
        assert held.destroyed
        assert [entry.destroyed for entry in store.catalog.entries()] == [True, False]

    def test_an_older_copy_of_the_audit_head_is_ignored(self, store: Store) -> None:
        store.catalog.enroll(CatalogEntry(address=ALICE, name=b"name"))
        for count, mac in ((2, b"two"), (5, b"five"), (3, b"three"), (5, b"other")):
            store.catalog.note_audit(ALICE, count, mac)
        held = store.catalog.entry(ALICE)
        assert held == CatalogEntry(address=ALICE, name=b"name", audit_count=5, audit_mac=b"five")

    def test_notes_on_an_unknown_address_change_nothing(self, store: Store) -> None:
        store.catalog.note_audit(ALICE, 1, b"mac")
        store.catalog.mark_destroyed(ALICE)
        assert store.catalog.entries() == []

    def test_tombstones_outlive_the_scope(self, store: Store) -> None:
        store.catalog.bury(ALICE, [b"one", b"two"])
        store.catalog.bury(ALICE, [b"two", b"three"])
        store.catalog.bury(BOB, [])
        store.remove(ALICE)
        assert store.catalog.tombstones(ALICE) == {b"one", b"two", b"three"}
        assert store.catalog.tombstones(BOB) == frozenset()

    def test_receipts_come_oldest_first(self, store: Store) -> None:
        for cell in (b"first", b"second", b"third"):
            store.catalog.add_receipt(ALICE, cell)
        store.catalog.add_receipt(BOB, b"of bob")
        assert list(store.catalog.receipts(ALICE)) == [b"first", b"second", b"third"]

    def test_a_receipt_whose_answer_was_lost_may_be_added_again(self, store: Store) -> None:
        for address in (ALICE, ALICE, BOB):
            store.catalog.add_receipt(address, b"sealed")
        assert list(store.catalog.receipts(ALICE)) == [b"sealed"]
        assert list(store.catalog.receipts(BOB)) == [b"sealed"]

    def test_entries_come_in_pages(self, store: Store) -> None:
        for address in ("b", "d", "a", "c"):
            store.catalog.enroll(CatalogEntry(address=address, name=b"name"))
        assert [entry.address for entry in store.catalog.entries("a", 2)] == ["b", "c"]
        assert [entry.address for entry in store.catalog.entries("d", 2)] == []
        assert [entry.address for entry in every_entry(store.catalog)] == ["a", "b", "c", "d"]

    def test_backups_come_by_expiry_until_they_are_struck(self, store: Store) -> None:
        late = BackupEntry(address=ALICE, name="late", expires=30)
        soon = BackupEntry(address=ALICE, name="soon", expires=10)
        for backup in (late, soon, BackupEntry(address=BOB, name="soon", expires=10), soon):
            store.catalog.add_backup(backup)
        assert list(store.catalog.backups(ALICE)) == [soon, late]
        store.catalog.remove_backup(soon)
        store.catalog.remove_backup(soon)
        assert list(store.catalog.backups(ALICE)) == [late]
        assert len(store.catalog.backups(BOB)) == 1


class SharedContract:
    """Small values that all processes of an installation share."""

    def test_a_value_is_exchanged_only_for_the_one_it_is(self, store: Store) -> None:
        shared, exchange = store.shared, partial(store.shared.exchange, now=10.0, until=20.0)
        assert shared.get("lease/a", 10.0) is None
        assert not exchange("lease/a", b"one", b"two")
        assert exchange("lease/a", None, b"one")
        assert not exchange("lease/a", None, b"two")
        assert exchange("lease/a", b"one", b"two")
        assert shared.get("lease/a", 11.0) == b"two"
        assert exchange("lease/a", b"two", None)
        assert shared.get("lease/a", 11.0) is None

    def test_a_value_past_its_end_is_absent(self, store: Store) -> None:
        shared = store.shared
        shared.exchange("lease/a", None, b"one", now=10.0, until=20.0)
        assert shared.get("lease/a", 19.9) == b"one"
        assert shared.get("lease/a", 20.0) is None
        assert list(shared.names("lease/", "", ANY, 20.0)) == []
        assert not shared.exchange("lease/a", b"one", b"two", now=20.0, until=30.0)
        assert shared.exchange("lease/a", None, b"two", now=20.0, until=30.0)

    def test_names_come_in_order_by_prefix_in_pages(self, store: Store) -> None:
        for name in ("lease/c", "rate/x", "lease/a", "lease/b", "leash"):
            store.shared.exchange(name, None, b"held", now=10.0, until=20.0)
        assert list(store.shared.names("lease/", "", 2, 10.0)) == ["lease/a", "lease/b"]
        assert list(store.shared.names("lease/", "lease/b", 2, 10.0)) == ["lease/c"]

    def test_of_many_who_exchange_at_once_one_does(self, store: Store) -> None:
        def take(number: int) -> bool:
            value = b"%d" % number
            return store.shared.exchange("lease/a", None, value, now=10.0, until=20.0)

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(take, range(8))) == [False] * 7 + [True]


class SlotsBesideContract:
    """Slots beside the rows, for the suite of a store that has them."""

    @pytest.fixture
    def slots(self, store: Store) -> Slots:
        """The place of the slots."""
        assert store.slots is not None
        assert store.slots.beside_rows
        return store.slots

    def test_a_slot_is_kept_with_its_transaction(self, store: Store, slots: Slots) -> None:
        slots.add(ALICE, "lookup", lambda: b"lookup")

        def work(tx: Tx) -> object:
            tx.put(MEMORY, a_row("one"))
            tx.set_slot("memory.2", b"slot")
            tx.set_slot("lookup", None)
            return tx.slots()

        assert store.write(ALICE, work) == {"memory.2": b"slot"}
        assert slots.read(ALICE) == {"memory.2": b"slot"}
        assert slots.read(BOB) == {}

    def test_a_slot_is_not_kept_without_its_transaction(self, store: Store, slots: Slots) -> None:
        def work(tx: Tx) -> None:
            tx.set_slot("memory.2", b"slot")
            raise Stop

        with pytest.raises(Stop):
            store.write(ALICE, work)
        assert slots.read(ALICE) == {}

    def test_slots_need_no_rows_and_outlive_them(self, store: Store, slots: Slots) -> None:
        slots.add("installation", "root", lambda: b"slot")
        slots.add(ALICE, "lookup", lambda: b"lookup")
        store.write(ALICE, lambda tx: tx.truncate())
        store.remove(ALICE)
        assert slots.read(ALICE) == {"lookup": b"lookup"}
        assert slots.read("installation") == {"root": b"slot"}


class StoreContract(
    RowContract,
    ErasureContract,
    TransactionContract,
    ScopeContract,
    CatalogContract,
    SharedContract,
):
    """The promises of the port, one test each."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """How to open the store under test."""
        raise NotImplementedError("Say how to open the store.")

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[Store]:
        """The store under test, with two empty scopes."""
        store = open_store()
        store.create(ALICE)
        store.create(BOB)
        yield store
        store.close()


class DurableStoreContract(StoreContract):
    """The promises of the port, and that what is stored outlives the one who stored it."""

    def test_any_history_is_what_the_memory_store_makes_of_it(self, open_store: OpenStore) -> None:
        check_model(open_store)

    def test_what_was_written_is_there_when_opened_again(
        self, store: Store, open_store: OpenStore
    ) -> None:
        rows = put(store, a_row("one", key=b"k"), a_row("two"))
        store.catalog.enroll(CatalogEntry(address=ALICE, name=b"name"))
        before = head(store)
        store.close()
        again = open_store()
        assert head(again) == before
        assert look(again, lambda view: view.changes(MEMORY, 0, ANY)) == rows
        assert again.catalog.entry(ALICE) == CatalogEntry(address=ALICE, name=b"name")
        again.close()

    def test_two_who_have_it_open_see_each_others_writes(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store()
        for turn in range(1, 6):
            for writer, reader in ((store, other), (other, store)):
                put(writer, a_row(f"row {turn} {writer is store}"))
                assert head(reader) == head(writer)
        assert head(store).memory.seq == 10
        other.close()

    def test_a_write_finds_the_value_that_another_store_left(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store()
        for writer, reader in ((store, other), (other, store)):
            for cell in (b"1", b"2"):
                writer.write(ALICE, methodcaller("set_value", "one", cell))
                assert reader.write(ALICE, methodcaller("value", "one")) == cell
        other.close()

    def test_writers_of_two_stores_take_turns(self, store: Store, open_store: OpenStore) -> None:
        other = open_store()

        def write(number: int) -> int:
            return put((store, other)[number % 2], a_row(f"row {number}"))[0].seq

        with ThreadPoolExecutor(8) as pool:
            seqs = list(pool.map(write, range(160)))
        assert sorted(seqs) == list(range(1, 161))
        other.close()

    def test_who_has_a_destroyed_scope_open_reads_that_it_is(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store()
        put(other, a_row("one"))
        _destroy(store)
        # Of unlinked files one may still have the last word; a server says that nothing is there.
        with suppress(NotFound):
            assert head(other).destroyed
        with suppress(NotFound):
            assert other.write(ALICE, lambda tx: tx.head().destroyed)
        other.close()
        fresh = open_store()
        with pytest.raises(NotFound):
            head(fresh)
        fresh.close()

    def test_who_had_the_old_scope_open_finds_the_one_made_anew(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store()
        put(other, a_row("old"))
        _destroy(store)
        store.create(ALICE)
        rows = put(store, a_row("new"))
        assert look(other, lambda view: view.changes(MEMORY, 0, ANY)) == rows
        put(other, a_row("newer"))
        other.close()
        assert head(store).memory.seq == 2

    def test_who_has_a_removed_scope_open_cannot_write_into_nothing(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store()
        put(other, a_row("one"))
        store.remove(ALICE)
        with pytest.raises(NotFound):
            put(other, a_row("two"))
        other.close()


def _destroy(store: Store) -> None:
    def work(tx: Tx) -> None:
        tx.truncate()
        tx.set_head(replace(tx.head(), destroyed=True))

    store.write(ALICE, work, erasing=True)
    store.remove(ALICE)
