"""remember, correct, pin, unpin: what changes memories."""

from __future__ import annotations

from typing import Annotated

import typer

from scrubjay.cli import options, render
from scrubjay.cli.opening import opened
from scrubjay.handle import Jay
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Origin
from scrubjay.model.results import Outcome, Retained

_OUTCOMES = {
    Outcome.KNOWN: "It was there already; nothing changed.",
    Outcome.FORGOTTEN: "It was forgotten once and stays so; nothing changed.",
}


def remember(
    text: options.Text,
    *,
    kind: Annotated[
        Kind | None, typer.Option("--kind", "-k", help="What it is about.", show_default="fact")
    ] = None,
    tag: options.Tags = None,
    importance: options.Importance = None,
    expires: options.Expires = None,
    pin: Annotated[bool, typer.Option("--pin", help="Put it first in the brief.")] = False,
    supersedes: Annotated[
        str | None, typer.Option(metavar="ID", help="The memory it takes the place of.")
    ] = None,
    session: options.Session = None,
    origin: options.OneOrigin = Origin.USER,
    key: Annotated[
        str | None, typer.Option("--key", help="Written under the same key again, nothing changes.")
    ] = None,
    anew: options.Anew = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Remember a text; prints the id it can be named by.

    Example: scrubjay remember "Alice prefers green tea" --kind preference --tag food
    """
    content = options.text_of(text)
    with opened(scope, create=True, anew=anew) as jay:
        if supersedes is None:
            receipt = jay.retain(
                content,
                kind=kind or Kind.FACT,
                tags=tag or (),
                importance=0.5 if importance is None else importance,
                pinned=pin,
                key=key,
                session=session,
                origin=origin,
                expires_at=expires,
            )
        else:
            receipt = jay.supersede(
                supersedes,
                content,
                kind=kind,
                tags=tag,
                importance=importance,
                key=key,
                session=session,
                origin=origin,
            )
            if pin:
                jay.pin(receipt.id)
            if expires is not None:
                jay.expire(receipt.id, expires)
    _tell(receipt, as_json=as_json)


def _tell(receipt: Retained, *, as_json: bool) -> None:
    told = {
        "id": receipt.id,
        "outcome": receipt.outcome.value,
        "redacted": dict(receipt.redacted),
    }
    render.emit(told, lambda: render.line(receipt.id), as_json=as_json)
    if as_json:
        return
    if note := _OUTCOMES.get(receipt.outcome):
        render.say(note)
    render.redactions(receipt.redacted)


def correct(
    id: options.Id,
    text: options.Text,
    *,
    reason: Annotated[str | None, typer.Option(help="Why it is corrected.")] = None,
    session: options.Session = None,
    origin: options.OneOrigin = Origin.USER,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Replace a memory by a new text; the old one stays as history. Prints the new id.

    Example: scrubjay correct mem-… "Alice prefers white tea" --reason "she said so"
    """
    content = options.text_of(text)
    with opened(scope) as jay:
        receipt = jay.supersede(id, content, reason=reason, session=session, origin=origin)
    _tell(receipt, as_json=as_json)


def pin(
    id: options.Id, *, scope: options.ScopeName = None, as_json: options.AsJson = False
) -> None:
    """Pin a memory: it comes first in the brief.

    Example: scrubjay pin mem-…
    """
    with opened(scope) as jay:
        _set_pin(jay, id, pinned=True, as_json=as_json)


def unpin(
    id: options.Id, *, scope: options.ScopeName = None, as_json: options.AsJson = False
) -> None:
    """Take the pin off a memory.

    Example: scrubjay unpin mem-…
    """
    with opened(scope) as jay:
        _set_pin(jay, id, pinned=False, as_json=as_json)


def _set_pin(jay: Jay, id: str, *, pinned: bool, as_json: bool) -> None:
    changed = jay.pin(id) if pinned else jay.unpin(id)
    render.emit(
        {"id": changed.id, "pinned": changed.pinned},
        lambda: render.say("Pinned." if pinned else "Unpinned."),
        as_json=as_json,
    )
