"""The catalog of a memory store."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from scrubjay.domain.rows import BackupEntry, CatalogEntry


class MemoryCatalog:
    """What is known of all scopes, in the memory of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, CatalogEntry] = {}
        self._tombstones: dict[str, frozenset[bytes]] = {}
        self._receipts: dict[str, tuple[bytes, ...]] = {}
        self._backups: frozenset[BackupEntry] = frozenset()

    def enroll(self, entry: CatalogEntry) -> CatalogEntry:
        with self._lock:
            return self._entries.setdefault(entry.address, entry)

    def entry(self, address: str) -> CatalogEntry | None:
        return self._entries.get(address)

    def entries(self) -> Sequence[CatalogEntry]:
        with self._lock:
            return sorted(self._entries.values(), key=lambda entry: entry.address)

    def mark_destroyed(self, address: str) -> None:
        with self._lock:
            if known := self._entries.get(address):
                self._entries[address] = replace(known, destroyed=True)

    def note_audit(self, address: str, count: int, mac: bytes) -> None:
        with self._lock:
            known = self._entries.get(address)
            if known and count > known.audit_count:
                self._entries[address] = replace(known, audit_count=count, audit_mac=mac)

    def bury(self, address: str, ids: Iterable[bytes]) -> None:
        with self._lock:
            self._tombstones[address] = self.tombstones(address).union(ids)

    def tombstones(self, address: str) -> frozenset[bytes]:
        return self._tombstones.get(address, frozenset())

    def add_receipt(self, address: str, cell: bytes) -> None:
        with self._lock:
            self._receipts[address] = (*self._receipts.get(address, ()), cell)

    def receipts(self, address: str) -> Sequence[bytes]:
        return self._receipts.get(address, ())

    def add_backup(self, backup: BackupEntry) -> None:
        with self._lock:
            self._backups |= {backup}

    def backups(self, address: str) -> Sequence[BackupEntry]:
        held = [backup for backup in self._backups if backup.address == address]
        return sorted(held, key=lambda backup: (backup.expires, backup.name))

    def remove_backup(self, backup: BackupEntry) -> None:
        with self._lock:
            self._backups -= {backup}

    def raw(self) -> Iterator[tuple[str, bytes]]:
        """Every byte held, as (place, bytes)."""
        for entry in self.entries():
            yield f"catalog/{entry.address}", entry.name + entry.audit_mac
        for address, ids in sorted(self._tombstones.items()):
            yield f"catalog/{address}/tombstones", b"".join(sorted(ids))
        for address, cells in sorted(self._receipts.items()):
            yield f"catalog/{address}/receipts", b"".join(cells)
