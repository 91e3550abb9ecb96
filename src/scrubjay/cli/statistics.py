"""Commands that show what is stored: stats, as a picture in characters or SVG, and inspect."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from scrubjay import bootstrap, files
from scrubjay.cli import render
from scrubjay.cli.home import opened, scoped
from scrubjay.cli.parser import JSON, SCOPE, Option, command, fields
from scrubjay.cli.render import Output, piece
from scrubjay.handle import Jay
from scrubjay.model.errors import Frozen
from scrubjay.model.overview import Statistics
from scrubjay.model.requests import StatisticsRequest

_ASKED = 5
_WORDS = 8


def speed(jay: Jay) -> str:
    """Latency of recall, measured with questions from the newest memories; empty if frozen."""
    asked = [" ".join(memory.content.split()[:_WORDS]) for memory in jay.browse(limit=_ASKED)]
    try:
        times = [jay.recall(query).milliseconds for query in asked and [asked[0], *asked]]
    except Frozen:
        return ""
    if not times:
        return ""
    later = sorted(times[1:])[len(asked) // 2]
    return f"recall: {later:.1f} ms, the first in a process {times[0]:.0f} ms"


# -- in characters -------------------------------------------------------------------------------

_WIDTH = 32
_NAME = 18
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def lines(shown: Statistics, speed: str) -> Iterator[str]:
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
    if speed:
        yield from ("", speed)


# -- as SVG --------------------------------------------------------------------------------------

_ROW, _LEFT, _SPAN = 22, 150, 330
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.b{fill:#3a7bd5}.d{fill:#777}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.d{fill:#999}}"
)


def draw(shown: Statistics, speed: str) -> str:
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
    if speed:
        drawn.append(_text(10, at, speed, "d"))
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


@scoped(
    "stats",
    fields(StatisticsRequest, "timezone"),
    Option("--svg", "Write the charts to this file, as SVG, instead.", Path),
)
def stats(jay: Jay, *, svg: Path | None = None, **request: Any) -> Output:
    """Show statistics: kinds, growth, tags, origins, and the latency of recall.

    Example: scrubjay stats --svg memory.svg
    """
    shown = jay.statistics(**request)
    if svg is not None:
        files.write(svg, draw(shown, speed(jay)).encode())
        return Output(shown, lambda: None)
    picture = (f"{line}\n" for line in lines(shown, speed(jay)))
    return Output(shown, lambda: sys.stdout.write("".join(picture)))


@command(
    "inspect",
    Option("FILE", "File of the data folder, or a bundle; by default the scope's.", Path),
    SCOPE,
    JSON,
)
def inspect(file: Path | None = None, *, scope: str | None = None) -> Output:
    """Inspect a file as a thief would: show everything that can be read without a key.

    Example: scrubjay inspect ~/.local/share/scrubjay/catalog.sqlite
    """
    if file is not None:
        shown = bootstrap.inspect(file)
    else:
        with opened(scope) as jay:
            shown = jay.inspect()

    def show() -> None:
        render.line(shown.title)
        render.table(("fact", "value"), shown.facts)
        if shown.rows:
            render.table(shown.columns, shown.rows)
        if shown.rows and shown.omitted:
            render.line(f"and {shown.omitted:,} more rows like these")
        render.line(f"readable text: {', '.join(shown.words) or 'none'}")

    return Output(shown, show)
