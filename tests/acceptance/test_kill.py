"""Killed at any moment, nothing acknowledged is lost, doubled, or back from being forgotten."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scrubjay import bootstrap, settings
from scrubjay.ports import Failpoint
from tests.acceptance.desk import Desk
from tests.acceptance.kill_worker import POLICY
from tests.acceptance.mix import RUN, Ledger
from tests.acceptance.model import judge
from tests.acceptance.strongboxes import Strongboxes
from tests.acceptance.talk import Talk
from tests.support.killing import Nursery

ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    Failpoint.STORE_MIGRATING,
    Failpoint.COMPACTION_NOTED,
    Failpoint.COMPACTION_APPLIED,
}
"""Killed where there is what they need: an old file to migrate, a hundred messages to compact."""
FAILPOINTS = sorted(set(Failpoint) - ELSEWHERE)
FAVOURED = {
    "blob": "large",
    "collection": "converse",
    "hold": "strongbox",
    "inbox": "strongbox",
    "job": "consolidate",
    "segment": "recall",
    "destroy": "mayfly",
    "create": "mayfly",
    "store": "retain",
}
PARTS = 4


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("tests.acceptance.kill_worker", ROOT) as started:
        yield started


@pytest.fixture
def fields(
    nursery: Nursery, ram: Path, seed: int, request: pytest.FixtureRequest
) -> Callable[[int], Field]:
    def field(number: int) -> Field:
        return Field(nursery, ram / str(number), f"{seed}/{request.node.name}/{number}")

    return field


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_process_that_dies_at_a_failpoint_breaks_no_promise(
    failpoint: Failpoint,
    fields: Callable[[int], Field],
    more: bool,
    record_property: Callable[..., None],
) -> None:
    field = fields(0)
    field.settle()
    for _ in range(30 if more else 3):
        field.kill_at(failpoint)
    record_property("kills", field.kills)
    record_property("acknowledged", field.ledger.acknowledged)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_process_killed_at_any_moment_breaks_no_promise(
    part: int,
    fields: Callable[[int], Field],
    more: bool,
    record_property: Callable[..., None],
) -> None:
    used = [fields(number) for number in range(12 if more else 1)]
    for field in used:
        for _ in range(30 if more else 15):
            field.kill()
    record_property("kills", sum(field.kills for field in used))
    record_property("acknowledged", sum(field.ledger.acknowledged for field in used))
    slowest = max(field.slowest_check for field in used)
    record_property("slowest restart with a whole check", f"{slowest:.2f} s")


class Field:
    """One home on which processes die, and the ledger outside it."""

    def __init__(self, nursery: Nursery, folder: Path, seed: str) -> None:
        self.ledger = Ledger()
        self.kills = 0
        self.slowest_check = 0.0
        self._jobs = 0
        self._nursery = nursery
        self._folder = folder
        self._seed = seed
        self._random = random.Random(seed)
        self._read = 0
        (folder / "outside").mkdir(parents=True)

    def settle(self) -> None:
        """Let a process fill the home and end in peace."""
        self._run(0, steps=40)

    def kill_at(self, failpoint: Failpoint) -> None:
        """Let a process work until it kills itself, then check every promise."""
        verb = failpoint.split(".")[0]
        arrival = self._random.randint(1, 60 if verb == "store" else 4)
        favour = FAVOURED.get(verb, verb)
        self._run(-signal.SIGKILL, failpoint=failpoint, arrival=arrival, favour=favour)
        self.kills += 1

    def kill(self) -> None:
        """Kill a process in the middle of its work, then check every promise."""
        ticks, seconds = self._random.randint(0, 60), self._random.uniform(0, 0.01)
        self._run(-signal.SIGKILL, ticks=ticks, seconds=seconds)
        self.kills += 1

    def _run(self, end: int, **how: Any) -> None:
        job = {**self._job(), **how}
        try:
            status = self._nursery.run(job)
            assert status == end, f"the worker ended with {status}"
            self._catch_up()
            self._check()
        except BaseException as error:
            error.add_note(f"seed {self._seed}, kill {self.kills}, job {job}")
            raise

    def _job(self) -> dict[str, Any]:
        self._jobs += 1
        return {
            "home": str(self._folder / "home"),
            "ledger": str(self._folder / "outside" / "ledger"),
            "outside": str(self._folder / "outside"),
            "seed": self._random.randrange(2**32),
            "number": RUN * self._jobs,
            "steps": 1_000,
            "favour": None,
            "failpoint": None,
        }

    def _catch_up(self) -> None:
        ledger = self._folder / "outside" / "ledger"
        if not ledger.exists():
            return
        with ledger.open("rb") as file:
            file.seek(self._read)
            for line in file:
                self.ledger.read(json.loads(line))
            self._read = file.tell()

    def _check(self) -> None:
        """Look as the next process would: before due work is finished, and after."""
        for _ in range(2):
            begun = time.perf_counter()
            engine = bootstrap.build(settings.at_home(self._folder / "home"), policy=POLICY)
            try:
                problems = [
                    found
                    for name, model in self.ledger.models.items()
                    for found in judge(engine, name, model)
                ]
                problems += Talk(engine, self._folder / "outside").problems()
                problems += Desk(engine, self._folder / "outside").problems()
                problems += Strongboxes(engine, self._folder / "outside").problems()
            finally:
                engine.close()
            self.slowest_check = max(self.slowest_check, time.perf_counter() - begun)
            assert problems == []
