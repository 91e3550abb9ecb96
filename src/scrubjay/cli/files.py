"""Commands about memory as files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.cli import render
from scrubjay.cli.home import confirm, installed, interactive, scope_of, settings
from scrubjay.cli.parser import JSON, SCOPE, YES, Option, command
from scrubjay.cli.render import Output, say
from scrubjay.model.errors import InvalidRequest

if TYPE_CHECKING:
    from scrubjay.surfaces.files.sync import Synced

_SECONDS = 2.0
"""Seconds between two looks of --watch."""


@command(
    "files sync",
    Option(
        "DIR",
        "Folder: a scope's files are in DIR/TENANT/OWNER.",
        Path,
        name="folder",
        required=True,
    ),
    Option("--owner-only", "Take lines as your own words; refused if others can write to them."),
    Option("--session", "Session of the agent that writes to the files: its taint counts.", str),
    Option("--export", "Also write an export to exports/, in plain, for a day at most."),
    Option("--watch", "Sync again whenever something has changed, until Ctrl-C."),
    YES,
    SCOPE,
    JSON,
)
def sync(
    folder: Path,
    *,
    owner_only: bool = False,
    session: str | None = None,
    export: bool = False,
    watch: bool = False,
    yes: bool = False,
    scope: str | None = None,
) -> Output:
    """Sync CLAUDE.md, preferences.json and transcripts of a folder with a scope, both ways.

    A line added by hand becomes a memory, a line removed is forgotten. The files are plain text.

    Example: scrubjay files sync memory --scope acme/alice
    """
    from scrubjay.surfaces.files.sync import Folder, Synced

    name = scope_of(scope, settings())
    if new := not folder.exists():
        confirm(
            f"There is no folder {folder}. It would be made, with the memories of {name} as plain "
            "text.",
            yes=yes,
        )
    with installed(create=True) as engine:
        engine.open(name)
        path = folder / name.tenant / name.owner

        def once(*, confirmed: bool = False, export: bool = False) -> Synced:
            return Folder(
                engine,
                name,
                path,
                owner_only=owner_only,
                session=session,
                confirmed=confirmed,
                export=export,
            ).sync()

        done = once(confirmed=yes and not new, export=export)  # a yes to the folder alone
        if done.unasked and interactive():
            number = render.plural(done.unasked, "memory")
            confirm(f"This forgets {number} whose lines are gone from {path}.", yes=yes)
            done = once(confirmed=True)
        if new:
            say(f"The files are plain text, in {path}.")
        said = list[str]()
        while watch:
            notes = _notes(done)
            if done.changed:
                say(_told(done))
            if notes and notes != said:  # what waits for an answer is said once
                say("\n".join(notes))
            said = notes
            threading.Event().wait(_SECONDS)
            try:
                done = once()
            except InvalidRequest as error:  # somebody writes to a file now; the next round sees it
                done = Synced(skipped=[error.message])
    return Output(done, lambda: say(_told(done)), _notes(done))


def _notes(done: Synced) -> list[str]:
    exported = [f"Exported to {done.exported}, in plain."] if done.exported else []
    return [*exported, *done.conflicts, *done.skipped, *_asks(done)]


def _told(done: Synced) -> str:
    return (
        f"Learned {done.added:,}, corrected {done.corrected:,}, forgot {done.forgotten:,}; "
        f"wrote {render.plural(done.written, 'line')}, took out {done.removed:,}."
    )


def _asks(done: Synced) -> list[str]:
    if not done.unasked:
        return []
    number = render.plural(done.unasked, "memory")
    return [
        f"The lines of {number} are gone. Nothing was forgotten: repeat with --yes if it should."
    ]
