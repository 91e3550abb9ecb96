"""The service on a real socket, with the plane mounted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from scrubjay.engine import Kernel
from scrubjay.ports import Clock
from scrubjay.service.app import app
from scrubjay.service.server import Listening, bind, server
from scrubjay.service.service import UNLIMITED, Options
from scrubjay.surfaces.clawdapus.descriptor import PlaneOffer
from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane
from tests.dialects.clawdapus.pod import Claw, Manifest, Proxy
from tests.support.engines import MemoryHome

Serve = Callable[..., str]
PATIENT = PlaneOffer(recall_seconds=30)
"""A machine that runs other things beside the tests may take longer than a pod's does."""
OPEN = Options(no_auth=True, rates=UNLIMITED)


@pytest.fixture
def serve(home: MemoryHome) -> Iterator[Serve]:
    """Serve an engine; returns where. All of them end with the test."""
    running: list[tuple[object, threading.Thread]] = []

    def start(
        engine: Kernel,
        offer: PlaneOffer = PATIENT,
        options: Options = OPEN,
        clock: Clock | None = None,
    ) -> str:
        listening = Listening(port=0, no_auth=True)
        made = app(engine, clock or home.clock, options, planes=[ClawdapusPlane(offer)])
        served = server(made, listening)
        door = bind(listening)
        thread = threading.Thread(
            target=lambda: asyncio.run(served.serve(sockets=[door])), daemon=True
        )
        thread.start()
        running.append((served, thread))
        return listening.url(door.getsockname()[1])

    yield start
    for served, thread in running:
        served.should_exit = True  # type: ignore[attr-defined]
        thread.join(timeout=30)


@pytest.fixture
def url(serve: Serve, engine: Kernel) -> str:
    """A running service that asks for no token."""
    return serve(engine)


@pytest.fixture
def manifest(url: str) -> Manifest:
    """What an agent of the pod knows of it."""
    return Manifest(url)


@pytest.fixture
def proxy(manifest: Manifest) -> Proxy:
    """The proxy of that agent."""
    manifest.recall_seconds = 30.0
    return Proxy(manifest)


@pytest.fixture
def claw(manifest: Manifest) -> Claw:
    """The operator of the pod."""
    return Claw(manifest)
