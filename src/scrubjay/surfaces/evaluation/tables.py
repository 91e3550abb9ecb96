"""How the figures are shown to people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scrubjay.surfaces.evaluation.estimates import Estimate
from scrubjay.surfaces.evaluation.report import Group, SetReport, mean_of_sets

_REASONS = 3


def show(console: Console, reports: Sequence[SetReport]) -> None:
    """Every set with its categories, then all sets side by side; in percent."""
    for one in reports:
        console.print(_set_table(one))
        for note in _notes(one):
            console.print(Text(note, style="dim"))
        console.print()
    if len(reports) > 1:
        console.print(_summary(reports))


def _set_table(one: SetReport) -> Table:
    table = _table(Text(one.name, style="bold"), list(one.overall.figures))
    table.add_row(*_row(one.overall), style="bold", end_section=True)
    for group in one.categories:
        table.add_row(*_row(group))
    return table


def _summary(reports: Sequence[SetReport]) -> Table:
    table = _table(Text("all sets", style="bold"), list(reports[0].overall.figures))
    for one in reports:
        table.add_row(Text(one.name), *_row(one.overall)[1:], end_section=one is reports[-1])
    means = (Text(f"{mean:.1f}") for mean in mean_of_sets(reports).values())
    table.add_row(Text("mean of sets"), Text(""), *means, style="bold")
    return table


def _table(title: Text, names: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="dim")
    table.add_column("", overflow="fold")
    for name in ("asked", *names):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _row(group: Group) -> list[Text]:
    figures = [_cell(found) for found in group.figures.values()]
    return [Text(group.name), Text(f"{group.questions:,}"), *figures]


def _cell(found: Estimate) -> Text:
    interval = f"{found.low:.0f}–{found.high:.0f}"  # noqa: RUF001  # a range takes a dash of this width
    return Text(f"{found.mean:.1f}\n").append(interval, style="not bold dim")


def _notes(one: SetReport) -> Iterator[str]:
    cost = one.timing
    retained = f"{cost.turns:,} turns retained, {cost.retain_per_second:,.0f} a second"
    yield f"{retained}; peak RAM {cost.peak_ram_mib:,.0f} MiB"
    usual = f"{cost.recall_p50_ms:.1f} ms (p50), {cost.recall_p95_ms:.1f} ms (p95)"
    yield f"recall {usual}, {cost.first_recall_ms:,.0f} ms the first time"
    if one.skipped:
        yield f"{one.skipped:,} questions without gold turns were skipped"
    if one.empty:
        yield f"{one.empty:,} turns without text were not retained"
    if one.degraded:
        yield f"{one.degraded:,} answers were degraded, so these figures could be better:"
        yield from (f"  {reason}" for reason in one.reasons[:_REASONS])
