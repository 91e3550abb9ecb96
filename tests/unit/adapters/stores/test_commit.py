"""Group commit: one sync for a lone write, few for many, and nobody left waiting."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.model.errors import OutcomeUnknown, ScrubjayError, StoreError
from scrubjay.model.rows import Collection, Row
from scrubjay.ports import Failpoint, Tx
from tests.support.vfs import Act, CountingVfs

A = "address"
PATIENCE = 30.0
CELL = 400


class Stop(BaseException):
    """What a test raises where a process would die."""


@pytest.fixture
def vfs(tmp_path: Path) -> Iterator[CountingVfs]:
    with CountingVfs(f"counted-{tmp_path.name}") as vfs:
        yield vfs


@pytest.fixture
def store(tmp_path: Path, vfs: CountingVfs) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store", vfs=vfs.name, lock_timeout=PATIENCE)
    store.create(A)
    yield store
    store.close()


def retain(store: SqliteStore) -> Row:
    """One write as the engine makes them: the head is looked at, a row and an audit row added."""
    row = Row(id=os.urandom(16), version=1, epoch=1, cell=os.urandom(CELL))

    def work(tx: Tx) -> Row:
        assert not tx.head().destroyed
        stored = tx.put(Collection.MEMORY, row)
        tx.append_audit(os.urandom(100), os.urandom(32))
        return stored

    return store.write(A, work)


def rows(store: SqliteStore) -> list[bytes]:
    with store.read(A) as view:
        return [row.id for row in view.changes(Collection.MEMORY, 0, 10_000)]


def test_a_lone_write_costs_one_sync_and_four_pages(store: SqliteStore, vfs: CountingVfs) -> None:
    retain(store)
    costs: Counter[tuple[int, int]] = Counter()
    for _ in range(200):
        before = vfs.counts()
        retain(store)
        cost = vfs.counts() - before
        costs[cost.syncs, cost.frames] += 1
    assert costs.most_common(1)[0][0] == (1, 4)
    # The rest are splits of a page, which come with its parent and the first page.
    assert costs[1, 4] > 150
    assert {syncs for syncs, _ in costs} == {1}


def test_a_lone_write_takes_no_more_than_twice_the_bytes_of_a_bare_insert(
    store: SqliteStore, vfs: CountingVfs, tmp_path: Path
) -> None:
    bare = apsw.Connection(str(tmp_path / "bare.sqlite"), vfs=vfs.name)
    bare.pragma("journal_mode", "wal")
    bare.execute("CREATE TABLE t (id BLOB PRIMARY KEY, body BLOB)")
    retain(store)

    def insert() -> object:
        return bare.execute("INSERT INTO t VALUES (?, ?)", (os.urandom(16), os.urandom(CELL)))

    start = vfs.counts()
    for _ in range(200):
        insert()
    middle = vfs.counts()
    for _ in range(200):
        retain(store)
    end = vfs.counts()
    bare.close()
    assert (end - middle).bytes <= 2 * (middle - start).bytes


def test_a_write_that_changes_nothing_costs_no_sync(store: SqliteStore, vfs: CountingVfs) -> None:
    retain(store)
    before = vfs.counts()
    store.write(A, lambda tx: tx.head())
    assert vfs.counts() == before


def test_writers_that_wait_for_a_sync_share_the_next_one(
    store: SqliteStore, vfs: CountingVfs
) -> None:
    retain(store)
    vfs.sync_delay_ms = 5
    before = vfs.counts()
    with ThreadPoolExecutor(16) as pool:
        stored = list(pool.map(lambda _: retain(store), range(320)))
    syncs = (vfs.counts() - before).syncs
    assert sorted(row.seq for row in stored) == list(range(2, 322))
    assert syncs < 320 / 4


class Batch:
    """A leader that waits before its commit until others have queued behind it."""

    def __init__(self) -> None:
        self.leading = threading.Event()
        self.released = threading.Event()
        self.runs: Counter[str] = Counter()

    def lead(self, tx: Tx) -> str:
        self.leading.set()
        assert self.released.wait(PATIENCE)
        return self.work("leader")(tx)

    def work(self, name: str) -> Callable[[Tx], str]:
        def work(tx: Tx) -> str:
            self.runs[name] += 1
            tx.put(Collection.MEMORY, Row(id=name.encode(), version=1, epoch=1, cell=b"cell"))
            if name.startswith("bad"):
                raise Stop(name)
            return name

        return work

    def run(self, store: SqliteStore, names: list[str]) -> dict[str, BaseException | str]:
        """Write under all names at once, first alone, then in one batch; what became of each."""
        outcomes: dict[str, BaseException | str] = {}

        def write(name: str, work: Callable[[Tx], str]) -> None:
            try:
                outcomes[name] = store.write(A, work)
            except BaseException as error:  # seam: the outcome is what is looked at
                outcomes[name] = error

        threads = [threading.Thread(target=write, args=("leader", self.lead))]
        threads[0].start()
        assert self.leading.wait(PATIENCE)
        queue = store._scopes.lease(A)._queue
        for name in names:
            threads.append(threading.Thread(target=write, args=(name, self.work(name))))
            threads[-1].start()
            while len(queue._waiting) < len(threads) - 1:
                pass
        self.released.set()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        return outcomes


def test_in_one_batch_each_gets_its_own_outcome(store: SqliteStore, vfs: CountingVfs) -> None:
    retain(store)
    before = vfs.counts()
    outcomes = Batch().run(store, ["a", "bad 1", "b", "bad 2", "c"])
    assert (vfs.counts() - before).syncs == 2
    assert {name for name, outcome in outcomes.items() if outcome == name} == set("abc") | {
        "leader"
    }
    for name in ("bad 1", "bad 2"):
        assert repr(outcomes[name]) == repr(Stop(name))
    assert rows(store)[1:] == [b"leader", b"a", b"b", b"c"]
    assert store.check(A) == []


def test_when_the_commit_is_cut_short_nobody_waits_for_ever(tmp_path: Path) -> None:
    commits = 0

    def reach(failpoint: Failpoint) -> None:
        nonlocal commits
        commits += failpoint is Failpoint.STORE_BEFORE_COMMIT
        if commits == 2 and failpoint is Failpoint.STORE_BEFORE_COMMIT:
            raise Stop

    store = SqliteStore(tmp_path, reach=reach, lock_timeout=PATIENCE)
    store.create(A)
    batch = Batch()
    outcomes = batch.run(store, ["a", "b", "c"])
    assert outcomes["leader"] == "leader"
    kinds = Counter(type(outcomes[name]) for name in "abc")
    assert kinds == {Stop: 1, OutcomeUnknown: 2}
    assert set(batch.runs.values()) == {1}
    assert rows(store) == [b"leader"]
    retain(store)
    store.close()


def test_a_failed_sync_is_an_error_to_all_and_the_next_write_begins_anew(
    store: SqliteStore, vfs: CountingVfs
) -> None:
    acknowledged = [retain(store).id for _ in range(3)]

    def broken(act: Act) -> None:
        if act is Act.SYNC:
            raise apsw.IOError("on purpose")

    vfs.before = broken
    for _ in range(3):
        with pytest.raises(StoreError, match="disk failed"):
            retain(store)
    assert [row_id for row_id in rows(store) if row_id in acknowledged] == acknowledged
    vfs.before = lambda _: None
    acknowledged += [retain(store).id for _ in range(3)]
    assert [row_id for row_id in rows(store) if row_id in acknowledged] == acknowledged
    assert store.check(A) == []


def test_after_a_failed_sync_no_connection_and_no_log_is_used_again(
    store: SqliteStore, vfs: CountingVfs, tmp_path: Path
) -> None:
    """What the failed sync left in the log may not be on the disk: nothing may be put behind it."""
    log = tmp_path / "store" / "scopes" / f"{A}.sqlite-wal"

    def broken(act: Act) -> None:
        if act is Act.SYNC:
            raise apsw.IOError("on purpose")

    retain(store)
    for _ in range(20):
        retain(store)
    vfs.before = broken
    with pytest.raises(StoreError):
        retain(store)
    assert not any(str(log) in target for target in open_targets())
    left = log.stat().st_size
    vfs.before = lambda _: None
    retain(store)
    assert log.stat().st_size < left / 2
    assert len(rows(store)) in (22, 23)


def open_targets() -> list[str]:
    """What this process has open."""
    targets = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            targets.append(str(link.readlink()))
    return targets


def test_what_sqlite_says_is_not_shown_to_callers(store: SqliteStore, vfs: CountingVfs) -> None:
    def broken(_: Act) -> None:
        raise apsw.IOError("secret of " + str(Path.cwd()))

    vfs.before = broken
    with pytest.raises(ScrubjayError) as caught:
        retain(store)
    assert "secret" not in str(caught.value)
    assert caught.value.hint
    vfs.before = lambda _: None


def test_a_transaction_is_of_no_use_after_its_end(store: SqliteStore) -> None:
    with store.read(A) as view:
        pass
    with pytest.raises(StoreError):
        view.head()
