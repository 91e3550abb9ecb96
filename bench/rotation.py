"""What it takes to seal a scope under new keys, alone and as a part of forget."""

from __future__ import annotations

from typing import Final

from bench.bare import SealedTable
from bench.measure import Comparison, Cost, alternate, timed
from bench.report import Line, Section
from bench.subject import Subject, scratch

_BATCH: Final = 128
"""As many rows as the engine seals anew in one transaction."""


def run(*, quick: bool) -> Section:
    """Rotate 5k and 50k memories, and forget one of 5k."""
    sizes = ((1000, 3),) if quick else ((5000, 7), (50_000, 2))
    section = Section("Rotation and forget")
    section.notes.append(
        "The floor reads rows of the same size, opens and seals them with AES-256-GCM under a new "
        f"key and updates them in bare SQLite, {_BATCH} in a transaction, and empties the log, as "
        "rotate does. *forget* erases one memory: the whole call, with the rotation in it, until "
        "the receipt is kept; its floor is that of the rotation."
    )
    for size, rounds in sizes:
        with scratch() as folder, Subject(folder / "home") as subject:
            ids = subject.fill(size)
            with SealedTable(folder / "bare.sqlite", subject.new_cells()) as table:
                _report(section, f"rotate {size:,}", size, _rotate(subject, table, size, rounds))
                if size > 5000:
                    continue
                _report(section, f"forget at {size:,}", size, _forget(subject, table, ids, rounds))
    return section


def _rotate(subject: Subject, table: SealedTable, size: int, rounds: int) -> Comparison:
    def ours() -> Cost:
        return timed(lambda: _expect(subject.jay.rotate().resealed, size))

    def floor() -> Cost:
        return timed(lambda: _expect(table.rotate(_BATCH), size))

    return alternate(rounds, ours, floor)


def _forget(subject: Subject, table: SealedTable, ids: list[str], rounds: int) -> Comparison:
    def ours() -> Cost:
        return timed(lambda: _expect(subject.jay.forget([ids.pop()]).rotated, True))

    return alternate(rounds, ours, lambda: timed(lambda: table.rotate(_BATCH)))


def _expect(found: object, wanted: object) -> None:
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def _report(section: Section, name: str, size: int, found: Comparison) -> None:
    section.compare(f"{name}: clock", found.wall, unit="ms")
    section.compare(f"{name}: CPU", found.cpu, unit="ms")
    section.lines.append(
        Line(
            what=f"{name}: rows per second",
            figure=f"{size / found.wall.ours.median:,.0f}",
            floor=f"{size / found.wall.floor.median:,.0f}",
            ratio=f"{found.wall.floor.median / found.wall.ours.median:.2f}x",
        )
    )
