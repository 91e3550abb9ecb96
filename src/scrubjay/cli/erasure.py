"""Commands that erase: forget, revoke, quarantine, purge, destroy, rotate."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from scrubjay import files
from scrubjay.cli import render
from scrubjay.cli.home import confirm, installed, scope_of, scoped, settings
from scrubjay.cli.parser import (
    DRY_RUN,
    ID,
    JSON,
    PAGING,
    RECEIPT,
    SCOPE,
    YES,
    Option,
    command,
    fields,
)
from scrubjay.cli.render import Output, line, say
from scrubjay.engine.memories import receipts
from scrubjay.handle import Jay
from scrubjay.model.errors import InvalidRequest, NeedsConfirmation
from scrubjay.model.memory import abbreviated
from scrubjay.model.requests import Destroy, Forget, MarkTainted, Revoke
from scrubjay.model.results import Erasure, RootRotated

_SHOWN = 20


@scoped(
    "forget",
    Option("ID…", "Ids of the memories or turns to erase.", str, name="ids", many=True),
    fields(
        Forget,
        "session",
        "kinds --kind -k",
        "tags --tag -t",
        "where",
        "before",
        "query -q",
        "copies",
    ),
    RECEIPT,
    YES,
    DRY_RUN,
)
def forget(
    jay: Jay,
    ids: tuple[str, ...] = (),
    *,
    receipt: Path | None = None,
    yes: bool = False,
    dry_run: bool = False,
    **target: Any,
) -> Output:
    """Erase memories for good, with their earlier versions and what was derived from them.

    By whole ids at once; anything else is shown first and has to be confirmed, and then exactly
    what was shown goes.

    Example: scrubjay forget --query "green tea" --dry-run
    """
    if not ids and not target:
        raise InvalidRequest(
            "Nothing says what to forget.", hint="Give an id, --query WORDS or --tag NAME."
        )
    if ids and not target and not dry_run:
        with suppress(NeedsConfirmation):  # one is only the beginning of an id
            return erased(jay.forget(ids), receipt)
    shown = jay.preview(ids, **target)
    copies = shown.copies if shown.with_copies else ()
    everything = (*shown.memories, *shown.others, *copies)
    if dry_run:
        return Output(shown, lambda: render.memories(everything))
    if not yes:
        for memory in everything[:_SHOWN]:
            say(f"  {memory.id}  {render.piece(memory.content)}")
        if len(everything) > _SHOWN:
            say(f"  and {len(everything) - _SHOWN:,} more")
    if not shown.with_copies and (shown.copies or shown.sentences):
        say("It is said elsewhere, too; with --copies that goes along.")
    confirm(f"This erases for good: {shown.in_words()}.", yes=yes)
    return erased(jay.forget(ids, **target, confirm=shown.token), receipt)


def erased(receipt: Erasure, path: Path | None) -> Output:
    """The receipt in sentences; it is written to its file first, if one is named."""
    if path is not None:
        files.write(path, f"{receipts.to_json(receipt)}\n".encode())
    derived = f", {receipt.derived:,} of them derived or earlier versions" * bool(receipt.derived)
    notes = [f"{receipt.already:,} had been erased before."] if receipt.already else []
    if receipt.copies:
        notes.append(f"{receipt.copies:,} of them were copies, or had one cut out.")
    if receipt.again:
        notes.append(
            f"{receipt.again:,} can be derived again from what is left; without a model they "
            "stay erased."
        )
    if not receipt.rotated:
        notes.append("The keys that opened them go with the next commands.")
    if receipt.backups:
        number = len(receipt.backups)
        made = "A backup" if number == 1 else f"{number:,} backups"
        last = max(one.expires for one in receipt.backups)
        notes.append(f"{made} made before may hold them until {last}.")
    sentence = f"Erased {render.plural(receipt.erased, 'memory')}{derived}."
    return Output(receipt, lambda: say(sentence), notes)


@scoped("revoke", fields(Revoke, "session", "channel", "key"), RECEIPT, YES)
def revoke(
    jay: Jay,
    *,
    session: str | None = None,
    channel: str | None = None,
    key: str | None = None,
    receipt: Path | None = None,
    yes: bool = False,
) -> Output:
    """Undo all writes of one session, channel or API key, with everything derived from them.

    Memories that they had replaced are current again.

    Example: scrubjay revoke --session browsing --yes
    """
    target = {"session": session, "channel": channel, "key": key}
    named = [f"{name} {value}" for name, value in target.items() if value is not None]
    deed = f"This erases all that the {', '.join(named)} wrote, and what was derived from it."
    if len(named) == 1:
        confirm(deed, yes=yes)
    return erased(jay.revoke(**target), receipt)


@scoped("taint", fields(MarkTainted, "session", "origin"))
def taint(jay: Jay, **request: Any) -> Output:
    """Taint a session that has read untrusted text: what an agent infers in it counts as such.

    Example: scrubjay taint --session browsing --origin web
    """
    lowest = jay.mark_tainted(**request)
    return Output(lowest, lambda: say(f"What it writes counts as {lowest} from now on."))


# -- quarantine --------------------------------------------------------------------------------


@scoped("quarantine list", PAGING)
def waiting(jay: Jay, **request: Any) -> Output:
    """List the memories in quarantine, oldest first.

    Example: scrubjay quarantine list
    """
    found = jay.quarantined(**request)
    return Output(found, lambda: render.memories(found))


@scoped("quarantine approve", ID, YES)
def approve(jay: Jay, id: str, *, yes: bool = False) -> Output:
    """Release a memory from quarantine, after its exact text was shown.

    Example: scrubjay quarantine approve mem-3f0c9a1b
    """
    memory = jay.get(id)
    say(memory.content)
    confirm(f"This lets {memory.id}, of origin {memory.origin}, steer agents.", yes=yes)
    return Output(jay.approve(memory.id, memory.content), lambda: say("Approved."))


@scoped("quarantine reject", ID, RECEIPT, YES)
def reject(jay: Jay, id: str, *, receipt: Path | None = None, yes: bool = False) -> Output:
    """Erase a memory that is in quarantine, for good.

    Example: scrubjay quarantine reject mem-3f0c9a1b --yes
    """
    if abbreviated(id):
        id = jay.get(id).id
    confirm(f"This erases {id} for good.", yes=yes)
    return erased(jay.reject(id), receipt)


# -- whole scopes ------------------------------------------------------------------------------


@scoped(
    "purge",
    Option(
        "--superseded-days", "Retention: days a superseded memory is kept.", int, least=0,
        default="the setting superseded_days",
    ),
)  # fmt: skip
def purge(jay: Jay, *, superseded_days: int | None = None) -> Output:
    """Delete what is expired, superseded for long, or forgotten for long.

    Example: scrubjay purge --superseded-days 90
    """
    taken = jay.purge(superseded_days=superseded_days)
    names = {"dropped": "empty rows", "backups": "keys of old backups"}
    pairs = {names.get(name, name): number for name, number in asdict(taken).items()}
    return Output(taken, lambda: render.facts(pairs))


@command("destroy", RECEIPT, YES, DRY_RUN, SCOPE, JSON)
def destroy(
    *,
    receipt: Path | None = None,
    yes: bool = False,
    dry_run: bool = False,
    scope: str | None = None,
) -> Output:
    """Erase a whole scope, its keys first. Nothing brings it back.

    Example: scrubjay destroy --scope acme/alice --receipt destroyed.json
    """
    found = settings()
    chosen = scope_of(scope, found)
    name = str(chosen)
    with installed(found) as engine:
        there = chosen in engine.scopes()
        if dry_run and there:
            return Output({"would_destroy": name}, lambda: line(name))
        # Of a scope that is gone already there is only the receipt to be had again.
        deed = f"This destroys everything of {name}, for good."
        if there:
            confirm(deed, yes=yes, word=name)
        with render.progress("destroy") as bar:
            done = engine.destroy(chosen, Destroy(confirm=name), progress=bar)
        return erased(done, receipt)


@command(
    "rotate",
    Option("--root", "Rotate the root key of the whole home, which wraps all other keys."),
    SCOPE,
    JSON,
)
def rotate(*, root: bool = False, scope: str | None = None) -> Output:
    """Rotate the keys: seal everything under new ones and delete the old ones.

    With --root no cell is touched: every key slot is wrapped under a new root key, and the
    old one is destroyed. From then on older copies of the slots cannot be decrypted.

    Example: scrubjay rotate
    """
    with installed() as engine, render.progress("rotate") as progress:
        if root:
            return _root_rotated(engine.rotate_root(progress=progress))
        name = scope_of(scope, settings())
        engine.open(name, create=False)
        done = engine.rotate(name, progress=progress)
    sentence = f"Sealed {render.plural(done.resealed, 'row')} under new keys; the old are deleted."
    return Output(done, lambda: say(sentence))


def _root_rotated(done: RootRotated) -> Output:
    slots = render.plural(done.rewrapped, "slot")
    notes = [f"From {done.noise_from} on, older copies of the slots cannot be decrypted."]
    if done.recovery:
        notes.append("Print the new recovery key; the one before opens nothing any more.")

    def show() -> None:
        say(f"Wrapped {slots} under root key {done.generation}.")
        if done.recovery:
            line(done.recovery)

    return Output(done, show, notes)
