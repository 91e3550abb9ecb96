"""The files of a store: who may read them, how many stay open, and what removal leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import pytest
from msgspec.structs import replace

from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.model.errors import NotFound, StoreError
from scrubjay.model.rows import CatalogEntry, Collection, Row
from scrubjay.ports import Tx
from tests import processes

A = "address"
PATIENCE = 30.0
HOLDER = """
import sys
from pathlib import Path
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.model.rows import Collection, Row
store = SqliteStore(Path(sys.argv[1]))
row = Row(id=b"theirs", version=1, epoch=1, cell=b"cell")
store.write("address", lambda tx: tx.put(Collection.MEMORY, row))
print("open", flush=True)
for line in sys.stdin:
    with store.read("address") as view:
        print(view.head().destroyed, view.head().memory.seq, flush=True)
store.close()
"""

FORKED = """
import os, sys
from pathlib import Path
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.model.errors import StoreError
from scrubjay.model.rows import Collection, Row
def put(store, name):
    row = Row(id=name, version=1, epoch=1, cell=b"cell")
    return store.write("address", lambda tx: tx.put(Collection.MEMORY, row))
store = SqliteStore(Path(sys.argv[1]))
put(store, b"of the parent")
child = os.fork()
if child == 0:
    try:
        put(store, b"through the store of the parent")
    except StoreError:
        store.close()
        store = SqliteStore(Path(sys.argv[1]))
        put(store, b"of the child")
        store.close()
        os._exit(0)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
put(store, b"of the parent again")
store.close()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path)
    store.create(A)
    yield store
    store.close()


def put(store: SqliteStore, name: str = "row", address: str = A) -> Row:
    row = Row(id=name.encode(), version=1, epoch=1, cell=b"cell of " + name.encode())
    return store.write(address, lambda tx: tx.put(Collection.MEMORY, row))


def names(store: SqliteStore, address: str = A) -> list[bytes]:
    with store.read(address) as view:
        return [row.id for row in view.changes(Collection.MEMORY, 0, 10_000)]


def destroy(store: SqliteStore) -> None:
    def work(tx: Tx) -> None:
        tx.truncate()
        tx.set_head(replace(tx.head(), destroyed=True))

    store.write(A, work, erasing=True)
    store.remove(A)


def open_files(folder: Path) -> list[str]:
    """What this process has open below a folder."""
    targets = [_target(link) for link in Path("/proc/self/fd").iterdir()]
    return [target for target in targets if str(folder) in target]


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


def test_nobody_else_may_read_the_files(store: SqliteStore, tmp_path: Path) -> None:
    put(store)
    store.catalog.enroll(CatalogEntry(address=A, name=b"name"))
    found = list(tmp_path.rglob("*"))
    assert {path.name for path in found} >= {
        "scopes", "ballast", "catalog.sqlite", f"{A}.sqlite", f"{A}.sqlite-wal", f"{A}.sqlite-shm",
    }  # fmt: skip
    for path in found:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


def test_an_address_cannot_lead_out_of_the_folder(store: SqliteStore) -> None:
    for address in ("", "../up", "a/b", "a.b", "a" * 101, "a\x00"):
        for call in (store.create, store.exists, store.remove, store.size):
            with pytest.raises(StoreError):
                call(address)


def test_only_so_many_files_stay_open(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, max_open=3)
    addresses = [f"scope-{number}" for number in range(8)]
    for address in addresses:
        store.create(address)
        put(store, address=address)
    assert len({Path(path).name[:7] for path in open_files(tmp_path / "scopes")}) == 3
    for address in addresses:
        assert names(store, address) == [b"row"]
        assert put(store, "more", address).seq == 2
    store.close()
    assert open_files(tmp_path) == []


def test_a_file_in_use_is_not_closed_under_its_user(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, max_open=1)
    addresses = [f"scope-{number}" for number in range(4)]
    for address in addresses:
        store.create(address)
        put(store, address=address)
    with store.read(addresses[0]) as view:
        before = view.head()
        for address in addresses:
            put(store, "more", address)
        assert view.head() == before
        store.remove(addresses[0])
        assert [row.id for row in view.changes(Collection.MEMORY, 0, 9)] == [b"row"]
        store.close()
        assert [row.id for row in view.changes(Collection.MEMORY, 0, 9)] == [b"row"]
    assert open_files(tmp_path) == []


def test_many_threads_on_few_open_files_lose_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, max_open=2)
    addresses = [f"scope-{number}" for number in range(6)]
    for address in addresses:
        store.create(address)

    def work(number: int) -> None:
        address = addresses[number % 6]
        put(store, f"row {number}", address)
        assert f"row {number}".encode() in names(store, address)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(240)))
    assert sum(len(names(store, address)) for address in addresses) == 240
    store.close()


def test_more_readers_than_connections_wait_for_each_other(store: SqliteStore) -> None:
    put(store)
    with ThreadPoolExecutor(64) as pool:
        assert all(found == [b"row"] for found in pool.map(lambda _: names(store), range(256)))


