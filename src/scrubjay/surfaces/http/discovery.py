"""Where clients learn which issuer is trusted: the metadata of a protected resource (RFC 9728)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scrubjay.surfaces.http.answers import as_json
from scrubjay.surfaces.http.challenges import METADATA, resource
from scrubjay.surfaces.oidc.trust import GRANT_PREFIX, Trust


def routes(trust: Trust | None) -> list[Route]:
    """Where the metadata is found, if there is an issuer to name."""
    if trust is None:
        return []

    async def metadata(request: Request) -> Response:
        return as_json(
            {
                "resource": resource(request, trust),
                "resource_name": "scrubjay",
                "authorization_servers": [trust.issuer],
                "scopes_supported": [f"{GRANT_PREFIX}{grant}" for grant in trust.grants],
                "bearer_methods_supported": ["header"],
            }
        )

    return [Route(METADATA, metadata, methods=["GET"])]
