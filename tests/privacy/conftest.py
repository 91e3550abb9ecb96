"""The persons of the tests of personal memory."""

from tests.dialects.personal.conftest import alice, bob, engine, home, service

__all__ = ["alice", "bob", "engine", "home", "service"]
