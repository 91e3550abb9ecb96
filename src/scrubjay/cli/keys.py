"""keys: who may ask the service for what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from scrubjay import bootstrap
from scrubjay.access import Grant, Key, Keys
from scrubjay.cli import options, render
from scrubjay.cli.confirm import confirm
from scrubjay.cli.opening import settings
from scrubjay.model.errors import NotFound
from scrubjay.model.origin import Actor, Origin

keys = typer.Typer(help="Keys for the service: make, list, revoke.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the key is for, in your words.")]
Scopes = Annotated[
    list[str],
    typer.Option(
        "--scope", "-s", metavar="SCOPE", help="tenant/owner, tenant/*, or *; may be repeated."
    ),
]
Grants = Annotated[
    list[Grant] | None,
    typer.Option("--grant", "-g", help="What for; may be repeated.", show_default="read, write"),
]
Who = Annotated[
    Actor, typer.Option("--actor", help="Who acts with it; only people leave quarantine.")
]
Most = Annotated[
    Origin | None,
    typer.Option(
        "--origin",
        help="The most trusted origin its holder may claim.",
        show_default="that of the actor",
    ),
]


@contextmanager
def _opened(*, create: bool) -> Iterator[Keys]:
    found = settings()
    if not create and not found.data.exists():
        raise NotFound("There are no keys here.", hint="`scrubjay keys create` makes the first.")
    engine = bootstrap.build(found)
    try:
        yield Keys(engine, bootstrap.clock())
    finally:
        engine.close()


@keys.command()
def create(
    name: Name,
    *,
    scope: Scopes,
    grant: Grants = None,
    actor: Who = Actor.AGENT,
    origin: Most = None,
    expires: options.Expires = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a key. It is shown now and never again.

    Example: scrubjay keys create "my agent" --scope acme/alice --grant read --grant write
    """
    with _opened(create=True) as opened:
        issued = opened.create(
            name=name,
            scopes=scope,
            grants=grant or (Grant.READ, Grant.WRITE),
            actor=actor,
            origin=origin,
            expires_at=expires,
        )

    def show() -> None:
        render.line(issued.token)
        render.say(f"Keep it safe: it is not shown again. It is listed as {issued.key.id}.")

    render.emit({**_told(issued.key), "token": issued.token}, show, as_json=as_json)


@keys.command("list")
def show(*, as_json: options.AsJson = False) -> None:
    """List the keys that are good, by their visible part.

    Example: scrubjay keys list
    """
    with _opened(create=False) as opened:
        found = opened.all()
    columns = ("id", "name", "scopes", "grants", "actor", "expires")
    rows = [
        (
            one.id,
            render.piece(one.name),
            " ".join(one.scopes),
            " ".join(one.grants),
            one.actor.value,
            render.local(one.expires_at),
        )
        for one in found
    ]
    told = {"keys": [_told(one) for one in found]}
    render.emit(told, lambda: render.table(columns, rows), as_json=as_json)


@keys.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The visible part of the key.")],
    *,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
) -> None:
    """Take a key back for good. A running service refuses it within a second.

    Example: scrubjay keys revoke k3jx2a7q
    """
    with _opened(create=False) as opened:
        if not confirm(f"The key {key_id} will never be accepted again.", yes=yes):
            raise typer.Exit(1)
        revoked = opened.revoke(key_id)
    said = f"Revoked {revoked.id} ({revoked.name})."
    render.emit({"revoked": revoked.id}, lambda: render.say(said), as_json=as_json)


def _told(key: Key) -> dict[str, Any]:
    times = {"created_at": key.created_at, "expires_at": key.expires_at}
    return {
        "id": key.id,
        "name": key.name,
        "scopes": list(key.scopes),
        "grants": [grant.value for grant in key.grants],
        "actor": key.actor.value,
        "origin": key.origin.value,
        **{name: time.isoformat() if time else None for name, time in times.items()},
    }
