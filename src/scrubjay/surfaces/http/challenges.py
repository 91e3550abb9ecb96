"""How somebody without a good key or token is told so, and where tokens come from (RFC 6750)."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request

from scrubjay.surfaces.http.problems import Problem
from scrubjay.surfaces.oidc.trust import Trust

METADATA: Final = "/.well-known/oauth-protected-resource"
INVALID: Final = "invalid_token"
_NO_HOST: Final = re.compile(r"[^A-Za-z0-9.:\[\]-]")


def unauthorized(
    request: Request, trust: Trust | None, detail: str, *, hint: str, error: str | None = None
) -> Problem:
    """The problem of a request without anything good; `error` if it had something."""
    told = {"realm": "scrubjay"}
    if error is not None:
        told["error"] = error
    if trust is not None:
        told["resource_metadata"] = resource(request, trust) + METADATA
    words = ", ".join(f'{name}="{value}"' for name, value in told.items())
    headers = {"WWW-Authenticate": f"Bearer {words}"}
    return Problem(401, "unauthorized", detail, hint=hint, headers=headers)


def resource(request: Request, trust: Trust) -> str:
    """Where clients find this service: as the operator says, or as they found it."""
    # The gate knows the name; what follows it may still be anything.
    host = _NO_HOST.sub("", request.headers["host"])
    return trust.resource or f"{request.url.scheme}://{host}"
