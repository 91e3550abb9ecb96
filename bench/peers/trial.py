"""One subject's run, in a process of its own and by its own interpreter.

    python -m bench.peers.trial JOB.json

The job says what to run and where; the result is a JSON file beside it. All subjects take turns, a
share of their work at a time, so that what else the machine does falls on all of them: before each
share the process writes a byte to its standard output, and waits for one on its standard input.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time

from bench.peers import canary, material
from bench.peers.material import Material, Turn
from bench.peers.subjects.subject import Subject
from bench.peers.vectors import Vectors

LIMIT = 10
CANARIES = 5
SHARES = 20
"""Into how many turns the writes are cut, and into how many the questions."""
_STATM = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to run, and on what."""

    subject: str
    """`module:Class` below `bench.peers.subjects`."""
    folder: str
    material: str
    turns: int | None
    vectors: str
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was seen: times in seconds per call, memory in bytes, ranked turn ids per question."""

    version: str
    writes: list[float]
    writes_cpu: list[float]
    searches: list[float]
    searches_cpu: float
    deletes: list[float]
    ranked: dict[str, list[str]]
    ram: int
    """Resident at the end, beyond what the harness itself had before the subject was loaded."""
    canaries: list[str]
    copies_written: int
    copies_deleted: int


Pause = Callable[[], None]


def run(job: Job, pause: Pause) -> Result:
    """Load what is given, then the subject, and try it."""
    given = material.read(Path(job.material), turns=job.turns)
    vectors = Vectors.load(Path(job.vectors))
    before = _resident()
    module, _, name = job.subject.partition(":")
    kind: Callable[..., Subject] = getattr(import_module(f"bench.peers.subjects.{module}"), name)
    folder = Path(job.folder)
    return perform(kind(folder, vectors), given, folder, before=before, pause=pause)


def perform(
    subject: Subject, given: Material, folder: Path, *, before: int, pause: Pause
) -> Result:
    """Write everything, ask everything, delete the canaries; the subject is closed at the end."""
    birds = canary.hatch(given.owners[0], CANARIES)
    words = [bird.text for bird in birds]
    writes, writes_cpu, handles = _write(subject, given.turns, birds, pause)
    ranked, searches, searches_cpu = _search(subject, given, pause)
    ram = _resident() - before
    written = canary.copies(folder, words)
    deletes = _delete(subject, birds, handles)
    deleted = canary.copies(folder, words)
    version = subject.version()
    subject.close()
    return Result(
        version=version,
        writes=writes,
        writes_cpu=writes_cpu,
        searches=searches,
        searches_cpu=searches_cpu,
        deletes=deletes,
        ranked=ranked,
        ram=ram,
        canaries=words,
        copies_written=written,
        copies_deleted=deleted,
    )


def _write(
    subject: Subject, turns: Sequence[Turn], birds: Sequence[Turn], pause: Pause
) -> tuple[list[float], list[float], list[object]]:
    """The time and the CPU time of each write, and handles of canaries spread among them."""
    times: list[float] = []
    cpu: list[float] = []
    handles: list[object] = []
    perches = {len(turns) * (2 * n + 1) // (2 * len(birds)): bird for n, bird in enumerate(birds)}
    stops = _stops(len(turns))
    for number, turn in enumerate(turns):
        if number in stops:
            pause()
        if number in perches:
            handles.append(subject.write(perches[number]))
        worked, begun = process_time(), perf_counter()
        subject.write(turn)
        times.append(perf_counter() - begun)
        cpu.append(process_time() - worked)
    return times, cpu, handles


def _search(
    subject: Subject, given: Material, pause: Pause
) -> tuple[dict[str, list[str]], list[float], float]:
    """The ids found per question, the time of each search, and CPU seconds per search."""
    ranked: dict[str, list[str]] = {}
    times: list[float] = []
    cpu = 0.0
    stops = _stops(len(given.questions))
    for number, question in enumerate(given.questions):
        if number in stops:
            pause()
        worked, begun = process_time(), perf_counter()
        ranked[question.id] = subject.search(question, LIMIT)
        times.append(perf_counter() - begun)
        cpu += process_time() - worked
    return ranked, times, cpu / max(1, len(given.questions))


def _stops(count: int) -> frozenset[int]:
    """Where each share of so many begins."""
    return frozenset(count * share // SHARES for share in range(SHARES))


def _delete(subject: Subject, birds: Sequence[Turn], handles: Sequence[object]) -> list[float]:
    times: list[float] = []
    for bird, handle in zip(birds, handles, strict=True):
        begun = perf_counter()
        subject.delete(bird, handle)
        times.append(perf_counter() - begun)
    return times


def _resident() -> int:
    """Bytes of this process in memory."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> int:
    """Run the job named on the command line, when it is its turn."""
    # What a peer prints must not be taken for a sign to the one who waits for it.
    signs = os.dup(1)
    os.dup2(2, 1)

    def pause() -> None:
        os.write(signs, b".")
        if not os.read(0, 1):
            sys.exit("Nobody is waiting for this any more.")

    job = Job(**json.loads(Path(sys.argv[1]).read_text()))
    result = run(job, pause)
    Path(job.result).write_text(json.dumps(asdict(result)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
