"""Commands that keep a scope in order: freeze, unfreeze, reindex, verify, audit, scopes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from scrubjay import files
from scrubjay.cli import render
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import installed, opened
from scrubjay.cli.parser import JSON, SCOPE, Option, command
from scrubjay.engine.memories import receipts
from scrubjay.model.results import Report
from scrubjay.model.rows import Freeze


class FreezeLevel(StrEnum):
    """How much to stop."""

    WRITES = "writes"
    ALL = "all"


@command(
    "freeze",
    Option(
        "--level", "What to stop: writes, or all for writes and recall.", FreezeLevel,
        default="writes",
    ),
    SCOPE,
    JSON,
)  # fmt: skip
def freeze(
    *,
    level: FreezeLevel = FreezeLevel.WRITES,
    scope: str | None = None,
    as_json: bool = False,
) -> None:
    """Freeze a scope: stop writes, or writes and recall. Forget, destroy and export go on.

    Example: scrubjay freeze --level all
    """
    with opened(scope) as jay:
        before = jay.freeze(level.value)
    _show_freeze(before, Freeze(level.value), as_json=as_json)


@command("unfreeze", SCOPE, JSON)
def unfreeze(*, scope: str | None = None, as_json: bool = False) -> None:
    """Unfreeze a scope: everything works again.

    Example: scrubjay unfreeze
    """
    with opened(scope) as jay:
        before = jay.unfreeze()
    _show_freeze(before, Freeze.NONE, as_json=as_json)


def _show_freeze(before: Freeze, now: Freeze, *, as_json: bool) -> None:
    render.emit(before, lambda: render.say(f"Frozen: {now} (was: {before})."), as_json=as_json)


@command("reindex", SCOPE, JSON)
def reindex(*, scope: str | None = None, as_json: bool = False) -> None:
    """Rebuild the search index from the memories, with a vector for each.

    Turns that nothing could be derived from are tried again first.

    Example: scrubjay reindex
    """
    with opened(scope) as jay, render.progress("reindex") as bar:
        done = jay.reindex(progress=bar)
    number = render.plural(done.memories, "memory")
    sentence = f"Indexed {number}; {done.embedded:,} were given a vector."
    render.emit(done, lambda: render.say(sentence), as_json=as_json)


@command(
    "verify",
    Option(
        "--erased", "Receipt of an erasure to prove instead; also after destroy.", Path,
        metavar="RECEIPT",
    ),
    SCOPE,
    JSON,
)  # fmt: skip
def verify(*, erased: Path | None = None, scope: str | None = None, as_json: bool = False) -> int:
    """Check the integrity of a scope, or prove an erasure by its receipt. Exit code 1 if unsound.

    Example: scrubjay verify --erased receipt.json
    """
    if erased is None:
        with opened(scope) as jay:
            return _show_report(jay.verify(), "rows and events", as_json=as_json)
    with installed() as engine:
        receipt = receipts.from_json(files.read(erased).decode(errors="replace"))
        return _show_report(engine.verify_erased(receipt), "erased cells", as_json=as_json)


def _show_report(report: Report, things: str, *, as_json: bool) -> int:
    def show() -> None:
        for problem in report.problems:
            render.line(f"problem: {render.plain(problem)}")
        for place in report.found:
            render.line(f"note: {render.plain(place)} No key opens them.")
        if report.sound:
            render.line(f"Sound: {report.checked:,} {things} checked.")

    render.emit(report, show, as_json=as_json)
    return Exit.OK if report.sound else Exit.FAILURE


@command(
    "audit",
    Option("--after", "Offset: only events after this count.", int, least=0, default="0"),
    Option("--limit -n", "Limit: how many events at most.", int, least=1, default="1000"),
    SCOPE,
    JSON,
)
def audit(
    *, after: int = 0, limit: int = 1000, scope: str | None = None, as_json: bool = False
) -> None:
    """Show the audit trail, oldest first; memories are named by pseudonyms.

    Example: scrubjay audit --limit 20
    """
    with opened(scope) as jay:
        events = jay.audit(after=after, limit=limit)
    rows = (
        (str(one.count), render.local(one.at), one.verb, one.actor, str(one.number))
        for one in events
    )
    columns = ("count", "when", "verb", "actor", "number")
    render.emit(events, lambda: render.table(columns, rows), as_json=as_json)


@command("audit verify", SCOPE, JSON)
def verify_audit(*, scope: str | None = None, as_json: bool = False) -> int:
    """Check that no event of the audit trail is missing or altered. Exit code 1 if one is.

    Example: scrubjay audit verify
    """
    with opened(scope) as jay:
        return _show_report(jay.verify_audit(), "events", as_json=as_json)


@command("scopes", JSON)
def scopes(*, as_json: bool = False) -> None:
    """List every scope that is not destroyed.

    Example: scrubjay scopes
    """
    with installed() as engine:
        found = engine.scopes()
    rows = ([str(one)] for one in found)
    render.emit(found, lambda: render.table(("scope",), rows), as_json=as_json)
