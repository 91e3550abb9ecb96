"""OpenID Connect issuer: its trust settings, and the one-to-one mapping from claims to scopes."""

from __future__ import annotations

import base64
import hashlib
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlsplit

from scrubjay.access import PODS, SYSTEM_TENANT, Grant
from scrubjay.model.endpoints import is_loopback
from scrubjay.model.errors import Forbidden, InvalidRequest
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope

PAUSE_SECONDS: Final = 10.0
"""Minimum interval between two requests to an issuer."""


class TokenRefused(Exception):
    """The token is not valid. The message is for the log; clients learn only `expired`."""

    def __init__(self, why: str, *, expired: bool = False) -> None:
        super().__init__(why)
        self.expired = expired


class Unreachable(Exception):
    """The issuer did not answer, or its answer is malformed; the message says how."""


LONGEST: Final = 64
"""Maximum length of the name of a claim."""
ESCAPED: Final = "x-"
HASHED: Final = "h-"
_PLAIN: Final = re.compile(rf"(?!{ESCAPED}|{HASHED})[A-Za-z0-9][A-Za-z0-9._@-]{{0,{LONGEST - 1}}}")
_KEPT: Final = frozenset((string.ascii_letters + string.digits + ".@-").encode())
_TEMPLATE: Final = re.compile(
    r"(?P<before_tenant>[^{}/]*)(?:\{(?P<tenant>[^{}]+)\}(?P<after_tenant>[^{}/]*))?"
    r"/(?P<before>[^{}/]*)\{(?P<owner>[^{}]+)\}(?P<after>[^{}/]*)"
)


def name_of(claim: str) -> str:
    """The name of a claim; no two claims have the same one.

    A claim that is a name already, of at most 64 characters, stays as it is. Any other, and one
    that begins like what follows, is `x-` and its UTF-8 bytes: letters, digits and `. @ -` as they
    are, the rest as `_` and two hexadecimal digits. What would be longer than 64 characters then
    is `h-` and its SHA-256 in base32.
    """
    if _PLAIN.fullmatch(claim):
        return claim
    # A lone surrogate is no text, but JSON can say it: it must not become the name of another.
    raw = claim.encode("utf-8", "surrogatepass")
    escaped = ESCAPED + "".join(chr(one) if one in _KEPT else f"_{one:02X}" for one in raw)
    if len(escaped) <= LONGEST:
        return escaped
    return HASHED + base64.b32encode(hashlib.sha256(raw).digest()).decode().rstrip("=").lower()


def of_a_pod(tenant: str) -> bool:
    """Whether it is the tenant of a pod, or begins like one."""
    return tenant == PODS or tenant.startswith(f"{PODS}.")


@dataclass(frozen=True, slots=True)
class Template:
    """Template of scopes, `acme/{sub}`, with claims of the token in braces.

    The owner has exactly one claim and the tenant at most one, so that people with different
    claims never share a scope.
    """

    text: str
    _parts: Mapping[str, str | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = _TEMPLATE.fullmatch(self.text)
        if found is None:
            raise InvalidRequest(
                "The scope of tokens is a tenant and an owner with one claim in braces.",
                hint="For example acme/{sub}.",
            )
        object.__setattr__(self, "_parts", found.groupdict())
        longest = dict.fromkeys(self.claims, "a" * LONGEST)
        if self.scope(longest).tenant == SYSTEM_TENANT:
            raise Forbidden("The tenant system is scrubjay's own.")

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims it needs."""
        named = (self._parts["tenant"], self._parts["owner"])
        return tuple(name for name in named if name is not None)

    def scope(self, claims: Mapping[str, str]) -> Scope:
        """The scope for these claims."""
        parts = self._parts
        tenant = parts["before_tenant"] or ""
        if parts["tenant"] is not None:
            tenant += name_of(claims[parts["tenant"]]) + (parts["after_tenant"] or "")
            if of_a_pod(tenant) and not of_a_pod(parts["before_tenant"] or ""):
                raise Forbidden("A claim cannot name the tenant of a pod.")
        owner = name_of(claims[str(parts["owner"])])
        return Scope(tenant, f"{parts['before']}{owner}{parts['after']}")


OWNERS: Final = (Grant.READ, Grant.WRITE, Grant.FORGET, Grant.EXPORT)
"""Default grants of a person on their own scope."""

GRANT_PREFIX: Final = "memory:"
"""Prefix of the grants in the scope claim of a token, as in memory:read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Trust settings: one issuer whose tokens are accepted, for one audience."""

    issuer: str
    """Exactly as the issuer calls itself, to the last slash."""
    audience: str
    scope: Template
    grants: tuple[Grant, ...] = OWNERS
    actor: Actor = Actor.USER
    """Actor of requests with a token."""
    resource: str | None = None
    """Public URL of this service, if it differs from where requests arrive."""

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
    """Parse a URL; InvalidRequest unless it is https, or http on this machine."""
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
