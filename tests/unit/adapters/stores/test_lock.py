"""The lock all writers of a file share: those who wait get it in time, or are told so."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scrubjay.adapters.blobs.files import FileBlobs
from scrubjay.adapters.disk import Disk, Step
from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.database import FileLock, held
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.model.errors import Busy, StoreError
from scrubjay.model.rows import Collection, Row

A = "address"
PATIENCE = 30.0
WRITER = """
import sys
from pathlib import Path
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.model.rows import Collection, Row
store = SqliteStore(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    row = Row(id=f"{sys.argv[2]}.{number}".encode(), version=1, epoch=1, cell=b"cell")
    store.write("address", lambda tx: tx.put(Collection.MEMORY, row))
store.close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = SqliteStore(tmp_path)
    store.create(A)
    store.close()
    return tmp_path


def lock_path(folder: Path) -> str:
    (path,) = (folder / "scopes").glob("*.lock")
    return str(path)


@contextmanager
def taken(folder: Path) -> Iterator[None]:
    """The lock of the scope, held by somebody else."""
    fd = os.open(lock_path(folder), os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


def write(store: SqliteStore, name: bytes = b"row") -> Row:
    row = Row(id=name, version=1, epoch=1, cell=b"cell")
    return store.write(A, lambda tx: tx.put(Collection.MEMORY, row))


def test_a_lock_held_too_long_is_busy_and_nothing_is_written(folder: Path) -> None:
    store = SqliteStore(folder, lock_timeout=0.02)
    runs = []
    with taken(folder), pytest.raises(Busy):
        store.write(A, lambda _: runs.append(1))
    assert runs == []
    assert write(store).seq == 1
    store.close()


def test_reading_needs_no_lock(folder: Path) -> None:
    store = SqliteStore(folder, lock_timeout=0.02)
    with taken(folder), store.read(A) as view:
        assert view.head().memory.seq == 0
    store.close()


def test_all_who_waited_too_long_are_told(folder: Path) -> None:
    store = SqliteStore(folder, lock_timeout=0.02)
    outcomes: list[type[BaseException]] = []

    def attempt() -> None:
        with pytest.raises(Busy) as caught:
            write(store)
        outcomes.append(caught.type)

    with taken(folder):
        threads = [threading.Thread(target=attempt) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert outcomes == [Busy] * 6
    store.close()


def test_who_waits_gets_the_lock_when_it_is_free(folder: Path) -> None:
    store = SqliteStore(folder, lock_timeout=PATIENCE)
    stored: list[Row] = []
    thread = threading.Thread(target=lambda: stored.append(write(store)))
    with taken(folder):
        thread.start()
        while not any(found.name == "scrubjay-lock" for found in threading.enumerate()):
            pass
    thread.join(PATIENCE)
    assert [row.seq for row in stored] == [1]
    store.close()


def test_who_stopped_waiting_does_not_keep_the_lock(folder: Path) -> None:
    with taken(folder):
        for _ in range(3):
            with pytest.raises(Busy):
                FileLock(lock_path(folder)).acquire(0.01)
    for thread in threading.enumerate():
        if thread.name == "scrubjay-lock":
            thread.join(PATIENCE)
    lock = FileLock(lock_path(folder))
    lock.acquire(0.0)
    lock.close()


def test_a_lock_whose_file_was_removed_is_taken_on_the_new_one(folder: Path) -> None:
    path = lock_path(folder)
    entered = threading.Event()

    def wait() -> None:
        with held(path, PATIENCE):
            entered.set()

    thread = threading.Thread(target=wait)
    with held(path, PATIENCE):
        thread.start()
        while not any(found.name == "scrubjay-lock" for found in threading.enumerate()):
            pass
        Path(path).unlink()
    thread.join(PATIENCE)
    assert entered.is_set()
    assert Path(path).exists()


def test_writers_of_several_processes_all_get_their_turn(folder: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(number), "40"])
        for number in range(4)
    ]
    assert [process.wait(120) for process in processes] == [0] * 4
    store = SqliteStore(folder)
    with store.read(A) as view:
        rows = view.changes(Collection.MEMORY, 0, 1_000)
        assert sorted(row.seq for row in rows) == list(range(1, 161))
    assert store.check(A) == []
    store.close()


def test_a_file_system_without_locks_is_said_to_be_one(tmp_path: Path) -> None:
    """Some network shares answer ENOLCK to whoever locks a file."""
    refused = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    assert "no locks" in faults.fault(refused).message
    assert "local disk" in faults.fault(refused).hint

    def refuse(step: Step, _: Path) -> None:
        if step is Step.CLAIM:
            raise refused

    with pytest.raises(StoreError, match="no locks") as raised:
        FileBlobs(tmp_path, disk=Disk(refuse)).put("address", "blob", b"")
    assert "local disk" in raised.value.hint
