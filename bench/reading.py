"""What the other verbs cost in a scope of 5,000."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import islice
from typing import Final, TypeVar

from bench.bare import SealedTable
from bench.measure import Comparison, Cost, alternate, timed
from bench.report import Section
from bench.subject import Subject, scratch, texts

Item = TypeVar("Item")
_PAGE: Final = 50


def run(*, quick: bool) -> Section:
    """Time get, browse, supersede and verify beside their bare counterparts."""
    size = 1000 if quick else 5000
    section = Section(f"Other verbs at {size:,}, for information")
    section.notes.append(
        "The floors read (and, for supersede, write) rows of the same size in a bare table, open "
        "them with AES-256-GCM and parse their JSON; verify's also runs `integrity_check`. None "
        "of them keeps an audit trail or checks anything else."
    )
    rounds = 4 if quick else 20
    with scratch() as folder, Subject(folder / "home") as subject:
        ids = subject.fill(size)
        with SealedTable(folder / "bare.sqlite", subject.new_cells()) as table:
            section.compare("get", _get(subject, table, ids, rounds).wall)
            section.compare(f"browse({_PAGE})", _browse(subject, table, rounds).wall)
            section.compare("verify, per row", _verify(subject, table, size, rounds // 4 + 1).wall)
            found = _supersede(subject, table, ids, rounds)
            section.compare("supersede, CPU", found.cpu)
            section.compare("supersede, clock", found.wall)
    return section


def _get(subject: Subject, table: SealedTable, ids: list[str], rounds: int) -> Comparison:
    get, batch, chance = subject.jay.get, 100, random.Random(1)
    return alternate(
        rounds,
        lambda: timed(_each(get, chance.sample(ids, batch)), batch),
        lambda: timed(_each(table.get, chance.sample(table.ids, batch)), batch),
    )


def _each(call: Callable[[Item], object], items: list[Item]) -> Callable[[], None]:
    def run() -> None:
        for item in items:
            call(item)

    return run


def _browse(subject: Subject, table: SealedTable, rounds: int) -> Comparison:
    return alternate(
        rounds,
        lambda: timed(lambda: subject.jay.browse(limit=_PAGE)),
        lambda: timed(lambda: table.newest(_PAGE)),
    )


def _verify(subject: Subject, table: SealedTable, size: int, rounds: int) -> Comparison:
    def ours() -> None:
        assert subject.jay.verify().sound

    return alternate(rounds, lambda: timed(ours, size), lambda: timed(table.check, size))


def _supersede(subject: Subject, table: SealedTable, ids: list[str], rounds: int) -> Comparison:
    batch, source, chance = 10, texts(200), random.Random(2)
    chosen, bare = chance.sample(ids, batch), chance.sample(table.ids, batch)

    def ours(fresh: list[str]) -> None:
        for at, text in enumerate(fresh):
            chosen[at] = subject.jay.supersede(chosen[at], text).id

    def floor(fresh: list[str]) -> None:
        for at, text in enumerate(fresh):
            bare[at] = table.supersede(bare[at], json.dumps({"content": text}).encode())

    def turn(side: Callable[[list[str]], None]) -> Cost:
        fresh = list(islice(source, batch))
        return timed(lambda: side(fresh), batch)

    return alternate(rounds, lambda: turn(ours), lambda: turn(floor))
