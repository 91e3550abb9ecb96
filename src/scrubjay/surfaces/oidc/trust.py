"""Which issuer is trusted, with whom, and for what: what the operator decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from scrubjay.domain.errors import InvalidRequest
from scrubjay.domain.hosts import is_loopback
from scrubjay.domain.origin import Actor
from scrubjay.surfaces.keys import Grant
from scrubjay.surfaces.oidc.names import Template

OWNERS: Final = (Grant.READ, Grant.WRITE, Grant.FORGET, Grant.EXPORT)
"""What somebody may do with their own memory, unless the operator says otherwise."""

GRANT_PREFIX: Final = "memory:"
"""What the scopes of a token that are grants begin with, as in memory:read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """One issuer whose tokens are good, for one audience."""

    issuer: str
    """Exactly as the issuer calls itself, to the last slash."""
    audience: str
    scope: Template
    grants: tuple[Grant, ...] = OWNERS
    actor: Actor = Actor.USER
    """Who acts when a token is used."""
    resource: str | None = None
    """Where clients find this service, if that is not where their requests arrive."""

    def __post_init__(self) -> None:
        check_url("The issuer", self.issuer)
        if not self.audience:
            raise InvalidRequest(
                "Tokens need an audience.", hint="Name it as your issuer calls this service."
            )
        if not self.grants:
            raise InvalidRequest("Tokens need a grant.", hint=f"Of: {', '.join(Grant)}.")
        if self.resource is not None and check_url("The resource", self.resource).path:
            raise InvalidRequest(
                "The resource is the address of the service, without a path.",
                hint="For example https://memory.example.com.",
            )

    @property
    def on_loopback(self) -> bool:
        """Whether the issuer is on this machine, where it needs no TLS."""
        return self.issuer.startswith("http:")


def check_url(what: str, url: str) -> SplitResult:
    """The parts of an address that can be trusted: over TLS, or on this machine."""
    try:
        parts = urlsplit(url)
        good = parts.scheme == "https" or (
            parts.scheme == "http" and is_loopback(parts.hostname or "")
        )
        bare = parts.username is None and not parts.query and not parts.fragment
        if good and bare and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass  # a port that is no number, brackets that do not close
    raise InvalidRequest(
        f"{what} must be an https address, or http on this machine.",
        hint="Without a user, a query or a fragment.",
    )
