"""Commands that erase: forget, revoke, quarantine, purge, destroy, rotate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from scrubjay import files
from scrubjay import settings as reading
from scrubjay.cli import render
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import confirm, installed, opened, scope_of, settings
from scrubjay.cli.parser import DRY_RUN, ID, JSON, RECEIPT, SCOPE, YES, Option, command, fields
from scrubjay.engine.memories import receipts
from scrubjay.model.requests import Destroy, Forget, Revoke
from scrubjay.model.results import Erasure, Preview

_SHOWN = 20


@command(
    "forget",
    Option("ID…", "Ids of the memories or turns to erase.", str, name="ids", many=True),
    fields(Forget, "session", "tags --tag -t", "before", "query -q"),
    RECEIPT,
    YES,
    DRY_RUN,
    SCOPE,
    JSON,
)
def forget(
    ids: tuple[str, ...] = (),
    *,
    receipt: Path | None = None,
    yes: bool = False,
    dry_run: bool = False,
    scope: str | None = None,
    as_json: bool = False,
    **target: Any,
) -> int:
    """Erase memories for good, with their earlier versions and what was derived from them.

    By ids at once; anything else is shown first and has to be confirmed, and then exactly what
    was shown goes.

    Example: scrubjay forget --query "green tea" --dry-run
    """
    with opened(scope) as jay:
        if ids and not target and not dry_run:
            deliver(jay.forget(ids), receipt, as_json=as_json)
            return Exit.OK
        shown = jay.preview(ids, **target)
        everything = (*shown.memories, *shown.others)
        if dry_run:
            render.emit(shown, lambda: render.memories(everything), as_json=as_json)
        elif _agreed(shown, yes=yes):
            deliver(jay.forget(**target, confirm=shown.token), receipt, as_json=as_json)
        else:
            return Exit.FAILURE
    return Exit.OK


def _agreed(shown: Preview, *, yes: bool) -> bool:
    everything = (*shown.memories, *shown.others)
    if not yes:
        for memory in everything[:_SHOWN]:
            render.say(f"  {memory.id}  {render.piece(memory.content)}")
        if len(everything) > _SHOWN:
            render.say(f"  and {len(everything) - _SHOWN:,} more")
    with_them = f", with {len(shown.others):,} that go with them" * bool(shown.others)
    number = render.plural(len(shown.memories), "memory")
    return confirm(f"This erases {number} for good{with_them}.", yes=yes)


def deliver(receipt: Erasure, path: Path | None, *, as_json: bool) -> None:
    """Write the receipt to its file, if one is named, and print what it says."""
    if path is not None:
        files.write(path, f"{receipts.to_json(receipt)}\n".encode())
    derived = f", {receipt.derived:,} of them derived or earlier versions" * bool(receipt.derived)
    sentence = f"Erased {render.plural(receipt.erased, 'memory')}{derived}."
    render.emit(receipt, lambda: render.say(sentence), as_json=as_json)
    if as_json:
        return
    if receipt.already:
        render.say(f"{receipt.already:,} had been erased before.")
    if not receipt.rotated:
        render.say("The keys that opened them go with the next commands.")
    for note in receipt.backups:
        render.say(f"A backup made before may hold them until {note.expires}.")


@command("revoke", fields(Revoke, "session", "channel --channel"), RECEIPT, YES, SCOPE, JSON)
def revoke(
    *,
    session: str | None = None,
    channel: str | None = None,
    receipt: Path | None = None,
    yes: bool = False,
    scope: str | None = None,
    as_json: bool = False,
) -> int:
    """Undo all writes of one session or channel, with everything derived from them.

    What these had corrected is as it was before.

    Example: scrubjay revoke --session browsing --yes
    """
    with opened(scope) as jay:
        whose = f"session {session}" if session else f"channel {channel}"
        deed = f"This erases everything that the {whose} wrote, and what was derived from it."
        if (session is None) != (channel is None) and not confirm(deed, yes=yes):
            return Exit.FAILURE
        deliver(jay.revoke(session=session, channel=channel), receipt, as_json=as_json)
    return Exit.OK


# -- quarantine --------------------------------------------------------------------------------


@command("quarantine list", SCOPE, JSON)
def waiting(*, scope: str | None = None, as_json: bool = False) -> None:
    """List the memories in quarantine, oldest first.

    Example: scrubjay quarantine list
    """
    with opened(scope) as jay:
        found = jay.quarantined()
    render.emit(found, lambda: render.memories(found), as_json=as_json)


@command("quarantine approve", ID, YES, SCOPE, JSON)
def approve(id: str, *, yes: bool = False, scope: str | None = None, as_json: bool = False) -> int:
    """Release a memory from quarantine, after its exact text was shown.

    Example: scrubjay quarantine approve mem-3f0c
    """
    with opened(scope) as jay:
        memory = jay.get(id)
        render.say(memory.content)
        if not confirm(f"This lets {id}, of origin {memory.origin}, steer agents.", yes=yes):
            return Exit.FAILURE
        approved = jay.approve(id, memory.content)
    render.emit(approved, lambda: render.say("Approved."), as_json=as_json)
    return Exit.OK


@command("quarantine reject", ID, RECEIPT, YES, SCOPE, JSON)
def reject(
    id: str,
    *,
    receipt: Path | None = None,
    yes: bool = False,
    scope: str | None = None,
    as_json: bool = False,
) -> int:
    """Erase a memory that is in quarantine, for good.

    Example: scrubjay quarantine reject mem-3f0c --yes
    """
    with opened(scope) as jay:
        if not confirm(f"This erases {id} for good.", yes=yes):
            return Exit.FAILURE
        deliver(jay.reject(id), receipt, as_json=as_json)
    return Exit.OK


# -- whole scopes ------------------------------------------------------------------------------


@command(
    "purge",
    Option(
        "--superseded-days", "Retention: days a superseded memory is kept.", int, least=0,
        default="the setting superseded_days",
    ),
    SCOPE,
    JSON,
)  # fmt: skip
def purge(
    *, superseded_days: int | None = None, scope: str | None = None, as_json: bool = False
) -> None:
    """Delete what is expired, superseded for long, or forgotten for long.

    Example: scrubjay purge --superseded-days 90
    """
    if superseded_days is None:
        superseded_days = reading.read().superseded_days
    with opened(scope) as jay:
        taken = jay.purge(superseded_days=superseded_days)
    names = {"dropped": "empty rows", "backups": "keys of old backups"}
    pairs = {names.get(name, name): number for name, number in asdict(taken).items()}
    render.emit(taken, lambda: render.facts(pairs), as_json=as_json)


@command("destroy", RECEIPT, YES, DRY_RUN, SCOPE, JSON)
def destroy(
    *,
    receipt: Path | None = None,
    yes: bool = False,
    dry_run: bool = False,
    scope: str | None = None,
    as_json: bool = False,
) -> int:
    """Erase a whole scope, its keys first. Nothing brings it back.

    Example: scrubjay destroy --scope acme/alice --receipt destroyed.json
    """
    found = settings()
    chosen = scope_of(scope, found)
    name = str(chosen)
    with installed(found) as engine:
        there = chosen in engine.scopes()
        if dry_run and there:
            render.emit({"would_destroy": name}, lambda: render.line(name), as_json=as_json)
            return Exit.OK
        # Of a scope that is gone already there is only the receipt to be had again.
        deed = f"This destroys everything of {name}, for good."
        if there and not confirm(deed, yes=yes, word=name):
            return Exit.FAILURE
        deliver(engine.destroy(chosen, Destroy(confirm=name)), receipt, as_json=as_json)
    return Exit.OK


@command("rotate", SCOPE, JSON)
def rotate(*, scope: str | None = None, as_json: bool = False) -> None:
    """Rotate the keys: seal everything under new ones and delete the old ones.

    Example: scrubjay rotate
    """
    with opened(scope) as jay:
        done = jay.rotate()
    sentence = f"Sealed {render.plural(done.resealed, 'row')} anew; the old keys are gone."
    render.emit(done, lambda: render.say(sentence), as_json=as_json)
