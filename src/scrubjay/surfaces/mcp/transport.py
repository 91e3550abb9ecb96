"""The transport of MCP over HTTP: the SDK's, with the API keys and the secret of the service."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any, Final

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.request_state import RequestStateSecurity
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS as WITH_SESSIONS
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from scrubjay.service.problems import Problem
from scrubjay.service.rest import BY_NAME, MEGABYTE
from scrubjay.service.service import Service
from scrubjay.surfaces.mcp.server import Door, MemoryServer

SESSIONS: Final = 1_000
"""How many sessions of the revision with sessions may be open; a further one ends another."""
SESSIONS_OF_A_KEY: Final = 32
"""How many of them one key may have; a further one ends its idlest."""
_OLDER: Final = (None, *WITH_SESSIONS)
"""The revisions with sessions; a request without one speaks the first of them."""
_NAME: Final = "mcp-session-id"


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
        self._open = defaultdict[str, dict[str, Any]](dict)
        """The sessions of each key, the idlest first, with credentials and user of their owner."""
        self._opening = Counter[str]()
        self._answer = AuthContextMiddleware(self.server.session_manager.handle_request)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Lifespan of the sessions."""
        return self.server.session_manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a message."""
        key, request = scope["state"]["key"], Request(scope)
        name, version = request.headers.get(_NAME), request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if name is not None and name in (mine := self._open[key]):
            owner = mine.pop(name)
            if request.method != "DELETE":
                mine[name] = owner
        if name is None and request.method == "POST" and version in _OLDER:
            await self._begin(key, scope, receive, send)
        else:
            await self._handle(scope, receive, send)

    async def _begin(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session, which costs a write, and end the idlest beyond what a key may have."""
        service, mine = self._service, self._open[key]
        await service.meter.spend(key, BY_NAME["retain"], service.bridge)
        if self._opening[key] >= SESSIONS_OF_A_KEY:
            raise Problem(429, "rate_limited", "This key is opening too many sessions at once.")
        # What is open, or opening; only what is open can be ended.
        while sum(map(len, self._open.values())) >= max(1, SESSIONS - self._opening.total()):
            await self._end(scope, max(self._open.values(), key=len))

        async def noted(message: Message) -> None:
            for name, value in message.get("headers", ()):
                if name.lower() == _NAME.encode() and message.get("status") == HTTPStatus.OK:
                    mine[value.decode("latin-1")] = scope.get("auth"), scope.get("user")
            await send(message)

        self._opening[key] += 1
        try:
            await self._handle(scope, receive, noted)
        finally:
            self._opening[key] -= 1
        while len(mine) > SESSIONS_OF_A_KEY:
            await self._end(scope, mine)

    async def _end(self, scope: Scope, sessions: dict[str, Any]) -> None:
        """End the idlest of a key's sessions as its client would."""
        name = next(iter(sessions))
        auth, user = sessions.pop(name)
        named = {**scope, "method": "DELETE", "auth": auth, "user": user}
        named["headers"] = [(_NAME.encode(), name.encode())]

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unsent(_: Message) -> None:
            pass

        await self._answer(named, nothing, unsent)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._service.options.no_auth:
            request = Request(scope)
            backend = BearerAuthBackend(KeyVerifier(self._service, request))
            if (found := await backend.authenticate(request)) is not None:
                scope["auth"], scope["user"] = found
        await self._answer(scope, receive, send)
