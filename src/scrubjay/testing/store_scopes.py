"""What every store must do with scopes: their making and end, and every byte between."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from scrubjay.model.errors import NotFound, StoreError
from scrubjay.model.rows import CatalogEntry
from scrubjay.ports import Store
from scrubjay.testing.store_rows import ALICE, ANY, BOB, MEMORY, a_row, erase, head, look, put

OVERLAP: Final = 64


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
