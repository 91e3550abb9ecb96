"""Commands that show what is stored: stats, as a picture in characters or SVG, and inspect."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, timedelta
from html import escape
from pathlib import Path

from msgspec import Struct

from scrubjay import bootstrap, files
from scrubjay.cli import render
from scrubjay.cli.home import scoped
from scrubjay.cli.parser import Option, command
from scrubjay.cli.render import Output, piece
from scrubjay.handle import Jay
from scrubjay.model.errors import Frozen
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.requests import BROWSE_LIMIT

WEEKS = 12
TOP = 10
_ASKED = 5
_WORDS = 8


class Latency(Struct, frozen=True, kw_only=True):
    """Time of a recall in milliseconds: the first in a process, and the median of those after."""

    first: float
    later: float


class Statistics(Struct, frozen=True, kw_only=True):
    """Counts of a scope."""

    scope: str
    live: int
    superseded: int
    pinned: int
    kinds: dict[str, int]
    origins: dict[str, int]
    tags: dict[str, int]
    weeks: dict[str, int]
    """How many were recorded in each week, by its Monday, oldest first."""
    latency: Latency | None = None
    """None if recall is frozen, or there is nothing to ask for."""

    @property
    def title(self) -> str:
        """The scope and its totals."""
        counts = f"{self.live:,} memories, {self.pinned:,} pinned, {self.superseded:,} superseded"
        return f"{self.scope}: {counts}"

    @property
    def parts(self) -> list[tuple[str, dict[str, int]]]:
        """The lists that have something in them, by title."""
        named = (("kinds", self.kinds), ("origins", self.origins), ("top tags", self.tags))
        return [(title, counts) for title, counts in named if counts]

    @property
    def speed(self) -> str:
        """How fast recall is; nothing if it was not measured."""
        if self.latency is None:
            return ""
        first, later = self.latency.first, self.latency.later
        return f"recall: {later:.1f} ms, the first in a process {first:.0f} ms"


def statistics(jay: Jay, now: datetime, monotonic: Callable[[], float]) -> Statistics:
    """Count every memory once, then measure a few recalls."""
    memories: list[Memory] = []
    cursor: int | None = None
    while True:
        page = jay.browse(superseded=True, limit=BROWSE_LIMIT, cursor=cursor)
        memories += page
        if (cursor := page.next) is None:
            break
    live = [memory for memory in memories if memory.current]
    kinds = Counter(memory.kind for memory in live)
    grown = Counter(_monday(memory.recorded_at) for memory in memories)
    mondays = [_monday(now) - timedelta(weeks=back) for back in reversed(range(WEEKS))]
    return Statistics(
        scope=str(jay.scope),
        live=len(live),
        superseded=len(memories) - len(live),
        pinned=sum(memory.pinned for memory in live),
        kinds={kind.value: kinds[kind] for kind in Kind if kinds[kind]},
        origins=_most(memory.origin.value for memory in live),
        tags=_most(tag for memory in live for tag in memory.tags),
        weeks={monday.isoformat(): grown[monday] for monday in mondays},
        latency=_latency(jay, live, monotonic),
    )


def _most(names: Iterable[str]) -> dict[str, int]:
    """The most frequent, and among equals in the order of the alphabet."""
    return dict(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0]))[:TOP])


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


# -- in characters -------------------------------------------------------------------------------

_WIDTH = 32
_NAME = 18
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def lines(shown: Statistics) -> Iterator[str]:
    """The picture in characters."""
    yield shown.title
    for title, counts in shown.parts:
        yield from ("", title)
        most = max(counts.values())
        for name, number in counts.items():
            whole, part = divmod(round(number / most * _WIDTH * 8), 8)
            bar = "█" * whole + _EIGHTHS[part].strip()
            yield f"  {piece(name, _NAME):<{_NAME}} {bar:<{_WIDTH}} {number:,}"
    most = max(shown.weeks.values()) or 1
    top = len(_LEVELS) - 1
    marks = (_LEVELS[-(-one * top // most)] if one else "·" for one in shown.weeks.values())
    yield from ("", f"growth by week, since {next(iter(shown.weeks))}")
    yield f"  {''.join(marks)}  at most {most:,}"
    if shown.speed:
        yield from ("", shown.speed)


# -- as SVG --------------------------------------------------------------------------------------

_ROW, _LEFT, _SPAN = 22, 150, 330
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.b{fill:#3a7bd5}.d{fill:#777}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.d{fill:#999}}"
)


def draw(shown: Statistics) -> str:
    """The same picture as an SVG that needs nothing else, in light and dark."""
    drawn = [_text(10, 24, shown.title)]
    at = 24 + _ROW
    for title, counts in shown.parts:
        drawn.append(_text(10, at + 8, title, "d"))
        most = max(counts.values())
        for place, (name, number) in enumerate(counts.items(), start=1):
            y, wide = at + 8 + place * _ROW, max(1, round(number / most * _SPAN))
            drawn.append(_text(20, y, piece(name, _NAME)))
            drawn.append(_box(_LEFT, y - 11, wide, 13) + "/>")
            drawn.append(_text(_LEFT + wide + 6, y, f"{number:,}", "d"))
        at += (len(counts) + 1) * _ROW + 8
    most = max(shown.weeks.values()) or 1
    since = f"growth by week, since {next(iter(shown.weeks))}, at most {most:,}"
    drawn.append(_text(10, at + 8, since, "d"))
    for place, (monday, number) in enumerate(shown.weeks.items()):
        high = round(number / most * 60)
        box = _box(20 + place * 30, at + 80 - high, 22, high)
        drawn.append(f"{box}><title>{monday}: {number:,}</title></rect>")
    at += 110
    if shown.speed:
        drawn.append(_text(10, at, shown.speed, "d"))
        at += _ROW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="560" height="{at}" role="img">'
    title = f"<title>{escape(shown.title)}</title>"
    return "\n".join((head, title, f"<style>{_STYLE}</style>", *drawn, "</svg>", ""))


def _box(x: int, y: int, wide: int, high: int) -> str:
    return f'<rect class="b" x="{x}" y="{y}" width="{wide}" height="{high}" rx="2"'


def _text(x: int, y: int, text: str, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{mark}>{escape(text)}</text>'


# -- the commands --------------------------------------------------------------------------------


@scoped("stats", Option("--svg", "File to draw an SVG into instead.", Path))
def stats(jay: Jay, *, svg: Path | None = None) -> Output:
    """Show statistics: kinds, growth, tags, origins, and the latency of recall.

    Example: scrubjay stats --svg memory.svg
    """
    clock = bootstrap.clock()
    shown = statistics(jay, clock.now(), clock.monotonic)
    picture = "".join(f"{line}\n" for line in lines(shown))
    if svg is not None:
        files.write(svg, draw(shown).encode())
        picture = ""
    return Output(shown, lambda: sys.stdout.write(picture))


@command("inspect", Option("FILE", "File of the data folder, or a bundle.", Path, required=True))
def inspect(file: Path) -> None:
    """Inspect FILE as a thief would: print everything that can be read without a key.

    Example: scrubjay inspect ~/.local/share/scrubjay/catalog.sqlite
    """
    shown = bootstrap.inspect(file)
    render.line(shown.title)
    render.table(("fact", "value"), shown.facts)
    if shown.rows:
        render.table(shown.columns, shown.rows)
    if shown.rows and shown.omitted:
        render.line(f"and {shown.omitted:,} more rows like these")
    render.line(f"readable text: {', '.join(shown.words) or 'none'}")
