"""inspect, stats: a scope from the outside and in numbers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from scrubjay import bootstrap
from scrubjay.surfaces import files
from scrubjay.surfaces.cli import options, render
from scrubjay.surfaces.cli.opening import opened


def inspect(
    file: Annotated[Path, typer.Argument(help="A file of the data folder, or a bundle.")],
) -> None:
    """Show what a thief sees of FILE: everything that can be read without a key.

    Example: scrubjay inspect ~/.local/share/scrubjay/catalog.sqlite
    """
    from rich.console import Console

    from scrubjay.surfaces.cli.show import exhibit

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
    from scrubjay.surfaces.cli import picture
    from scrubjay.surfaces.statistics import statistics

    clock = bootstrap.clock()
    with opened(scope) as jay:
        shown = statistics(jay, clock.now(), clock.monotonic)
    if svg is not None:
        files.write(svg, picture.svg(shown).encode())
    told = asdict(shown)
    for name in ("kinds", "origins", "tags"):
        told[name] = dict(told[name])
    told["weeks"] = {monday.isoformat(): number for monday, number in shown.weeks}
    quiet = svg is not None and not as_json
    if not quiet:
        render.emit(
            told, lambda: render.block("\n".join((*picture.lines(shown), ""))), as_json=as_json
        )
