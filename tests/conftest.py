"""What every test shares: the --more flag and how hard Hypothesis searches."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("more", max_examples=2_000, deadline=None, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--more", action="store_true", help="also run the long loops, with new seeds")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("more" if config.getoption("--more") else "steady")


@pytest.fixture(scope="session")
def more(request: pytest.FixtureRequest) -> bool:
    """Whether the long loops were asked for."""
    return bool(request.config.getoption("--more"))
