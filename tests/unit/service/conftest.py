"""A service in memory for a whole module, and a fresh tenant for every test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from scrubjay.access import Grant
from scrubjay.engine import Kernel
from scrubjay.service.service import Options
from scrubjay.testing.clock import FakeClock
from tests.serving import Running, serving
from tests.support.engines import MemoryHome

_numbers = itertools.count(1)
Serve = Callable[[Options], Running]


@pytest.fixture(scope="module")
def lasting_home() -> MemoryHome:
    """An installation that all tests of a module share."""
    return MemoryHome()


@pytest.fixture(scope="module")
def lasting_engine(lasting_home: MemoryHome) -> Iterator[Kernel]:
    """An engine that all tests of a module share."""
    engine = lasting_home.engine()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def clock(lasting_home: MemoryHome) -> FakeClock:
    """The clock of the shared service."""
    return lasting_home.clock


@pytest.fixture(scope="module")
def service(lasting_engine: Kernel, clock: FakeClock) -> Iterator[Running]:
    """A service without limits on rates that all tests of a module share."""
    with serving(lasting_engine, clock) as running:
        yield running


class Caller:
    """Somebody with a key, who asks."""

    def __init__(self, running: Running, token: str | None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx2.Client(base_url=running.url, headers=headers, timeout=30, verify=False)
        self.token = token

    def retain(self, content: str = "tea", **more: Any) -> str:
        """The id of a new memory."""
        answer = self.http.post("/v1/memories", json={"content": content, **more})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


@pytest.fixture
def caller(service: Running) -> Iterator[Callable[..., Caller]]:
    """How to make somebody with a key."""
    made: list[Caller] = []

    def make(*scopes: str, grants: tuple[Grant, ...] = tuple(Grant), **more: Any) -> Caller:
        token = service.key(*scopes, grants=grants, **more) if scopes else None
        made.append(Caller(service, token))
        return made[-1]

    yield make
    for one in made:
        one.http.close()


@pytest.fixture
def scope() -> str:
    """A scope nobody used before."""
    return f"acme/owner-{next(_numbers)}"


@pytest.fixture
def alice(caller: Callable[..., Caller], scope: str) -> Caller:
    """Somebody who may do everything with a scope of their own."""
    return caller(scope)
