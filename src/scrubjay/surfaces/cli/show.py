"""How the command line shows things to people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from scrubjay.domain.results import Exhibit


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
