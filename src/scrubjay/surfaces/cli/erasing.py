"""forget, purge, destroy, rotate: what takes away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from scrubjay.domain.errors import InvalidRequest
from scrubjay.domain.memory import Memory
from scrubjay.domain.requests import BROWSE_LIMIT
from scrubjay.domain.results import Erasure
from scrubjay.engine import receipts
from scrubjay.surfaces import files
from scrubjay.surfaces.cli import opening, options, render
from scrubjay.surfaces.cli.confirm import confirm
from scrubjay.surfaces.cli.opening import installed, opened, scope_of
from scrubjay.surfaces.jay import Jay

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a person wants forgotten: exactly one of these."""

    ids: tuple[str, ...] = ()
    session: str | None = None
    tags: tuple[str, ...] = ()
    before: datetime | None = None
    query: str | None = None
    limit: int = 10

    def __post_init__(self) -> None:
        named = (self.ids, self.session, self.tags, self.before, self.query)
        if sum(one is not None and one != () for one in named) != 1:
            raise InvalidRequest(
                "Forget takes exactly one target: ids, --session, --tag, --before or --query.",
                hint='For example `scrubjay forget mem-…`, or `scrubjay forget --query "tea"`.',
            )

    def found(self, jay: Jay) -> Iterator[Memory]:
        """The memories it names, as far as they are to be seen."""
        if self.query is not None:
            yield from (hit.memory for hit in jay.recall(self.query, limit=self.limit))
        elif self.ids:
            yield from map(jay.get, self.ids)
        else:
            yield from self._listed(jay)

    def _listed(self, jay: Jay) -> Iterator[Memory]:
        cursor: int | None = None
        while True:
            page = jay.browse(
                session=self.session,
                tags=self.tags,
                before=self.before,
                superseded=True,
                limit=BROWSE_LIMIT,
                cursor=cursor,
            )
            yield from page
            if (cursor := page.next) is None:
                return

    def forget(self, jay: Jay, seen: list[Memory]) -> Erasure:
        """Erase it; of a query, what was shown and nothing that came since."""
        if self.query is not None:
            return jay.forget([memory.id for memory in seen])
        return jay.forget(self.ids, session=self.session, tags=self.tags, before=self.before)


def forget(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID…", help="Which memories.")] = None,
    *,
    session: Annotated[
        str | None, typer.Option(metavar="NAME", help="All of one conversation.")
    ] = None,
    tag: options.Tags = None,
    before: options.Before = None,
    query: Annotated[
        str | None, typer.Option("--query", "-q", help="What answers this question.")
    ] = None,
    limit: options.Hits = 10,
    receipt: options.ReceiptFile = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Erase memories for good, with their earlier versions and what was derived from them.

    By ids at once; anything else is shown first and has to be confirmed.

    Example: scrubjay forget --query "green tea" --dry-run
    """
    target = Target(
        ids=tuple(ids or ()),
        session=session,
        tags=tuple(tag or ()),
        before=before,
        query=query,
        limit=limit,
    )
    with opened(scope) as jay:
        if target.ids and not dry_run:
            _deliver(target.forget(jay, []), receipt, as_json=as_json)
            return
        seen = list(target.found(jay))
        if dry_run:
            told = {"would_forget": [render.as_object(memory) for memory in seen]}
            render.emit(told, lambda: render.memories(seen), as_json=as_json)
        elif query is not None and not seen:
            render.say("Nothing was found, and so nothing was forgotten.")
        elif _agreed(seen, yes=yes):
            _deliver(target.forget(jay, seen), receipt, as_json=as_json)
        else:
            raise typer.Exit(1)


def _agreed(seen: list[Memory], *, yes: bool) -> bool:
    if not yes:
        for memory in seen[:_SHOWN]:
            render.say(f"  {memory.id}  {render.piece(memory.content)}")
        if len(seen) > _SHOWN:
            render.say(f"  and {len(seen) - _SHOWN:,} more")
    number = render.plural(len(seen), "memory")
    return confirm(f"This erases {number} for good, and what was derived from them.", yes=yes)


def _deliver(receipt: Erasure, path: Path | None, *, as_json: bool) -> None:
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
            raise typer.Exit(1)
        _deliver(installation.destroy(chosen, confirm=name), receipt, as_json=as_json)


def rotate(*, scope: options.ScopeName = None, as_json: options.AsJson = False) -> None:
    """Seal everything under new keys and delete the old ones.

    Example: scrubjay rotate
    """
    with opened(scope) as jay:
        done = jay.rotate()
    sentence = f"Sealed {render.plural(done.resealed, 'row')} anew; the old keys are gone."
    render.emit(asdict(done), lambda: render.say(sentence), as_json=as_json)
