"""What every store must do with transactions: once, alone, wholly or not at all."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

import pytest

from scrubjay.model.errors import NotFound, StoreError
from scrubjay.ports import Failpoint, Reach, Store, Tx, pass_by
from scrubjay.testing.store_rows import ALICE, ANY, MEMORY, a_row, erase, head, look, put

PATIENCE: Final = 30.0


class OpenStore(Protocol):
    """How to open the store under test."""

    def __call__(self, *, reach: Reach = pass_by) -> Store:
        """A store that calls `reach` at each failpoint."""


class Stop(BaseException):
    """What a test raises where a process would die."""


class TransactionContract:
    """Reads beside writes, and writes that happen once, alone, wholly or not at all."""

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
