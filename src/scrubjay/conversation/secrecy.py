"""Secrets outside of texts: in the names that programs choose, and in what errors repeat."""

from __future__ import annotations

import hashlib

from scrubjay.guard.secrets import redact


def unsaid(message: str) -> str:
    """A message without the secrets it repeats."""
    return redact(message).text


def holds_secret(name: str) -> bool:
    """Whether a name holds a secret."""
    return bool(redact(name).found)


def harmless(name: str) -> str:
    """The name, or in the place of one that holds a secret a name that always stands for it."""
    if not holds_secret(name):
        return name
    return f"name-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
