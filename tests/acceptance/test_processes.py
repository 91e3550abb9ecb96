"""Many processes on one scope: nobody is refused, nothing is lost, and nobody waits long."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scrubjay import bootstrap, settings
from scrubjay.model.requests import Browse
from tests.acceptance.crowd import SCOPE

ROOT = Path(__file__).parents[2]
RETAINS = 500
SYNC_MS = 2


@pytest.mark.parametrize("processes", [8, 16])
def test_processes_that_write_at_once_all_succeed(
    processes: int, ram: Path, record_property: Callable[..., None]
) -> None:
    engine = bootstrap.build(settings.at_home(ram))
    engine.open(SCOPE)
    begun = time.perf_counter()
    waits = sorted(crowd(ram, processes))
    seconds = time.perf_counter() - begun

    shown = engine.browse(SCOPE, Browse(limit=10_000))
    sound = engine.verify(SCOPE).problems
    engine.close()

    wanted = {f"{name}/{number}" for name in range(processes) for number in range(RETAINS)}
    assert sorted(memory.key or "" for memory in shown) == sorted(wanted)
    assert sound == ()
    record_property("retains", len(waits))
    record_property("worst wait", f"{waits[-1]:.3f} s")
    record_property("p99", f"{waits[len(waits) * 99 // 100]:.3f} s")
    record_property("per second", round(len(waits) / seconds))
    assert waits[len(waits) * 99 // 100] < 1


def crowd(home: Path, processes: int) -> list[float]:
    """How long each retain took; fails if one was refused."""
    command = [sys.executable, "-m", "tests.acceptance.crowd", str(home)]
    sizes = [str(number) for number in (processes, RETAINS, SYNC_MS)]
    done = subprocess.run(command + sizes, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    waits: list[float | str] = json.loads(done.stdout)
    assert [refused for refused in waits if isinstance(refused, str)] == []
    return [wait for wait in waits if not isinstance(wait, str)]
