"""Whose scope a token opens: what an issuer calls somebody as a name of ours, one to one."""

from __future__ import annotations

import base64
import hashlib
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from scrubjay.domain.errors import Forbidden, InvalidRequest
from scrubjay.domain.scope import Scope
from scrubjay.surfaces.keys import PODS, SYSTEM

LONGEST: Final = 64
"""How long the name of a claim may be; the words around it have as much room."""
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
    """`acme/{sub}`: which scope is whose, with claims of the token in braces.

    The owner has exactly one claim and the tenant at most one, so that two who differ in a claim
    that is named never share a scope.
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
        if self.scope(longest).tenant == SYSTEM:
            raise Forbidden("The tenant system is scrubjay's own.")

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims it needs."""
        named = (self._parts["tenant"], self._parts["owner"])
        return tuple(name for name in named if name is not None)

    def scope(self, claims: Mapping[str, str]) -> Scope:
        """The scope of who has these claims."""
        parts = self._parts
        tenant = parts["before_tenant"] or ""
        if parts["tenant"] is not None:
            tenant += name_of(claims[parts["tenant"]]) + (parts["after_tenant"] or "")
            if of_a_pod(tenant) and not of_a_pod(parts["before_tenant"] or ""):
                raise Forbidden("The tenants of pods are not for a claim to name.")
        owner = name_of(claims[str(parts["owner"])])
        return Scope(tenant, f"{parts['before']}{owner}{parts['after']}")
