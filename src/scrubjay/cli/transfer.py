"""Commands that copy whole scopes: export, import, backup, restore."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from scrubjay import codec, files
from scrubjay.access import KEYS
from scrubjay.cli import render
from scrubjay.cli.home import (
    ask_secret,
    confirm,
    confirm_replace,
    installed,
    interactive,
    new_passphrase,
    opened,
    scope_of,
    secret_line,
    settings,
)
from scrubjay.cli.parser import ANEW, DRY_RUN, JSON, KEY, SCOPE, YES, Option, command, fields
from scrubjay.cli.render import Output, say
from scrubjay.engine.transfer import bundle
from scrubjay.handle import Jay
from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.model.memory import Json
from scrubjay.model.requests import Backup, Export, Restore
from scrubjay.model.results import Loaded

_REVOKED = (
    "A key that was revoked after this backup works again: before you start the service, compare "
    "`scrubjay keys list` with what you revoked, and revoke it again."
)
_PASSPHRASE = Option("--passphrase", "Ask for a passphrase; without a terminal, on stdin.")


class ExportFormat(StrEnum):
    """The forms a scope can be exported in."""

    JSON = "json"
    MARKDOWN = "markdown"
    BUNDLE = "bundle"
    SQLITE = "sqlite"


@command(
    "export",
    Option("--output -o", "File to write; stdout without it.", Path),
    Option(
        "--format -f", "File format; only a bundle is encrypted.", ExportFormat, name="form",
        default="json",
    ),
    fields(Export, "where"),
    _PASSPHRASE,
    YES,
    SCOPE,
    Option("--json", "Print the result as JSON; needs --output.", name="json"),
)  # fmt: skip
def export(
    *,
    output: Path | None = None,
    form: ExportFormat = ExportFormat.JSON,
    where: Mapping[str, Json] | None = None,
    passphrase: bool = False,
    yes: bool = False,
    scope: str | None = None,
    json: bool = False,
) -> int:
    """Export every memory: as JSON, Markdown, a plain SQLite file, or a sealed bundle.

    Example: scrubjay export --format bundle -o alice.bundle
    """
    binary = form in (ExportFormat.BUNDLE, ExportFormat.SQLITE)
    if output is None and (json or (binary and sys.stdout.isatty())):
        raise InvalidRequest(
            "There is no file to write the copy to.", hint="Name one with -o FILE."
        )
    if output is not None:
        confirm_replace(output, yes=yes)
    sealed = form is ExportFormat.BUNDLE
    words = new_passphrase() if passphrase else None
    to = sys.stdout.buffer if output is None else output
    whole = form in (ExportFormat.MARKDOWN, ExportFormat.SQLITE)  # made from all of it at once
    with opened(scope) as jay:
        exported = jay.export(None if whole else to, sealed=sealed, passphrase=words, where=where)
    if whole:
        from scrubjay.surfaces.imports import markdown, sqlite

        write = markdown.write if form is ExportFormat.MARKDOWN else sqlite.write
        content = write(exported.content)
        if output is None:
            sys.stdout.buffer.write(content)
        else:
            files.write(output, content)
    sys.stdout.buffer.flush()
    number = render.plural(exported.memories, "memory")
    sentence = f"Exported {number}." if sealed else f"Exported {number}, readable by anyone."
    told = {"file": str(output), "format": form, "memories": exported.memories}
    told["key"] = exported.key
    notes = [f"Keep this key, it alone opens the bundle: {exported.key}"] if exported.key else []
    return Output(told, lambda: say(sentence), notes).emit(as_json=json)


@command(
    "import",
    Option("FILE", "File that export wrote.", Path, required=True),
    KEY,
    _PASSPHRASE,
    DRY_RUN,
    ANEW,
    SCOPE,
    JSON,
)
def load(
    file: Path,
    *,
    key: str | None = None,
    passphrase: bool = False,
    dry_run: bool = False,
    anew: bool = False,
    scope: str | None = None,
) -> Output:
    """Import an export: JSON, SQLite or a sealed bundle; all of it or nothing.

    Example: scrubjay import alice.bundle --dry-run
    """
    from scrubjay.surfaces.imports import sqlite

    raw, words = files.read(file), None
    if file.suffix.lower() in {".md", ".markdown"} or raw.startswith(b"# Memories of "):
        raise InvalidRequest("Markdown cannot be imported.", hint="Export it as JSON or a bundle.")
    if raw.startswith(sqlite.MAGIC):
        raw, key = sqlite.read(raw), None
    elif passphrase or (key is None and interactive() and bundle.has_passphrase(raw)):
        words = secret_line("The passphrase of the bundle: ")
    elif key is None and bundle.name_of(raw) is not None and interactive():
        key = ask_secret("The key of the bundle: ")
    if dry_run:
        return _preview(raw, key, words, scope)
    with opened(scope, create=True, anew=anew) as jay:
        return _loaded(jay.load(raw, key=key, passphrase=words))


def _preview(raw: bytes, key: str | None, passphrase: str | None, scope: str | None) -> Output:
    """Dry run of an import: how many memories the file has, and how many of them the scope has."""
    content = bundle.read(raw, key, passphrase)
    known = 0
    try:
        with opened(scope) as jay:
            for memory in content.memories:
                try:
                    jay.get(memory.id)
                    known += 1
                except NotFound:
                    continue
    except NotFound:
        pass  # the scope would be made by the import
    told = {"from": str(content.scope), "memories": len(content.memories), "known": known}
    notes = ["Of the others, what was forgotten here stays forgotten."]
    return Output(told, lambda: render.facts(told), notes)


def _loaded(loaded: Loaded, notes: Sequence[str] = ()) -> Output:
    left = f", left out {loaded.forgotten:,} that were forgotten here" * bool(loaded.forgotten)
    sentence = f"Added {render.plural(loaded.loaded, 'memory')}, knew {loaded.known:,}{left}."
    return Output(loaded, lambda: say(sentence), notes)


@command(
    "backup",
    Option("FILE", "File to write; with --all, a folder.", Path, required=True),
    Option("--all", "Back up every scope, each to a file of its own in the folder.", name="whole"),
    Option(
        "--keys", "With --all: file for the keys, for its owner alone, in place of stdout.", Path
    ),
    Option(
        "--days", "Retention: days the keyring keeps the key of the backup.", int, least=1,
        default=str(Backup().days),
    ),
    YES,
    SCOPE,
    JSON,
)  # fmt: skip
def backup(
    file: Path,
    *,
    whole: bool = False,
    keys: Path | None = None,
    days: int = Backup().days,
    yes: bool = False,
    scope: str | None = None,
) -> Output:
    """Back up a scope: a sealed copy under a key of its own, which is printed and expires.

    With --all, every line is a scope, its file and its key.

    Example: scrubjay backup --all backups --keys keys.tsv
    """
    if whole:
        return _backup_all(file, days, keys, yes=yes)
    if keys is not None:
        raise InvalidRequest("The key of one backup is printed.", hint="Add --all, or drop --keys.")
    confirm_replace(file, yes=yes)
    with opened(scope) as jay:
        made = jay.backup(file, days=days)
    number = render.plural(made.memories, "memory")
    notes = [f"Backed up {number}. Keep the key; here it is known until {made.expires}."]
    told = codec.plain(made) | {"file": str(file)}
    return Output(told, lambda: render.line(made.key), notes)


def _backup_all(folder: Path, days: int, keys: Path | None, *, yes: bool) -> Output:
    made = list[dict[str, Any]]()
    with installed() as engine:
        named = [(one, folder / one.tenant / f"{one.owner}.backup") for one in engine.scopes()]
        if any(path.exists() for _, path in named):
            confirm(f"Backups in {folder} would be replaced.", yes=yes)
        rows = _kept_keys(keys, yes=yes)
        try:
            for one, path in named:
                files.make_folder(path.parent)
                done = Jay(engine, one).backup(path, days=days)
                made.append({"scope": str(one), "file": str(path)} | codec.plain(done))
                rows[str(one)] = f"{one}\t{path}\t{done.key}\n"
        finally:  # the keys of those that were made, whatever became of the others
            if keys is not None:
                files.write(keys, "".join(rows.values()).encode())
    notes = [f"Backed up {render.plural(len(made), 'scope')}. Keep the keys apart from the files."]
    if keys is not None:
        made = [one | {"key": None} for one in made]
    lines = "" if keys is not None else "".join(rows.values())
    return Output(made, lambda: sys.stdout.write(lines), notes)


def _kept_keys(keys: Path | None, *, yes: bool) -> dict[str, str]:
    """Lines of an earlier backup by scope; the file is known to be writable then."""
    if keys is None:
        return {}
    confirm_replace(keys, yes=yes)
    held = (files.regular(keys) or b"").decode("utf-8", "replace")
    files.write(keys, held.encode())
    return {line.partition("\t")[0]: line for line in held.splitlines(keepends=True)}


@command(
    "restore",
    Option("FILE", "File that backup wrote.", Path, required=True),
    KEY,
    ANEW,
    YES,
    SCOPE,
    JSON,
)
def restore(
    file: Path,
    *,
    key: str | None = None,
    anew: bool = False,
    yes: bool = False,
    scope: str | None = None,
) -> Output:
    """Merge a backup into its scope; what was forgotten since stays forgotten.

    In any home but the one it was made in, it needs --key.

    Example: scrubjay restore alice.backup --scope alice --key KEY
    """
    raw = files.read(file)
    if bundle.name_of(raw) is None:
        raise InvalidRequest(f"{file} is no backup.", hint="For an export: `scrubjay import`.")
    found = settings()
    chosen = scope_of(scope, found)
    with installed(found, create=True) as engine:
        if chosen in engine.scopes():
            deed = f"{chosen} is there; what it has not, or has older, comes from the backup."
            confirm(deed, yes=yes)
        loaded = engine.restore(chosen, Restore(raw, key, anew=anew))
        return _loaded(loaded, [_REVOKED] if chosen == KEYS else [])
