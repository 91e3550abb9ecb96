"""Doctor: problems of an installation, a sentence each, with what to do about it."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from msgspec import Struct

from scrubjay import __version__, bootstrap
from scrubjay.cli import render
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import installed, settings
from scrubjay.cli.parser import JSON, Option, command
from scrubjay.cli.render import Output
from scrubjay.engine import Kernel
from scrubjay.model.errors import EmbedderError, Frozen, ScrubjayError
from scrubjay.model.rows import Due
from scrubjay.model.scope import Scope
from scrubjay.settings import Settings

_LARGELY = 0.5
"""Share of memories in other languages from which on another embedder is suggested."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Finding(Struct, frozen=True):
    """Result of one check."""

    check: str
    sentence: str
    advice: str = ""
    """The remedy; empty if all is well."""
    repair: Callable[[], object] | None = None
    """Does it, where it can be done without deciding anything."""

    @property
    def well(self) -> bool:
        """Whether there is nothing to do."""
        return not self.advice


def examine(settings: Settings, now: datetime) -> Iterator[Finding]:
    """Check everything that goes wrong in practice."""
    versions = {"scrubjay": __version__, **bootstrap.versions()}
    yield Finding("versions", ", ".join(f"{name} {one}" for name, one in versions.items()))
    yield from _folders(settings)
    clock = bootstrap.clock()
    try:
        embedder = bootstrap.make_embedder(settings, clock)
        embedder.embed(["scrub jay"], deadline=clock.monotonic() + 10)
        yield Finding("embedder", f"{embedder.identity} answers.")
    except EmbedderError as error:
        advice = f"{error.hint} Check {settings.embedder} in `scrubjay config show`."
        yield Finding("embedder", error.message, advice)
    if settings.unused:
        yield Finding("data", "Nothing was remembered here yet.")
        return
    try:
        for sentence in bootstrap.strays(settings):
            advice = "Put the missing half back, from a backup; nothing reads it as it is."
            yield Finding("scopes", sentence, advice)
        with installed(settings) as engine:
            for address in engine.unreadable_scopes():
                told = f"The keys in {settings.keys} do not open the scope in {address}.sqlite."
                advice = "It was written with other keys: put those back to read it."
                yield Finding("keys", told, advice)
            for scope in engine.scopes():
                try:
                    yield from _scope(engine, scope, now)
                except ScrubjayError as error:
                    yield Finding(str(scope), error.message, error.hint)
    except ScrubjayError as error:
        yield Finding("data", error.message, error.hint)


def _folders(settings: Settings) -> Iterator[Finding]:
    """Check who may open the folders, and that the keys are not inside the data."""
    for name, folder in (("keys", settings.keys), ("data", settings.data)):
        inside = [folder, *sorted(folder.rglob("*"))] if folder.exists() else []
        files = (path for path in inside if path == folder or not path.is_symlink())
        wide = [path for path in files if path.stat().st_mode & _OTHERS]
        if wide:
            told = f"Others than you may open {wide[0]}, and {len(wide) - 1:,} more."
            advice = f"Take their rights: chmod -R go= {folder}"
            yield Finding(name, told, advice, partial(_narrow, wide))
        elif folder.exists():
            yield Finding(name, f"Only you may open {folder}.")
    if settings.keys.resolve().is_relative_to(settings.data.resolve()):
        advice = "Move the keys out of the data folder: who copies it copies them."
        yield Finding("keys", "The keys are inside the data folder.", advice)


def _narrow(paths: list[Path]) -> None:
    for path in paths:
        path.chmod(path.stat().st_mode & ~_OTHERS)


def _scope(engine: Kernel, scope: Scope, now: datetime) -> Iterator[Finding]:
    """Check that a scope opens, has no overdue work, and that its audit trail is whole."""
    engine.open(scope, create=False)
    head, name = engine.head(scope), str(scope)
    today = (now - datetime(1970, 1, 1, tzinfo=UTC)).days
    days = 0 if head.due_since is None else today - head.due_since
    if head.due is not Due.NOTHING and days >= 1:
        told = f"Work of an earlier erasure has been due for {days} days."
        advice = f"Finish it: scrubjay rotate --scope {name}"
        yield Finding(name, told, advice, partial(engine.finish_due, scope))
    report = engine.verify_audit(scope)
    if report.sound:
        yield Finding(name, f"It opens; {report.checked:,} audit events are whole.")
    with suppress(Frozen):  # then nothing is recalled by any embedder
        if (share := engine.unknown_share(scope)) > _LARGELY:
            told = f"{share:.0%} of it is in languages that the embedder does not know by meaning;"
            yield Finding(name, f"{told} the extra encoder knows fifteen: see docs/howto.md.")
    for problem in report.problems:
        advice = f"Run `scrubjay verify --scope {name}`; restore a backup if it was not you."
        yield Finding(name, problem, advice)


@command(
    "doctor", Option("--fix", "Repair what needs no decision, such as file permissions."), JSON
)
def doctor(*, fix: bool = False) -> Output:
    """Check the installation; each finding says what to do. Exit code 1 if there is a problem.

    Example: scrubjay doctor --fix
    """
    told, left = [], 0
    for finding in examine(settings(), bootstrap.clock().now()):
        state, advice = ("ok" if finding.well else "problem"), finding.advice
        if fix and finding.repair is not None:
            finding.repair()
            state, advice = "fixed", ""
        left += state == "problem"
        told.append((finding.check, state, finding.sentence, advice))
    names = ("check", "state", "finding", "advice")
    rows = [dict(zip(names, row, strict=True)) for row in told]
    code = Exit.FAILURE if left else Exit.OK
    return Output({"findings": rows}, lambda: render.table(names, told), code=code)
