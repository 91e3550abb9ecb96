"""The library handle and the client of the service keep the same contract."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrubjay import Jay, connect, handle
from scrubjay.client import RemoteEngine
from scrubjay.model.scope import Scope
from scrubjay.service.rest import BY_NAME
from scrubjay.verbs import Verb, Verbs
from tests.contract.surface_contract import SurfaceContract
from tests.serving import Running, serving
from tests.support.engines import SqliteHome


class TestJay(SurfaceContract):
    @pytest.fixture
    def handle(self, home: SqliteHome) -> Iterator[Jay]:
        engine, scope = home.engine(), Scope("acme", "alice")
        engine.open(scope)
        with Jay(engine, scope) as handle:
            yield handle


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


def test_every_verb_the_handle_asks_an_engine_for_is_one_the_client_can_send() -> None:
    asked = set(re.findall(r"self\._engine\.(\w+)\(", inspect.getsource(handle)))
    asked |= {name for name, one in vars(Verbs).items() if isinstance(one, Verb)}
    assert len(asked) > 28
    assert asked - set(BY_NAME) - set(vars(RemoteEngine)) == set()
