"""The power fails at any operation of the disk: what was acknowledged is there, once, for good."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from scrubjay import bootstrap, settings
from scrubjay.adapters.blobs.files import FileBlobs
from scrubjay.adapters.disk import Disk, Step
from scrubjay.adapters.embedders.static import NoEmbedder
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.engine import Kernel, Policy, Ports
from scrubjay.engine.scope import rotate
from scrubjay.model.errors import ScrubjayError
from scrubjay.testing.clock import START, FakeClock
from tests.acceptance.mix import RUN, Ledger, Mix
from tests.acceptance.model import judge
from tests.support.disk import PowerCut
from tests.support.keyrings import file_keyring
from tests.support.power import PowerLost, PowerVfs, hears_all

CHUNKS = 10
POLICY = Policy(drop_days=0)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a rotation of a small scope takes several transactions."""
    monkeypatch.setattr(rotate, "_BATCH", 4)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_power_cut_loses_doubles_or_brings_back_anything(
    chunk: int, ram: Path, seed: int, more: bool, record_property: Callable[..., None]
) -> None:
    acknowledged = 0
    seeds = range(500 if more else 30)
    for number in seeds:
        case = Case(ram / str(number), f"{seed}/{chunk}/{number}")
        problems = case.run()
        assert problems == [], f"seed {case.seed}"
        acknowledged += case.ledger.acknowledged
        shutil.rmtree(case.folder)
    record_property("seeds", len(seeds))
    record_property("acknowledged", acknowledged)


def test_a_log_whose_syncs_are_swallowed_loses_acknowledged_writes(ram: Path, seed: int) -> None:
    """The shim can show a missing sync, here the one of every commit."""
    deaf = [
        symptoms(ram / str(n), f"{seed}/{n}", lambda name: "-wal" not in name) for n in range(9)
    ]
    assert any("was acknowledged and is lost" in symptom for found in deaf for symptom in found)


def test_a_database_whose_syncs_are_swallowed_is_found_out(ram: Path, seed: int) -> None:
    """The shim can show a missing sync, here the one before a log is emptied."""
    deaf = [symptoms(ram / str(n), f"{seed}/{n}", lambda name: "-wal" in name) for n in range(9)]
    assert any(deaf)


def symptoms(folder: Path, seed: str, hears: Callable[[str], bool]) -> list[str]:
    """What is wrong after a cut on a disk that does not hear every sync."""
    try:
        return Case(folder, seed, hears=hears).run()
    except ScrubjayError as error:
        return [error.message]


class Case:
    """One seed: a home, a mix of verbs on it, a cut, and the home as it is after that."""

    def __init__(
        self, folder: Path, seed: str, *, hears: Callable[[str], bool] = hears_all
    ) -> None:
        self.folder = folder
        self.seed = seed
        self.ledger = Ledger()
        self._random = random.Random(seed)
        self._hears = hears
        self._time = START
        (folder / "outside").mkdir(parents=True)

    def run(self) -> list[str]:
        """Lose power once, or again while the next process recovers; what is wrong then."""
        home = self._lose_power(self.folder / "first", self._random.randint(5, 25))
        if self._random.random() < 0.3:
            home = self._lose_power(home, 0)
        return self._judge(home)

    def _lose_power(self, home: Path, steps: int) -> Path:
        """Work until the power fails; the home the next process finds."""
        self._time += timedelta(days=1)
        clock = FakeClock(f"{self.seed}/{home.name}", start=self._time)
        machine = Machine(home, clock, f"{self.seed}/{home.name}", self._hears)
        try:
            self._work(machine, steps)
        except (PowerLost, ScrubjayError):
            if not machine.power.is_lost:
                raise
        machine.store.abandon()
        return machine.reboot(home.with_name(f"{home.name}-again"))

    def _work(self, machine: Machine, steps: int) -> None:
        mix = Mix(
            machine.engine,
            self.ledger,
            seed=f"{self.seed}/{machine.home.name}",
            number=0 if steps else RUN,
            folder=self.folder / "outside",
            threads=False,
        )
        if not steps:
            machine.power.cut_after(self._random.randint(1, 40))
        mix.begin()
        for _ in range(steps):
            mix.step()
            self._checkpoint(machine)
        machine.power.cut_after(self._random.randint(1, 60))
        while True:
            mix.step()
            self._checkpoint(machine)

    def _checkpoint(self, machine: Machine) -> None:
        """Now and then do what SQLite does by itself once its log is long."""
        if self._random.random() < 0.05:
            for file in (machine.home / "data" / "scopes").glob("*.sqlite"):
                connection = apsw.Connection(str(file), vfs=machine.power.name)
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                connection.close()

    def _judge(self, home: Path) -> list[str]:
        clock = FakeClock(f"{self.seed}/after", start=self._time + timedelta(days=1))
        engine = bootstrap.build(settings.at_home(home), clock=clock, policy=POLICY)
        try:
            found = [
                problem
                for name, model in self.ledger.models.items()
                for problem in judge(engine, name, model)
            ]
        finally:
            engine.close()
        return [*found, *(damage for file in home.rglob("*.sqlite") for damage in damages(file))]


def damages(file: Path) -> Iterator[str]:
    """What SQLite itself finds wrong with a file."""
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        findings = [finding for (finding,) in connection.execute("PRAGMA integrity_check")]
    except apsw.CorruptError as error:
        findings = [str(error)]
    connection.close()
    yield from (f"{file.name}: {finding}" for finding in findings if finding != "ok")


class Machine:
    """An engine whose every write goes through something that can lose power."""

    def __init__(
        self, home: Path, clock: FakeClock, seed: str, hears: Callable[[str], bool]
    ) -> None:
        self.home = home
        self.power = PowerVfs(seed, hears=hears)
        self._chance = random.Random(f"{seed}/files")
        self._is_new = not home.exists()
        self._trees = {name: PowerCut(home / name) for name in ("keys", "data/blobs")}
        disk = Disk(self._watch)
        self.store = SqliteStore(home / "data", vfs=self.power.name, ballast_bytes=0)
        self.engine = Kernel(
            Ports(
                store=self.store,
                blobs=FileBlobs(home / "data" / "blobs", disk=disk),
                keyring=file_keyring(home / "keys", clock, disk=disk),
                clock=clock,
                embedder=NoEmbedder(),
                policy=POLICY,
            )
        )

    def _watch(self, step: Step, path: Path) -> None:
        self.power.step(step, path)
        for tree in self._trees.values():
            tree(step, path)

    def reboot(self, target: Path) -> Path:
        """The home after the cut: of keys and blobs what was synced, or all that was written."""
        self.power.leave(self.home, target)
        self.power.close()
        # What was there before this machine is not known to have been synced by it.
        synced_only = self._is_new and self._chance.random() < 0.7
        for name, tree in self._trees.items():
            left = tree.restore(target / "synced" / name)
            if synced_only:
                shutil.rmtree(target / name, ignore_errors=True)
                shutil.copytree(left, target / name)
        return target
