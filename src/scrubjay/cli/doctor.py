"""Doctor: what is wrong with an installation, a sentence each, with what to do about it."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import typer

from scrubjay import __version__, bootstrap
from scrubjay.cli import opening, options, render
from scrubjay.cli.exits import Exit
from scrubjay.cli.installation import Installation
from scrubjay.model.errors import EmbedderError, ScrubjayError
from scrubjay.model.rows import Due, Head
from scrubjay.model.scope import Scope
from scrubjay.settings import Settings

OVERDUE_DAYS = 1
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    check: str
    sentence: str
    advice: str = ""
    """What to do; nothing if all is well."""
    repair: Callable[[], object] | None = None
    """Does it, where it can be done without deciding anything."""

    @property
    def well(self) -> bool:
        """Whether there is nothing to do."""
        return not self.advice


def examine(settings: Settings, now: datetime) -> Iterator[Finding]:
    """Look at everything that goes wrong in practice."""
    yield _versions()
    yield from _folders(settings)
    yield from _embedder(settings)
    if not settings.data.exists():
        yield Finding(check="data", sentence="Nothing was remembered here yet.")
        return
    try:
        for sentence in bootstrap.strays(settings):
            advice = "Put the missing half back, from a backup; nothing reads it as it is."
            yield Finding(check="scopes", sentence=sentence, advice=advice)
        with Installation(settings) as installation:
            yield from _scopes(installation, now.date())
    except ScrubjayError as error:
        yield Finding(check="data", sentence=error.message, advice=error.hint)


def _versions() -> Finding:
    named = {"scrubjay": __version__, **bootstrap.versions()}
    return Finding(check="versions", sentence=", ".join(f"{n} {v}" for n, v in named.items()))


def _folders(settings: Settings) -> Iterator[Finding]:
    for name, folder in (("keys", settings.keys), ("data", settings.data)):
        wide = [path for path in _files(folder) if path.stat().st_mode & _OTHERS]
        if wide:
            yield Finding(
                check=name,
                sentence=f"Others than you may open {wide[0]}, and {len(wide) - 1:,} more.",
                advice=f"Take their rights: chmod -R go= {folder}",
                repair=lambda paths=wide: _narrow(paths),  # type: ignore[misc]
            )
        elif folder.exists():
            yield Finding(check=name, sentence=f"Only you may open {folder}.")
    if settings.keys.resolve().is_relative_to(settings.data.resolve()):
        advice = "Move the keys out of the data folder: who copies it copies them."
        yield Finding(check="keys", sentence="The keys are inside the data folder.", advice=advice)


def _files(folder: Path) -> Iterator[Path]:
    """The folder and what is in it; files of the data folder only matter as a whole."""
    if folder.exists():
        yield folder
        yield from (path for path in sorted(folder.rglob("*")) if not path.is_symlink())


def _narrow(paths: list[Path]) -> None:
    for path in paths:
        path.chmod(path.stat().st_mode & ~_OTHERS)


def _embedder(settings: Settings) -> Iterator[Finding]:
    embedder = bootstrap.make_embedder(settings, bootstrap.clock())
    try:
        embedder.embed(["scrub jay"], deadline=bootstrap.clock().monotonic() + 10)
        yield Finding(check="embedder", sentence=f"{embedder.identity} answers.")
    except EmbedderError as error:
        advice = f"{error.hint} Check {settings.embedder} in `scrubjay config show`."
        yield Finding(check="embedder", sentence=error.message, advice=advice)


def _scopes(installation: Installation, today: date) -> Iterator[Finding]:
    for scope in installation.scopes():
        try:
            yield from _scope(installation, scope, today)
        except ScrubjayError as error:
            yield Finding(check=str(scope), sentence=error.message, advice=error.hint)


def _scope(installation: Installation, scope: Scope, today: date) -> Iterator[Finding]:
    head, name = installation.head(scope), str(scope)
    if _is_overdue(head, today):
        yield Finding(
            check=name,
            sentence=f"Work of an earlier erasure has been due for {_age(head, today)} days.",
            advice=f"Finish it: scrubjay rotate --scope {name}",
            repair=lambda: installation.finish_due(scope),
        )
    report = installation.verify_audit(scope)
    if report.sound:
        yield Finding(check=name, sentence=f"It opens; {report.checked:,} audit events are whole.")
    for problem in report.problems:
        advice = f"Run `scrubjay verify --scope {name}`; restore a backup if it was not you."
        yield Finding(check=name, sentence=problem, advice=advice)


def _is_overdue(head: Head, today: date) -> bool:
    return head.due is not Due.NOTHING and _age(head, today) >= OVERDUE_DAYS


def _age(head: Head, today: date) -> int:
    epoch = date(1970, 1, 1)
    return (today - epoch).days - (head.due_since or 0) if head.due_since is not None else 0


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
