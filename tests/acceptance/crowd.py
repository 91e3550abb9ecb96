"""Many processes that write to one scope at once, on a disk whose syncs take their time.

python -m tests.acceptance.crowd HOME PROCESSES RETAINS SYNC_MS
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

from scrubjay import bootstrap, settings
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.requests import Retain
from scrubjay.model.scope import Scope
from tests.support.vfs import CountingVfs

SCOPE = Scope("acme", "crowd")
FORK = multiprocessing.get_context("fork")


def write(name: int, home: str, retains: int, sync_ms: float, ready: Barrier) -> list[float | str]:
    """Retain so many memories; how long each took in seconds, or why it failed."""
    with CountingVfs("slow", sync_delay_ms=sync_ms) as slow:
        engine = bootstrap.build(settings.at_home(Path(home)), vfs=slow.name)
        engine.open(SCOPE)
        ready.wait()
        took: list[float | str] = []
        for number in range(retains):
            request = Retain(content=f"memory {number} of {name}", key=f"{name}/{number}")
            begun = time.perf_counter()
            try:
                engine.retain(SCOPE, request)
                took.append(time.perf_counter() - begun)
            except ScrubjayError as error:
                took.append(f"{error.code}: {error.message}")
        engine.close()
    return took


def main() -> None:
    """Let all of them write, and print what each of their writes took."""
    home, processes, retains, sync_ms = sys.argv[1:]
    with FORK.Manager() as manager, FORK.Pool(int(processes)) as pool:
        ready = manager.Barrier(int(processes))
        jobs = [(n, home, int(retains), float(sync_ms), ready) for n in range(int(processes))]
        took = pool.starmap(write, jobs, chunksize=1)
    sys.stdout.write(json.dumps([one for each in took for one in each]))


if __name__ == "__main__":
    main()
