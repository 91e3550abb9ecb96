"""Scope: the unit of ownership, `tenant/owner`."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Struct

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.text import doc

_NAME = re.compile(r"[a-z0-9-][a-z0-9.-]{0,63}")


def check_place(what: str, name: str) -> str:
    """The name, if it has 1 to 64 characters of a-z, 0-9, `-` and `.` and begins with no dot."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"The {what} is not a valid name.",
            hint="Use 1 to 64 characters of a-z, 0-9, - and ., not beginning with a dot.",
        )
    return name


LOCAL_TENANT = "local"
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")


class Scope(Struct, frozen=True):
    """`tenant/owner`: the bound of keys, isolation, export and destroy."""

    tenant: str
    owner: str

    def __post_init__(self) -> None:
        for part, name in (("tenant", self.tenant), ("owner", self.owner)):
            if not isinstance(name, str) or not _PART.fullmatch(name):
                raise InvalidRequest(
                    f"The {part} part of the scope is not a valid name.",
                    hint="Use 1 to 128 letters, digits and . _ @ -, a letter or digit first.",
                )

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Read `tenant/owner`, or `owner` alone for the local tenant."""
        if not isinstance(text, str) or text.count("/") > 1:
            raise InvalidRequest(
                "A scope is written owner or tenant/owner.",
                hint='For example "alice" or "acme/alice".',
            )
        tenant, slash, owner = text.partition("/")
        return cls(tenant, owner) if slash else cls(LOCAL_TENANT, tenant)

    def order(self) -> tuple[str, str]:
        """Where it stands in a list of scopes."""
        return (self.tenant, self.owner)

    def __str__(self) -> str:
        return f"{self.tenant}/{self.owner}"


class Quota(Struct, frozen=True, kw_only=True):
    """Quota: the most that a scope and a tenant may hold; 0 for any amount."""

    memories: Annotated[
        int, doc("Most memories of a scope, superseded ones too; 0 for any.", ge=0)
    ] = 0
    megabytes: Annotated[int, doc("Most megabytes of a scope on the disk; 0 for any.", ge=0)] = 0
    scopes: Annotated[int, doc("Most scopes of a tenant; 0 for any.", ge=0)] = 0

    def within(self, other: Quota) -> Quota:
        """The stricter of both, part by part."""
        limits = {
            name: min(filter(None, (getattr(self, name), getattr(other, name))), default=0)
            for name in self.__struct_fields__
        }
        return Quota(**limits)
