"""extract: what a model finds in turns, how far it has come, and whether it may go on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from scrubjay.domain.errors import InvalidRequest
from scrubjay.domain.results import Extraction, ExtractionStatus, Stopped
from scrubjay.surfaces.cli import options, render
from scrubjay.surfaces.cli.exits import Exit
from scrubjay.surfaces.cli.opening import opened

_SECONDS = 24 * 3600.0
"""Somebody waits for it, and ends it if they do not want to any more."""
_WHY = {
    Stopped.PAUSED: "It is paused: `scrubjay extract --resume` lets it go on.",
    Stopped.SPENT: "The tokens of this day are used up; it goes on tomorrow (UTC).",
    Stopped.UNAVAILABLE: "The model cannot be had; the turns wait.",
}


def extract(
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="How many turns to read at most.")
    ] = 100,
    again: Annotated[
        bool, typer.Option("--again", help="Read turns again that were read before.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Only say how far it has come, and what it cost.")
    ] = False,
    pause: Annotated[
        bool, typer.Option("--pause", help="Send no turns of this scope to the model.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Let it go on.")] = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Have the configured model read turns that wait, and remember what it finds.

    A service does this by itself. Only turns that were kept are sent; again only if it fails.

    Example: scrubjay extract --limit 20
    """
    if (status + pause + resume) > 1 or (again and (status or pause or resume)):
        raise InvalidRequest(
            "These options do not go together.", hint="Use one of --status, --pause, --resume."
        )
    with opened(scope) as jay:
        if pause or resume:
            _tell_status(jay.pause_extraction(paused=pause), as_json=as_json)
        elif status:
            _tell_status(jay.extraction(), as_json=as_json)
        else:
            _tell(jay.extract(limit=limit, seconds=_SECONDS, again=again), as_json=as_json)


def _tell(done: Extraction, *, as_json: bool) -> None:
    def show() -> None:
        turns, found = render.plural(done.turns, "turn"), render.plural(done.memories, "memory")
        spent = f"{done.tokens_in:,} tokens in, {done.tokens_out:,} out"
        render.say(f"Read {turns}: {found}; {spent}; {done.left:,} left.")
        if done.stopped:
            render.say(_WHY[done.stopped])

    render.emit(asdict(done), show, as_json=as_json)
    if done.stopped is Stopped.UNAVAILABLE:
        raise typer.Exit(Exit.UNAVAILABLE)


def _tell_status(status: ExtractionStatus, *, as_json: bool) -> None:
    facts = ((name.replace("_", " "), _value(value)) for name, value in asdict(status).items())
    render.emit(asdict(status), lambda: render.facts(facts), as_json=as_json)


def _value(value: bool | int) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:,}"
