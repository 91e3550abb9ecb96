"""What a batch costs beside single retains, and what a cap costs beside a scope without one."""

from __future__ import annotations

from itertools import islice
from time import perf_counter
from typing import Final

from bench.measure import Cost, Figure, Spread, alternate, timed
from bench.report import Line, Section, duration
from bench.subject import Subject, scratch, texts
from scrubjay.model.memory import Kind
from scrubjay.model.retention import KindLimit

_LENGTH: Final = 90
_KEPT: Final = 500
_BATCH: Final = 50
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
        first, warm = _recalls(other)
        waited = _recalls(one)[0]
    _gain(section, "retain, one of a batch, index included", batch, single)
    section.lines.append(
        Line(
            what="first recall after the batch",
            figure=duration(Spread.of([first]), "ms"),
            floor=duration(Spread.of([warm]), "ms"),
            ratio=f"{first / warm:.2f}x",
            target=f"≤ {MOST_FIRST:g}x a warm one",
            reached=first <= MOST_FIRST * warm,
        )
    )
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


def _recalls(subject: Subject) -> tuple[float, float]:
    """Seconds of the first recall, and the median of those after it."""
    times = []
    for place in range(21):
        started = perf_counter()
        subject.jay.recall(_QUESTIONS[place % len(_QUESTIONS)])
        times.append(perf_counter() - started)
    return times[0], Spread.of(times[1:]).median


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
