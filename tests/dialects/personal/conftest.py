"""A person's memory behind a service in memory, with a key of the owner, an agent and an admin."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from scrubjay.access import Grant
from scrubjay.engine import Kernel
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from scrubjay.service.cursors import Signer
from scrubjay.surfaces.personal.routes import PersonalPaths
from tests.serving import Running, serving
from tests.support.engines import MemoryHome

_numbers = itertools.count(1)
OWNER = (Grant.READ, Grant.WRITE, Grant.FORGET, Grant.EXPORT, Grant.ADMIN)


class Key:
    """One key: what it sends and gets."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"}

    def send(self, path: str, body: Any = None, *, method: str = "POST", **query: Any) -> Any:
        """The response."""
        url = path if path.startswith("http") else f"{self.url}{path}"
        sent = None if method == "GET" else (body or {})
        return httpx2.request(
            method, url, json=sent, params=query, headers=self.headers, timeout=60
        )

    def do(self, operation: str, **body: Any) -> Any:
        """The answer of an operation that must succeed."""
        response = self.send(f"/v1/personal/{operation}", body)
        assert response.status_code in (200, 201, 202), response.text
        return response.json()

    def look(self, operation: str, **query: Any) -> Any:
        """The answer of an operation that only looks."""
        response = self.send(f"/v1/personal/{operation}", method="GET", **query)
        assert response.status_code == 200, response.text
        return response.json()

    def refused(self, operation: str, **body: Any) -> tuple[int, str]:
        """The status and code of an operation that must fail."""
        response = self.send(f"/v1/personal/{operation}", body)
        assert response.status_code >= 400, response.text
        return response.status_code, response.json()["code"]


class Anonymous:
    """Somebody without a key."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str) -> httpx2.Response:
        """The response."""
        return httpx2.get(f"{self._url}{path}", timeout=60)


class Person:
    """A person with a memory, an assistant, and an organization with an administrator."""

    def __init__(self, service: Running, engine: Kernel, home: MemoryHome) -> None:
        self.org, self.user = f"acme{next(_numbers)}", "usr_abc123"
        self.scope = f"{self.org}/{self.user}"
        self.engine = engine
        self.home = home
        self.clock = home.clock
        self.running = service

        def key(*grants: Grant, actor: Actor, scope: str = self.scope) -> Key:
            return Key(service.url, service.key(scope, grants=grants, actor=actor))

        self.key = key
        self.owner = key(*OWNER, actor=Actor.USER)
        self.agent = key(Grant.READ, Grant.WRITE, Grant.FORGET, actor=Actor.AGENT)
        self.admin = key(Grant.ADMIN, actor=Actor.OPERATOR)

    @property
    def address(self) -> str:
        """Where the rows of this person are."""
        return self.engine._opened[Scope.parse(self.scope)].address

    @property
    def signer(self) -> Signer:
        """The signer of the service."""
        return Signer(self.running.keys.signing_secret())

    @property
    def anonymous(self) -> Anonymous:
        """Somebody without a key."""
        return Anonymous(self.running.url)

    def living_rows(self) -> Counter[str]:
        """How many rows are not erased, counted in the store itself."""
        tables = self.home.rows()[self.address].rows
        living = {
            one.value: [row for row in rows.values() if not row.erased]
            for one, rows in tables.items()
        }
        return Counter({name: len(rows) for name, rows in living.items()})

    def blobs(self) -> list[str]:
        """The sealed files beside the rows."""
        names = self.home.blobs.names(self.address)
        return [name for name in names if name.startswith("parcel.")]

    def store(self, content: str, **more: Any) -> str:
        """Store a fact; its id."""
        body = {"category": "learned_context", "content_type": "fact", "content": content}
        made: dict[str, str] = self.agent.do("store", **(body | more))
        return made["memory_id"]

    def contents(self, query: str, **more: Any) -> list[str]:
        """What the owner is told about a question."""
        found = self.owner.do("retrieve", query=query, min_similarity=0, **more)
        return [one["content"] for one in found["memories"]]


@pytest.fixture(scope="module")
def home() -> MemoryHome:
    return MemoryHome()


@pytest.fixture(scope="module")
def engine(home: MemoryHome) -> Iterator[Kernel]:
    engine = home.engine()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def service(engine: Kernel, home: MemoryHome) -> Iterator[Running]:
    with serving(engine, home.clock, planes=[PersonalPaths(seconds=1e6)]) as running:
        yield running


@pytest.fixture
def alice(service: Running, engine: Kernel, home: MemoryHome) -> Person:
    """A person of an organization of her own."""
    return Person(service, engine, home)


@pytest.fixture
def bob(service: Running, engine: Kernel, home: MemoryHome) -> Person:
    """Another one."""
    return Person(service, engine, home)
