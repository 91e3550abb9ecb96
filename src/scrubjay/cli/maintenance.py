"""freeze, unfreeze, reindex, verify, audit, scopes: what keeps a scope in order."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import asdict

from scrubjay.cli import options, render
from scrubjay.cli.exits import Exit
from scrubjay.cli.opening import installed, opened
from scrubjay.model.results import AuditEvent, Report
from scrubjay.model.rows import Freeze


class Level(StrEnum):
    """How much to stop."""

    WRITES = "writes"
    ALL = "all"


def freeze(
    *,
    level: Annotated[
        Level, typer.Option("--level", help="writes, or all: writes and recall.")
    ] = Level.WRITES,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Stop writes, or writes and recall. Forget, destroy and export go on.

    Example: scrubjay freeze --level all
    """
    with opened(scope) as jay:
        before = jay.freeze(level.value)
    _tell_freeze(before, Freeze(level.value), as_json=as_json)


def unfreeze(*, scope: options.ScopeName = None, as_json: options.AsJson = False) -> None:
    """Let everything work again.

    Example: scrubjay unfreeze
    """
    with opened(scope) as jay:
        before = jay.unfreeze()
    _tell_freeze(before, Freeze.NONE, as_json=as_json)


def _tell_freeze(before: Freeze, now: Freeze, *, as_json: bool) -> None:
    told = {"before": before.value, "now": now.value}
    render.emit(told, lambda: render.say(f"Frozen: {now} (was: {before})."), as_json=as_json)


def reindex(*, scope: options.ScopeName = None, as_json: options.AsJson = False) -> None:
    """Make the index again from the memories, with a vector for each.

    Turns that nothing could be derived from are tried again first.

    Example: scrubjay reindex
    """
    with opened(scope) as jay, render.progress("reindex") as bar:
        done = jay.reindex(progress=bar)
    number = render.plural(done.memories, "memory")
    sentence = f"Indexed {number}; {done.embedded:,} were given a vector."
    render.emit(asdict(done), lambda: render.say(sentence), as_json=as_json)


def verify(
    *,
    erased: Annotated[
        Path | None,
        typer.Option(metavar="RECEIPT", help="Prove this erasure instead; also after destroy."),
    ] = None,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Open everything and check it, or prove an erasure by its receipt. Exit code 1 if unsound.

    Example: scrubjay verify --erased receipt.json
    """
    if erased is None:
        with opened(scope) as jay:
            report = jay.verify()
    else:
        with installed() as installation:
            report = installation.verify_erased(erased)
    _tell_report(report, "erased cells" if erased else "rows and events", as_json=as_json)


def _tell_report(report: Report, things: str, *, as_json: bool) -> None:
    told = {
        "sound": report.sound,
        "checked": report.checked,
        "problems": list(report.problems),
        "found": list(report.found),
    }
    render.emit(told, lambda: _lines(report, things), as_json=as_json)
    if not report.sound:
        raise typer.Exit(Exit.FAILURE)


def _lines(report: Report, things: str) -> None:
    for problem in report.problems:
        render.line(f"problem: {render.plain(problem)}")
    for place in report.found:
        render.line(f"note: {render.plain(place)} No key opens them.")
    if report.sound:
        render.line(f"Sound: {report.checked:,} {things} checked.")


audit = typer.Typer(help="Show who did what when, or check that the trail is whole.")


@audit.callback(invoke_without_command=True)
def trail(
    context: typer.Context,
    *,
    after: Annotated[int, typer.Option(min=0, help="Only events after this count.")] = 0,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")] = 1000,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Show who did what when, oldest first; memories are named by pseudonyms.

    Example: scrubjay audit --limit 20
    """
    if context.invoked_subcommand is not None:
        return
    with opened(scope) as jay:
        events = jay.audit(after=after, limit=limit)
    told = {"events": [{**asdict(event), "at": event.at.isoformat()} for event in events]}
    columns = ("count", "when", "verb", "actor", "number")
    render.emit(told, lambda: render.table(columns, map(_event, events)), as_json=as_json)


def _event(event: AuditEvent) -> tuple[str, ...]:
    return str(event.count), render.local(event.at), event.verb, event.actor, str(event.number)


@audit.command("verify")
def verify_trail(*, scope: options.ScopeName = None, as_json: options.AsJson = False) -> None:
    """Check that no event is missing or altered. Exit code 1 if one is.

    Example: scrubjay audit verify
    """
    with opened(scope) as jay:
        report = jay.verify_audit()
    _tell_report(report, "events", as_json=as_json)


def scopes(*, as_json: options.AsJson = False) -> None:
    """List every scope that is not destroyed.

    Example: scrubjay scopes
    """
    with installed() as installation:
        names = [str(scope) for scope in installation.scopes()]
    render.emit(
        {"scopes": names}, lambda: render.table(("scope",), ([n] for n in names)), as_json=as_json
    )
