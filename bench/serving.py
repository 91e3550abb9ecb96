"""The service under load: recalls and durable retains a second, beside the cheapest answer it has.

Server and client share the cores, as on a developer's machine.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

from bench.measure import Spread
from bench.report import Line, Section, duration
from bench.service import CONNECTIONS, SCOPE, SIZE, TURNS, Asking, Service, Taken, serving
from bench.subject import scratch
from scrubjay import bootstrap, settings
from scrubjay.model.requests import Recall

RECALLS: Final = 800.0
RECALL_P99: Final = 0.060
IN_TIME: Final = 0.300
"""How long the proxy of a pod waits for a recall."""
PLANE_RATE: Final = 100.0
"""Turns a second that a pod reports."""
PLANE_QUICK: Final = 20.0
BESIDE: Final = 10.0
"""Recalls a second beside them."""
WAVES: Final = 6
DRAINED: Final = 5.0
MIX_SHARE: Final = 0.7
"""The share of the highest rate at which the mix is asked."""
AGENTS: Final = 64
EVERY: Final = 5.0
_STRETCHES: Final = 10
_PATIENT: Final = ("--recall-ms", "30000")
"""No recall is given up, so that the highest rate can be seen."""
_REASON: Final = (
    "two thirds of the processor time of a recall are the recall itself, a third is HTTP: "
    "`bench/profiles.md` has both. The client takes its part of the same cores."
)


def run(*, quick: bool) -> Section:
    """Each kind of request in turns with `/healthz`, so that other load falls on both."""
    section = Section("Service", reason=_REASON)
    section.notes.append(
        f"`scrubjay serve` on {SIZE:,} memories in one scope, with a key, logs on; "
        f"{CONNECTIONS} connections of wrk on the same cores. The plane's scope "
        f"has as many memories and {TURNS:,} turns. Retains go to other scopes."
    )
    rounds, seconds = (2, 1.0) if quick else (6, 3.0)
    names = ("healthz", "recalls", "retains", "plane_recalls", "plane_retains")
    with scratch() as folder, serving(folder, *_PATIENT) as service:
        _lines(section, "", _pressed(service, names, rounds, seconds))
    with scratch() as folder, serving(folder, *_PATIENT, "--workers", "2") as service:
        pressed = _pressed(service, ("healthz", "recalls"), rounds, seconds)
        _lines(section, ", two workers", pressed)
    return section


def _pressed(
    service: Service, names: tuple[str, ...], rounds: int, seconds: float
) -> dict[str, list[Taken]]:
    asked: dict[str, Asking] = {name: getattr(service, name)() for name in names}
    for name in names:
        service.ask(1.0, asked[name])  # the first one makes the index
    taken: dict[str, list[Taken]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            taken[name].append(service.press(seconds, asked[name]))
    return taken


def _lines(section: Section, of: str, taken: dict[str, list[Taken]]) -> None:
    floors = [one.rate for one in taken["healthz"]]
    for name, found in taken.items():
        wanted = name == "recalls"
        what = name.replace("_", " ").removesuffix("s")
        line = _line(f"{what}{of}", found, None if name == "healthz" else floors, wanted=wanted)
        section.lines.append(line)
    errors = sum(one.errors for found in taken.values() for one in found)
    section.lines.append(_errors(f"errors{of}", errors))


def _errors(what: str, errors: int) -> Line:
    return Line(what=what, figure=f"{errors:,}", target="0", reached=errors == 0)


def _line(
    what: str, taken: list[Taken], floors: list[float] | None, *, wanted: bool = False
) -> Line:
    rate = Spread.of([one.rate for one in taken])
    p99 = Spread.of([one.p99 for one in taken])
    cpu = median(one.cpu / max(1, one.answers) for one in taken)
    share = (
        None
        if floors is None
        else median(one.rate / floor for one, floor in zip(taken, floors, strict=True))
    )
    return Line(
        what=what,
        figure=f"{rate.median:,.0f}/s ({rate.low:,.0f} - {rate.high:,.0f}), "
        f"p99 {duration(p99, 'ms')}, {cpu * 1e3:.2f} ms of processor each",
        floor="-" if floors is None else f"{median(floors):,.0f}/s",
        ratio="-" if share is None else f"{share:.0%}",
        target=f"≥ {RECALLS:,.0f}/s, p99 ≤ {RECALL_P99 * 1e3:.0f} ms" if wanted else "-",
        reached=(rate.median >= RECALLS and p99.median <= RECALL_P99) if wanted else None,
    )


# -- a pod ---------------------------------------------------------------------------------------


def pod(*, quick: bool) -> Section:
    """Sixteen turns of a pod at once, and a hundred turns a second beside its recalls."""
    return _pod(PLANE_QUICK / 4 if quick else PLANE_QUICK)


def long_pod(*, quick: bool, seconds: float) -> Section:
    """The same for minutes."""
    return _pod(30.0 if quick else seconds)


def _pod(seconds: float) -> Section:
    section = Section("The memory plane of a pod")
    section.notes.append(
        f"As installed, with its own time limit: {WAVES} times {CONNECTIONS} recalls at one "
        f"moment, a second apart. Then {PLANE_RATE:g} turns a second for {seconds:g} s and beside "
        f"them {BESIDE:g} recalls a second; a time counts from when its request was due."
    )
    with scratch() as folder, serving(folder) as service:
        recalls = service.plane_recalls()
        service.take(lambda: service.wake(CONNECTIONS, 1, 1.0, recalls))
        waves = service.take(lambda: service.wake(CONNECTIONS, WAVES, 1.0, recalls))
        before = service.take(lambda: _paced(service, min(seconds, 20.0), BESIDE, recalls))
        retained, beside = Taken(seconds), Taken(seconds)

        async def both() -> Taken:
            turns = service.pace(seconds, PLANE_RATE, service.plane_retains(), retained)
            asked = service.pace(seconds, BESIDE, recalls, beside)
            await asyncio.gather(turns, asked)
            return beside

        service.take(both)
        after = service.take(lambda: service.wake(1, 1, 1.0, service.plane_recalls("other")))
    section.lines += [
        _in_time(f"{CONNECTIONS} recalls at once", waves, CONNECTIONS * WAVES),
        _in_time("recalls, alone", before, len(before.times) + before.errors),
        _in_time("recalls beside the turns", beside, len(beside.times) + beside.errors),
        Line(
            what=f"turns at {PLANE_RATE:g}/s",
            figure=f"{len(retained.times):,} kept, {duration(Spread.of(retained.times), 'ms')}",
            target="0 refused",
            reached=retained.errors == 0,
            floor=f"{retained.errors:,} refused",
        ),
        Line(
            what="first recall in their scope after the last of them",
            figure=duration(Spread.of(after.times or [after.seconds]), "ms"),
            target=f"≤ {DRAINED:g} s",
            reached=after.errors == 0 and max(after.times, default=DRAINED + 1) <= DRAINED,
        ),
    ]
    return section


async def _paced(service: Service, seconds: float, rate: float, request: Asking) -> Taken:
    taken = Taken(seconds)
    await service.pace(seconds, rate, request, taken)
    return taken


def _in_time(what: str, taken: Taken, asked: int) -> Line:
    timely = sum(time <= IN_TIME for time in taken.times)
    return Line(
        what=what,
        figure=f"{timely} of {asked} within {IN_TIME * 1e3:.0f} ms, "
        f"{duration(Spread.of(taken.times or [0.0]), 'ms')}, p99 {taken.p99 * 1e3:.0f} ms",
        target="all",
        reached=timely == asked,
    )


# -- for minutes ---------------------------------------------------------------------------------


def mix(*, quick: bool, seconds: float) -> Section:
    """Minutes of four recalls to one retain: errors, memory and descriptors.

    The scope grows by every retain, and so does its index, which is kept in memory: what the
    service takes beyond that is what must stay flat.
    """
    seconds = 30.0 if quick else seconds
    section = Section("Service, mixed load")
    with scratch() as folder:
        with serving(folder, *_PATIENT) as service:
            highest = service.ask(seconds / _STRETCHES, service.mixed())
            rate = MIX_SHARE * highest.rate
            seen, taken = [service.footprint()], list[Taken]()
            for _ in range(_STRETCHES):
                part = seconds / _STRETCHES
                taken.append(
                    service.take(lambda: _paced(service, part, rate, service.mixed()))  # noqa: B023
                )
                seen.append(service.footprint())
        index = _index_bytes(folder)
    section.notes.append(
        f"{seconds:g} s of 80 % recalls and 20 % retains in one scope that grew to {index[0]:,} "
        f"memories, at {rate:,.0f}/s: {MIX_SHARE:.0%} of the highest rate, which was asked for "
        f"{seconds / _STRETCHES:g} s before. Resident memory after each "
        f"{seconds / _STRETCHES:g} s: {', '.join(f'{one[0] / 1e6:.0f}' for one in seen)} MB."
    )
    line = _line("80/20 mix", taken, None)
    section.lines += [_in_p99(line, taken), *_flat(taken, seen, index)]
    return section


def agents(*, quick: bool, seconds: float) -> Section:
    """Minutes of 64 agents that all wake every five seconds and ask at once."""
    seconds = 20.0 if quick else seconds
    section = Section("Service, 64 agents at once")
    with scratch() as folder:
        with serving(folder, *_PATIENT) as service:
            asked, times = service.mixed(), max(2, round(seconds / EVERY / _STRETCHES))
            service.take(lambda: service.wake(AGENTS, 2, EVERY, asked))
            seen, taken = [service.footprint()], list[Taken]()
            while sum(one.seconds for one in taken) < seconds:
                taken.append(service.take(lambda: service.wake(AGENTS, times, EVERY, asked)))
                seen.append(service.footprint())
        index = _index_bytes(folder)
    waking = [time for one in taken for time in one.times]
    section.notes.append(
        f"{AGENTS} connections, each of which asks every {EVERY:g} s at the same moment as all "
        f"others, for {seconds:g} s: 80 % recalls and 20 % retains. Resident memory: "
        f"{', '.join(f'{one[0] / 1e6:.0f}' for one in seen)} MB."
    )
    line = Line(
        what=f"an answer to one of {AGENTS}",
        figure=f"{duration(Spread.of(waking), 'ms')}, "
        f"p99 {median(one.p99 for one in taken) * 1e3:.0f} ms",
    )
    section.lines += [_in_p99(line, taken), *_flat(taken, seen, index)]
    return section


def _in_p99(line: Line, taken: list[Taken]) -> Line:
    """The line with the target of a recall for its 99th percentile."""
    reached = median(one.p99 for one in taken) <= RECALL_P99
    return replace(line, target=f"p99 ≤ {RECALL_P99 * 1e3:.0f} ms", reached=reached)


def _flat(
    taken: list[Taken], seen: list[tuple[int, int, int]], index: tuple[int, int]
) -> list[Line]:
    """No errors, and neither memory nor descriptors that grow."""
    errors = sum(one.errors for one in taken)
    (before, _, held), (after, open_files, now) = seen[0], seen[-1]
    grown = index[1] * (1 - held / now)
    beyond = (after - before - grown) / before
    descriptors = [one[1] for one in seen]
    return [
        _errors("errors", errors),
        Line(
            what="growth of resident memory, beside the index",
            figure=f"{(after - before) / 1e6:.0f} MB",
            floor=f"{grown / 1e6:.0f} MB of index",
            ratio=f"{beyond:+.0%} of {before / 1e6:.0f} MB",
            target="≤ 10 % beyond the index",
            reached=beyond <= 0.1,
        ),
        Line(
            what="descriptors",
            figure=f"{open_files} ({min(descriptors)} to {max(descriptors)})",
            floor=f"{descriptors[0]} before",
            target="flat",
            reached=open_files <= descriptors[0] + CONNECTIONS,
        ),
    ]


def _index_bytes(folder: Path) -> tuple[int, int]:
    """How many memories the scope holds, and how many bytes its index takes in memory."""
    engine = bootstrap.build(settings.at_home(folder))
    try:
        engine.recall(SCOPE, Recall(query="anything"))
        indexed = engine._indexed(SCOPE)
        return len(indexed.ready), indexed.size
    finally:
        engine.close()
