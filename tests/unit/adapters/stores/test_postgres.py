"""What the PostgreSQL store promises beyond the contract: lost answers, deadlocks, versions."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from scrubjay.adapters.stores.postgres.connections import (
    Connections,
    Database,
    checked_url,
)
from scrubjay.adapters.stores.postgres.store import PostgresStore
from scrubjay.adapters.stores.postgres.transaction import PostgresView
from scrubjay.model.errors import Busy, InvalidRequest, OutcomeUnknown, SchemaTooNew, StoreError
from scrubjay.model.rows import Collection
from scrubjay.ports import Failpoint, Tx, commit
from scrubjay.testing.store_rows import ALICE, a_row, look, put
from tests.certificates import certificate_for_localhost
from tests.support.postgres import PostgresServer
from tests.support.proxy import Loss, PostgresProxy

MEMORY = Collection.MEMORY


class Undone(Exception):
    """What a work raises that is not to be committed."""


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[PostgresProxy]:
    with PostgresProxy(postgres.folder) as proxy:
        yield proxy


@pytest.fixture
def store(proxy: PostgresProxy, database: str) -> Iterator[PostgresStore]:
    """A store behind the proxy, with an empty scope."""
    store = PostgresStore(proxy.through(database), lock_timeout=30.0)
    store.create(ALICE)
    yield store
    store.close()


def contents(store: PostgresStore) -> list[bytes]:
    return [row.id[:3] for row in look(store, lambda view: view.changes(MEMORY, 0, 100))]


# -- lost answers ----------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "happened"), [(Loss.ANSWER, True), (Loss.REQUEST, False)])
def test_what_became_of_a_commit_is_told_by_the_status_of_its_transaction(
    store: PostgresStore, proxy: PostgresProxy, loss: Loss, happened: bool
) -> None:
    proxy.losing = loss
    with pytest.raises(OutcomeUnknown) as lost:
        store.write(ALICE, lambda tx: tx.put(MEMORY, a_row("one")))
    assert store.resolve(ALICE, lost.value.commit) is happened
    assert contents(store) == [b"one"] * happened


@pytest.mark.parametrize("loss", Loss)
def test_a_write_whose_commit_was_lost_is_there_once(
    store: PostgresStore, proxy: PostgresProxy, loss: Loss
) -> None:
    proxy.losing = loss
    row = commit(store, ALICE, lambda tx: tx.put(MEMORY, a_row("one")))
    assert row.seq == 1
    assert contents(store) == [b"one"]


def test_everybody_whose_commit_was_lost_is_told_its_name(
    store: PostgresStore, proxy: PostgresProxy
) -> None:
    """One commit is for a batch: the name reaches each of its threads, not the first alone."""
    inside, go_on = threading.Event(), threading.Event()
    outcomes = list[bool | None]()

    def hold(_: Tx) -> None:
        inside.set()
        assert go_on.wait(30)
        raise Undone  # so that the next commit is that of the batch

    def begin() -> None:
        with pytest.raises(Undone):
            store.write(ALICE, hold)

    def write(number: int) -> None:
        try:
            store.write(ALICE, lambda tx: tx.put(MEMORY, a_row(f"row {number}")))
        except OutcomeUnknown as lost:
            outcomes.append(store.resolve(ALICE, lost.commit))

    proxy.losing = Loss.REQUEST
    holder = threading.Thread(target=begin)
    holder.start()
    assert inside.wait(30)
    others = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in others:
        thread.start()
    queue = store._queues[ALICE]
    while len(queue._waiting) < len(others):
        assert all(thread.is_alive() for thread in others)
    go_on.set()
    holder.join()
    for thread in others:
        thread.join()
    assert outcomes == [False] * 3
    assert contents(store) == []


def test_a_commit_of_another_timeline_is_not_said_to_have_happened(store: PostgresStore) -> None:
    """After a failover the number of a lost transaction may be another one's."""
    put(store, a_row("one"))
    name = store.write(ALICE, lambda tx: tx.name)  # type: ignore[attr-defined]
    number, _, timeline = name.partition("/")
    assert store.resolve(ALICE, name) is True
    assert store.resolve(ALICE, f"{number}/{timeline[:-1]}9") is None
    assert store.resolve(ALICE, f"{int(number) + 10**6}/{timeline}") is False
    assert store.resolve(ALICE, "") is None


def test_idle_connections_that_broke_are_replaced_without_a_word(
    store: PostgresStore, proxy: PostgresProxy
) -> None:
    put(store, a_row("one"))
    proxy.cut()
    proxy.mend()
    assert contents(store) == [b"one"]
    proxy.cut()
    proxy.mend()
    put(store, a_row("two"))
    assert contents(store) == [b"one", b"two"]


