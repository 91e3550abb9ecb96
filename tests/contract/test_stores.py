"""Every implementation of a store keeps the contract of the port."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from scrubjay.adapters import stores
from scrubjay.adapters.stores.memory import MemoryStore
from scrubjay.adapters.stores.postgres.store import PostgresStore
from scrubjay.adapters.stores.shards import ShardedStore
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.engine.transfer.move import arrive
from scrubjay.ports import Reach, Store, pass_by
from scrubjay.testing.store_contract import (
    DurableStoreContract,
    OpenStore,
    SlotsBesideContract,
    StoreContract,
)
from tests.support.memory_cluster import MemoryCluster, MemoryNode
from tests.support.networks import lossy
from tests.support.postgres import PostgresServer
from tests.support.registry import implementations


class TestMemoryStore(StoreContract):
    tested = MemoryStore

    @pytest.fixture
    def open_store(self) -> OpenStore:
        return MemoryStore


class TestMemoryNode(DurableStoreContract, SlotsBesideContract):
    """The memory store behind a network: each one who opens it is another node."""

    tested = MemoryNode

    @pytest.fixture
    def open_store(self) -> OpenStore:
        clusters: list[MemoryCluster] = []

        def open_node(*, reach: Reach = pass_by) -> Store:
            if not clusters:
                clusters.append(MemoryCluster(reach=reach))
            return clusters[0].node(lossy(len(clusters)))

        return open_node


class TestSqliteStore(DurableStoreContract):
    tested = SqliteStore

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return partial(SqliteStore, tmp_path / "store", lock_timeout=30.0)


class TestPostgresStore(SlotsBesideContract, DurableStoreContract):
    tested = PostgresStore

    @pytest.fixture
    def open_store(self, database: str) -> OpenStore:
        return partial(PostgresStore, database, lock_timeout=30.0)


class TestShardedStore(SlotsBesideContract, DurableStoreContract):
    """Two databases as one store: each scope is in one of them."""

    tested = ShardedStore

    @pytest.fixture
    def open_store(self, database: str, postgres: PostgresServer) -> Iterator[OpenStore]:
        other = postgres.database()

        def open_both(*, reach: Reach = pass_by) -> Store:
            open_one = partial(PostgresStore, reach=reach, lock_timeout=30.0, connections=10)
            return ShardedStore(open_one(database), {"other": open_one(other)}, arrive=arrive)

        yield open_both
        postgres.drop(other)


def test_every_implementation_runs_the_contract() -> None:
    """One added to the package without a suite here fails this test."""
    suites = (TestMemoryStore, TestSqliteStore, TestPostgresStore, TestShardedStore)
    assert implementations(stores, Store) == {suite.tested for suite in suites}
