"""Every implementation of a store keeps the contract of the port."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from scrubjay.adapters import stores
from scrubjay.adapters.stores.memory import MemoryStore
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.ports import Store
from scrubjay.testing.store_contract import DurableStoreContract, OpenStore, StoreContract
from tests.support.registry import implementations


class TestMemoryStore(StoreContract):
    tested = MemoryStore

    @pytest.fixture
    def open_store(self) -> OpenStore:
        return MemoryStore


class TestSqliteStore(DurableStoreContract):
    tested = SqliteStore

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return partial(SqliteStore, tmp_path / "store", lock_timeout=10.0)


def test_every_implementation_runs_the_contract() -> None:
    """One added to the package without a suite here fails this test."""
    suites = (TestMemoryStore, TestSqliteStore)
    assert implementations(stores, Store) == {suite.tested for suite in suites}
