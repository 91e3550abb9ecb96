"""Statistics as a picture: bars of characters in a terminal, or an SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from scrubjay import bootstrap, files
from scrubjay.cli import options, render
from scrubjay.cli.opening import opened
from scrubjay.cli.render import piece
from scrubjay.handle import Jay
from scrubjay.model.errors import Frozen
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.requests import BROWSE_LIMIT
from scrubjay.model.results import Exhibit

WEEKS = 12
TOP = 10
_ASKED = 5
_WORDS = 8

Count = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long a recall takes, in milliseconds: the first in a process, and those after it."""

    first: float
    later: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A scope in numbers."""

    scope: str
    live: int
    superseded: int
    pinned: int
    kinds: tuple[Count, ...]
    origins: tuple[Count, ...]
    tags: tuple[Count, ...]
    weeks: tuple[tuple[date, int], ...]
    """How many were recorded in each week, by its Monday, oldest first."""
    latency: Latency | None = None
    """None if recall is frozen, or there is nothing to ask for."""


def statistics(jay: Jay, now: datetime, monotonic: Callable[[], float]) -> Statistics:
    """Count everything once, then ask a few questions and take the time."""
    memories = list(_all(jay))
    live = [memory for memory in memories if memory.live]
    kinds = Counter(memory.kind for memory in live)
    return Statistics(
        scope=str(jay.scope),
        live=len(live),
        superseded=len(memories) - len(live),
        pinned=sum(memory.pinned for memory in live),
        kinds=tuple((kind.value, kinds[kind]) for kind in Kind if kinds[kind]),
        origins=_most(memory.origin.value for memory in live),
        tags=_most(tag for memory in live for tag in memory.tags),
        weeks=_weeks(memories, now),
        latency=_latency(jay, live, monotonic),
    )


def _all(jay: Jay) -> Iterator[Memory]:
    cursor: int | None = None
    while True:
        page = jay.browse(superseded=True, limit=BROWSE_LIMIT, cursor=cursor)
        yield from page
        if (cursor := page.next) is None:
            return


def _most(names: Iterable[str]) -> tuple[Count, ...]:
    """The most frequent, and among equals in the order of the alphabet."""
    counts = Counter(names).items()
    return tuple(sorted(counts, key=lambda pair: (-pair[1], pair[0]))[:TOP])


def _weeks(memories: Iterable[Memory], now: datetime) -> tuple[tuple[date, int], ...]:
    counts = Counter(_monday(memory.recorded_at) for memory in memories)
    this = _monday(now)
    mondays = [this - timedelta(weeks=back) for back in reversed(range(WEEKS))]
    return tuple((monday, counts[monday]) for monday in mondays)


def _monday(time: datetime) -> date:
    day = time.astimezone().date()
    return day - timedelta(days=day.weekday())


def _latency(jay: Jay, live: list[Memory], monotonic: Callable[[], float]) -> Latency | None:
    """Ask for what the newest memories say: a first time, and then some more."""
    asked = [" ".join(memory.content.split()[:_WORDS]) for memory in live[:_ASKED]]
    times = []
    try:
        for query in asked and [asked[0], *asked]:
            began = monotonic()
            jay.recall(query)
            times.append((monotonic() - began) * 1000)
    except Frozen:
        return None
    return Latency(first=times[0], later=sorted(times[1:])[len(asked) // 2]) if times else None


def exhibit(console: Console, shown: Exhibit) -> None:
    """What a thief sees: facts, the first rows, and every readable word."""
    console.print(f"[bold]{shown.title}[/]", highlight=False)
    facts = Table(show_header=False, box=None, pad_edge=False)
    for name, value in shown.facts:
        facts.add_row(f"[dim]{name}[/]", value)
    console.print(facts)
    if shown.rows:
        _rows(console, shown)
    if shown.words:
        console.print("readable text:", ", ".join(shown.words), markup=False)
    else:
        console.print("readable text: [bold green]none[/]")


def _rows(console: Console, shown: Exhibit) -> None:
    table = Table(*shown.columns, box=None, pad_edge=False, header_style="dim")
    for row in shown.rows:
        table.add_row(*row)
    console.print(table)
    if shown.omitted:
        console.print(f"[dim]and {shown.omitted:,} more rows like these[/]")


_WIDTH = 32
_NAME = 18
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_ROW, _LEFT, _SPAN = 22, 150, 330


def lines(shown: Statistics) -> Iterator[str]:
    """The picture in characters."""
    yield f"{shown.scope}: {_total(shown)}"
    for title, counts in _parts(shown):
        yield from ("", title, *_bars(counts))
    yield from ("", _growth(shown.weeks))
    if shown.latency:
        yield from ("", _speed(shown.latency))


def _total(shown: Statistics) -> str:
    return f"{shown.live:,} memories, {shown.pinned:,} pinned, {shown.superseded:,} superseded"


def _parts(shown: Statistics) -> Iterator[tuple[str, tuple[Count, ...]]]:
    """The lists that have something in them."""
    named = (("kinds", shown.kinds), ("origins", shown.origins), ("top tags", shown.tags))
    yield from ((title, counts) for title, counts in named if counts)


def _bars(counts: Sequence[Count]) -> Iterator[str]:
    most = max(number for _, number in counts)
    for name, number in counts:
        yield f"  {piece(name, _NAME):<{_NAME}} {_bar(number / most):<{_WIDTH}} {number:,}"


def _bar(share: float) -> str:
    whole, part = divmod(round(share * _WIDTH * 8), 8)
    return "█" * whole + _EIGHTHS[part].strip()


def _growth(weeks: Sequence[tuple[date, int]]) -> str:
    most = max(number for _, number in weeks) or 1
    top = len(_LEVELS) - 1
    marks = (_LEVELS[-(-number * top // most)] if number else "·" for _, number in weeks)
    return f"growth by week, since {weeks[0][0]}\n  {''.join(marks)}  at most {most:,}"


def _speed(latency: Latency) -> str:
    return f"recall: {latency.later:.1f} ms, the first in a process {latency.first:.0f} ms"


# -- SVG ---------------------------------------------------------------------------------------


def draw(shown: Statistics) -> str:
    """The same picture as an SVG that needs nothing else, in light and dark."""
    drawn, height = _drawn(shown)
    style = (
        "text{font:13px system-ui,sans-serif;fill:#222}.b{fill:#3a7bd5}.d{fill:#777}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}.d{fill:#999}}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="560" height="{height}" role="img">'
    title = f"<title>{escape(shown.scope)}: {_total(shown)}</title>"
    return "\n".join((head, title, f"<style>{style}</style>", *drawn, "</svg>", ""))


def _drawn(shown: Statistics) -> tuple[list[str], int]:
    drawn = [_words(10, 24, f"{shown.scope}: {_total(shown)}")]
    at = 24 + _ROW
    for title, counts in _parts(shown):
        drawn.append(_words(10, at + 8, title, "d"))
        most = max(number for _, number in counts)
        for place, (name, number) in enumerate(counts, start=1):
            drawn += _row(at + 8 + place * _ROW, name, number, number / most)
        at += (len(counts) + 1) * _ROW + 8
    drawn += _columns(at + 8, shown.weeks)
    at += 110
    if shown.latency:
        drawn.append(_words(10, at, _speed(shown.latency), "d"))
        at += _ROW
    return drawn, at


def _row(at: int, name: str, number: int, share: float) -> list[str]:
    wide = max(1, round(share * _SPAN))
    return [
        _words(20, at, piece(name, _NAME)),
        f'<rect class="b" x="{_LEFT}" y="{at - 11}" width="{wide}" height="13" rx="2"/>',
        _words(_LEFT + wide + 6, at, f"{number:,}", "d"),
    ]


def _columns(at: int, weeks: Sequence[tuple[date, int]]) -> list[str]:
    most = max(number for _, number in weeks) or 1
    drawn = [_words(10, at, f"growth by week, since {weeks[0][0]}, at most {most:,}", "d")]
    for place, (monday, number) in enumerate(weeks):
        high = round(number / most * 60)
        box = f'x="{20 + place * 30}" y="{at + 72 - high}" width="22" height="{high}" rx="2"'
        drawn.append(f'<rect class="b" {box}><title>{monday}: {number:,}</title></rect>')
    return drawn


def _words(x: int, y: int, text: str, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{mark}>{escape(text)}</text>'


def inspect(
    file: Annotated[Path, typer.Argument(help="A file of the data folder, or a bundle.")],
) -> None:
    """Show what a thief sees of FILE: everything that can be read without a key.

    Example: scrubjay inspect ~/.local/share/scrubjay/catalog.sqlite
    """
    from rich.console import Console

    exhibit(Console(), bootstrap.inspect(file))


def stats(
    *,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw it into this file instead.")
    ] = None,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Draw what is remembered: kinds, growth, tags, origins, and how fast recall is.

    Example: scrubjay stats --svg memory.svg
    """
    clock = bootstrap.clock()
    with opened(scope) as jay:
        shown = statistics(jay, clock.now(), clock.monotonic)
    if svg is not None:
        files.write(svg, draw(shown).encode())
    told = asdict(shown)
    for name in ("kinds", "origins", "tags"):
        told[name] = dict(told[name])
    told["weeks"] = {monday.isoformat(): number for monday, number in shown.weeks}
    quiet = svg is not None and not as_json
    if not quiet:
        render.emit(told, lambda: render.block("\n".join((*lines(shown), ""))), as_json=as_json)
