"""What a batch costs beside single retains, and what a cap costs beside a scope without one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Final

from bench.measure import Comparison, Cost, Figure, Spread, alternate, timed
from bench.report import Line, Section, duration
from bench.subject import Subject, scratch, texts
from scrubjay.model.memory import Kind
from scrubjay.model.retention import KindLimit

_LENGTH: Final = 90
_KEPT: Final = 500
_BATCH: Final = 50
_NEXT: Final = 2_000
LEAST_GAIN: Final = 5.0
LEAST_RATE: Final = 10_000.0
MOST_FIRST: Final = 2.0
MOST_RETAIN: Final = 1.3
MOST_RECALL: Final = 1.2
_QUESTIONS: Final = ("green tea in the morning", "the office near the river", "short answers")


def many(*, quick: bool) -> Section:
    """`retain_many` of 20,000 memories beside single retains, and the first recall after it."""
    count = 2_000 if quick else 20_000
    section = Section(
        "Many memories at once",
        reason="the index follows a large batch while it is written, which takes about as long as "
        "the writes themselves; the last line compares with single retains and their index.",
    )
    section.notes.append(
        f"{count:,} memories of {_LENGTH} characters, one process, on this disk. Single retains "
        "leave the index to the next recall, a batch does not: its time has the index in it."
    )
    with scratch() as folder, Subject(folder / "a") as one, Subject(folder / "b") as other:
        said = texts(_LENGTH)
        for subject in (one, other):  # numpy, the embedder and the patterns of questions are loaded
            subject.jay.retain("Alice prefers green tea")
            _recalls(subject)
        started = perf_counter()
        singles = list(islice(said, count // 4))
        for text in singles:
            one.jay.retain(text)
        single = (perf_counter() - started) / len(singles)
        started = perf_counter()
        other.jay.retain_many(islice(said, count))
        batch = (perf_counter() - started) / count
        waited = _recalls(one)[0].wall
        _recalls(other)
        found = _first_recalls(other, said, rounds=3 if quick else 9)
    _gain(section, "retain, one of a batch, index included", batch, single)
    what = f"first recall after a batch of {_NEXT:,}, beside a warm one"
    section.compare(what, found.wall, unit="ms", most=MOST_FIRST)
    section.compare(f"{what}, CPU", found.cpu, unit="ms")
    section.lines.append(
        Line(
            what="memories a second",
            figure=f"{1 / batch:,.0f}/s",
            floor=f"{1 / single:,.0f}/s one by one",
            target=f"≥ {LEAST_RATE:,.0f}/s",
            reached=1 / batch >= LEAST_RATE,
        )
    )
    with_index = single + waited / len(singles)
    section.lines.append(
        Line(
            what="the same, beside single retains and the recall that indexes them",
            figure=duration(Spread.of([batch]), "µs"),
            floor=duration(Spread.of([with_index]), "µs"),
            ratio=f"{with_index / batch:.2f}x as fast",
        )
    )
    return section


def _gain(section: Section, what: str, ours: float, single: float) -> None:
    section.lines.append(
        Line(
            what=what,
            figure=duration(Spread.of([ours]), "µs"),
            floor=duration(Spread.of([single]), "µs"),
            ratio=f"{single / ours:.2f}x as fast",
            target=f"≥ {LEAST_GAIN:g}x",
            reached=single >= LEAST_GAIN * ours,
        )
    )


def _first_recalls(subject: Subject, said: Iterator[str], *, rounds: int) -> Comparison:
    """The first recall after each of several batches, beside those that follow it."""
    firsts, later = list[Cost](), list[Cost]()
    for _ in range(rounds):
        subject.jay.retain_many(islice(said, _NEXT))
        first, *warm = _recalls(subject)
        firsts.append(first)
        wall, cpu = median(one.wall for one in warm), median(one.cpu for one in warm)
        later.append(Cost(wall=wall, cpu=cpu, count=1))
    return Comparison(ours=firsts, floor=later)


def _recalls(subject: Subject) -> list[Cost]:
    """What each of some recalls takes."""
    asked = (_QUESTIONS[place % len(_QUESTIONS)] for place in range(21))
    return [timed(lambda query=query: subject.jay.recall(query)) for query in asked]  # type: ignore[misc]


def caps(*, quick: bool) -> Section:
    """Retains beyond a cap of 500 in a scope of 50,000, and the recalls between them."""
    size, rounds = (5_000, 8) if quick else (50_000, 40)
    section = Section("A cap on one kind")
    section.notes.append(
        f"{rounds * _BATCH:,} retains in batches of {_BATCH}, in turns with the same in a scope "
        f"without a cap; both hold {size:,} memories, of which the cap keeps {_KEPT}. A recall "
        "after each batch takes it in, and is asked three times more."
    )
    asked: tuple[list[float], list[float]] = ([], [])
    with scratch() as folder, Subject(folder / "a") as one, Subject(folder / "b") as other:
        said = texts(_LENGTH)
        for subject in (one, other):
            subject.fill(size, _LENGTH)
            subject.jay.recall(_QUESTIONS[0])
        one.jay.set_retention(limits=[KindLimit(kind=Kind.FACT, number=_KEPT)])
        for subject in (one, other):
            _batch(subject, list(islice(said, _BATCH)))
            _ask(subject, [])

        def turn(subject: Subject, times: list[float]) -> Cost:
            batch = list(islice(said, _BATCH))
            cost = timed(lambda: _batch(subject, batch), _BATCH)
            _ask(subject, times)
            return cost

        found = alternate(rounds, lambda: turn(one, asked[0]), lambda: turn(other, asked[1]))
    section.compare("retain with a cap", found.wall, most=MOST_RETAIN)
    section.compare("retain with a cap, CPU", found.cpu)
    ours, floor = Spread.of(asked[0]), Spread.of(asked[1])
    ratio = Spread.of([ours.median / floor.median])
    figure = Figure(ours=ours, floor=floor, ratio=ratio)
    section.compare("recall between them", figure, unit="ms", most=MOST_RECALL)
    return section


def _batch(subject: Subject, batch: list[str]) -> None:
    for text in batch:
        subject.jay.retain(text)


def _ask(subject: Subject, times: list[float]) -> None:
    for question in (*_QUESTIONS, _QUESTIONS[0]):
        started = perf_counter()
        subject.jay.recall(question)
        times.append(perf_counter() - started)
