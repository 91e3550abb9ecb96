"""Rendering: data on stdout, messages on stderr, tables and bars on a terminal only."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scrubjay.guard.clean import clean
from scrubjay.model.memory import Json, Memory
from scrubjay.model.records import to_record
from scrubjay.model.results import Hit

PIECE = 100
"""How much of a memory a line shows."""


# -- the two streams ---------------------------------------------------------------------------


def emit(value: object, show: Callable[[], None], *, as_json: bool) -> None:
    """Put an answer on stdout: as JSON, or as `show` writes it."""
    if as_json:
        line(json.dumps(value, ensure_ascii=False, indent=2))
    else:
        show()


def line(text: str) -> None:
    """One line of data."""
    sys.stdout.write(f"{text}\n")


def block(text: str) -> None:
    """Several lines of data, which end in a line break already or are none at all."""
    sys.stdout.write(text)


def say(text: str) -> None:
    """One line of message."""
    sys.stderr.write(f"{plain(text)}\n")


def redactions(redacted: Mapping[str, int]) -> None:
    """Say which secrets were taken out of what was written."""
    for kind, number in redacted.items():
        say(f"A secret was left out: {kind}" + f" ({number} times)" * (number > 1) + ".")


def plain(text: str) -> str:
    """The text as a terminal may be shown it: no escape sequence, nothing invisible."""
    return clean(text)


def piece(text: str, most: int = PIECE) -> str:
    """The beginning of a text as one line."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def local(time: datetime | None) -> str:
    """A time as the clock on the wall has it; nothing if there is none."""
    return "" if time is None else time.astimezone().strftime("%Y-%m-%d %H:%M")


def day(time: datetime) -> str:
    """The day of a time, where the reader is."""
    return time.astimezone().date().isoformat()


def plural(number: int, thing: str) -> str:
    """So many of a thing."""
    many = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{number:,} {thing if number == 1 else many}"


# -- tables ------------------------------------------------------------------------------------


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on a terminal; elsewhere one line per row, with tabs, and no heading."""
    if not sys.stdout.isatty():
        for row in rows:
            line("\t".join(cell.replace("\t", " ") for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns[:-1]:
        drawn.add_column(column, no_wrap=True)
    drawn.add_column(columns[-1], overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))
    Console().print(drawn)


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, one to a line."""
    held = list(pairs)
    width = max((len(name) for name, _ in held), default=0)
    for name, value in held:
        line(f"{name:<{width}}  {value}")


# -- memories ----------------------------------------------------------------------------------


def as_object(memory: Memory) -> dict[str, Json]:
    """A memory as JSON; the same fields as an export, and those people ask for always."""
    usual: dict[str, Json] = {"tags": [], "importance": 0.5, "pinned": False}
    return {**usual, **to_record(memory), "number": memory.number, "version": memory.version}


def hit_object(hit: Hit) -> dict[str, Json]:
    """A hit as JSON: the memory, its score, what that is made of, and where it was found."""
    found: dict[str, Json] = {"score": hit.score, "why": dict(hit.why), "scope": str(hit.scope)}
    return {**as_object(hit.memory), **found}


def memories(found: Iterable[Memory]) -> None:
    """A list of memories."""
    table(("id", "when", "kind", "memory"), map(_row, found))


def _row(memory: Memory) -> tuple[str, ...]:
    marks = ("★ " if memory.pinned else "", "" if memory.live else "(superseded) ")
    tags = "".join(f" #{piece(tag)}" for tag in memory.tags)
    text = "".join(marks) + piece(memory.content) + tags
    return memory.id, day(memory.said_at), memory.kind.value, text


def memory(one: Memory) -> None:
    """One memory with all that is known of it."""
    line(plain(one.content))
    line("")
    record = {**as_object(one), **_flat(to_record(one).get("provenance"))}
    hidden = {"content", "provenance", "number"}
    facts((name, _value(value)) for name, value in record.items() if name not in hidden)


def _flat(value: Json | None) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _value(value: Json) -> str:
    if isinstance(value, list):
        return piece(", ".join(map(str, value)))
    return piece(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def hits(found: Sequence[Hit]) -> None:
    """The answer to a question, best first."""
    table(("score", "id", "when", "memory"), map(_hit_row, found))


def _hit_row(hit: Hit) -> tuple[str, ...]:
    one = hit.memory
    return f"{hit.score:.3f}", one.id, day(one.said_at), f"[{one.kind}] {piece(one.content)}"


def arithmetic(found: Sequence[Hit]) -> None:
    """For every hit the parts of its score, and their sum."""
    for number, hit in enumerate(found, start=1):
        line(f"{number}. {piece(hit.memory.content)}  ({hit.memory.id})")
        for name, part in _parts(hit.why):
            line(f"   {part:+8.4f}  {name}")
        line(f"   {'─' * 8}")
        line(f"   {hit.score:8.4f}  score")


def _parts(why: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    yield from sorted(why.items(), key=lambda part: -abs(part[1]))


# -- progress ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Bar:
    """A progress bar, or nothing at all where nobody would see it."""

    drawn: Any = None
    task: Any = None

    def __call__(self, done: int, total: int) -> None:
        """So much is done, of so much."""
        if self.drawn is not None:
            self.drawn.update(self.task, completed=done, total=total)


@contextmanager
def progress(name: str) -> Iterator[Bar]:
    """A bar on a terminal's stderr while something long is done."""
    if not sys.stderr.isatty():
        yield Bar()
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as drawn:
        yield Bar(drawn, drawn.add_task(name, total=None))
