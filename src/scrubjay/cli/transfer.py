"""export, import, backup, restore: whole scopes out and in."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import asdict

from scrubjay import files
from scrubjay.cli import options, render
from scrubjay.cli.confirm import ask_secret, confirm, interactive
from scrubjay.cli.opening import installed, opened, scope_of
from scrubjay.engine.transfer import bundle
from scrubjay.engine.transfer.copies import Exported
from scrubjay.handle import Jay
from scrubjay.model.errors import InvalidRequest, KeyMissing, NotFound
from scrubjay.model.requests import Backup
from scrubjay.model.results import Loaded

Target = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")]


class Format(StrEnum):
    """The forms a scope can be exported in."""

    JSON = "json"
    MARKDOWN = "markdown"
    BUNDLE = "bundle"
    SQLITE = "sqlite"


def export(
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to; else stdout.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", "-f", help="Only a bundle is sealed.")
    ] = Format.JSON,
    yes: options.Yes = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Copy out everything: as JSON, Markdown, a plain SQLite file, or a sealed bundle.

    Example: scrubjay export --format bundle -o alice.bundle
    """
    binary = form in (Format.BUNDLE, Format.SQLITE)
    if output is None and (as_json or (binary and sys.stdout.isatty())):
        raise InvalidRequest(
            "There is no file to write the copy to.", hint="Name one with -o FILE."
        )
    if output is not None:
        _check_free(output, yes=yes)
    with opened(scope) as jay:
        exported = jay.export(sealed=form is Format.BUNDLE)
    content = _written(exported, form)
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        files.write(output, content)
    _tell_export(exported, output, form, as_json=as_json)


def _written(exported: Exported, form: Format) -> bytes:
    if form is Format.MARKDOWN:
        from scrubjay.surfaces.imports import markdown

        return markdown.write(exported.content)
    if form is Format.SQLITE:
        from scrubjay.surfaces.imports import sqlite

        return sqlite.write(exported.content)
    return exported.content


def _tell_export(exported: Exported, output: Path | None, form: Format, *, as_json: bool) -> None:
    if as_json:
        told = {"file": str(output), "format": form.value, "memories": exported.memories}
        render.emit({**told, "key": exported.key}, lambda: None, as_json=True)
        return
    number = render.plural(exported.memories, "memory")
    render.say(f"Exported {number}." if exported.key else f"Exported {number}, readable by anyone.")
    if exported.key:
        render.say(f"Keep this key, it alone opens the bundle: {exported.key}")


def load(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export wrote.")],
    *,
    key: options.Key = None,
    dry_run: options.DryRun = False,
    anew: options.Anew = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Add what an export holds: JSON, SQLite or a sealed bundle; all of it or nothing.

    Example: scrubjay import alice.bundle --dry-run
    """
    raw, key = _readable(files.read(file), key)
    if dry_run:
        _preview(raw, key, scope, as_json=as_json)
        return
    with opened(scope, create=True, anew=anew) as jay:
        loaded = jay.load(raw, key=key)
    _tell_load(loaded, as_json=as_json)


def _readable(raw: bytes, key: str | None) -> tuple[bytes, str | None]:
    """What the library can load, and the key, which is asked for if it is needed."""
    from scrubjay.surfaces.imports import sqlite

    if raw.startswith(sqlite.MAGIC):
        return sqlite.read(raw), None
    if key is None and bundle.name_of(raw) is not None and interactive():
        key = ask_secret("The key of the bundle: ")
    return raw, key


def _preview(raw: bytes, key: str | None, scope: str | None, *, as_json: bool) -> None:
    content = _content(raw, key)
    ids = [memory.id for memory in content.memories]
    known = 0
    try:
        with opened(scope) as jay:
            known = sum(_has(jay, public_id) for public_id in ids)
    except NotFound:
        pass  # the scope would be made by the import
    told = {"from": str(content.scope), "memories": len(ids), "known": known}
    render.emit(told, lambda: render.facts(_facts(told)), as_json=as_json)
    if not as_json:
        render.say("Of the others, what was forgotten here stays forgotten.")


def _content(raw: bytes, key: str | None) -> bundle.Content:
    if bundle.name_of(raw) is None:
        return bundle.from_json(raw)
    if key is None:
        raise KeyMissing("The bundle is sealed and no key was given.", hint="Give it with --key.")
    return bundle.unseal(raw, bundle.read_key(key))


def _has(jay: Jay, public_id: str) -> bool:
    try:
        jay.get(public_id)
    except NotFound:
        return False
    return True


def _facts(told: dict[str, object]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in told.items()]


def _tell_load(loaded: Loaded, *, as_json: bool) -> None:
    left = f", left out {loaded.forgotten:,} that were forgotten here" * bool(loaded.forgotten)
    sentence = f"Added {render.plural(loaded.loaded, 'memory')}, knew {loaded.known:,}{left}."
    render.emit(asdict(loaded), lambda: render.say(sentence), as_json=as_json)


def backup(
    file: Target,
    *,
    days: Annotated[
        int, typer.Option(min=1, help="After how many days the keyring lets its key go.")
    ] = Backup().days,
    yes: options.Yes = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a sealed copy under a key of its own, which is printed and expires.

    Example: scrubjay backup alice.backup --days 90
    """
    _check_free(file, yes=yes)
    with opened(scope) as jay:
        made = jay.backup(file, days=days)
    told = {**asdict(made), "expires": made.expires.isoformat(), "file": str(file)}
    render.emit(told, lambda: render.line(made.key), as_json=as_json)
    if not as_json:
        number = render.plural(made.memories, "memory")
        render.say(f"Backed up {number}. Keep the key; here it is known until {made.expires}.")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What backup wrote.")],
    *,
    key: options.Key = None,
    anew: options.Anew = False,
    yes: options.Yes = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Merge a backup into its scope; what was forgotten since stays forgotten.

    Example: scrubjay restore alice.backup --scope alice
    """
    raw = files.read(file)
    bundle.sealed_name(raw)
    with installed(create=True) as installation:
        chosen = scope_of(scope, installation.settings)
        if chosen in installation.scopes():
            deed = f"{chosen} is there; what it has not, or has older, comes from the backup."
            if not confirm(deed, yes=yes):
                raise typer.Exit(1)
        loaded = installation.restore(chosen, raw, key=key, anew=anew)
    _tell_load(loaded, as_json=as_json)


def _check_free(path: Path, *, yes: bool) -> None:
    """Ask before a file that is there is replaced."""
    if path.exists() and not confirm(f"{path} is there already and would be replaced.", yes=yes):
        raise typer.Exit(1)
