"""Space in reserve: erasure works on a full disk, and writing resumes by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import apsw
import pytest

from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.model.errors import Full
from scrubjay.model.rows import CatalogEntry, Collection, Row
from scrubjay.ports import Tx
from tests.support.vfs import Act, CountingVfs

A = "address"
BALLAST = 1 << 16
HUGE = 1 << 60


def put(store: SqliteStore, name: str, size: int = 100) -> Row:
    row = Row(id=name.encode(), version=1, epoch=1, cell=os.urandom(size))
    return store.write(A, lambda tx: tx.put(Collection.MEMORY, row))


def erase(store: SqliteStore, name: str) -> Row | None:
    def work(tx: Tx) -> Row | None:
        return tx.erase(Collection.MEMORY, name.encode(), drop_day=1)

    return store.write(A, work, erasing=True)


def names(store: SqliteStore) -> list[bytes]:
    with store.read(A) as view:
        return [row.id for row in view.changes(Collection.MEMORY, 0, 10_000) if not row.erased]


class TightDisk:
    """A disk on which nothing can be written while the reserve takes its last space."""

    def __init__(self, folder: Path) -> None:
        self.ballast = folder / "ballast"
        self.full = False

    @property
    def whole(self) -> bool:
        """Whether all of the reserve is there."""
        return self.ballast.exists() and self.ballast.stat().st_size == BALLAST

    def __call__(self, _: Act) -> None:
        if self.full and self.whole:
            raise apsw.FullError("on purpose")


@pytest.fixture
def disk(tmp_path: Path) -> TightDisk:
    return TightDisk(tmp_path)


@pytest.fixture
def store(tmp_path: Path, disk: TightDisk) -> Iterator[SqliteStore]:
    with CountingVfs(f"tight-{tmp_path.name}", before=disk) as vfs:
        store = SqliteStore(tmp_path, vfs=vfs.name, ballast_bytes=BALLAST)
        store.create(A)
        yield store
        disk.full = False
        store.close()


def test_the_reserve_is_really_allocated(store: SqliteStore, disk: TightDisk) -> None:
    put(store, "one")
    found = disk.ballast.stat()
    assert found.st_size == BALLAST
    assert found.st_blocks * 512 >= BALLAST
    assert found.st_mode & 0o777 == 0o600


def test_on_a_full_disk_ordinary_writes_are_refused_and_reads_go_on(
    store: SqliteStore, disk: TightDisk
) -> None:
    put(store, "one")
    disk.full = True
    for _ in range(3):
        with pytest.raises(Full):
            put(store, "two")
    assert names(store) == [b"one"]
    assert disk.ballast.exists()


def test_on_a_full_disk_erasing_uses_the_reserve(store: SqliteStore, disk: TightDisk) -> None:
    put(store, "one")
    disk.full = True
    erased = erase(store, "one")
    assert erased is not None
    assert not disk.whole
    assert names(store) == []


def test_the_work_of_an_erasing_write_runs_again_only_then(
    store: SqliteStore, disk: TightDisk
) -> None:
    runs = []
    for full, expected in ((False, 1), (True, 3)):
        disk.full = full

        def work(tx: Tx) -> None:
            runs.append(1)
            tx.bury([b"tombstone %d" % len(runs)])

        store.write(A, work, erasing=True)
        assert len(runs) == expected
    with store.read(A) as view:
        assert list(view.tombstones()) == [b"tombstone 1", b"tombstone 3"]


def test_on_a_full_disk_the_catalog_notes_an_erasure(store: SqliteStore, disk: TightDisk) -> None:
    store.catalog.enroll(CatalogEntry(address=A, name=b"name"))
    disk.full = True
    with pytest.raises(Full):
        store.catalog.enroll(CatalogEntry(address="b", name=b"name"))
    store.catalog.bury(A, [b"one"])
    store.catalog.mark_destroyed(A)
    assert store.catalog.tombstones(A) == {b"one"}


def test_writing_resumes_by_itself_once_there_is_space(store: SqliteStore, disk: TightDisk) -> None:
    put(store, "one")
    disk.full = True
    erase(store, "one")
    disk.full = False
    put(store, "two")
    assert disk.ballast.stat().st_size == BALLAST


def test_without_space_for_the_reserve_only_erasing_writes_pass(tmp_path: Path) -> None:
    small = SqliteStore(tmp_path, ballast_bytes=BALLAST)
    small.create(A)
    put(small, "one")
    small.close()
    store = SqliteStore(tmp_path, ballast_bytes=HUGE)
    with pytest.raises(Full):
        put(store, "two")
    with pytest.raises(Full):
        store.create("other")
    assert not store.exists("other")
    assert erase(store, "one") is not None
    store.close()


def test_no_reserve_is_kept_when_none_is_wanted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, ballast_bytes=0)
    store.create(A)
    put(store, "one")
    assert not (tmp_path / "ballast").exists()
    store.close()


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    """A real disk of two megabytes."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only a superuser can mount a small disk")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def fill(folder: Path) -> Path:
    """Take whatever space is left on a disk."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(512)):
            pass
    return filler


def test_a_really_full_disk_is_left_by_erasing(tmpfs: Path) -> None:
    store = SqliteStore(tmpfs, ballast_bytes=1 << 19)
    store.create(A)
    kept = []
    with suppress(Full):
        for number in count():
            kept.append(put(store, f"row {number}", 4_000).id)
    filler = fill(tmpfs)
    assert names(store) == kept
    for row_id in kept[:-1]:
        assert erase(store, row_id.decode()) is not None
    with pytest.raises(Full):
        put(store, "more", 1 << 21)
    assert names(store) == kept[-1:]
    filler.unlink()
    put(store, "more")
    assert store.check(A) == []
    store.close()


def test_on_a_really_full_disk_a_new_process_can_open_and_erase(tmpfs: Path) -> None:
    first = SqliteStore(tmpfs, ballast_bytes=1 << 19)
    first.create(A)
    put(first, "one", 4_000)
    first.close()
    fill(tmpfs)
    store = SqliteStore(tmpfs, ballast_bytes=1 << 19)
    assert names(store) == [b"one"]
    assert erase(store, "one") is not None
    store.settle(A)
    store.close()
