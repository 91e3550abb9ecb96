"""The engine: one function per verb, and the class that holds the open scopes."""

from __future__ import annotations

from scrubjay.engine.engine import Engine
from scrubjay.engine.scope.open_scope import Policy, Ports

__all__ = ["Engine", "Policy", "Ports"]
