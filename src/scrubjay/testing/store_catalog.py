"""What the catalog of every store must do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from scrubjay.model.rows import BackupEntry, CatalogEntry
from scrubjay.ports import Store
from scrubjay.testing.store_rows import ALICE, BOB


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
        for cell in (b"first", b"second", b"first"):
            store.catalog.add_receipt(ALICE, cell)
        store.catalog.add_receipt(BOB, b"of bob")
        assert list(store.catalog.receipts(ALICE)) == [b"first", b"second", b"first"]

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
