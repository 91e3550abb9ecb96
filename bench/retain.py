"""What a lone durable retain costs, beside a bare insert of the same sealed bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from bench.bare import BareTable, Cell
from bench.measure import Comparison, Cost, alternate, timed
from bench.report import Line, Section
from bench.subject import Subject, scratch, texts
from tests.support.vfs import CountingVfs

Request = tuple[str, str | None, str | None]
_BATCH: Final = 50
_BLOCK: Final = 10
MOST_CPU: Final = 3.0
MOST_BYTES: Final = 2.0


@dataclass(frozen=True, slots=True)
class Shape:
    """A way to retain: how long the text is, and with or without key and session."""

    length: int
    named: bool = False
    headline: bool = False

    def __str__(self) -> str:
        name = f"{self.length} characters{', with key and session' if self.named else ''}"
        return f"**{name}**" if self.headline else name


SHAPES: Final = (Shape(200, headline=True), Shape(200, named=True), Shape(60), Shape(600))


def cpu(*, quick: bool) -> Section:
    """Process CPU and time on the clock of lone retains."""
    section = Section(
        "A lone durable retain, beside a bare insert",
        reason="around its insert a retain checks, encodes, seals and chains in Python, and its "
        "transaction has four more statements; the clock shows what of that a caller notices.",
    )
    section.notes.append(
        "User and system time of the process, on this disk, `synchronous=FULL` on both sides. "
        "The floor inserts the same ids and cells into `t(id BLOB PRIMARY KEY, body BLOB)`, WAL, "
        f"autocommit. Batches of {_BATCH} take turns; a ratio is that of {_BLOCK} batches of each "
        "side, which hold their share of checkpoints; medians and quartiles of those."
    )
    for shape in SHAPES[:2] if quick else SHAPES:
        blocks = 2 if quick else 8 if shape.headline else 4
        with scratch() as folder:
            found = _compare(folder, shape, rounds=blocks * _BLOCK)
        section.compare(f"CPU, {shape}", found.cpu, most=MOST_CPU)
        section.compare(f"clock, {shape}", found.wall)
    return section


def _compare(folder: Path, shape: Shape, *, rounds: int) -> Comparison:
    with Subject(folder / "home") as subject, BareTable(folder / "bare.sqlite") as table:
        requests = _requests(shape)
        waiting: list[Cell] = []

        def ours() -> Cost:
            batch = list(islice(requests, _BATCH))
            cost = timed(lambda: _retain_each(subject, batch), _BATCH)
            waiting.extend(subject.new_cells())
            return cost

        def floor() -> Cost:
            cells, waiting[:] = waiting[:_BATCH], waiting[_BATCH:]
            return timed(lambda: table.insert_each(cells), len(cells))

        for _ in range(3):
            ours()
        floor()
        return alternate(rounds, ours, floor, block=_BLOCK)


def _requests(shape: Shape) -> Iterator[Request]:
    """Texts, and if they are to have names a key for each and a session for every twenty."""
    for number, text in enumerate(texts(shape.length)):
        if shape.named:
            yield text, f"message-{number}", f"session-{number // 20}"
        else:
            yield text, None, None


def _retain_each(subject: Subject, requests: Iterable[Request]) -> None:
    retain = subject.jay.retain
    for text, key, session in requests:
        retain(text, key=key, session=session)


def written(*, quick: bool) -> Section:
    """Bytes written and bytes at rest."""
    count = 1000 if quick else 1500
    section = Section(
        "Bytes of a retain, written and at rest",
        reason="SQLite writes whole pages, and a key and a session are entries in an index each: "
        "see the pages per retain.",
    )
    section.notes.append(
        f"{count:,} lone retains and as many bare inserts of the same cells. *Written* is what "
        "SQLite hands to the disk, log and database, the last checkpoint included, counted by a "
        "VFS. *At rest* is how much the file has grown after that checkpoint. The reserve of 4 MiB "
        "that every installation holds is apart."
    )
    for shape in SHAPES[:2] if quick else SHAPES:
        with scratch() as folder, CountingVfs("bench-written") as vfs:
            _weigh(section, folder, vfs, shape, count)
    return section


def _weigh(section: Section, folder: Path, vfs: CountingVfs, shape: Shape, count: int) -> None:
    with Subject(folder / "home", vfs=vfs.name) as subject:
        empty, begun = subject.path.stat().st_size, vfs.counts()
        _retain_each(subject, islice(_requests(shape), count))
        cells = subject.new_cells()
    ours, grown = vfs.counts() - begun, subject.path.stat().st_size - empty
    with BareTable(folder / "bare.sqlite", vfs.name) as table:
        table.settle()
        empty, begun = table.path.stat().st_size, vfs.counts()
        table.insert_each(cells)
    floor, floor_grown = vfs.counts() - begun, table.path.stat().st_size - empty
    section.count(
        f"written per retain, {shape}",
        ours.bytes / count,
        floor.bytes / count,
        unit=" B",
        most=MOST_BYTES,
    )
    section.lines.append(
        Line(
            what="... pages of the log per retain",
            figure=f"{ours.frames / count:.2f}",
            floor=f"{floor.frames / count:.2f}",
            ratio=f"{ours.frames / floor.frames:.2f}x",
        )
    )
    section.count(
        f"at rest per retain, {shape}",
        grown / count,
        floor_grown / count,
        unit=" B",
        most=MOST_BYTES,
    )
