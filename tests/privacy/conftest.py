"""The persons of the tests of personal memory."""

from tests.dialects.personal.conftest import alice, bob, engine, home, service
from tests.unit.cli.conftest import cli

__all__ = ["alice", "bob", "cli", "engine", "home", "service"]
