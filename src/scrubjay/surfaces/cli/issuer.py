"""The options of `serve` that say whose tokens are good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from scrubjay.domain import text
from scrubjay.domain.errors import InvalidRequest
from scrubjay.domain.origin import Actor
from scrubjay.surfaces.keys import Grant

if TYPE_CHECKING:
    from scrubjay.surfaces.oidc.trust import Trust

Issuer = Annotated[
    str | None,
    typer.Option("--oidc-issuer", metavar="URL", help="Accept the tokens of this OIDC issuer."),
]
Audience = Annotated[
    str | None,
    typer.Option("--oidc-audience", metavar="NAME", help="What they must be issued for."),
]
ScopeOf = Annotated[
    str | None,
    typer.Option(
        "--oidc-scope", metavar="SCOPE", help="Whose memory they open, as in 'acme/{sub}'."
    ),
]
Grants = Annotated[
    str | None,
    typer.Option(
        "--oidc-grants",
        metavar="LIST",
        help="What for, with commas; a token may ask for less.",
        show_default="read,write,forget,export",
    ),
]
Who = Annotated[Actor, typer.Option("--oidc-actor", help="Who acts with them.")]
Resource = Annotated[
    str | None,
    typer.Option("--oidc-resource", metavar="URL", help="Where clients find it behind a proxy."),
]


def trusted(
    *,
    issuer: str | None,
    audience: str | None,
    scope: str | None,
    grants: str | None,
    actor: Actor,
    resource: str | None,
) -> Trust | None:
    """The issuer the options name; None if they name none."""
    if issuer is None:
        if audience or scope or grants or resource:
            raise InvalidRequest("Nobody's tokens are accepted.", hint="Add --oidc-issuer.")
        return None
    from scrubjay.surfaces.oidc.names import Template
    from scrubjay.surfaces.oidc.trust import OWNERS, Trust

    if not audience or not scope:
        raise InvalidRequest(
            "An issuer needs an audience, and the scope of who has its tokens.",
            hint="Add --oidc-audience, and --oidc-scope as in 'acme/{sub}'.",
        )
    return Trust(
        issuer=issuer,
        audience=audience,
        scope=Template(scope),
        grants=_listed(grants) if grants is not None else OWNERS,
        actor=actor,
        resource=resource,
    )


def _listed(grants: str) -> tuple[Grant, ...]:
    named = [one.strip() for one in grants.split(",") if one.strip()]
    chosen = {text.check_choice("A grant", one, Grant) for one in named}
    return tuple(grant for grant in Grant if grant in chosen)