def test_removal_leaves_no_file_behind(store: SqliteStore, tmp_path: Path) -> None:
    put(store)
    (tmp_path / "scopes" / f"{A}.sqlite.new").write_bytes(b"left by a death while it was made")
    store.remove(A)
    assert list((tmp_path / "scopes").iterdir()) == []


def test_what_a_death_during_creation_left_is_not_in_the_way(
    store: SqliteStore, tmp_path: Path
) -> None:
    store.remove(A)
    for suffix in (".new", ".new-wal", "-journal"):
        (tmp_path / "scopes" / f"{A}.sqlite{suffix}").write_bytes(b"leftover")
    assert not store.exists(A)
    store.create(A)
    assert put(store).seq == 1


def test_a_log_that_outlived_its_database_is_not_replayed(
    store: SqliteStore, tmp_path: Path
) -> None:
    log = tmp_path / "scopes" / f"{A}.sqlite-wal"
    put(store, "of the old scope")
    old = log.read_bytes()
    store.remove(A)
    log.write_bytes(old)
    store.create(A)
    assert names(store) == []


def test_a_store_abandoned_like_a_dead_process_has_lost_nothing(tmp_path: Path) -> None:
    for number in range(5):
        store = SqliteStore(tmp_path)
        store.create(A)
        assert put(store, f"row {number}").seq == number + 1
        store.abandon()
        assert (tmp_path / "scopes" / f"{A}.sqlite-wal").stat().st_size > 0


def test_closing_leaves_one_file_and_an_empty_lock(store: SqliteStore, tmp_path: Path) -> None:
    put(store)
    store.close()
    assert {path.name for path in (tmp_path / "scopes").iterdir()} == {
        f"{A}.sqlite",
        f"{A}.sqlite.lock",
    }


def test_another_process_sees_that_the_scope_was_destroyed_and_harms_no_new_one(
    store: SqliteStore, tmp_path: Path
) -> None:
    with processes.running(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        assert names(store) == [b"theirs"]
        destroy(store)
        print(file=holder.stdin, flush=True)
        assert holder.stdout.readline() == "True 1\n"
        store.create(A)
        rows = [put(store, f"row {number}").id for number in range(5)]
        # Their last connection to the old file goes; our log must not go with it.
        holder.stdin.close()
        assert holder.wait(60) == 0
    assert names(store) == rows
    again = SqliteStore(tmp_path)
    assert names(again) == rows
    again.close()


def test_looking_at_every_byte_keeps_the_locks(store: SqliteStore, tmp_path: Path) -> None:
    put(store)

    def locks() -> list[str]:
        mine = f" {os.getpid()} "
        lines = Path("/proc/locks").read_text().splitlines()
        return sorted(line.split(":", 1)[1] for line in lines if mine in line and "POSIX" in line)

    before = locks()
    assert before
    assert any(b"cell of row" in piece for _, piece in store.raw(A))
    assert locks() == before


def test_a_forked_child_is_told_to_open_its_own(store: SqliteStore, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKED, str(tmp_path)], check=True, timeout=60)
    assert names(store) == [b"of the parent", b"of the child", b"of the parent again"]


def test_settling_empties_the_log(store: SqliteStore, tmp_path: Path) -> None:
    put(store)
    log = tmp_path / "scopes" / f"{A}.sqlite-wal"
    assert log.stat().st_size > 0
    store.settle(A)
    assert log.stat().st_size == 0
    assert names(store) == [b"row"]


def test_a_scope_another_store_removes_while_it_is_read_is_not_found_after(
    store: SqliteStore, tmp_path: Path
) -> None:
    put(store)
    other = SqliteStore(tmp_path)
    with store.read(A) as view:
        assert view.head().memory.seq == 1
        other.remove(A)
        assert view.head().memory.seq == 1
    with pytest.raises(NotFound):
        names(store)
    other.close()


def test_a_connection_is_never_opened_to_a_file_that_is_not_there(
    store: SqliteStore, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(NotFound):
        store._scope_kind.connect(str(tmp_path / "absent.sqlite"))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_connection_to_a_new_scope_is_not_taken_for_one_to_the_old(
    store: SqliteStore, tmp_path: Path
) -> None:
    put(store)
    database = store._scopes.lease(A)
    lent = database.take()
    other = SqliteStore(tmp_path)
    other.remove(A)
    other.create(A)
    with pytest.raises(NotFound):
        database.take()
    database.give(lent)
    store._scopes.release(database)
    assert names(store) == []
    other.close()


def test_who_had_the_old_scope_open_finds_the_new_one_after_a_removal_cut_short(
    store: SqliteStore, tmp_path: Path
) -> None:
    put(store)
    for path in (tmp_path / "scopes").iterdir():
        if path.suffix != ".lock":
            path.unlink()
    other = SqliteStore(tmp_path)
    other.create(A)
    put(other, "new")
    assert names(store) == [b"new"]
    other.close()


def test_settling_does_not_wait_for_a_reader(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, lock_timeout=PATIENCE)
    store.create(A)
    put(store)
    with store.read(A) as view:
        view.head()
        put(store, "more")
        before = monotonic()
        store.settle(A)
        assert monotonic() - before < PATIENCE / 2
    store.close()
