"""Processes that are killed: at a named failpoint by themselves, or by their parent at any moment.

Starting an interpreter takes far longer than the work worth killing. So one process, the nursery,
imports everything once and forks a child for every job; the child builds its engine, works, and
dies by SIGKILL or ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from scrubjay.ports import Failpoint, Reach

Job = dict[str, Any]
Tick = Callable[[], object]
Work = Callable[[Job, Tick], None]
FAILED = 70


def die_at(failpoint: Failpoint, arrival: int) -> Reach:
    """A reach that kills its own process at the n-th arrival at one failpoint."""
    left = arrival

    def reach(reached: Failpoint) -> None:
        nonlocal left
        left -= reached is failpoint
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def serve(work: Work) -> None:
    """Be a nursery: for each job on stdin fork a child that does it, and say how it ended.

    A job with `ticks` and `seconds` is killed that many seconds after it ticked so often.
    """
    for line in sys.stdin:
        job: Job = json.loads(line)
        ticks, tick = os.pipe()
        child = os.fork()
        if child == 0:
            _work(work, job, tick)
        os.close(tick)
        if "ticks" in job:
            _kill(child, ticks, job["ticks"], job["seconds"])
        status = os.waitpid(child, 0)[1]
        os.close(ticks)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _work(work: Work, job: Job, tick: int) -> None:
    try:
        work(job, lambda: os.write(tick, b"."))
    except BaseException:  # seam: the child must never return into its parent's loop
        traceback.print_exc()
        os._exit(FAILED)
    os._exit(0)


def _kill(child: int, ticks: int, number: int, seconds: float) -> None:
    """Kill the child once its time is up, unless it ends before."""
    while number > 0 and (seen := os.read(ticks, number)):
        number -= len(seen)
    ended = os.pidfd_open(child)
    if not select.select([ended], [], [], seconds)[0]:
        os.kill(child, signal.SIGKILL)
    os.close(ended)


class Nursery:
    """The handle on a nursery: a module that serves, and how each of its children ended."""

    def __init__(self, module: str, folder: Path) -> None:
        self._process = subprocess.Popen(  # a module of the tests
            [sys.executable, "-m", module],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def run(self, job: Job) -> int:
        """Have a child do the job; its exit code, or minus the signal that killed it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())
