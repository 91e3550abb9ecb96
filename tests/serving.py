"""A real service on a real loopback socket, in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Asgi

from scrubjay.access import Grant, Keys
from scrubjay.engine import Kernel
from scrubjay.model.origin import Actor
from scrubjay.ports import Clock
from scrubjay.service import openapi
from scrubjay.service.app import app
from scrubjay.service.server import Listening, bind, server
from scrubjay.service.service import UNLIMITED, MountedPaths, Options


@dataclass(frozen=True)
class Running:
    """A service that runs, and a way to get keys for it."""

    url: str
    keys: Keys

    def key(
        self,
        *scopes: str,
        grants: Iterable[Grant] = tuple(Grant),
        actor: Actor = Actor.USER,
        **more: Any,
    ) -> str:
        """A new key for these scopes."""
        made = self.keys.create(name="test", scopes=scopes, grants=grants, actor=actor, **more)
        return made.token


@cache
def documented() -> dict[tuple[str, str], frozenset[int]]:
    """The statuses that the OpenAPI document lists, by method and path."""
    return {
        (method.upper(), path): frozenset(map(int, described["responses"]))
        for path, methods in openapi.document()["paths"].items()
        for method, described in methods.items()
    }


class ByTheDocument:
    """ASGI middleware that notes each answer of `/v1` with a status the document does not list."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner
        self.surprises: list[str] = []

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        async def checked(message: Message) -> None:
            if message["type"] == "http.response.start" and (route := scope.get("route")):
                place = scope["method"], route.path.replace(":path}", "}")
                if message["status"] not in documented().get(place, {message["status"]}):
                    self.surprises.append(f"{' '.join(place)} answered {message['status']}")
            await send(message)

        await self._inner(scope, receive, checked)


@contextmanager
def serving(
    engine: Kernel,
    clock: Clock,
    options: Options | None = None,
    *,
    planes: Sequence[MountedPaths] = (),
    listening: Listening | None = None,
) -> Iterator[Running]:
    """Serve an engine; the socket listens before anybody is told of it, so nobody has to wait."""
    listening = listening or Listening(port=0)
    made = ByTheDocument(app(engine, clock, options or Options(rates=UNLIMITED), planes=planes))
    with bind(listening) as bound:
        running = server(made, listening)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield Running(listening.url(bound.getsockname()[1]), Keys(engine, clock))
        finally:
            running.should_exit = True
            thread.join()
    assert not made.surprises
