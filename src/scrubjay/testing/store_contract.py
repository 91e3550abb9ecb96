"""What every Store must do. Subclass the contract, say how to open one, and run pytest.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return partial(MyStore, tmp_path)

A store whose rows outlive the object subclasses `DurableStoreContract`; there `open_store` opens
the same scopes each time it is called, as another process would.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from scrubjay.model.errors import NotFound
from scrubjay.model.rows import CatalogEntry
from scrubjay.ports import Store, Tx
from scrubjay.testing.store_catalog import CatalogContract
from scrubjay.testing.store_model import check_model
from scrubjay.testing.store_rows import (
    ALICE,
    ANY,
    BOB,
    MEMORY,
    ErasureContract,
    RowContract,
    a_row,
    head,
    look,
    put,
)
from scrubjay.testing.store_scopes import ScopeContract
from scrubjay.testing.store_transactions import OpenStore, TransactionContract


class StoreContract(
    RowContract, ErasureContract, TransactionContract, ScopeContract, CatalogContract
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
        assert head(other).destroyed
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
