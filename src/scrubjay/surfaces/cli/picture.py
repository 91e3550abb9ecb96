"""Statistics as a picture: bars of characters in a terminal, or an SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from html import escape

from scrubjay.surfaces.cli.render import piece
from scrubjay.surfaces.statistics import Count, Latency, Statistics

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


def svg(shown: Statistics) -> str:
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
