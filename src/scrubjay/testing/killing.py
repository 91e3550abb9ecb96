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


def serve(work: Callable[[Job], None]) -> None:
    """Be a nursery: for each job on stdin fork a child that does it, and say how it ended.

    A job's `kill_after`, in seconds, is when the child is killed unless it has ended by then.
    """
    for line in sys.stdin:
        job: Job = json.loads(line)
        child = os.fork()
        if child == 0:
            _work(work, job)
        status = _outlive(child, job.get("kill_after"))
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _work(work: Callable[[Job], None], job: Job) -> None:
    try:
        work(job)
    except BaseException:  # seam: the child must never return into its parent's loop
        traceback.print_exc()
        os._exit(FAILED)
    os._exit(0)


def _outlive(child: int, kill_after: float | None) -> int:
    """Wait for the child, which is killed when its time is up; how it ended."""
    if kill_after is not None:
        ended = os.pidfd_open(child)
        if not select.select([ended], [], [], kill_after)[0]:
            os.kill(child, signal.SIGKILL)
        os.close(ended)
    return os.waitpid(child, 0)[1]


class Nursery:
    """The handle on a nursery: one script that serves, and how each of its children ended."""

    def __init__(self, script: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # a script of the tests
            [sys.executable, str(script)],
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
