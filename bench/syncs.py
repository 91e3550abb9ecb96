"""How many syncs a lone retain asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from bench.bare import BareTable
from bench.report import Line, Section
from bench.subject import Subject, scratch, texts
from tests.support.vfs import CountingVfs

Item = TypeVar("Item")
_WARM_UP = 50


@dataclass(slots=True)
class Tally:
    """The syncs of lone writes: one each for its commit, all others."""

    writes: int = 0
    commits: int = 0
    """Writes that had a sync: nothing is acknowledged without one."""
    plain: int = 0
    """Writes with exactly one sync."""
    checkpoints: int = 0
    """Further syncs of writes that also wrote something else than frames of the log."""
    unexplained: int = 0
    """Further syncs of writes that did not."""


def run(*, quick: bool) -> Section:
    """Count the syncs of lone retains, and of bare inserts of the same cells."""
    count = 500 if quick else 2000
    with scratch() as folder, CountingVfs("bench-syncs") as vfs:
        with Subject(folder / "home", vfs=vfs.name) as subject:
            ours = _count(vfs, subject.jay.retain, islice(texts(200), count + _WARM_UP))
            cells = subject.new_cells()
        with BareTable(folder / "bare.sqlite", vfs.name) as table:
            floor = _count(vfs, lambda cell: table.insert_each([cell]), cells)
    section = Section("Syncs of a lone retain")
    section.notes.append(
        f"{count:,} retains of one thread, each acknowledged before the next, after {_WARM_UP} to "
        "warm up, on a VFS that counts syncs and writes. Syncs beyond the first are a "
        "checkpoint's where the retain also wrote to the database or began the log anew."
    )
    per_retain = (ours.commits + ours.unexplained) / count
    section.lines += [
        Line(
            what="syncs per retain, checkpoints apart",
            figure=f"{per_retain:.3f}",
            floor=f"{(floor.commits + floor.unexplained) / count:.3f}",
            ratio=f"{per_retain * count / (floor.commits + floor.unexplained):.2f}x",
            target="1",
            reached=per_retain == 1,
        ),
        _line("retains with one sync and no more", ours.plain, floor.plain),
        _line(f"syncs of checkpoints in all {count:,}", ours.checkpoints, floor.checkpoints),
    ]
    return section


def _line(what: str, ours: int, floor: int) -> Line:
    return Line(what=what, figure=f"{ours:,}", floor=f"{floor:,}", ratio=f"{ours / floor:.2f}x")


def _count(vfs: CountingVfs, write: Callable[[Item], object], items: Iterable[Item]) -> Tally:
    source, tally = iter(items), Tally()
    for item in islice(source, _WARM_UP):
        write(item)
    before = vfs.counts()
    for item in source:
        write(item)
        after = vfs.counts()
        took, before = after - before, after
        further = max(0, took.syncs - 1)
        # A frame is written in two pieces, its header and its page.
        only_frames = took.writes == 2 * took.frames
        tally.writes += 1
        tally.commits += took.syncs > 0
        tally.plain += took.syncs == 1
        tally.checkpoints += 0 if only_frames else further
        tally.unexplained += further if only_frames else 0
    return tally
