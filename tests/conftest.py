"""What every test shares: homes and engines, the --more flag, and the seed of the loops."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from scrubjay.engine import Kernel
from tests.support.engines import MemoryHome, SqliteHome
from tests.support.key_services import KeyService, SoftToken
from tests.support.objects import VARIABLES, ObjectServer
from tests.support.postgres import PostgresServer

settings.register_profile("steady", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("more", max_examples=2_000, deadline=None, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--more", action="store_true", help="also run the long loops, with new seeds")
    parser.addoption("--seed", type=int, help="the seed of the loops, to repeat a failure")


def pytest_configure(config: pytest.Config) -> None:
    more = config.getoption("--more")
    settings.load_profile("more" if more else "steady")
    if config.option.seed is None:
        # Set here, before xdist copies the options, so that all its processes have the same one.
        config.option.seed = random.SystemRandom().randrange(2**32) if more else 0


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {config.option.seed}"


@pytest.fixture(scope="session")
def more(request: pytest.FixtureRequest) -> bool:
    """Whether the long loops were asked for."""
    return bool(request.config.getoption("--more"))


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """What every seeded loop begins from: fixed by default, new with --more."""
    return int(request.config.option.seed)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests measured, that is what they recorded as properties."""
    measured = [
        f"{report.nodeid.split('::')[-1]}: "
        + ", ".join(f"{name} {value}" for name, value in report.user_properties)
        for report in terminalreporter.getreports("passed")
        if report.user_properties and report.when == "call"
    ]
    if measured:
        terminalreporter.section("measured")
        for line in measured:
            terminalreporter.write_line(line)


@pytest.fixture
def home() -> MemoryHome:
    """An empty installation in memory."""
    return MemoryHome()


@pytest.fixture
def engine(home: MemoryHome) -> Iterator[Kernel]:
    """An engine on the installation in memory."""
    engine = home.engine()
    yield engine
    engine.close()


@pytest.fixture
def sqlite_home(tmp_path: Path) -> SqliteHome:
    """An empty installation in a folder."""
    return SqliteHome(tmp_path / "home")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests of this process."""
    server = PostgresServer()
    yield server
    server.end()


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The address of an empty database."""
    url = postgres.database()
    yield url
    postgres.drop(url)


@pytest.fixture(scope="session")
def objects() -> Iterator[ObjectServer]:
    """An S3 server for all tests of this process, with the credentials in its environment."""
    os.environ.update(VARIABLES)
    server = ObjectServer()
    yield server
    server.end()


@pytest.fixture(scope="session")
def token() -> SoftToken:
    """A PKCS#11 token for all tests of this process."""
    return SoftToken()


@pytest.fixture(scope="session")
def kms() -> Iterator[KeyService]:
    """A KMS server for all tests of this process, with the credentials in its environment."""
    server = KeyService()
    yield server
    server.end()


@pytest.fixture
def bucket(objects: ObjectServer) -> str:
    """The address of an empty bucket."""
    return objects.address()
