"""The library handle and the client of the service keep the same contract."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrubjay import Client, Jay, connect
from scrubjay.domain.scope import Scope
from scrubjay.surfaces.care import Care
from scrubjay.surfaces.ledger import Ledger
from scrubjay.testing.engines import SqliteHome
from scrubjay.testing.surface_contract import SurfaceContract
from tests.serving import Running, serving


class TestJay(SurfaceContract):
    @pytest.fixture
    def handle(self, home: SqliteHome) -> Iterator[Jay]:
        engine, scope = home.engine(), Scope("acme", "alice")
        engine.open(scope)
        with Jay(engine, scope) as jay:
            yield jay


class TestClient(SurfaceContract):
    @pytest.fixture
    def handle(self, service: Running, request: pytest.FixtureRequest) -> Iterator[Jay]:
        key = service.key(f"acme/{abs(hash(request.node.name))}")
        with connect(service.url, key, create=True) as client:
            yield client


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = SqliteHome(tmp_path_factory.mktemp("home"))
    engine = home.engine()
    with serving(engine, home.clock) as running:
        yield running
    engine.close()


@pytest.fixture
def home(tmp_path: Path) -> SqliteHome:
    return SqliteHome(tmp_path / "home")


def test_the_client_has_every_verb_of_jay_with_the_same_signature() -> None:
    verbs = [
        name for name in {**vars(Care), **vars(Ledger), **vars(Jay)} if not name.startswith("_")
    ]
    for name in verbs:
        assert inspect.signature(getattr(Client, name)) == inspect.signature(getattr(Jay, name))
    assert len(verbs) > 35
