"""Many writers at once, beside the least that group commit takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from bench.bare import BareTable, Cell, GroupCommit
from bench.measure import Comparison, Cost, alternate, timed_together
from bench.report import Line, Section
from bench.subject import Subject, scratch, texts
from tests.support.vfs import CountingVfs

MOST: Final = 1.3
_THREADS: Final = 32
_EACH: Final = 20
_DELAY_MS: Final = 2.0


class Contest:
    """The same threads on both sides, in turns."""

    def __init__(self, subject: Subject, table: BareTable, threads: int, each: int) -> None:
        self._subject = subject
        self._insert = GroupCommit(table).insert
        self._threads = threads
        self._each = each
        self._source = texts(200)
        self._waiting: list[Cell] = []

    def ours(self) -> Cost:
        """A batch of retains."""
        retain, each = self._subject.jay.retain, self._each
        batch = list(islice(self._source, self._threads * each))
        cost = timed_together(
            self._threads, each, lambda thread, turn: retain(batch[thread * each + turn])
        )
        self._waiting += self._subject.new_cells()
        return cost

    def floor(self) -> Cost:
        """A batch of bare inserts of what was retained before."""
        insert, each, size = self._insert, self._each, self._threads * self._each
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        return timed_together(
            self._threads, each, lambda thread, turn: insert(batch[thread * each + turn])
        )


@contextmanager
def contest(
    vfs: str | None = None, *, threads: int = _THREADS, each: int = _EACH
) -> Iterator[Contest]:
    """A contest in a folder of its own, warmed up."""
    with (
        scratch() as folder,
        Subject(folder / "home", vfs=vfs) as subject,
        BareTable(folder / "bare.sqlite", vfs) as table,
    ):
        both = Contest(subject, table, threads, each)
        # The floor inserts what was retained before, and is to have enough to begin a round.
        both.ours()
        both.ours()
        both.floor()
        yield both


def run(*, quick: bool) -> Section:
    """Time 32 writers on this disk and on one whose sync takes 2 ms longer."""
    section = Section(
        f"{_THREADS} writers at once, beside bare group commit",
        reason="where syncs serve as many retains as the floor's (the lines below say so), what "
        "is left is CPU, and Python runs one thread at a time.",
    )
    section.notes.append(
        f"{_THREADS} threads, {_EACH} durable retains each in a batch, beside the same threads "
        "queueing bare inserts of the same cells for a leader that commits all that waits. Slow "
        f"syncs take {_DELAY_MS:g} ms longer than this disk's, as where no cache absorbs them: by "
        "a VFS in Python, which both sides pay for. It also counts retains per sync, checkpoints "
        "included, in batches of their own."
    )
    rounds = 4 if quick else 16
    with contest() as both:
        _report(section, "this disk", alternate(rounds, both.ours, both.floor))
    with CountingVfs("bench-writers") as vfs, contest(vfs.name) as both:
        section.lines.append(_shared("this disk", vfs, both))
    with CountingVfs("bench-slow", sync_delay_ms=_DELAY_MS) as vfs, contest(vfs.name) as both:
        _report(section, "slow syncs", alternate(rounds, both.ours, both.floor))
        section.lines.append(_shared("slow syncs", vfs, both))
    return section


def _report(section: Section, name: str, found: Comparison) -> None:
    section.compare(f"clock per retain, {name}", found.wall, most=MOST)
    section.compare(f"CPU per retain, {name}", found.cpu)


def _shared(name: str, vfs: CountingVfs, both: Contest) -> Line:
    """How many writes one sync served, on either side."""
    ours, floor = _per_sync(vfs, both.ours), _per_sync(vfs, both.floor)
    return Line(
        what=f"retains per sync, {name}",
        figure=f"{ours:.1f}",
        floor=f"{floor:.1f}",
        ratio=f"{ours / floor:.2f}x",
    )


def _per_sync(vfs: CountingVfs, batch: Callable[[], Cost]) -> float:
    before = vfs.counts()
    count = sum(batch().count for _ in range(2))
    return count / (vfs.counts() - before).syncs
