"""The rights of one person with many records: export, rotation and destroy, on the clock."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Final

from bench.report import Line, Section
from bench.subject import Subject, scratch
from scrubjay.cli.render import progress
from scrubjay.ports import Progress
from scrubjay.surfaces.personal.library import PersonalMemory

_AIMS: Final = {"export": 60.0, "rotate": 30.0, "destroy": 5.0}


def run(*, quick: bool) -> Section:
    """Export, rotate and destroy the memory of one person."""
    size = 2_000 if quick else 50_000
    section = Section(f"The rights of a person with {size:,} memories")
    section.notes.append(
        "*export* is the JSON of everything, sealed to an age recipient, until it is durable. "
        "*destroy* is both calls. Each once: a destroy cannot be repeated."
    )
    with scratch() as folder, Subject(folder / "home") as subject:
        subject.fill(size)
        engine = subject.jay._engine
        with PersonalMemory(str(subject.jay.scope), engine=engine) as me:
            with progress("Exporting") as told:
                took = {"export": _timed(lambda: _export(me, folder / "export.age", told))}
            with progress("Rotating") as told:
                took["rotate"] = _timed(lambda: engine.rotate(subject.scope, progress=told))
            with progress("Destroying") as me.personal.progress:
                took["destroy"] = _timed(lambda: _destroy(me))
    for name, seconds in took.items():
        aim = _AIMS[name]
        section.lines.append(
            Line(
                what=name,
                figure=f"{seconds:.2f} s",
                target=f"< {aim:g} s",
                reached=None if quick else seconds < aim,
            )
        )
    return section


def _export(me: PersonalMemory, to: Path, told: Progress) -> None:
    import pyrage

    reader = str(pyrage.x25519.Identity.generate().to_public())
    me.export(to, recipient=reader, progress=told)


def _destroy(me: PersonalMemory) -> None:
    me.destroy(confirmation_token=me.destroy().confirmation_token)


def _timed(work: object) -> float:
    assert callable(work)
    begun = perf_counter()
    work()
    return perf_counter() - begun
