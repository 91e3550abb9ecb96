"""Commands for homes beyond one machine: migrate, shards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scrubjay import bootstrap, codec, files
from scrubjay.cli import render
from scrubjay.cli.home import confirm, installed, settings
from scrubjay.cli.parser import JSON, SCOPE, YES, Option, command
from scrubjay.cli.render import Output, say
from scrubjay.model.scope import Scope

_FILES = "files"


@command(
    "migrate",
    Option(
        "--to", "Where the memories go: postgres://user@host/name, or files.", str, required=True
    ),
    Option("--to-blobs", "Where long texts and the index go: s3://bucket, or files.", str),
    Option("--receipt", "Write the receipt to this file, as JSON.", str),
    YES,
    JSON,
)
def migrate(
    *, to: str, to_blobs: str | None = None, receipt: str | None = None, yes: bool = False
) -> Output:
    """Move every memory of this home to a database, or from there back to files.

    Everything moves sealed, with its keys, tombstones and receipts. Each scope is compared before
    it is removed here. End every service first. If it is cut off, run it again: it goes on.

    Example: scrubjay migrate --to postgres://scrubjay@db.example/scrubjay
    """
    found = settings()
    blobs = found.blobs if to_blobs is None else to_blobs.removeprefix(_FILES)
    confirm("Every memory moves, and nothing of it stays here.", yes=yes)
    store = "" if to == _FILES else to
    with render.progress("moving") as progress:
        moved = bootstrap.migrate(found, store=store, blobs=blobs, progress=progress)
    if receipt is not None:
        files.write(Path(receipt), codec.to_json(moved))
    count = render.plural(len(moved.scopes), "scope")
    rows = sum(one.rows for one in moved.scopes)
    notes = [
        f'Set store = "{store}" in the configuration, or SCRUBJAY_STORE, on every node.'
        if store
        else "Remove store from the configuration, and SCRUBJAY_STORE.",
    ]
    return Output(moved, lambda: say(f"Moved {count} with {rows:,} rows, each compared."), notes)


@command("shards list", Option("NAME", "Scopes to look for.", str, many=True, name="names"), JSON)
def places(*, names: Sequence[str] = ()) -> Output:
    """List the databases of this home, or which of them has each scope that is named.

    Example: scrubjay shards list acme/alice
    """
    with installed() as engine:
        told = dict(engine.shards([Scope.parse(one) for one in names]))
    return Output(told, lambda: render.facts(told))


@command(
    "shards move",
    Option("--to", "Name of the database to move it to.", str, required=True),
    SCOPE,
    JSON,
)
def relocate(*, to: str, scope: str | None = None) -> Output:
    """Move a scope to another database of this home, while it is in use.

    Writers wait only while what has changed during the copy is copied. If it is cut off, run it
    again: it goes on.

    Example: scrubjay shards move --scope acme/alice --to second
    """
    found = settings()
    with installed(found) as engine:
        chosen = Scope.parse(scope or found.scope)
        moved = engine.move_scope(chosen, to)
    return Output(moved, lambda: say(f"{chosen} is in {to} now, with {moved.rows:,} rows."))
