"""A process that stands still with a lock in its hands: others wait for a bounded time, or not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scrubjay import bootstrap, settings
from scrubjay.adapters.disk import Disk, LockWait, Step
from scrubjay.engine import Kernel
from scrubjay.model.errors import Busy
from scrubjay.model.requests import Browse, Destroy, Forget, Get, Recall, Retain
from scrubjay.model.scope import Scope
from scrubjay.ports import Failpoint
from tests import processes
from tests.support.keyrings import file_keyring

ALICE = Scope("local", "alice")
SECONDS = 1.0
"""How long a wait for a lock may take here."""
SLACK = 3.0
"""What a slow machine may add to it."""
STOPPED = "stopped\n"
READS: list[Callable[[Kernel], object]] = [
    lambda engine: engine.browse(ALICE, Browse()),
    lambda engine: engine.get(ALICE, Get("mem-1")),
    lambda engine: engine.recall(ALICE, Recall("tea")),
    lambda engine: engine.brief(ALICE),
    lambda engine: engine.scopes(),
    lambda engine: engine.receipts(ALICE),
    lambda engine: engine.verify_audit(ALICE),
]


def stop() -> None:
    """Say so, and stand still until somebody ends this process."""
    sys.stdout.write(STOPPED)
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSTOP)


def hold(lock: str, home: Path) -> None:
    """Take one of the locks by way of the library, and stop."""
    if lock == "keys":

        def watch(step: Step, _: Path) -> None:
            if step is Step.OVERWRITE:
                stop()

        place = settings.at_home(home).keys
        keyring = file_keyring(place, bootstrap.clock(), Disk(watch))
        keyring.add("other", "memory.1", bytes(32))
        keyring.delete("other", "memory.1")
        return
    seen = 0

    def reach(failpoint: Failpoint) -> None:
        nonlocal seen
        if failpoint is Failpoint.STORE_BEFORE_COMMIT:
            seen += 1
            if seen == (2 if lock == "catalog" else 1):
                stop()

    engine = bootstrap.build(settings.at_home(home), reach=reach)
    if lock == "catalog":  # the second commit of a scope that is made anew is its enrolment
        engine._ports.store.catalog.enroll(engine._ports.store.catalog.entries()[0])
        engine._ports.store.catalog.enroll(engine._ports.store.catalog.entries()[0])
    engine.retain(ALICE, Retain("never acknowledged"))


@contextmanager
def holder(lock: str, home: Path) -> Iterator[int]:
    """The id of a process that stands still with the lock, for the length of a block."""
    with processes.running(
        [sys.executable, "-m", __name__, lock, str(home)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == STOPPED
            yield process.pid
        finally:
            process.kill()


def build(home: Path) -> Kernel:
    return bootstrap.build(replace(settings.at_home(home), lock_seconds=SECONDS))


def took(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


@pytest.fixture
def home(tmp_path: Path) -> Path:
    engine = build(tmp_path)
    for number in range(3):
        engine.retain(ALICE, Retain(f"tea {number}", id=f"mem-{number}"))
    engine.close()
    return tmp_path


@pytest.mark.parametrize("due", [False, True])
@pytest.mark.parametrize("lock", ["keys", "scope", "catalog"])
def test_reading_waits_for_no_writer(home: Path, lock: str, due: bool) -> None:
    """Neither in a new process nor with an open handle, nor where an erasure left work due."""
    if due:
        engine = build(home)
        with pytest.raises(RuntimeError):
            _forget_and_die(engine)
        engine._ports.store.close()
    early = build(home)
    early.open(ALICE)
    with holder(lock, home):
        late = build(home)
        for engine in (early, late):
            for read in READS:
                assert took(partial(read, engine)) < SECONDS, "a read waited for a writer"
        for engine in (early, late):
            assert took(engine.close) < 2 * SECONDS + SLACK


def _forget_and_die(engine: Kernel) -> None:
    def die(_: Failpoint) -> None:
        raise RuntimeError

    ports = replace(engine._ports, reach=die)
    Kernel(ports).forget(ALICE, Forget(ids=("mem-0",)))


@pytest.mark.parametrize(
    ("lock", "writes"),
    [
        ("scope", [lambda e: e.retain(ALICE, Retain("x"))]),
        ("scope", [lambda e: e.forget(ALICE, Forget(ids=("mem-1",)))]),
        ("scope", [lambda e: e.rotate(ALICE)]),
        ("scope", [lambda e: e.destroy(ALICE, Destroy(confirm=str(ALICE)))]),
        ("catalog", [lambda e: e.open(Scope("local", "new"))]),
        ("keys", [lambda e: e.open(Scope("local", "new")), lambda e: e.rotate(ALICE)]),
        ("keys", [lambda e: e.destroy(ALICE, Destroy(confirm=str(ALICE)))]),
    ],
)
def test_writing_waits_for_a_bounded_time_and_names_the_process(
    home: Path, lock: str, writes: list[Callable[[Kernel], object]]
) -> None:
    engine = build(home)
    engine.open(ALICE)
    with holder(lock, home) as pid:
        for write in writes:
            begun = time.monotonic()
            with pytest.raises(Busy) as raised:
                write(engine)
            assert time.monotonic() - begun < SECONDS + SLACK
            if Path("/proc/locks").exists():
                assert f"process {pid})" in raised.value.message
    for number in range(3):
        assert engine.get(ALICE, Get(f"mem-{number}")).content == f"tea {number}"
    engine.retain(ALICE, Retain("afterwards"))
    assert engine.verify(ALICE).problems == ()
    engine.close()


class Crowded:
    """A store where somebody else is quicker at each lock, and keeps it nearly for too long."""

    def __init__(self, store: Any, folder: Path) -> None:
        self._store, self._folder = store, folder
        self.waits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, address: str, *args: Any, **named: Any) -> Any:
        self._take(address)
        return self._store.write(address, *args, **named)

    def settle(self, address: str) -> None:
        self._take(address)
        self._store.settle(address)

    def _take(self, address: str) -> None:
        lock = LockWait(os.fspath(self._folder / f"{address}.sqlite.lock"))
        threading.Timer(0.8 * SECONDS, os.close, [lock.wait(0)]).start()
        self.waits += 1


@pytest.mark.parametrize(
    "write",
    [lambda e: e.rotate(ALICE), lambda e: e.forget(ALICE, Forget(ids=("mem-1",)))],
    ids=["rotate", "forget"],
)
def test_a_verb_that_takes_many_locks_waits_no_longer_in_all_than_for_one(
    home: Path, write: Callable[[Kernel], object]
) -> None:
    engine = build(home)
    engine.open(ALICE)
    store = Crowded(engine._ports.store, settings.at_home(home).data / "scopes")
    crowded = Kernel(replace(engine._ports, store=store))
    crowded.open(ALICE)
    begun = time.monotonic()
    with suppress(Busy):
        write(crowded)
    assert store.waits > 1
    assert time.monotonic() - begun < SECONDS + SLACK
    engine.finish_due(ALICE)
    assert engine.verify(ALICE).problems == ()
    engine.close()


def test_an_erasure_that_meets_a_stopped_catalog_is_done_and_says_what_is_left(home: Path) -> None:
    engine = build(home)
    engine.open(ALICE)
    with holder("catalog", home):
        begun = time.monotonic()
        with pytest.raises(Busy):
            engine.forget(ALICE, Forget(ids=("mem-1",)))
        assert time.monotonic() - begun < 3 * SECONDS + SLACK
        assert {one.id for one in engine.browse(ALICE, Browse())} == {"mem-0", "mem-2"}
    assert engine.forget(ALICE, Forget(ids=("mem-1",))).already == 1
    engine.finish_due(ALICE)
    assert engine.verify(ALICE).problems == ()
    engine.close()


if __name__ == "__main__":
    hold(sys.argv[1], Path(sys.argv[2]))