def test_a_network_that_stays_cut_is_busy_within_the_timeout(
    proxy: PostgresProxy, database: str
) -> None:
    store = PostgresStore(proxy.through(database), lock_timeout=1.0)
    store.create(ALICE)
    proxy.cut()
    for call in (lambda: put(store, a_row("one")), lambda: contents(store), store.strays):
        with pytest.raises(Busy):
            call()
    proxy.mend()
    assert contents(store) == []
    store.close()


def test_a_slow_network_costs_time_alone(store: PostgresStore, proxy: PostgresProxy) -> None:
    proxy.seconds = 0.01
    put(store, a_row("one"))
    assert contents(store) == [b"one"]


# -- who is let in ---------------------------------------------------------------------------


@pytest.fixture
def over_tls(tmp_path: Path) -> Iterator[str]:
    """The address of a server that speaks TLS alone, with a certificate for localhost."""
    cert, key = certificate_for_localhost(tmp_path)
    server = PostgresServer(cert=cert, key=key)
    yield f"postgres://postgres@localhost:{server.port}/postgres?sslmode=verify-full"
    server.end()


def test_a_database_whose_certificate_is_another_ones_is_sent_nothing(
    over_tls: str, tmp_path: Path
) -> None:
    authority = f"&sslrootcert={tmp_path / 'cert.pem'}"
    store = PostgresStore(over_tls + authority)
    store.create(ALICE)
    ((used,),) = store._connections.ask(
        lambda one: one.execute(
            "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        ).fetchall()
    )
    assert used
    store.close()
    for wrong in (over_tls.replace("localhost", "127.0.0.1") + authority, over_tls):
        store = PostgresStore(wrong, lock_timeout=0.1)
        with pytest.raises(Busy) as refused:
            store.exists(ALICE)
        assert "certificate" in (refused.value.hint or "")
        store.close()


def test_who_is_not_let_in_is_told_why(postgres: PostgresServer) -> None:
    for wrong, word in (
        (postgres.url().replace("user=postgres", "user=nobody"), "user"),
        (postgres.url("nowhere"), "createdb"),
        ("postgres://localhost:1/x", "network"),
    ):
        store = PostgresStore(wrong, lock_timeout=0.1)
        with pytest.raises(Busy) as refused:
            store.exists(ALICE)
        assert word in (refused.value.hint or "")
        assert "nobody" not in f"{refused.value} {refused.value.hint}"
        store.close()


def test_the_server_lets_go_of_a_node_that_vanished(over_tls: str, tmp_path: Path) -> None:
    """Its locks would be kept for as long as the system waits, which is two hours."""
    store = PostgresStore(f"{over_tls}&sslrootcert={tmp_path / 'cert.pem'}&options=-c%20jit%3Doff")
    names = ("tcp_keepalives_idle", "tcp_keepalives_count", "tcp_user_timeout", "jit")
    told = store._connections.ask(
        lambda one: [one.execute(f"SHOW {name}".encode()).fetchall()[0][0] for name in names]
    )
    assert told == ["5", "3", "10000", "off"]
    store.close()


# -- few trips -------------------------------------------------------------------------------


def test_the_value_that_views_ask_for_comes_with_the_head(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recall on a far database waits for one trip less; what it sees is of its own snapshot."""
    store.write(ALICE, lambda tx: tx.set_value("limits", b"first"))
    assert look(store, lambda view: view.value("limits")) == b"first"
    asked = list[str]()
    run = PostgresView.run

    def noted(view: PostgresView, query: str, *bindings: object) -> list[tuple[object, ...]]:
        asked.append(query)
        return run(view, query, *bindings)

    monkeypatch.setattr(PostgresView, "run", noted)
    assert look(store, lambda view: view.value("limits")) == b"first"
    assert asked == []
    with store.read(ALICE) as view:
        view.head()
        store.write(ALICE, lambda tx: tx.set_value("limits", None))
        assert view.value("limits") == b"first"
        assert view.value("other") is None
    assert look(store, lambda view: view.value("limits")) is None

    def exchange(tx: Tx) -> bytes | None:
        tx.set_value("limits", b"second")
        return tx.value("limits")

    assert store.write(ALICE, exchange) == b"second"


# -- deadlocks -------------------------------------------------------------------------------


def test_a_deadlock_is_tried_again(database: str) -> None:
    """Two that lock each other out both end well: PostgreSQL stops one, which begins again."""
    connections = Connections(
        database, size=4, timeout=30.0, pooler=False, region="", reach=lambda _: None
    )
    both = threading.Barrier(2)
    tries = list[int]()

    def lock(first: int, second: int) -> None:
        def call(connection: Database) -> None:
            tries.append(first)
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (first,))
                if tries.count(first) == 1:
                    both.wait(30)
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (second,))

        connections.ask(call)

    threads = [threading.Thread(target=lock, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(set(tries)) == [1, 2]
    assert len(tries) == 3
    connections.close()


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_a_transaction_that_postgresql_aborts_runs_again(store: PostgresStore, state: str) -> None:
    runs = list[int]()

    def work(tx: Tx) -> int:
        runs.append(1)
        if len(runs) == 1:
            code = f"DO $$ BEGIN RAISE SQLSTATE '{state}'; END $$"
            try:
                tx.connection.execute(code.encode())  # type: ignore[attr-defined]
                tx.head()
                tx.row(MEMORY, b"?" * 16)
            except psycopg.Error as error:
                tx.failure = error  # type: ignore[attr-defined]
                raise StoreError("aborted") from error
        return tx.put(MEMORY, a_row("one")).seq

    assert commit(store, ALICE, work) == 1
    assert len(runs) == 2


# -- addresses and versions --------------------------------------------------------------------


def test_beyond_this_machine_the_certificate_is_verified() -> None:
    assert "sslmode=verify-full" in checked_url("postgres://db.example/scrubjay")
    assert "sslrootcert=system" in checked_url("postgres://db.example/scrubjay")
    assert "sslmode" not in checked_url("postgres://localhost/scrubjay")
    assert "sslmode" not in checked_url("postgres:///scrubjay?host=/run/postgresql")
    for weak in ("disable", "prefer", "require", "verify-ca"):
        with pytest.raises(InvalidRequest):
            checked_url(f"postgres://localhost,db.example/scrubjay?sslmode={weak}")


def test_a_host_that_only_the_environment_names_is_checked_like_one_in_the_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "sslmode" not in checked_url("postgres:///scrubjay")
    monkeypatch.setenv("PGSSLMODE", "disable")
    monkeypatch.setenv("PGHOST", "db.example")
    assert "sslmode=verify-full" in checked_url("postgres:///scrubjay")
    monkeypatch.delenv("PGHOST")
    monkeypatch.setenv("PGHOSTADDR", "10.0.0.7")
    assert "sslmode=verify-full" in checked_url("postgres:///scrubjay")
    monkeypatch.delenv("PGHOSTADDR")
    (tmp_path / "services").write_text("[theirs]\nhost=db.example\nsslmode=disable\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    with pytest.raises(InvalidRequest, match="service"):
        checked_url("postgres:///scrubjay?service=theirs")
    monkeypatch.setenv("PGSERVICE", "theirs")
    assert "sslmode=verify-full" in checked_url("postgres:///scrubjay")


@pytest.mark.parametrize("url", ["postgres://jay:secret@localhost/x", "sqlite:///x", "a b", ""])
def test_an_address_with_a_password_or_of_something_else_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        checked_url(url)
    assert "secret" not in str(refused.value)


def test_a_newer_database_is_left_alone(database: str, postgres: PostgresServer) -> None:
    store = PostgresStore(database)
    store.create(ALICE)
    store.close()
    postgres.sql("UPDATE scrubjay.version SET number = number + 1", database)
    again = PostgresStore(database)
    with pytest.raises(SchemaTooNew):
        again.exists(ALICE)
    again.close()


def test_a_migration_that_dies_leaves_nothing_and_the_next_one_does_it(
    database: str, postgres: PostgresServer
) -> None:
    def die(reached: Failpoint) -> None:
        assert reached is not Failpoint.STORE_MIGRATING

    store = PostgresStore(database, reach=die)
    with pytest.raises(AssertionError):
        store.create(ALICE)
    store.close()
    assert postgres.sql("SELECT to_regclass('scrubjay.version')", database) == [(None,)]
    again = PostgresStore(database)
    again.create(ALICE)
    again.close()


def test_of_many_who_begin_at_once_each_finds_the_schema(database: str) -> None:
    stores = [PostgresStore(database) for _ in range(6)]
    threads = [threading.Thread(target=store.create, args=(ALICE,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(store.exists(ALICE) for store in stores)
    for store in stores:
        store.close()


def test_a_forked_child_is_told_to_open_its_own(store: PostgresStore) -> None:
    owner = store._connections._owner
    store._connections._owner = os.getpid() + 1
    with pytest.raises(StoreError, match="parent"):
        store.exists(ALICE)
    store._connections._owner = owner


def test_a_pooler_is_given_no_prepared_statements(database: str, postgres: PostgresServer) -> None:
    for pooler, prepared in ((True, False), (False, True)):
        store = PostgresStore(database, connections=2, pooler=pooler)
        store.create(ALICE)
        for _ in range(20):
            store.head(ALICE)
        found = store._connections.ask(
            lambda connection: connection.execute(
                "SELECT name FROM pg_prepared_statements"
            ).fetchall()
        )
        assert bool(found) is prepared
        store.close()
