"""doctor: what is wrong, and what to do about it."""

from __future__ import annotations

from typing import Annotated

import typer

from scrubjay import bootstrap
from scrubjay.surfaces.cli import opening, options, render
from scrubjay.surfaces.cli.exits import Exit


def doctor(
    *,
    fix: Annotated[
        bool, typer.Option("--fix", help="Do what can be done without deciding anything.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Look for what goes wrong in practice; each finding says what to do. Exit code 1 if any.

    Example: scrubjay doctor --fix
    """
    from scrubjay.surfaces.doctor import examine

    told, left = [], 0
    for finding in examine(opening.settings(), bootstrap.clock().now()):
        fixed = fix and finding.repair is not None
        if fixed and finding.repair is not None:
            finding.repair()
        left += not (finding.well or fixed)
        state = "ok" if finding.well else "fixed" if fixed else "problem"
        told.append((finding.check, state, finding.sentence, "" if fixed else finding.advice))
    names = ("check", "state", "finding", "advice")
    rows = [dict(zip(names, row, strict=True)) for row in told]
    render.emit({"findings": rows}, lambda: render.table(names, told), as_json=as_json)
    if left:
        raise typer.Exit(Exit.FAILURE)
