"""The transport of MCP over HTTP: the SDK's, with the API keys and the secret of the service."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.request_state import RequestStateSecurity
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from scrubjay.service.rest import MEGABYTE
from scrubjay.service.service import Service
from scrubjay.surfaces.mcp.server import Door, MemoryServer

SESSIONS: Final = 1_000
"""How many sessions of the revision with sessions may be open at once."""


class KeyVerifier(TokenVerifier):
    """The API keys of the service, and the tokens of its issuer, as the SDK asks about them."""

    def __init__(self, service: Service, request: Request) -> None:
        self._service = service
        self._request = request

    async def verify_token(self, token: str) -> AccessToken:
        """The holder of a token, to whom the SDK binds sessions; Problem 401 for a bad one."""
        holder = await self._service.holder(self._request)
        scopes = sorted(grant.value for grant in holder.granted())
        return AccessToken(token=token, client_id=holder.id, scopes=scopes, subject=holder.name)


class Transport:
    """ASGI application of authenticated messages, in both revisions of the protocol."""

    def __init__(self, service: Service, door: Door) -> None:
        self.server = MemoryServer(
            door, state=RequestStateSecurity(keys=[service.signer.key(b"mcp request state")])
        )
        # The gate has checked Host and Origin already.
        checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self.server.streamable_http_app(
            transport_security=checked, max_request_body_size=MEGABYTE, max_sessions=SESSIONS
        )
        self._service = service
        self._answer = AuthContextMiddleware(self.server.session_manager.handle_request)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Lifespan of the sessions."""
        return self.server.session_manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a message."""
        if not self._service.options.no_auth:
            request = Request(scope)
            backend = BearerAuthBackend(KeyVerifier(self._service, request))
            if (found := await backend.authenticate(request)) is not None:
                scope["auth"], scope["user"] = found
        await self._answer(scope, receive, send)
