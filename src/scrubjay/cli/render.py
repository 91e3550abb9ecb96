"""Rendering: data on stdout, messages on stderr, tables and bars on a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from msgspec import Struct

from scrubjay.model.memory import Memory, made_id
from scrubjay.model.pages import Page
from scrubjay.model.results import Hit
from scrubjay.ports import Progress, no_progress

PIECE = 100
"""Characters of a memory in a line."""
_SEEN = 0.00005
"""A part of a score below this is none in four digits."""
_ROOM = 36
"""Columns that a text needs beside others; with less it stands above them."""
_NO_SECRETS = "scrubjay keeps no passwords or codes."
_UUID_REST = 28
"""Characters of a UUID after the first eight."""


# -- the two streams ---------------------------------------------------------------------------


class Output(Struct, frozen=True):
    """Output of a command: the result for `--json`, and how it is shown to people."""

    result: Any
    show: Callable[[], object]
    notes: Sequence[str] = ()
    """Messages for people, after it was shown."""
    code: int = 0

    def emit(self, *, as_json: bool) -> int:
        """Print it: as the JSON that the service answers with, or for people; the exit code.

        A result that is no object is the `data` of one, as in an answer of the service.
        """
        try:
            self._print(as_json=as_json)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read it has enough; what was found stays so
            drop_output()
        return self.code

    def _print(self, *, as_json: bool) -> None:
        if not as_json:
            self.show()
            for note in self.notes:
                say(note)
            if isinstance(self.result, Page) and self.result.next_cursor is not None:
                say(f"There are more: --cursor {self.result.next_cursor}")
            return
        from msgspec import json

        from scrubjay import codec

        line(json.format(json.encode(codec.answer(self.result)), indent=2).decode())


def drop_output() -> None:
    """Send what is left to print nowhere: nobody reads it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def line(text: str) -> None:
    """Print one line of data."""
    sys.stdout.write(f"{text}\n")


def say(text: str) -> None:
    """Print one line of message."""
    sys.stderr.write(f"{plain(text)}\n")


def redactions(redacted: Mapping[str, int], stored: str | None = None) -> list[str]:
    """Note on removed secrets: what was stored without them, if it is given."""
    if not redacted:
        return []
    told = ", ".join(
        kind.replace("-", " ").replace("one time", "one-time") + f" {number} times" * (number > 1)
        for kind, number in redacted.items()
    )
    without = "a secret" if sum(redacted.values()) == 1 else "secrets"
    content = "" if stored is None else f": {piece(stored)}"
    ending = "" if content.endswith((".", "!", "?", "…")) else "."
    return [f"Stored without {without} ({told}){content}{ending} {_NO_SECRETS}"]


def plain(text: str) -> str:
    """The text for a terminal: without escape sequences and invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    from scrubjay.model.clean import clean

    return clean(text)


def piece(text: str | None, most: int = PIECE) -> str:
    """The beginning of a text as one line; nothing if there is none."""
    flat = " ".join(plain(text or "").split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def local(time: datetime | None) -> str:
    """A time as local time; empty if there is none."""
    return "" if time is None else time.astimezone().strftime("%Y-%m-%d %H:%M")


def plural(number: int, thing: str) -> str:
    """A number with its noun, in the plural unless it is one."""
    many = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{number:,} {thing if number == 1 else many}"


# -- tables ------------------------------------------------------------------------------------


def on_terminal() -> bool:
    """Whether a person reads the data, rather than a program."""
    return sys.stdout.isatty()


def short(id: str) -> str:
    """An id as people see it: of the UUID at its end, the first eight characters."""
    return id[:-_UUID_REST] if on_terminal() and made_id(id) else id


def table(columns: Sequence[str], rows: Iterable[Sequence[str | None]], lead: int = -1) -> None:
    """A table on a terminal; elsewhere one line per row, with tabs, and no heading.

    The last column has what room is left. If that is too little for a text, each row is a record:
    the cell of the `lead` column, and below it the others.
    """
    cells = [[" ".join((cell or "").split()) for cell in row] for row in rows]
    if not on_terminal():
        for row in cells:
            line("\t".join(row))
        return
    if not cells:
        say("Nothing was found.")
        return
    from rich.cells import cell_len
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = Console()
    *others, last = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    if sum(others) + 2 * len(others) + min(last, _ROOM) > console.width:
        for row in cells:
            first = row.pop(lead)
            rest = "  ".join(filter(None, row))
            if lead == 0 and cell_len(first) + 2 + cell_len(rest) <= console.width:
                first, rest = f"{first}  {rest}", ""
            console.print(Text(first))
            if rest:
                console.print(Padding(Text(rest, style="dim"), (0, 0, 0, 2)))
        return
    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns[:-1]:
        drawn.add_column(column, no_wrap=True)
    drawn.add_column(columns[-1], overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    console.print(drawn)


def facts(pairs: Mapping[str, Any]) -> None:
    """Names and values, one to a line; numbers with commas, yes and no for flags."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        match value:
            case bool():
                told = "yes" if value else "no"
            case int():
                told = f"{value:,}"
            case list():
                told = piece(", ".join(map(str, value)))
            case Mapping():
                told = piece(", ".join(f"{key} {one}" for key, one in value.items()))
            case _:
                told = "" if value is None else piece(str(value))
        line(f"{name.replace('_', ' '):<{width}}  {told}")


# -- memories ----------------------------------------------------------------------------------


def memories(found: Iterable[Memory]) -> None:
    """A list of memories, by the day of recording, which is their order."""

    def row(one: Memory) -> tuple[str, ...]:
        day, said = _day(one.recorded_at), _day(one.said_at)
        marks = "★ " * one.pinned + "(superseded) " * (not one.current)
        marks += "(archived) " * (one.archived_at is not None) + f"(said {said}) " * (said != day)
        tags = "".join(f" #{piece(tag)}" for tag in one.tags)
        return short(one.id), day, one.kind.value, marks + piece(one.content) + tags

    table(("id", "recorded", "kind", "memory"), map(row, found))


def memory(one: Memory) -> None:
    """One memory with all that is known of it."""
    from scrubjay import codec

    line(plain(one.content))
    line("")
    usual = {"tags": list(one.tags), "importance": str(one.importance), "pinned": one.pinned}
    record = usual | codec.plain(one)
    record |= record.pop("provenance", {})
    facts({name: value for name, value in record.items() if name not in ("content", "number")})


def hits(found: Iterable[Hit]) -> None:
    """The answer to a question, best first."""

    def row(hit: Hit) -> tuple[str, ...]:
        one = hit.memory
        told = f"[{one.kind}, {one.origin}] {piece(one.content)}"
        return f"{hit.score:.3f}", short(one.id), _day(one.said_at), told

    table(("score", "id", "said", "memory"), map(row, found))


def arithmetic(found: Iterable[Hit]) -> None:
    """For every hit the parts of its score, the largest first, and their sum."""
    for number, hit in enumerate(found, start=1):
        line(f"{number}. {piece(hit.memory.content)}  ({short(hit.memory.id)})")
        for name, part in sorted(hit.why.items(), key=lambda part: -abs(part[1])):
            if abs(part) >= _SEEN:
                line(f"   {part:+8.4f}  {name}")
        line(f"   {'─' * 8}")
        line(f"   {hit.score:8.4f}  score")


def _day(time: datetime) -> str:
    """The day of a time, where the reader is."""
    return time.astimezone().date().isoformat()


# -- progress ----------------------------------------------------------------------------------


@contextmanager
def progress(name: str) -> Iterator[Progress]:
    """A progress bar on a terminal's stderr, told how much is done of how much."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
