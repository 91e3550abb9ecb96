"""forget, purge, destroy, rotate: what takes away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import asdict

from scrubjay import files
from scrubjay.cli import opening, options, render
from scrubjay.cli.confirm import confirm
from scrubjay.cli.exits import Exit
from scrubjay.cli.opening import installed, opened, scope_of
from scrubjay.engine.memories import receipts
from scrubjay.model.results import Erasure, Preview

_SHOWN = 20


def forget(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID…", help="Which memories.")] = None,
    *,
    session: Annotated[
        str | None, typer.Option(metavar="NAME", help="All of one conversation.")
    ] = None,
    tag: options.Tags = None,
    before: options.Before = None,
    query: Annotated[
        str | None, typer.Option("--query", "-q", help="What holds all these words.")
    ] = None,
    receipt: options.ReceiptFile = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Erase memories for good, with their earlier versions and what was derived from them.

    By ids at once; anything else is shown first and has to be confirmed, and then exactly what
    was shown goes.

    Example: scrubjay forget --query "green tea" --dry-run
    """
    named, tags = tuple(ids or ()), tuple(tag or ())
    with opened(scope) as jay:
        if named and not (session or tags or before or query or dry_run):
            deliver(jay.forget(named), receipt, as_json=as_json)
            return
        shown = jay.preview(named, session=session, tags=tags, before=before, query=query)
        if dry_run:
            _tell_preview(shown, as_json=as_json)
        elif _agreed(shown, yes=yes):
            erased = jay.forget(
                session=session, tags=tags, before=before, query=query, confirm=shown.token
            )
            deliver(erased, receipt, as_json=as_json)
        else:
            raise typer.Exit(Exit.FAILURE)


def _tell_preview(shown: Preview, *, as_json: bool) -> None:
    told = {
        "would_forget": [render.as_object(memory) for memory in shown.memories],
        "with_them": [render.as_object(memory) for memory in shown.others],
    }
    everything = (*shown.memories, *shown.others)
    render.emit(told, lambda: render.memories(everything), as_json=as_json)


def _agreed(shown: Preview, *, yes: bool) -> bool:
    if not yes:
        everything = (*shown.memories, *shown.others)
        for memory in everything[:_SHOWN]:
            render.say(f"  {memory.id}  {render.piece(memory.content)}")
        if len(everything) > _SHOWN:
            render.say(f"  and {len(everything) - _SHOWN:,} more")
    with_them = f", with {len(shown.others):,} that go with them" * bool(shown.others)
    number = render.plural(len(shown.memories), "memory")
    return confirm(f"This erases {number} for good{with_them}.", yes=yes)


def deliver(receipt: Erasure, path: Path | None, *, as_json: bool) -> None:
    """Hand out the receipt, and say in a sentence what it says."""
    document = receipts.to_json(receipt)
    if path is not None:
        files.write(path, f"{document}\n".encode())
    if as_json:
        render.line(document)
        return
    derived = f", {receipt.derived:,} of them derived or earlier versions" * bool(receipt.derived)
    render.say(f"Erased {render.plural(receipt.erased, 'memory')}{derived}.")
    if receipt.already:
        render.say(f"{receipt.already:,} had been erased before.")
    if not receipt.rotated:
        render.say("The keys that opened them go with the next commands.")
    for note in receipt.backups:
        render.say(f"A backup made before may hold them until {note.expires}.")


def purge(
    *,
    superseded_days: Annotated[
        int | None, typer.Option(min=0, help="How long to keep what was superseded.")
    ] = None,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Clean up what is expired, long superseded, or long forgotten.

    Example: scrubjay purge --superseded-days 90
    """
    with opened(scope) as jay:
        days = opening.superseded_days() if superseded_days is None else superseded_days
        taken = jay.purge(superseded_days=days)
    told = asdict(taken)
    names = {"dropped": "empty rows", "backups": "keys of old backups"}
    pairs = [(names.get(name, name), f"{number:,}") for name, number in told.items()]
    render.emit(told, lambda: render.facts(pairs), as_json=as_json)


def destroy(
    *,
    receipt: options.ReceiptFile = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Erase a whole scope, its keys first. Nothing brings it back.

    Example: scrubjay destroy --scope acme/alice --receipt destroyed.json
    """
    with installed() as installation:
        chosen = scope_of(scope, installation.settings)
        name, there = str(chosen), chosen in installation.scopes()
        if dry_run and there:
            told = {"would_destroy": name}
            render.emit(told, lambda: render.line(name), as_json=as_json)
            return
        # Of a scope that is gone already there is only the receipt to be had again.
        deed = f"This destroys everything of {name}, for good."
        if there and not confirm(deed, yes=yes, word=name):
            raise typer.Exit(Exit.FAILURE)
        deliver(installation.destroy(chosen, confirm=name), receipt, as_json=as_json)


def rotate(*, scope: options.ScopeName = None, as_json: options.AsJson = False) -> None:
    """Seal everything under new keys and delete the old ones.

    Example: scrubjay rotate
    """
    with opened(scope) as jay:
        done = jay.rotate()
    sentence = f"Sealed {render.plural(done.resealed, 'row')} anew; the old keys are gone."
    render.emit(asdict(done), lambda: render.say(sentence), as_json=as_json)
